// Printing: one page for every route that is shown, with its map and its figures.

const PAPER = { width: 700, least: 380, most: 720 }; // pixels of the map on paper
const MOST_SHARP = 24; // with more routes, pictures of less detail spare memory

function makeSheets() {
  removeSheets();
  const sheets = element("div", "light");
  sheets.id = "sheets";
  document.body.append(sheets);
  const shown = everyRoute.filter((route) => route.visible);
  const ratio = shown.length > MOST_SHARP ? 1.4 : 2;
  const saved = { view: { ...view }, panes, pen, time: state.time, pointed: state.pointed, marked: state.marked };
  const visible = everyRoute.map((route) => route.visible);
  Object.assign(state, { time: duration, pointed: null, marked: [] });
  readTheme(sheets); // paper is white
  for (const route of shown) {
    everyRoute.forEach((other) => { other.visible = other === route; });
    sheets.append(sheetOf(route, ratio));
  }
  everyRoute.forEach((route, index) => { route.visible = visible[index]; });
  Object.assign(view, saved.view);
  Object.assign(state, { time: saved.time, pointed: saved.pointed, marked: saved.marked });
  ({ panes, pen } = saved);
  readTheme();
  redraw();
}

function sheetOf(route, ratio) {
  const sheet = element("section", "sheet");
  const title = element("h2");
  const vehicle = route.vehicle === null ? "" : `: ${route.vehicle}`;
  title.append(swatchOf(route), `${routeText(route)}${vehicle}`);
  const facts = element("p", "figures");
  facts.append(...withTravel([countOf(route.services, "street piece"), loadText(route), `cost ${route.cost}`], (key) => route[key]).map(lineOf));
  const picture = element("canvas");
  const box = boxOfRoutes([route]);
  // As high as the route needs.
  const needed = (PAPER.width * (box[3] - box[1])) / (box[2] - box[0] || 1);
  const height = Math.round(Math.min(Math.max(needed, PAPER.least), PAPER.most));
  picture.width = PAPER.width * ratio;
  picture.height = height * ratio;
  pen = picture.getContext("2d");
  panes = [{ plan: route.plan, x: 0, y: 0 }];
  Object.assign(view, { width: PAPER.width, height, ratio, edge: MARGIN });
  fit(box, Infinity);
  draw();
  const chart = loadChart(route, PAPER.width, 110);
  sheet.append(element("p", "plan", plan.name), title, facts, picture, chart, element("p", "notice", plan.comment));
  // The colours of the page may be those of the dark scheme.
  sheet.style.setProperty(`--route-${route.number}`, route.colour);
  sheet.style.setProperty(`--on-route-${route.number}`, inkOn(route.colour));
  return sheet;
}

function removeSheets() {
  document.getElementById("sheets")?.remove();
}

window.addEventListener("beforeprint", makeSheets);
window.addEventListener("afterprint", removeSheets);
document.getElementById("print").addEventListener("click", async () => {
  if (base) {
    // Asks for the tiles that the sheets need; paper does not wait for them.
    makeSheets();
    removeSheets();
    await tilesLoaded();
  }
  window.print();
});
