// Drawing one frame.

let pen = canvas.getContext("2d");

// With more routes their numbers would hide the streets.
const MOST_NUMBERS = 40;
// Where a typical street is shorter on the screen, lines are drawn without their details.
const SMALL = 7;

const theme = {};
function readTheme(element = document.documentElement) {
  const style = getComputedStyle(element);
  for (const name of ["paper", "ink", "faint", "street", "required", "halo", "focus"]) {
    theme[name] = style.getPropertyValue(`--${name}`).trim();
  }
  theme.dark = style.getPropertyValue("--scheme").trim() === "dark";
  for (const route of everyRoute) route.colour = theme.dark ? route.darkColour : route.light;
}

// All streets in units of the plan, made once for every zoom and by tile: the browser only
// stretches those in sight.
const TILES = 12;
const tiles = new Map();
for (const link of links) {
  const side = Math.max(bounds[2] - bounds[0], bounds[3] - bounds[1]) / TILES || 1;
  const key = Math.floor(link.box[0] / side) * 1024 + Math.floor(link.box[1] / side);
  const tile = tiles.get(key) ?? { links: [], box: link.box, paths: new Map() };
  tile.links.push(link);
  tile.box = joinBoxes(tile.box, link.box);
  tiles.set(key, tile);
}

// Paths of lines for this zoom, as `make` puts them there with a tolerance.
function pathsFor(owner, make) {
  const level = view.scale * typical < SMALL ? Math.floor(Math.log2(view.scale)) : null;
  if (!owner.paths.has(level)) owner.paths.set(level, make(level === null ? 0 : 0.7 / 2 ** (level + 1)));
  return owner.paths.get(level);
}

function pathsOf(tile) {
  return pathsFor(tile, (tolerance) => {
    const paths = { plain: new Path2D(), required: new Path2D() };
    for (const { points, required } of tile.links) putLine(required ? paths.required : paths.plain, points, tolerance);
    return paths;
  });
}

// Put a line on a path, without points that lie closer to the one before than the tolerance.
function putLine(path, points, tolerance) {
  const last = points.length - 2;
  let x = points[0], y = points[1];
  path.moveTo(x, y);
  for (let i = 2; i < last; i += 2) {
    if (Math.abs(points[i] - x) + Math.abs(points[i + 1] - y) <= tolerance) continue;
    x = points[i];
    y = points[i + 1];
    path.lineTo(x, y);
  }
  path.lineTo(points[last], points[last + 1]);
}

function draw() {
  const began = performance.now();
  pen.setTransform(1, 0, 0, 1, 0, 0);
  pen.fillStyle = theme.paper;
  pen.fillRect(0, 0, pen.canvas.width, pen.canvas.height);
  for (const pane of panes) {
    pen.save();
    pen.setTransform(view.ratio, 0, 0, view.ratio, 0, 0);
    pen.beginPath();
    pen.rect(pane.x, pane.y, view.width, view.height);
    pen.clip();
    drawPane(pane);
    pen.restore();
  }
  if (compares) drawTitles();
  if (pen.canvas === canvas) drawScale();
  state.frame = performance.now() - began;
}

function drawPane(pane) {
  const { ratio, scale, x, y } = view;
  const across = scale * typical; // pixels of a typical street
  const width = Math.min(Math.max(across / 11, 1.6), 5);
  const inUnits = () => pen.setTransform(ratio * scale, 0, 0, ratio * scale, ratio * (pane.x + x), ratio * (pane.y + y));
  const inPixels = () => pen.setTransform(ratio, 0, 0, ratio, ratio * pane.x, ratio * pane.y);
  if (base) {
    inPixels();
    drawBase();
  }
  const plain = across < SMALL; // round ends would not be seen either
  pen.lineCap = plain ? "butt" : "round";
  pen.lineJoin = plain ? "bevel" : "round";
  inUnits();
  pen.lineWidth = (width * 0.5) / scale;
  const inSight = [...tiles.values()].filter((tile) => !outside(tile));
  pen.strokeStyle = theme.street;
  for (const tile of inSight) pen.stroke(pathsOf(tile).plain);
  pen.strokeStyle = theme.required;
  for (const tile of inSight) pen.stroke(pathsOf(tile).required);

  const shown = pane.plan.routes.filter((route) => route.visible);
  const small = plain && state.time >= duration;
  const faint = compares ? 0.4 : 1;
  if (small) {
    if (base) for (const route of shown) drawSmall(route, width / scale, 1, 2 / scale);
    for (const route of shown) drawSmall(route, width / scale, faint);
    inPixels();
  } else {
    inPixels();
    if (base) for (const route of shown) drawCasing(route, width);
    for (const route of shown) drawRoute(route, width, faint);
  }
  if (compares) drawChanges(pane, shown, width);
  if (across > 26) drawOneWay(width);
  const taken = new Taken();
  for (const { place } of [...pane.plan.depots, ...pane.plan.facilities]) taken.put(...onScreen(place), 12);
  const moving = state.time < duration;
  const numbered = moving || shown.length <= MOST_NUMBERS || across > 26;
  const badges = numbered ? shown.map((route) => badgeOf(route, moving)).filter(Boolean) : [];
  const starts = numbered && !moving ? shown.filter((route) => route.first) : [];
  for (const { x: left, y: top } of badges) taken.put(left, top, 12);
  for (const place of starts.map(startPlace)) taken.put(place.x, place.y, 12);
  for (const link of state.marked) drawMarked(link, width);
  if (state.pointed?.points) drawMarked(state.pointed, width);
  const labels = placedLabels(taken, width);
  drawDirections(shown, width, taken);
  drawLabels(labels);
  for (const facility of pane.plan.facilities) drawFacility(facility);
  for (const { x: left, y: top, route } of badges) badge(left, top, route);
  for (const depot of pane.plan.depots) drawDepot(depot);
  state.starts = starts.map(drawStart);
  if (state.here) drawHere();
}

