// The list of routes: switching them, and the order of work in words.

function showPlan() {
  const text = (id, content) => { document.getElementById(id).textContent = content; };
  text("name", plan.name);
  text("comment", plan.comment);
  const count = routes.length === 1 ? "1 route" : `${routes.length} routes`;
  const facts = [count, `cost ${plan.cost}`, `${plan.deadhead} of it without serving`];
  const visits = routes.reduce((sum, route) => sum + route.visits.length, 0);
  if (visits) facts.push(`${countOf(visits, "visit")} of facilities at ${plan.visitCost}`);
  const lines = [...withTravel(facts, total), ...plan.shape.map((text) => [text])];
  document.getElementById("summary").append(...lines.map(lineOf));
  canvas.setAttribute("aria-label", `Map of the plan for ${plan.name}: ${lines.flat().join(", ")}`);
  document.documentElement.style.setProperty("--depot", plan.depotColour);
  document.getElementById("facility").hidden = !plan.facilities.length;
  document.getElementById("routes").append(...routes.map(row));
  document.getElementById("all").addEventListener("click", () => showOnly(() => true));
  document.getElementById("none").addEventListener("click", () => showOnly(() => false));
}

// The sum over all routes; null where it is unknown for one of them, or there are none.
function total(key) {
  const known = routes.length > 0 && routes.every((route) => route[key] !== null);
  return known ? routes.reduce((sum, route) => sum + route[key], 0) : null;
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

function row(route) {
  const item = element("li");
  const box = element("input");
  box.type = "checkbox";
  box.checked = true;
  box.addEventListener("change", () => showOnly((other) => (other === route ? box.checked : other.visible)));
  const swatch = element("span", "swatch", String(route.number));
  swatch.style.background = route.colour;
  swatch.style.color = inkOn(route.colour);
  const facts = element("span", "", `Route ${route.number}${route.vehicle === null ? "" : `: ${route.vehicle}`}`);
  const figures = [loadText(route), `cost ${route.cost}`];
  const below = element("small", "figures");
  below.append(...withTravel(figures, (key) => route[key]).map(lineOf));
  below.id = `figures-${route.number}`;
  box.setAttribute("aria-describedby", below.id);
  const label = element("label");
  label.append(box, swatch, facts);
  const only = element("button", "only", "Only");
  only.type = "button";
  only.setAttribute("aria-label", `Show route ${route.number} only`);
  only.addEventListener("click", () => showOnly((other) => other === route));
  const top = element("div", "row");
  top.append(label, only);
  label.title = "Double click to show this route only";
  label.addEventListener("dblclick", () => showOnly((other) => other === route));
  const bar = element("div", "bar");
  const done = element("div");
  done.style.background = route.colour;
  bar.append(done);
  const now = element("div", "now");
  now.hidden = true;
  item.append(top, below, bar, now, orderOf(route));
  route.widgets = { item, box, done, now };
  return item;
}

function countOf(count, name) {
  return `${count} ${name}${count === 1 ? "" : "s"}`;
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
  const visible = routes.map(chosen);
  routes.forEach((route, index) => {
    route.visible = visible[index];
    route.widgets.box.checked = route.visible;
    route.widgets.item.classList.toggle("hidden", !route.visible);
  });
  redraw();
}

function orderOf(route) {
  const details = element("details");
  const title = element("summary", "", `Order of work: ${route.services} street ${route.services === 1 ? "piece" : "pieces"}`);
  details.append(title);
  // Filled when first opened: a thousand streets need not wait in the page.
  details.addEventListener("toggle", () => {
    if (details.open && details.children.length === 1) details.append(stepsOf(route));
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
      list.append(visitItem(route.visits[visits]));
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

function visitItem(visit) {
  const item = element("li", "visit");
  const when = timed ? `, after ${durationText(visit.start)}` : "";
  const button = element("button", "", `${visit.facility.name}: load ${visit.load}${when}`);
  button.type = "button";
  button.addEventListener("click", () => {
    setTime(visit.end);
    const [x, y] = onScreen(visit.facility.place);
    move(view.width / 2 - x, view.height / 2 - y);
    point(visit.facility, ...onScreen(visit.facility.place));
  });
  item.append(button);
  return item;
}

// Bring a step into sight, at the moment it is done.
function goTo(route, step) {
  setTime(step.end);
  const place = placeOn(step, 0.5);
  move(view.width / 2 - place.x, view.height / 2 - place.y);
  const centre = placeOn(step, 0.5);
  point(step.link, centre.x, centre.y);
}

function showProgress() {
  const finished = state.time >= duration;
  for (const route of routes) {
    const { done, now } = route.widgets;
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
      if (plan.facilities.length) text += `, load ${step.load}`;
    }
    if (now.textContent !== text) now.textContent = text;
  }
}
