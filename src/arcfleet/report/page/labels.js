// Names along the streets, where there is space for them.

const LABEL = { font: "11.5px system-ui, sans-serif", reach: 5, apart: 420, most: 160 };

// Pieces of one name joined end to end, the longest line first. Made when first needed.
let named = null;
function namedLines() {
  if (named) return named;
  const byName = new Map();
  for (const link of links) {
    if (!link.named || link.length === 0) continue;
    if (!byName.has(link.name)) byName.set(link.name, []);
    byName.get(link.name).push(link);
  }
  named = [];
  for (const [name, pieces] of byName) named.push(...joinedPieces(name, pieces));
  return named.sort((a, b) => b.length - a.length);
}

function joinedPieces(name, pieces) {
  const at = new Map(); // place of an end -> pieces that end there
  const key = (x, y) => x * 1048576 + y;
  const ends = ({ points }) => [key(points[0], points[1]), key(points.at(-2), points.at(-1))];
  for (const piece of pieces) {
    for (const end of ends(piece)) {
      if (!at.has(end)) at.set(end, []);
      at.get(end).push(piece);
    }
  }
  const used = new Set(), lines = [];
  for (const piece of pieces) {
    if (used.has(piece)) continue;
    used.add(piece);
    const points = [...piece.points];
    // Forwards from its end, then, turned round, from its start.
    for (let side = 0; side < 2; side++) {
      for (;;) {
        const end = key(points.at(-2), points.at(-1));
        const next = (at.get(end) ?? []).find((other) => !used.has(other) && goesOn(points, other, ends(other)[0] !== end));
        if (!next) break;
        used.add(next);
        const more = ends(next)[0] === end ? [...next.points] : turned(next.points);
        points.push(...more.slice(2));
      }
      points.splice(0, points.length, ...turned(points));
    }
    const line = { name, points: Float32Array.from(points) };
    line.right = new Float32Array(points.length);
    line.along = new Float32Array(points.length / 2);
    lines.push(measure(line));
  }
  return lines;
}

function turned(points) {
  const back = [];
  for (let i = points.length - 2; i >= 0; i -= 2) back.push(points[i], points[i + 1]);
  return back;
}

// Whether a piece leads on from the end of a line without a sharp bend.
function goesOn(points, { points: next }, backwards) {
  const dx = points.at(-2) - points.at(-4), dy = points.at(-1) - points.at(-3);
  const [ax, ay, bx, by] = backwards
    ? [next.at(-2), next.at(-1), next.at(-4), next.at(-3)]
    : next;
  const size = Math.hypot(dx, dy) * Math.hypot(bx - ax, by - ay);
  return size > 0 && dx * (bx - ax) + dy * (by - ay) > 0.5 * size;
}

const widths = new Map();
function widthOf(name) {
  if (!widths.has(name)) widths.set(name, pen.measureText(name).width);
  return widths.get(name);
}

// Where names stand, away from what is taken and from each other.
function placedLabels(taken, width) {
  pen.font = LABEL.font;
  const placed = [];
  // A large town is seen first; its names follow.
  if (!named && links.length > 3000) {
    setTimeout(() => {
      namedLines();
      redraw();
    });
    return placed;
  }
  for (const line of namedLines()) {
    const pixels = line.length * view.scale;
    if (pixels < 24 || placed.length >= LABEL.most) break;
    if (outside(line) || widthOf(line.name) + 10 > pixels) continue;
    const count = Math.max(1, Math.floor(pixels / LABEL.apart));
    for (let i = 0; i < count; i++) {
      const label = labelAt(line, (i + 0.5) / count, pixels, width);
      if (!label || !fits(label, placed, taken)) continue;
      for (const [x, y] of label.spots) taken.put(x, y, LABEL.reach);
      placed.push(label);
    }
  }
  return placed;
}

function labelAt(line, share, pixels, width) {
  const half = widthOf(line.name) / 2 + 2, step = { link: line, reverse: false };
  const middle = placeOn(step, share);
  if (!inside(middle)) return null;
  const from = placeOn(step, share - half / pixels), to = placeOn(step, share + half / pixels);
  const dx = to.x - from.x, dy = to.y - from.y, chord = Math.hypot(dx, dy);
  // Letters stand on a straight line: not where the street bends.
  const bulge = ((middle.x - from.x) * dy - (middle.y - from.y) * dx) / chord;
  if (chord < 1.94 * half || Math.abs(bulge) > 4) return null;
  const up = dx < 0 || (dx === 0 && dy > 0) ? -1 : 1;
  const ux = (up * dx) / chord, uy = (up * dy) / chord;
  // Above the line as it is read.
  const lift = width / 2 + LABEL.reach + 2;
  const x = (from.x + to.x) / 2 + lift * uy, y = (from.y + to.y) / 2 - lift * ux;
  const spots = [[x + half * ux, y + half * uy]];
  for (let at = -half; at < half; at += LABEL.reach) spots.push([x + at * ux, y + at * uy]);
  return { name: line.name, x, y, ux, uy, half, spots };
}

function fits(label, placed, taken) {
  const near = (other) => Math.hypot(other.x - label.x, other.y - label.y) < LABEL.apart / 2;
  return label.spots.every(([x, y]) => inside({ x, y }) && taken.free(x, y, LABEL.reach)) &&
    !placed.some((other) => other.name === label.name && near(other));
}

function drawLabels(placed) {
  state.labels = placed;
  pen.font = LABEL.font;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.strokeStyle = theme.halo;
  pen.fillStyle = theme.ink;
  pen.lineWidth = 3;
  for (const { name, x, y, ux, uy } of placed) {
    pen.save();
    pen.translate(x, y);
    pen.rotate(Math.atan2(uy, ux));
    pen.strokeText(name, 0, 0);
    pen.fillText(name, 0, 0);
    pen.restore();
  }
}