// A whole route in a few strokes: dashes and lanes would not be seen, and cost time. With a
// rim it is what keeps lines apart from a base map.
function drawSmall(route, width, faint, rim = 0) {
  const { served, driven } = pathsFor(route, (tolerance) => {
    const paths = { served: new Path2D(), driven: new Path2D() };
    for (const { link, serves } of route.steps) putLine(serves ? paths.served : paths.driven, link.points, tolerance);
    return paths;
  });
  pen.strokeStyle = rim ? theme.halo : route.colour;
  pen.lineWidth = 0.4 * width + rim;
  pen.globalAlpha = 0.5 * faint;
  pen.stroke(driven);
  pen.globalAlpha = faint;
  pen.lineWidth = width + rim;
  pen.stroke(served);
  pen.globalAlpha = 1;
}

// Deadheads run to the right of the street, so that a service there stays visible.
function asideOf({ serves, lane }, width) {
  return serves ? 0 : Math.max(width * 0.75, 1.8) + lane * Math.max(width * 0.6, 1.5);
}

// Light lines below those of a route, for its contrast on a base map of any colour.
function drawCasing(route, width) {
  pen.strokeStyle = theme.halo;
  for (const [serves, wide] of [[false, Math.max(width * 0.4, 1)], [true, width]]) {
    pen.lineWidth = wide + 3;
    pen.beginPath();
    for (const step of route.steps) {
      if (step.serves === serves && !outside(step.link)) trace(step, asideOf(step, width));
    }
    pen.stroke();
  }
}

function drawRoute(route, width, faint) {
  const now = state.time;
  pen.strokeStyle = route.colour;
  const strokeSteps = (chosen, share = () => 1) => {
    pen.beginPath();
    for (const step of route.steps) {
      if (!chosen(step) || outside(step.link)) continue;
      trace(step, asideOf(step, width), share(step));
    }
    pen.stroke();
  };
  const share = (step) => (now >= step.end ? 1 : (now - step.start) / (step.end - step.start));

  if (now < route.duration) {
    pen.lineWidth = width;
    pen.globalAlpha = 0.3 * faint;
    strokeSteps((step) => step.serves && step.end > now);
  }
  pen.globalAlpha = faint;
  pen.lineCap = "butt";
  pen.lineWidth = Math.max(width * 0.4, 1);
  pen.setLineDash([Math.max(width * 1.5, 4), Math.max(width, 2.5)]);
  strokeSteps((step) => !step.serves && (step.start < now || step.end <= now), share);
  pen.setLineDash([]);
  pen.lineCap = "round";
  pen.lineWidth = width;
  strokeSteps((step) => step.serves && (step.start < now || step.end <= now), share);
  pen.globalAlpha = 1;
}

