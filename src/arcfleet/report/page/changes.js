// Two plans: which of them is shown, what changed, and the streets that moved on the map.

const KINDS = [
  ["moved", "to another route", ({ before, after }) => `route ${before} → ${after}`],
  ["removed", "no longer served", ({ before }) => `was on route ${before}`],
  ["added", "newly served", ({ after }) => `on route ${after}`],
];

// Links that changed, in the earlier and in the later plan.
const changed = compares
  ? ["linksBefore", "linksAfter"].map((side) => new Set(
    KINDS.flatMap(([kind]) => plan.changes[kind].flatMap((change) => change[side].map((link) => links[link])))))
  : [];

function changeLines() {
  const [before, after] = plans;
  const { moved, removed, added, streets } = plan.changes;
  const count = (some, side) => some.reduce((sum, change) => sum + change[side].length, 0);
  const sign = after.cost > before.cost ? "+" : after.cost < before.cost ? "−" : "±";
  return [
    [`cost ${before.cost} → ${after.cost} (${sign}${Math.abs(after.cost - before.cost)})`],
    [`${count(moved, "linksBefore")} of ${streets} street pieces moved`, `${count(removed, "linksBefore")} removed`, `${count(added, "linksAfter")} added`],
  ];
}

function showChanges() {
  document.getElementById("compare").hidden = !compares;
  if (!compares) return;
  for (const button of document.querySelectorAll("#sides button")) {
    button.addEventListener("click", () => showSide(button.value));
  }
  const list = document.getElementById("changes");
  for (const [kind, title, text] of KINDS) {
    for (const change of plan.changes[kind]) list.append(changeItem(change, `${title}: ${text(change)}`));
  }
  if (!list.children.length) list.append(element("li", "none", "Every street is on its route as before."));
  showSide("both");
}

function changeItem(change, text) {
  const item = element("li");
  const button = element("button");
  button.type = "button";
  const pieces = [...change.linksBefore, ...change.linksAfter].map((link) => links[link]);
  const count = Math.max(change.linksBefore.length, change.linksAfter.length);
  button.append(element("strong", "", change.name), element("span", "line", `${countOf(count, "piece")}, ${text}`));
  button.addEventListener("click", () => {
    const numbers = [change.before, change.after];
    showOnly((route) => route.visible || numbers.includes(route.number));
    fit(boxOf(pieces));
    mark(pieces);
  });
  item.append(button);
  return item;
}

// Show the earlier plan ("0"), the later one ("1") or both.
function showSide(side) {
  state.shown = side;
  for (const button of document.querySelectorAll("#sides button")) {
    button.setAttribute("aria-pressed", String(button.value === side));
  }
  resize();
}

// Streets that changed stand out: in full colour, between dark lines.
function drawChanges(pane, shown, width) {
  const mine = changed[plans.indexOf(pane.plan)];
  const visible = new Set(shown);
  const served = new Set();
  for (const [wide, colour] of [[width + 5, () => theme.ink], [width + 2, () => theme.paper], [width + 0.5, (route) => route.colour]]) {
    pen.lineWidth = wide;
    for (const link of mine) {
      if (outside(link)) continue;
      const visit = link.visits.find(({ route, step }) => step.serves && route.plan === pane.plan);
      if (!visit || !visible.has(visit.route)) continue;
      served.add(link);
      pen.strokeStyle = colour(visit.route);
      pen.beginPath();
      trace({ link, reverse: false }, 0);
      pen.stroke();
    }
  }
  // Served by the other plan only.
  pen.strokeStyle = theme.ink;
  pen.lineWidth = 2;
  pen.setLineDash([2, 5]);
  for (const link of [...changed[0], ...changed[1]]) {
    if (served.has(link) || outside(link) || link.visits.some(({ route, step }) => step.serves && route.plan === pane.plan)) continue;
    pen.beginPath();
    trace({ link, reverse: false }, 0);
    pen.stroke();
  }
  pen.setLineDash([]);
}

function drawTitles() {
  pen.setTransform(view.ratio, 0, 0, view.ratio, 0, 0);
  for (const pane of panes) {
    const text = SIDES[plans.indexOf(pane.plan)];
    pen.font = "bold 14px system-ui, sans-serif";
    pen.textAlign = "left";
    pen.textBaseline = "top";
    pen.lineWidth = 4;
    pen.strokeStyle = theme.halo;
    pen.strokeText(text, pane.x + 12, pane.y + 12);
    pen.fillStyle = theme.ink;
    pen.fillText(text, pane.x + 12, pane.y + 12);
    pen.strokeStyle = theme.faint;
    pen.lineWidth = 1;
    if (pane.x || pane.y) {
      pen.beginPath();
      pen.moveTo(pane.x, pane.y);
      pen.lineTo(pane.x ? pane.x : view.width, pane.x ? view.height : pane.y);
      pen.stroke();
    }
  }
}
