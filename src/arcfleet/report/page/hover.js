// What happens on the street under the pointer.

const tip = document.getElementById("tip");
const REACH = 12; // pixels
const SIDES = ["Before", "After"];

function linkNear(px, py) {
  const x = (px - view.x) / view.scale, y = (py - view.y) / view.scale;
  let best = null, least = REACH / view.scale;
  for (const link of links) {
    const [left, top, right, bottom] = link.box;
    if (x < left - least || x > right + least || y < top - least || y > bottom + least) continue;
    const { points } = link;
    for (let i = 2; i < points.length; i += 2) {
      const dx = points[i] - points[i - 2], dy = points[i + 1] - points[i - 1];
      const square = dx * dx + dy * dy;
      const part = square > 0 ? ((x - points[i - 2]) * dx + (y - points[i - 1]) * dy) / square : 0;
      const share = Math.min(Math.max(part, 0), 1);
      const away = Math.hypot(x - points[i - 2] - share * dx, y - points[i - 1] - share * dy);
      if (away < least) {
        least = away;
        best = link;
      }
    }
  }
  return best;
}

// The depot or facility at a place on the screen.
function markNear(px, py, pane) {
  const near = ({ place }) => {
    const [x, y] = onScreen(place);
    return Math.hypot(x - px, y - py) <= REACH;
  };
  return pane.plan.depots.find(near) ?? pane.plan.facilities.find(near) ?? null;
}

function pointAt(px, py) {
  const pane = paneAt(px, py);
  const found = markNear(px - pane.x, py - pane.y, pane) ?? linkNear(px - pane.x, py - pane.y);
  if (found === null) pointAtNothing();
  else point(found, px, py);
}

function point(link, px, py) {
  if (state.pointed !== link) {
    state.pointed = link;
    tip.replaceChildren(...(link.place ? describeMark(link) : describe(link)));
    tip.hidden = false;
    redraw();
  }
  const { offsetWidth: width, offsetHeight: height } = tip;
  const left = px + 16 + width > canvas.clientWidth ? Math.max(px - 16 - width, 4) : px + 16;
  const top = Math.max(4, Math.min(py + 14, canvas.clientHeight - height - 4));
  tip.style.transform = `translate(${left}px, ${top}px)`;
}

function pointAtNothing() {
  if (state.pointed === null) return;
  state.pointed = null;
  tip.hidden = true;
  redraw();
}

function describeMark(mark) {
  const name = document.createElement("strong");
  name.textContent = mark.name;
  const lines = [name];
  if (mark.vehicles?.length) lines.push(line(mark.vehicles.join(", ")));
  if (mark.cost !== undefined) lines.push(line(`cost of a visit ${mark.cost}`));
  for (const route of everyRoute) {
    const visits = route.visits.filter(({ facility }) => facility === mark);
    if (!visits.length) continue;
    const load = visits.reduce((sum, visit) => sum + visit.load, 0);
    const times = visits.length === 1 ? "once" : `${visits.length} times`;
    lines.push(line(`${routeText(route)} comes ${times}, load ${load}`, route));
  }
  return lines;
}

// A route by its number, and of which plan it is where there are two.
function routeText(route) {
  const name = `Route ${route.number}`;
  return compares ? `${SIDES[plans.indexOf(route.plan)]}: ${name.toLowerCase()}` : name;
}

function describe(link) {
  const name = document.createElement("strong");
  name.textContent = link.name;
  const facts = [link.oneWay ? "one-way" : "two-way"];
  if (plan.metresPerUnit !== null) facts.push(lengthText(link.length * plan.metresPerUnit));
  facts.push(link.required ? `demand ${link.demand}` : "not to be served");
  const lines = [name, line(facts.join(", "))];
  const passages = new Map();
  for (const { route, step } of link.visits) {
    if (step.serves) {
      const when = timed ? `, ${whenText(step.start)}` : "";
      lines.push(line(`${routeText(route)} serves it, ${step.order} of ${route.services}${when}`, route));
    } else {
      passages.set(route, (passages.get(route) ?? 0) + 1);
    }
  }
  for (const [route, count] of passages) {
    const times = count === 1 ? "" : ` ${count} times`;
    lines.push(line(`${routeText(route)} drives through${times}`, route));
  }
  return lines;
}

function line(text, route = null) {
  const element = document.createElement("div");
  if (route) {
    const swatch = document.createElement("span");
    swatch.className = "swatch";
    swatch.style.background = route.colour;
    element.append(swatch);
  }
  element.append(text);
  return element;
}