// What is taken on the screen, in small squares: nothing is written over something else.
class Taken {
  cells = new Set();
  side = 4;
  *around(x, y, reach) {
    const { side } = this;
    for (let i = Math.floor((x - reach) / side); i <= Math.floor((x + reach) / side); i++) {
      for (let j = Math.floor((y - reach) / side); j <= Math.floor((y + reach) / side); j++) yield i * 65536 + j;
    }
  }
  put(x, y, reach) {
    for (const cell of this.around(x, y, reach)) this.cells.add(cell);
  }
  free(x, y, reach) {
    for (const cell of this.around(x, y, reach)) if (this.cells.has(cell)) return false;
    return true;
  }
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

// Arrows of one colour, drawn at once.
function drawArrows(places, size, colour) {
  if (!places.length) return;
  pen.beginPath();
  for (const { x, y, angle } of places) {
    const dx = size * Math.cos(angle), dy = size * Math.sin(angle);
    pen.moveTo(x + 0.65 * dx, y + 0.65 * dy);
    pen.lineTo(x - 0.45 * dx - 0.48 * dy, y - 0.45 * dy + 0.48 * dx);
    pen.lineTo(x - 0.45 * dx + 0.48 * dy, y - 0.45 * dy - 0.48 * dx);
    pen.closePath();
  }
  pen.fillStyle = colour;
  pen.strokeStyle = theme.halo;
  pen.lineWidth = 1;
  pen.stroke();
  pen.fill();
}

// Arrows along what is served, so many pixels apart; every route in sight has one. A route
// alone has them on its deadheads, too.
function drawDirections(shown, width, taken) {
  const size = Math.max(2.3 * width + 2, 7), apart = view.scale * typical < SMALL ? 110 : 60;
  for (const route of shown) {
    const places = [];
    let since = apart, spare = null;
    for (const step of route.steps) {
      const pixels = step.link.length * view.scale;
      since += pixels / 2;
      if (step.serves && step.end <= state.time && (since >= apart || pixels > apart / 2) && !outside(step.link)) {
        const place = placeOn(step, 0.5);
        if (inside(place)) {
          spare ??= place;
          if (taken.free(place.x, place.y, 2)) {
            taken.put(place.x, place.y, size / 2);
            places.push(place);
            since = 0;
          }
        }
      }
      since += pixels / 2;
    }
    if (!places.length && spare) places.push(spare);
    if (shown.length === 1) drawArrows(deadheadPlaces(route, width, taken), 0.6 * size, route.colour);
    route.arrows = places.length;
    drawArrows(places, size, route.colour);
  }
}

function deadheadPlaces(route, width, taken) {
  const places = [];
  for (const step of route.steps) {
    if (step.serves || step.end > state.time || step.link.length * view.scale < 40 || outside(step.link)) continue;
    const { x, y, angle } = placeOn(step, 0.5), side = asideOf(step, width);
    const place = { x: x - side * Math.sin(angle), y: y + side * Math.cos(angle), angle };
    if (!inside(place) || !taken.free(place.x, place.y, 1)) continue;
    taken.put(place.x, place.y, 4);
    places.push(place);
  }
  return places;
}

function inside({ x, y }) {
  return x >= 0 && y >= 0 && x <= view.width && y <= view.height;
}

function drawOneWay(width) {
  const lone = links.filter((link) => link.oneWay && !link.required && !outside(link));
  const places = lone.filter((link) => link.length * view.scale >= 5 * width);
  drawArrows(places.map((link) => placeOn({ link, reverse: false }, 0.5)), width + 3, theme.required);
}

function drawMarked(link, width) {
  pen.beginPath();
  trace({ link, reverse: false }, 0);
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
  write(text, x, y, inkOn(route.colour));
}

function write(text, x, y, colour) {
  pen.font = "bold 11px system-ui, sans-serif";
  pen.fillStyle = colour;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.fillText(text, x, y + 0.5);
}

// The route's number where it works, so that colours need not be told apart; while the work
// is played, where its vehicle is.
function badgeOf(route, moving) {
  if (moving) {
    const step = stepAt(route, state.time);
    if (!step || state.time >= route.duration) return null; // it stands in the depot
    const driven = step.end > step.start ? (state.time - step.start) / (step.end - step.start) : 1;
    return { ...placeOn(step, Math.min(Math.max(driven, 0), 1)), route };
  }
  if (!route.first) return null;
  route.middle ??= route.steps.filter((step) => step.serves).reduce((best, step) =>
    Math.abs(step.order - route.services / 2) < Math.abs(best.order - route.services / 2) ? step : best);
  return { ...placeOn(route.middle, 0.25), route };
}

// A little way along the first street: many routes begin at the depot.
function startPlace(route) {
  const { length } = route.first.link;
  return placeOn(route.first, Math.min(0.5, 22 / (length * view.scale || 1)));
}

// Where a route begins to serve: a disc with its number and an arrow the way it goes.
function drawStart(route) {
  const { x, y, angle } = startPlace(route);
  pen.save();
  pen.translate(x, y);
  pen.rotate(angle);
  pen.beginPath();
  pen.arc(0, 0, 10, 0.45, 2 * Math.PI - 0.45);
  pen.lineTo(17, 0);
  pen.closePath();
  pen.fillStyle = theme.paper;
  pen.strokeStyle = route.colour;
  pen.lineWidth = 3;
  pen.fill();
  pen.stroke();
  pen.restore();
  write(String(route.number), x, y, theme.ink);
  return { number: route.number, x, y };
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
