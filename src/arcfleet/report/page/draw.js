// Drawing one frame.

const pen = canvas.getContext("2d");

// With more routes their numbers would hide the streets.
const MOST_NUMBERS = 40;

const theme = {};
function readTheme() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["paper", "ink", "faint", "street", "required", "halo", "focus"]) {
    theme[name] = style.getPropertyValue(`--${name}`).trim();
  }
}

// All streets in units of the plan, made once and by tile: the browser only stretches those
// in sight.
const TILES = 12;
const tiles = new Map();
for (const { points, required, box } of links) {
  const side = Math.max(bounds[2] - bounds[0], bounds[3] - bounds[1]) / TILES || 1;
  const key = `${Math.floor(box[0] / side)} ${Math.floor(box[1] / side)}`;
  if (!tiles.has(key)) tiles.set(key, { plain: new Path2D(), required: new Path2D(), box: [...box] });
  const tile = tiles.get(key);
  tile.box = joinBoxes(tile.box, box);
  const path = required ? tile.required : tile.plain;
  path.moveTo(points[0], points[1]);
  for (let i = 2; i < points.length; i += 2) path.lineTo(points[i], points[i + 1]);
}

function draw() {
  const began = performance.now();
  const { ratio, scale, x, y } = view;
  const room = scale * typical; // pixels of a typical street
  const width = Math.min(Math.max(room / 11, 1.6), 5);
  pen.setTransform(1, 0, 0, 1, 0, 0);
  pen.fillStyle = theme.paper;
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.lineCap = pen.lineJoin = "round";

  pen.setTransform(ratio * scale, 0, 0, ratio * scale, ratio * x, ratio * y);
  pen.lineWidth = (width * 0.5) / scale;
  const inSight = [...tiles.values()].filter((tile) => !outside(tile));
  pen.strokeStyle = theme.street;
  for (const tile of inSight) pen.stroke(tile.plain);
  pen.strokeStyle = theme.required;
  for (const tile of inSight) pen.stroke(tile.required);

  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  const shown = routes.filter((route) => route.visible);
  for (const route of shown) drawRoute(route, width);
  if (room > 26) {
    drawOneWay(width);
    for (const route of shown) drawDirections(route, width);
  }
  if (state.pointed?.points) drawPointed(width);
  for (const facility of plan.facilities) drawFacility(facility);
  if (state.time < duration) for (const route of shown) drawVehicle(route);
  else if (shown.length <= MOST_NUMBERS) for (const route of shown) drawNumber(route);
  for (const depot of plan.depots) drawDepot(depot);
  drawScale();
  state.frame = performance.now() - began;
}

function drawRoute(route, width) {
  const now = state.time;
  // Deadheads run to the right of the street, so that a service there stays visible.
  const aside = Math.max(width * 0.75, 1.8), lane = Math.max(width * 0.6, 1.5);
  pen.strokeStyle = route.colour;
  const strokeSteps = (chosen, share = () => 1) => {
    pen.beginPath();
    for (const step of route.steps) {
      if (!chosen(step) || outside(step.link)) continue;
      trace(step, step.serves ? 0 : aside + lane * step.lane, share(step));
    }
    pen.stroke();
  };
  const share = (step) => (now >= step.end ? 1 : (now - step.start) / (step.end - step.start));

  if (now < route.duration) {
    pen.lineWidth = width;
    pen.globalAlpha = 0.3;
    strokeSteps((step) => step.serves && step.end > now);
    pen.globalAlpha = 1;
  }
  pen.lineCap = "butt";
  pen.lineWidth = Math.max(width * 0.4, 1);
  pen.setLineDash([Math.max(width * 1.5, 4), Math.max(width, 2.5)]);
  strokeSteps((step) => !step.serves && (step.start < now || step.end <= now), share);
  pen.setLineDash([]);
  pen.lineCap = "round";
  pen.lineWidth = width;
  strokeSteps((step) => step.serves && (step.start < now || step.end <= now), share);
}

function outside({ box }) {
  const { scale, x, y, width, height } = view, edge = 20;
  return (
    scale * box[2] + x < -edge || scale * box[0] + x > width + edge ||
    scale * box[3] + y < -edge || scale * box[1] + y > height + edge
  );
}

// Put the line of a step, or its first share, on the pen's path, so far to the right.
function trace({ link, reverse }, aside, share = 1) {
  const { points, right, along, length } = link;
  const { scale, x, y } = view;
  const last = along.length - 1, side = reverse ? -aside : aside;
  const goal = share * length;
  for (let i = 0; i <= last; i++) {
    const at = reverse ? last - i : i;
    let px = scale * points[2 * at] + x + side * right[2 * at];
    let py = scale * points[2 * at + 1] + y + side * right[2 * at + 1];
    if (i === 0) {
      pen.moveTo(px, py);
      continue;
    }
    const before = reverse ? at + 1 : at - 1;
    const driven = reverse ? length - along[at] : along[at];
    if (driven > goal) {
      const piece = Math.abs(along[at] - along[before]) || 1;
      const rest = (driven - goal) / piece;
      px += rest * scale * (points[2 * before] - points[2 * at]);
      py += rest * scale * (points[2 * before + 1] - points[2 * at + 1]);
      pen.lineTo(px, py);
      return;
    }
    pen.lineTo(px, py);
  }
}

