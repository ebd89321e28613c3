// The list of routes: switching them, and the order of work in words.

// Routes by number: one of a number in a plan, up to two where plans are compared.
const groups = (() => {
  const byNumber = new Map();
  const numbers = everyRoute.map((route) => route.number);
  if (compares) numbers.sort((a, b) => a - b);
  for (const number of numbers) byNumber.set(number, []);
  for (const route of everyRoute) byNumber.get(route.number).push(route);
  return [...byNumber.values()];
})();

function showPlan() {
  const text = (id, content) => { document.getElementById(id).textContent = content; };
  text("name", plan.name);
  text("comment", plan.comment);
  const lines = compares ? changeLines() : planLines(plans[0]);
  document.getElementById("summary").append(...lines.map(lineOf));
  canvas.setAttribute("aria-label", `Map of the plan for ${plan.name}: ${lines.flat().join(", ")}`);
  document.documentElement.style.setProperty("--depot", plan.depotColour);
  document.getElementById("facility").hidden = plans.every((one) => !one.facilities.length);
  document.getElementById("leaving").hidden = !timed;
  document.getElementById("routes").append(...groups.map(row));
  document.getElementById("all").addEventListener("click", () => {
    showOnly(() => true);
    showAll();
  });
  document.getElementById("none").addEventListener("click", () => showOnly(() => false));
}

function planLines(one) {
  const facts = [countOf(one.routes.length, "route"), `cost ${one.cost}`, `${one.deadhead} of it without serving`];
  const visits = one.routes.reduce((sum, route) => sum + route.visits.length, 0);
  if (visits) facts.push(`${countOf(visits, "visit")} of facilities at ${one.visitCost}`);
  const total = (key) => totalOf(one.routes, key);
  const gap = plan.gap ? [[plan.gap]] : [];
  return [...withTravel(facts, total), ...gap, ...one.shape.map((text) => [text])];
}

// The sum over routes; null where it is unknown for one of them, or there are none.
function totalOf(some, key) {
  const known = some.length > 0 && some.every((route) => route[key] !== null);
  return known ? some.reduce((sum, route) => sum + route[key], 0) : null;
}

// Lines of facts: those given and, if known, length and time and their parts without serving.
function withTravel(facts, amount) {
  const texts = (metres, seconds) => [[lengthText, metres], [durationText, seconds]]
    .filter(([, key]) => amount(key) !== null)
    .map(([text, key]) => text(amount(key)));
  const whole = texts("metres", "seconds"), without = texts("deadheadMetres", "deadheadSeconds");
  if (!without.length) return [[...facts, ...whole]];
  return [facts, whole, [`of it ${without.join(" · ")} without serving`]];
}

function lineOf(facts) {
  return element("span", "line", facts.join(" · "));
}

function element(tag, className = "", text = "") {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text) made.textContent = text;
  return made;
}

// Swatches follow the colour scheme: they name the route's colour, see `paintRoutes`.
function swatchOf(route) {
  const swatch = element("span", "swatch", String(route.number));
  swatch.style.background = `var(--route-${route.number})`;
  swatch.style.color = `var(--on-route-${route.number})`;
  return swatch;
}

function paintRoutes() {
  for (const { number, colour } of everyRoute) {
    document.documentElement.style.setProperty(`--route-${number}`, colour);
    document.documentElement.style.setProperty(`--on-route-${number}`, inkOn(colour));
  }
}

function row(group) {
  const route = group.at(-1), { number } = route;
  const item = element("li");
  const box = element("input");
  box.type = "checkbox";
  box.checked = true;
  const mine = (other) => other.number === number;
  box.addEventListener("change", () => showOnly((other) => (mine(other) ? box.checked : other.visible)));
  const facts = element("span", "", `Route ${number}${route.vehicle === null ? "" : `: ${route.vehicle}`}`);
  const below = element("small", "figures");
  below.append(...figuresOf(group).map(lineOf));
  below.id = `figures-${number}`;
  box.setAttribute("aria-describedby", below.id);
  const label = element("label");
  label.append(box, swatchOf(route), facts);
  const only = element("button", "only", "Only");
  only.type = "button";
  only.setAttribute("aria-label", `Show route ${number} only`);
  const showMine = () => {
    showOnly(mine);
    fit(boxOfRoutes(group), Infinity);
  };
  only.addEventListener("click", showMine);
  const top = element("div", "row");
  top.append(label, only);
  label.title = "Double click to show this route only";
  label.addEventListener("dblclick", showMine);
  const bar = element("div", "bar");
  const done = element("div");
  done.style.background = `var(--route-${number})`;
  bar.append(done);
  const now = element("div", "now");
  now.hidden = true;
  item.append(top, below, bar, now, ...group.map(orderOf));
  group.widgets = { item, box, done, now };
  return item;
}

