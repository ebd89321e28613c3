// Which vehicle serves my street? Names are found regardless of case and accents.

const searchBox = document.getElementById("search");
const found = document.getElementById("found");
const MOST_FOUND = 30;

// As the program compares names: without case, accents and superfluous spaces.
function folded(text) {
  return text.toUpperCase().toLowerCase().normalize("NFKD").replace(/\p{M}/gu, "").trim().replace(/\s+/g, " ");
}

let index = null;
function nameIndex() {
  if (index) return index;
  const byName = new Map();
  for (const link of links) {
    const key = folded(link.name);
    if (!byName.has(key)) byName.set(key, { key, name: link.name, links: [] });
    byName.get(key).links.push(link);
  }
  index = [...byName.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
  return index;
}

// Names that begin so come first, then those with a word that does, then any.
function namesLike(text) {
  const key = folded(text);
  if (!key) return [];
  const rank = ({ key: name }) =>
    (name.startsWith(key) ? 0 : name.includes(` ${key}`) ? 1 : name.includes(key) ? 2 : 3);
  return [0, 1, 2].flatMap((wanted) => nameIndex().filter((entry) => rank(entry) === wanted));
}

// A line for every route that serves the name; one for a name that no route serves.
function answersOf({ name, links: pieces }) {
  const served = new Map();
  for (const link of pieces) {
    for (const { route, step } of link.visits) {
      if (!step.serves) continue;
      if (!served.has(route)) served.set(route, []);
      served.get(route).push(step);
    }
  }
  const answers = [...served].map(([route, steps]) => ({ name, route, links: steps.map((step) => step.link), text: servedText(route, steps) }));
  if (answers.length) return answers.sort((a, b) => a.route.number - b.route.number || everyRoute.indexOf(a.route) - everyRoute.indexOf(b.route));
  const required = pieces.some((link) => link.required);
  return [{ name, route: null, links: pieces, text: required ? "served by no route" : "not to be served" }];
}

function servedText(route, steps) {
  const orders = steps.map((step) => step.order);
  const first = Math.min(...orders), last = Math.max(...orders);
  const place = first === last ? `stop ${first}` : `stops ${first} to ${last}`;
  const start = Math.min(...steps.map((step) => step.start));
  const vehicle = route.vehicle === null ? "" : ` (${route.vehicle})`;
  return `${routeText(route)}${vehicle}, ${place} of ${route.services}, ${whenText(start)}`;
}

function search() {
  const entries = namesLike(searchBox.value);
  const answers = [];
  for (const entry of entries) {
    if (answers.length >= MOST_FOUND) break;
    answers.push(...answersOf(entry));
  }
  const items = answers.slice(0, MOST_FOUND).map(answerItem);
  if (searchBox.value.trim() && !items.length) items.push(element("li", "none", "No street of this name."));
  if (answers.length > MOST_FOUND || entries.length > MOST_FOUND) items.push(element("li", "none", "And more: type on."));
  found.replaceChildren(...items);
  found.hidden = items.length === 0;
  if (!items.length) mark([]);
}

function answerItem(answer) {
  const item = element("li");
  const button = element("button");
  button.type = "button";
  if (answer.route) button.append(swatchOf(answer.route));
  const words = element("span");
  words.append(element("strong", "", answer.name), element("span", "line", answer.text));
  button.append(words);
  button.addEventListener("click", () => showAnswer(answer));
  item.append(button);
  return item;
}

// The streets in sight, on a map that shows their route.
function showAnswer({ route, links: streets }) {
  if (route) {
    if (!route.visible) showOnly((other) => other.visible || other.number === route.number);
    paneOf(route);
  }
  fit(boxOf(streets));
  mark(streets);
}

function mark(streets) {
  state.marked = streets;
  redraw();
}

searchBox.addEventListener("input", search);
searchBox.addEventListener("keydown", (event) => {
  if (event.key === "Enter") found.querySelector("button")?.click();
  if (event.key === "Escape") {
    searchBox.value = "";
    search();
  }
});
document.getElementById("leave").addEventListener("input", () => {
  if (searchBox.value) search();
  for (const details of document.querySelectorAll("#routes details")) {
    details.open = false;
    while (details.children.length > 1) details.lastChild.remove();
  }
});
