"use strict";
// The plan, unpacked from the page's data: links with their lines, routes with their steps.
// A page that compares has two plans, the earlier one first.

const plan = JSON.parse(document.getElementById("plan").textContent);

// All lines lie in a few long arrays, of which links have their part: a large town opens fast.
const links = (() => {
  const total = plan.links.reduce((sum, numbers) => sum + numbers.length - 3, 0);
  const points = new Float32Array(total), right = new Float32Array(total);
  const along = new Float32Array(total / 2);
  let used = 0;
  return plan.links.map((numbers) => {
    const from = used;
    used += numbers.length - 3;
    const flags = numbers[1];
    const link = {
      name: plan.names[numbers[0]],
      oneWay: (flags & 1) > 0,
      required: (flags & 2) > 0,
      named: (flags & 4) > 0, // by people; else it has a name to tell it apart
      demand: numbers[2],
      points: points.subarray(from, used),
      right: right.subarray(from, used),
      along: along.subarray(from / 2, used / 2),
      visits: [],
    };
    for (let i = 3; i < numbers.length; i++) {
      link.points[i - 3] = numbers[i] + (i > 4 ? link.points[i - 5] : 0);
    }
    return measure(link);
  });
})();

// Fill in box, length and, per point, the unit vector to the right of the line's direction.
function measure(link) {
  const { points, right, along } = link;
  const last = points.length / 2 - 1;
  let low = Infinity, left = Infinity, high = -Infinity, far = -Infinity;
  for (let i = 0; i <= last; i++) {
    const x = points[2 * i], y = points[2 * i + 1];
    const before = i > 0 ? i - 1 : 0, after = i < last ? i + 1 : last;
    const dx = points[2 * after] - points[2 * before];
    const dy = points[2 * after + 1] - points[2 * before + 1];
    const size = Math.sqrt(dx * dx + dy * dy) || 1;
    right[2 * i] = -dy / size;
    right[2 * i + 1] = dx / size;
    if (i > 0) {
      const px = x - points[2 * i - 2], py = y - points[2 * i - 1];
      along[i] = along[i - 1] + Math.sqrt(px * px + py * py);
    }
    if (x < left) left = x;
    if (x > far) far = x;
    if (y < low) low = y;
    if (y > high) high = y;
  }
  link.box = [left, low, far, high];
  link.length = along[last];
  return link;
}

// Deadheads along a street lie side by side, up to so many in each direction.
const LANES = 3;

// The clock counts seconds where they are known for all routes, else cost.
const bothFacts = plan.before ? [plan.before, plan] : [plan];
const timed = bothFacts.some((facts) => facts.routes.length > 0) &&
  bothFacts.every((facts) => facts.routes.every((route) => route.times !== null));

const plans = bothFacts.map(({ routes, ...facts }) => {
  const one = { ...facts, lanes: new Map() };
  one.routes = routes.map((route) => unpack(route, one));
  return one;
});
const compares = plans.length > 1;
// Those of the plan, of the later one where there are two; and those of all plans.
const { routes } = plans[plans.length - 1];
const everyRoute = plans.flatMap((one) => one.routes);

function unpack(facts, owner) {
  // The clock of a route is what it has driven so far; where all is free, its steps.
  const counted = timed ? facts.times : facts.costs;
  const free = counted.every((amount) => amount === 0);
  let clock = 0, order = 0, load = 0;
  const route = { ...facts, plan: owner, light: facts.colour, visible: true, visits: [], paths: new Map() };
  // Visits of facilities, once the steps before them are driven; the vehicle is empty then.
  const visitAfter = (steps) => {
    for (; facts.visits[route.visits.length]?.[0] === steps; load = 0) {
      const [, facility, carried, cost, seconds] = facts.visits[route.visits.length];
      const start = clock;
      clock += free ? 0 : timed ? seconds : cost;
      route.visits.push({ facility: owner.facilities[facility], load: carried, cost, start, end: clock, steps, order });
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
      step.lane = (owner.lanes.get(key) ?? 0) % LANES;
      owner.lanes.set(key, step.lane + 1);
    }
    link.visits.push({ route, step });
    return step;
  });
  visitAfter(facts.steps.length);
  route.services = order;
  route.duration = clock;
  route.first = route.steps.find((step) => step.serves) ?? null;
  return route;
}

const duration = Math.max(0, ...everyRoute.map((route) => route.duration));
// What is shown: the clock (`duration` is the finished plan), a link pointed at, links that
// were searched for, which of two plans, and where the reader is.
const state = {
  time: duration, playing: false, speed: 1, pointed: null, marked: [], shown: "both", here: null,
};

// How many units a typical street is long; widths on the screen follow it.
const typical = (() => {
  const lengths = Float32Array.from(links, (link) => link.length).filter((length) => length > 0).sort();
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

// When something happens: by the clock on the wall once it is known when vehicles leave.
function whenText(time) {
  if (!timed) return `at cost ${Math.round(time)}`;
  const leave = /^(\d+):(\d+)/.exec(document.getElementById("leave").value);
  if (!leave) return `after ${durationText(time)}`;
  const minutes = 60 * Number(leave[1]) + Number(leave[2]) + Math.round(time / 60);
  const two = (number) => String(number).padStart(2, "0");
  return `at ${two(Math.floor(minutes / 60) % 24)}:${two(minutes % 60)}`;
}

function countOf(count, name) {
  return `${count} ${name}${count === 1 ? "" : "s"}`;
}
