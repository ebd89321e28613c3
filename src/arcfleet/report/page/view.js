// Moving and zooming: from units of the plan to pixels of the canvas.

const canvas = document.getElementById("map");
const view = { scale: 1, x: 0, y: 0, width: 0, height: 0, ratio: 1, least: 0, most: 1, whole: true };
const MARGIN = 28;

let waiting = false;
function redraw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    draw();
  });
}

const joinBoxes = (a, b) => [
  Math.min(a[0], b[0]), Math.min(a[1], b[1]), Math.max(a[2], b[2]), Math.max(a[3], b[3]),
];
// Depots and facilities are always in sight.
const marks = [...plan.depots, ...plan.facilities].map(({ place }) => [...place, ...place]);
const boxOf = (some) => [...marks, ...some.map((link) => link.box)].reduce(joinBoxes);
const bounds = boxOf(links);
// Most of a large map is there to drive on only: what is served and driven is shown first.
const planned = links.filter((link) => link.required || link.visits.length);
const plannedBounds = planned.length ? boxOf(planned) : bounds;

function showAll() {
  const room = (side) => Math.max(side - 2 * MARGIN, 40);
  const fitting = (box) => Math.min(
    room(view.width) / (box[2] - box[0] || 1), room(view.height) / (box[3] - box[1] || 1),
  );
  view.scale = fitting(plannedBounds);
  view.whole = true;
  view.least = fitting(bounds) / 3;
  view.most = Math.max(view.scale * 4, 400 / typical);
  view.x = view.width / 2 - (view.scale * (plannedBounds[0] + plannedBounds[2])) / 2;
  view.y = view.height / 2 - (view.scale * (plannedBounds[1] + plannedBounds[3])) / 2;
  redraw();
}

function resize() {
  const { clientWidth: width, clientHeight: height } = canvas;
  if (width === 0 || height === 0) return;
  const dx = (width - view.width) / 2, dy = (height - view.height) / 2;
  Object.assign(view, { width, height, ratio: window.devicePixelRatio || 1 });
  canvas.width = Math.round(width * view.ratio);
  canvas.height = Math.round(height * view.ratio);
  // Until somebody moves it, the whole plan stays in sight.
  if (view.whole) showAll();
  else move(dx, dy);
  draw(); // at once: a new size has wiped the canvas
}

function move(dx, dy) {
  view.whole = false;
  view.x += dx;
  view.y += dy;
  // Some part of the plan stays in sight.
  const keep = 60;
  view.x = Math.min(Math.max(view.x, keep - view.scale * bounds[2]), view.width - keep - view.scale * bounds[0]);
  view.y = Math.min(Math.max(view.y, keep - view.scale * bounds[3]), view.height - keep - view.scale * bounds[1]);
  redraw();
}

function zoom(factor, x = view.width / 2, y = view.height / 2) {
  const scale = Math.min(Math.max(view.scale * factor, view.least), view.most);
  const actual = scale / view.scale;
  view.scale = scale;
  view.x = x - actual * (x - view.x);
  view.y = y - actual * (y - view.y);
  move(0, 0);
}

const pointers = new Map();
let travelled = 0;

canvas.addEventListener("pointerdown", (event) => {
  canvas.setPointerCapture(event.pointerId);
  pointers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
  travelled = 0;
  canvas.classList.add("dragged");
});

canvas.addEventListener("pointermove", (event) => {
  const pointer = pointers.get(event.pointerId);
  if (!pointer) {
    if (event.pointerType === "mouse") pointAt(event.offsetX, event.offsetY);
    return;
  }
  const dx = event.offsetX - pointer.x, dy = event.offsetY - pointer.y;
  const others = [...pointers].filter(([id]) => id !== event.pointerId);
  if (others.length === 0) {
    move(dx, dy);
  } else {
    const [, other] = others[0];
    const before = Math.hypot(pointer.x - other.x, pointer.y - other.y) || 1;
    const after = Math.hypot(event.offsetX - other.x, event.offsetY - other.y) || 1;
    zoom(after / before, other.x, other.y);
  }
  pointer.x = event.offsetX;
  pointer.y = event.offsetY;
  travelled += Math.abs(dx) + Math.abs(dy);
  if (travelled > 6) pointAtNothing();
});

for (const name of ["pointerup", "pointercancel"]) {
  canvas.addEventListener(name, (event) => {
    pointers.delete(event.pointerId);
    if (pointers.size === 0) canvas.classList.remove("dragged");
    // A tap tells what a mouse learns by hovering.
    if (name === "pointerup" && travelled <= 6) pointAt(event.offsetX, event.offsetY);
  });
}
canvas.addEventListener("pointerleave", pointAtNothing);

canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  const pixels = event.deltaY * (event.deltaMode === 1 ? 20 : 1);
  zoom(Math.exp(-Math.max(-300, Math.min(300, pixels)) / 400), event.offsetX, event.offsetY);
}, { passive: false });

const STEP = 60;
const keys = {
  ArrowLeft: () => move(STEP, 0), ArrowRight: () => move(-STEP, 0),
  ArrowUp: () => move(0, STEP), ArrowDown: () => move(0, -STEP),
  "+": () => zoom(1.4), "=": () => zoom(1.4), "-": () => zoom(1 / 1.4), 0: showAll,
  " ": () => togglePlay(),
};
canvas.addEventListener("keydown", (event) => {
  if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  keys[event.key]();
});

document.getElementById("zoom-in").addEventListener("click", () => zoom(1.5));
document.getElementById("zoom-out").addEventListener("click", () => zoom(1 / 1.5));
document.getElementById("zoom-all").addEventListener("click", showAll);
