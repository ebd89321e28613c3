"use strict";
// The plan, unpacked from the page's data: links with their lines, routes with their steps.

const plan = JSON.parse(document.getElementById("plan").textContent);

const links = plan.links.map(([name, flags, demand, ...numbers]) => {
  const points = Float32Array.from(numbers);
  for (let i = 2; i < points.length; i++) points[i] += points[i - 2];
  return {
    name: plan.names[name],
    oneWay: (flags & 1) > 0,
    required: (flags & 2) > 0,
    demand,
    points,
    ...measured(points),
    visits: [],
  };
});

// Box, length and, per point, the unit vector to the right of the line's direction.
function measured(points) {
  const count = points.length / 2;
  const right = new Float32Array(points.length);
  const along = new Float32Array(count);
  const box = [Infinity, Infinity, -Infinity, -Infinity];
  for (let i = 0; i < count; i++) {
    const x = points[2 * i], y = points[2 * i + 1];
    const before = Math.max(i - 1, 0), after = Math.min(i + 1, count - 1);
    const dx = points[2 * after] - points[2 * before];
    const dy = points[2 * after + 1] - points[2 * before + 1];
    const size = Math.hypot(dx, dy) || 1;
    right[2 * i] = -dy / size;
    right[2 * i + 1] = dx / size;
    if (i > 0) along[i] = along[i - 1] + Math.hypot(x - points[2 * i - 2], y - points[2 * i - 1]);
    box[0] = Math.min(box[0], x);
    box[1] = Math.min(box[1], y);
    box[2] = Math.max(box[2], x);
    box[3] = Math.max(box[3], y);
  }
  return { right, along, box, length: along[count - 1] };
}

// Deadheads along a street lie side by side, up to so many in each direction.
const LANES = 3;
const lanes = new Map();

// The clock counts seconds where they are known for all routes, else cost.
const timed = plan.routes.length > 0 && plan.routes.every((facts) => facts.times !== null);

const routes = plan.routes.map((facts) => {
  // The clock of a route is what it has driven so far; where all is free, its steps.
  const counted = timed ? facts.times : facts.costs;
  const free = counted.every((amount) => amount === 0);
  let clock = 0, order = 0, load = 0;
  const route = { ...facts, visible: true, visits: [] };
  // Visits of facilities, once the steps before them are driven; the vehicle is empty then.
  const visitAfter = (steps) => {
    for (; facts.visits[route.visits.length]?.[0] === steps; load = 0) {
      const [, facility, carried, cost, seconds] = facts.visits[route.visits.length];
      const start = clock;
      clock += free ? 0 : timed ? seconds : cost;
      route.visits.push({ facility: plan.facilities[facility], load: carried, cost, start, end: clock, steps, order });
    }
  };
  route.steps = facts.steps.map((code, position) => {
    const link = links[code >> 2], reverse = (code & 2) > 0, serves = (code & 1) > 0;
    visitAfter(position);
    const start = clock;
    clock += free ? 1 : counted[position];
    if (serves) load += link.demand;
    const step = { link, reverse, serves, start, end: clock, order: serves ? ++order : null, lane: 0, load };
    if (!serves) {
      const key = code >> 1;
      step.lane = (lanes.get(key) ?? 0) % LANES;
      lanes.set(key, step.lane + 1);
    }
    link.visits.push({ route, step });
    return step;
  });
  visitAfter(facts.steps.length);
  route.services = order;
  route.duration = clock;
  return route;
});

const duration = Math.max(0, ...routes.map((route) => route.duration));
// What is shown: the clock (`duration` is the finished plan), and a link pointed at.
const state = { time: duration, playing: false, speed: 1, pointed: null };

// How many units a typical street is long; widths on the screen follow it.
const typical = (() => {
  const lengths = links.map((link) => link.length).filter((length) => length > 0).sort((a, b) => a - b);
  return lengths.length ? lengths[lengths.length >> 1] : 1;
})();

function lengthText(metres) {
  return metres < 1000 ? `${Math.round(metres)} m` : `${(metres / 1000).toFixed(metres < 9950 ? 2 : 1)} km`;
}

function durationText(seconds) {
  if (Math.round(seconds) < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60), hours = Math.floor(minutes / 60);
  return hours ? `${hours} h ${String(minutes % 60).padStart(2, "0")} min` : `${minutes} min`;
}