// Where a share of a link lies on the screen, and which way it leads there.
function placeOn({ link, reverse }, share) {
  const { points, along, length } = link;
  const goal = (reverse ? 1 - share : share) * length;
  let i = 1;
  while (i < along.length - 1 && along[i] < goal) i++;
  const piece = along[i] - along[i - 1];
  const part = piece > 0 ? (goal - along[i - 1]) / piece : 0;
  const dx = points[2 * i] - points[2 * i - 2], dy = points[2 * i + 1] - points[2 * i - 1];
  return {
    x: view.scale * (points[2 * i - 2] + part * dx) + view.x,
    y: view.scale * (points[2 * i - 1] + part * dy) + view.y,
    angle: Math.atan2(dy, dx) + (reverse ? Math.PI : 0),
  };
}

function arrow(place, size, colour) {
  pen.save();
  pen.translate(place.x, place.y);
  pen.rotate(place.angle);
  pen.beginPath();
  pen.moveTo(0.65 * size, 0);
  pen.lineTo(-0.45 * size, 0.48 * size);
  pen.lineTo(-0.45 * size, -0.48 * size);
  pen.closePath();
  pen.fillStyle = colour;
  pen.strokeStyle = theme.halo;
  pen.lineWidth = 1;
  pen.stroke();
  pen.fill();
  pen.restore();
}

function drawDirections(route, width) {
  for (const step of route.steps) {
    if (!step.serves || step.end > state.time || outside(step.link)) continue;
    if (step.link.length * view.scale < 5 * width) continue;
    arrow(placeOn(step, 0.5), 2.3 * width + 2, route.colour);
  }
}

function drawOneWay(width) {
  for (const link of links) {
    if (!link.oneWay || link.required || outside(link)) continue;
    if (link.length * view.scale < 5 * width) continue;
    arrow(placeOn({ link, reverse: false }, 0.5), width + 3, theme.required);
  }
}

function drawPointed(width) {
  pen.beginPath();
  trace({ link: state.pointed, reverse: false }, 0);
  pen.strokeStyle = theme.focus;
  pen.globalAlpha = 0.35;
  pen.lineWidth = 3 * width + 6;
  pen.stroke();
  pen.globalAlpha = 1;
}

function onScreen([x, y]) {
  return [view.scale * x + view.x, view.scale * y + view.y];
}

function drawFacility({ place }) {
  const [x, y] = onScreen(place), half = 10;
  pen.fillStyle = theme.ink;
  pen.strokeStyle = theme.halo;
  pen.lineWidth = 2;
  pen.beginPath();
  pen.moveTo(x, y - half);
  pen.lineTo(x + half, y);
  pen.lineTo(x, y + half);
  pen.lineTo(x - half, y);
  pen.closePath();
  pen.stroke();
  pen.fill();
}

function drawDepot({ place }) {
  const [x, y] = onScreen(place);
  pen.fillStyle = plan.depotColour;
  pen.strokeStyle = theme.halo;
  pen.lineWidth = 2;
  pen.beginPath();
  pen.rect(x - 7, y - 7, 14, 14);
  pen.stroke();
  pen.fill();
}

function badge(x, y, route) {
  const text = String(route.number);
  pen.font = "bold 11px system-ui, sans-serif";
  const half = Math.max(9, pen.measureText(text).width / 2 + 5);
  pen.beginPath();
  pen.roundRect(x - half, y - 9, 2 * half, 18, 9);
  pen.fillStyle = route.colour;
  pen.strokeStyle = theme.halo;
  pen.lineWidth = 2.5;
  pen.stroke();
  pen.fill();
  pen.fillStyle = inkOn(route.colour);
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.fillText(text, x, y + 0.5);
}

// The route's number where it works, so that colours need not be told apart.
function drawNumber(route) {
  const served = route.steps.filter((step) => step.serves && step.link.length > 0);
  if (!served.length) return;
  route.middle ??= served.reduce((best, step) =>
    Math.abs(step.order - route.services / 2) < Math.abs(best.order - route.services / 2) ? step : best);
  const place = placeOn(route.middle, 0.25);
  badge(place.x, place.y, route);
}

function drawVehicle(route) {
  const step = stepAt(route, state.time);
  if (!step || state.time >= route.duration) return; // it stands in the depot
  const driven = step.end > step.start ? (state.time - step.start) / (step.end - step.start) : 1;
  const place = placeOn(step, Math.min(Math.max(driven, 0), 1));
  badge(place.x, place.y, route);
}

// The step a route is at; its last one once all is done.
function stepAt(route, time) {
  let low = 0, high = route.steps.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (route.steps[middle].end > time) high = middle;
    else low = middle + 1;
  }
  return route.steps[low];
}

function inkOn(colour) {
  const [r, g, b] = [1, 3, 5].map((i) => (parseInt(colour.slice(i, i + 2), 16) / 255) ** 2.2);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.18 ? "#000000" : "#ffffff";
}

function drawScale() {
  const bar = document.getElementById("scale");
  bar.hidden = plan.metresPerUnit === null;
  if (bar.hidden) return;
  const most = (110 * plan.metresPerUnit) / view.scale;
  const power = 10 ** Math.floor(Math.log10(most));
  const metres = [5, 2, 1].map((digit) => digit * power).find((value) => value <= most);
  bar.style.width = `${(metres * view.scale) / plan.metresPerUnit}px`;
  bar.textContent = metres >= 1000 ? `${metres / 1000} km` : `${metres} m`;
}