// Lines of figures of a route; of both plans where there are two.
function figuresOf(group) {
  const lines = (route) => withTravel([loadText(route), `cost ${route.cost}`], (key) => route[key]);
  if (!compares) return lines(group[0]);
  return plans.flatMap((one, side) => {
    const route = group.find((other) => other.plan === one);
    if (!route) return [[`${SIDES[side]}: no such route`]];
    const [[first, ...rest], ...more] = lines(route);
    return [[`${SIDES[side]}: ${first}`, ...rest, ...(more[0] ?? [])]];
  });
}

// The load against the capacity; with several trips, that of each.
function loadText(route) {
  const rest = route.load - route.visits.reduce((sum, visit) => sum + visit.load, 0);
  const loads = [...route.visits.map((visit) => visit.load), ...(rest ? [rest] : [])];
  if (loads.length < 2) return `load ${route.load}/${route.capacity}`;
  return `load ${route.load} in trips of ${loads.join(", ")} (capacity ${route.capacity})`;
}

function showOnly(chosen) {
  // Judged for all before any changes: the choice may look at what is visible now.
  const visible = everyRoute.map(chosen);
  everyRoute.forEach((route, index) => { route.visible = visible[index]; });
  for (const group of groups) {
    const [{ visible: shown }] = group;
    group.widgets.box.checked = shown;
    group.widgets.item.classList.toggle("hidden", !shown);
  }
  redraw();
}

function orderOf(route) {
  const details = element("details");
  const which = compares ? `${SIDES[plans.indexOf(route.plan)]}: load` : "Load";
  details.append(element("summary", "", `${which} and order of work: ${countOf(route.services, "street piece")}`));
  // Filled when first opened: a thousand streets need not wait in the page.
  details.addEventListener("toggle", () => {
    if (details.open && details.children.length === 1) details.append(loadChart(route), stepsOf(route));
  });
  return details;
}

function stepsOf(route) {
  const list = element("ol");
  let passed = [];
  const flush = () => {
    if (passed.length) list.append(element("li", "drive", `drive ${[...new Set(passed)].join(", ")}`));
    passed = [];
  };
  let visits = 0;
  const visitAfter = (steps) => {
    for (; route.visits[visits]?.steps === steps; visits++) {
      flush();
      list.append(visitItem(route, route.visits[visits]));
    }
  };
  for (const [position, step] of route.steps.entries()) {
    visitAfter(position);
    if (!step.serves) {
      passed.push(step.link.name);
      continue;
    }
    flush();
    const item = element("li");
    item.value = step.order;
    const button = element("button", "", step.link.name);
    button.type = "button";
    button.addEventListener("click", () => goTo(route, step));
    item.append(button);
    list.append(item);
  }
  visitAfter(route.steps.length);
  flush();
  return list;
}

function visitItem(route, visit) {
  const item = element("li", "visit");
  const when = timed ? `, ${whenText(visit.start)}` : "";
  const button = element("button", "", `${visit.facility.name}: load ${visit.load}${when}`);
  button.type = "button";
  button.addEventListener("click", () => {
    setTime(visit.end);
    const [x, y] = onScreen(visit.facility.place);
    move(view.width / 2 - x, view.height / 2 - y);
    const pane = paneOf(route), [px, py] = onScreen(visit.facility.place);
    point(visit.facility, px + pane.x, py + pane.y);
  });
  item.append(button);
  return item;
}

// The pane of a route's plan; it is brought into sight where it is not.
function paneOf(route) {
  const find = () => panes.find((pane) => pane.plan === route.plan);
  if (!find()) showSide(String(plans.indexOf(route.plan)));
  return find();
}

// Bring a step into sight, at the moment it is done.
function goTo(route, step) {
  setTime(step.end);
  const pane = paneOf(route), place = placeOn(step, 0.5);
  move(view.width / 2 - place.x, view.height / 2 - place.y);
  const centre = placeOn(step, 0.5);
  point(step.link, centre.x + pane.x, centre.y + pane.y);
}

function showProgress() {
  const finished = state.time >= duration;
  for (const group of groups) {
    const route = group.at(-1), { done, now } = group.widgets;
    done.style.transform = `scaleX(${route.duration > 0 ? Math.min(state.time / route.duration, 1) : 1})`;
    now.hidden = finished;
    if (finished) continue;
    const step = stepAt(route, state.time);
    let text = "back at the depot";
    const visit = route.visits.find(({ start, end }) => start <= state.time && state.time < end);
    if (visit) {
      text = `is at ${visit.facility.name}`;
    } else if (step && state.time < route.duration) {
      text = step.serves
        ? `serves ${step.link.name} (${step.order} of ${route.services})`
        : `drives ${step.link.name}`;
      if (route.plan.facilities.length) text += `, load ${step.load}`;
    }
    if (now.textContent !== text) now.textContent = text;
  }
}
