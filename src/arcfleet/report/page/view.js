// Moving and zooming: from units of the plan to pixels of the canvas.

const canvas = document.getElementById("map");
const MARGIN = 28;
const BUTTONS = 64; // on the right, where the buttons are
// Width and height are those of one pane; two plans have two, which move together.
const view = { scale: 1, x: 0, y: 0, width: 0, height: 0, ratio: 1, edge: BUTTONS, least: 0, most: 1, whole: true };
let panes = [];

let waiting = null;
function redraw() {
  waiting ??= requestAnimationFrame(drawNow);
}

function drawNow() {
  cancelAnimationFrame(waiting);
  waiting = null;
  draw();
}

const joinBoxes = (a, b) => [
  Math.min(a[0], b[0]), Math.min(a[1], b[1]), Math.max(a[2], b[2]), Math.max(a[3], b[3]),
];
// Depots and facilities are always in sight.
const marks = plans.flatMap((one) => [...one.depots, ...one.facilities])
  .map(({ place }) => [...place, ...place]);
const boxOf = (some) => some.map((link) => link.box).reduce(joinBoxes);
const withMarks = (some) => marks.reduce(joinBoxes, some.length ? boxOf(some) : marks[0]);
const bounds = withMarks(links);
// Most of a large map is there to drive on only: what is served and driven is shown first.
const planned = links.filter((link) => link.required || link.visits.length);
const plannedBounds = planned.length ? withMarks(planned) : bounds;

const fitting = (box) => Math.min(
  Math.max(view.width - MARGIN - view.edge, 40) / (box[2] - box[0] || 1),
  Math.max(view.height - 2 * MARGIN, 40) / (box[3] - box[1] || 1),
);

function showAll() {
  view.least = fitting(bounds) / 3;
  view.most = Math.max(fitting(plannedBounds) * 4, 400 / typical);
  fit(plannedBounds, Infinity);
  view.whole = true;
}

// Bring a box into sight, no closer than so many pixels for a typical street.
function fit(box, closest = 130) {
  view.whole = false;
  view.scale = Math.min(fitting(box), Math.max(closest / typical, view.least));
  view.x = (MARGIN + view.width - view.edge) / 2 - (view.scale * (box[0] + box[2])) / 2;
  view.y = view.height / 2 - (view.scale * (box[1] + box[3])) / 2;
  redraw();
}

const boxOfRoutes = (some) => {
  const driven = some.flatMap((route) => route.steps.map((step) => step.link));
  return driven.length ? boxOf(driven) : plannedBounds;
};

function resize() {
  const { clientWidth, clientHeight } = canvas;
  if (clientWidth === 0 || clientHeight === 0) return;
  const shown = plans.filter((one, index) => state.shown === "both" || index === Number(state.shown));
  // Side by side where the map is wide, else one below the other.
  const across = clientWidth >= clientHeight;
  const width = across ? clientWidth / shown.length : clientWidth;
  const height = across ? clientHeight : clientHeight / shown.length;
  const dx = (width - view.width) / 2, dy = (height - view.height) / 2;
  const ratio = window.devicePixelRatio || 1;
  const same = dx === 0 && dy === 0 && ratio === view.ratio;
  if (same && panes.length === shown.length && panes.every((pane, index) => pane.plan === shown[index])) return;
  panes = shown.map((one, index) => ({ plan: one, x: across ? index * width : 0, y: across ? 0 : index * height }));
  Object.assign(view, { width, height, ratio });
  canvas.width = Math.round(clientWidth * view.ratio);
  canvas.height = Math.round(clientHeight * view.ratio);
  // Until somebody moves it, the whole plan stays in sight.
  if (view.whole) showAll();
  else move(dx, dy);
  drawNow(); // a new size has wiped the canvas
}

// The pane under a place of the canvas; the last one where it is beyond all.
function paneAt(x, y) {
  return panes.find((pane) => x < pane.x + view.width && y < pane.y + view.height) ?? panes.at(-1);
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
    const pane = paneAt(other.x, other.y);
    zoom(after / before, other.x - pane.x, other.y - pane.y);
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
  const pane = paneAt(event.offsetX, event.offsetY);
  const factor = Math.exp(-Math.max(-300, Math.min(300, pixels)) / 400);
  zoom(factor, event.offsetX - pane.x, event.offsetY - pane.y);
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
