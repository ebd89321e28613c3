/** The page of `arcfleet serve`: ties the panels, the map and the keys to the app. */

import "./style.css";
import type { Leg, Link, Tab } from "./app";
import { App } from "./app";
import { routeColour, themed, whenGroundChanges } from "./colours";
import { comparePanel } from "./compare-panel";
import { arrowKeys, byId, distance, fill, make } from "./dom";
import { fleetPanel } from "./fleet-panel";
import { jobsPanel } from "./jobs-panel";
import type { Layer } from "./map";
import { StreetMap } from "./map";
import { dragStreet, nameOf, openMoveDialog, planPanel, toggleServed } from "./plan-panel";
import type { Line, Street } from "./streets";
import { boxOf } from "./streets";
import { streetsPanel } from "./streets-panel";
import { serves } from "./state";
import { Tools } from "./tools";

/** How far from a street a click still takes it, in pixels. */
const REACH = { mouse: 8, touch: 20 };
const TABS: Tab[] = ["streets", "fleet", "plan", "compare", "jobs"];

const app = new App();
const map = new StreetMap(byId("map"));
const tools = new Tools(map, {
  area: (ring) => app.change({ areas: [...app.setup.areas, ring] }),
  place: (tool, place) =>
    app.change(
      tool === "depot"
        ? { depots: [...app.setup.depots, place] }
        : {
            facilities: [
              ...app.setup.facilities,
              { place, cost: 0, name: `Facility ${app.setup.facilities.length + 1}` },
            ],
          },
    ),
  pick: (x, y, reach) => {
    const street = map.pick(app.streets, x, y, reach);
    if (!street) return;
    const picked = { ...app.setup.picked };
    if (street.id in picked) delete picked[street.id];
    else picked[street.id] = !serves(app.setup, street);
    app.change({ picked });
  },
});

// --- What the map shows -------------------------------------------------------------------

/** Whether the map shows the plan; else it shows the streets of the setup. */
function showsPlan(): boolean {
  return app.job !== null && app.tab !== "streets" && app.tab !== "fleet";
}

function setupLayers(): Layer<Street>[] {
  const served = new Set(app.servedStreets);
  const { names, picked } = app.setup;
  const driven = { colour: themed("--required"), width: 1.3 };
  const served_ = { colour: themed("--served"), width: 2.6 };
  const left = { colour: themed("--left-out"), width: 2.2, dash: [4, 4] as [number, number] };
  return [
    {
      lines: app.streets,
      style: (street) =>
        served.has(street) ? served_ : picked[street.id] === false || names[street.name] === false ? left : driven,
    },
  ];
}

function planLayers(): Layer[] {
  const base: Layer<Link> = {
    lines: app.links,
    style: (link) => ({ colour: themed(link.required ? "--required" : "--street"), width: link.required ? 1.6 : 1.1 }),
  };
  const { changes, only } = app;
  if (app.tab === "compare" && changes) {
    const now = new Map([...changes.moved, ...changes.added].map((one) => [one.link, one.after!]));
    const gone = new Set(changes.removed.map((one) => one.link));
    return [
      base,
      {
        lines: app.links,
        style: (link) => {
          const route = now.get(link.id);
          if (route !== undefined) return { colour: routeColour(route), width: 4.5 };
          return gone.has(link.id) ? { colour: themed("--left-out"), width: 3, dash: [4, 4] } : null;
        },
      },
    ];
  }
  const shown = app.dropRoute ?? only;
  const alpha = (leg: Leg) => (shown === null || leg.route === shown ? 1 : only === null ? 0.25 : 0.12);
  const drives: Layer<Leg> = {
    lines: app.legs.filter((leg) => !leg.serves),
    style: (leg) =>
      only !== null && leg.route !== only
        ? null
        : { colour: routeColour(leg.route), width: 1.4, dash: [3, 4], beside: 3.6, alpha: alpha(leg) },
  };
  const services: Layer<Leg> = {
    lines: app.legs.filter((leg) => leg.serves),
    style: (leg) => ({
      colour: routeColour(leg.route),
      width: 3.4,
      alpha: alpha(leg),
      arrows: true,
    }),
  };
  return [base, drives, services];
}

function showMap(): void {
  const plan = showsPlan();
  const { setup } = app;
  map.layers = plan ? planLayers() : setupLayers();
  map.named = plan ? app.links : app.streets;
  map.areas = plan ? [] : setup.areas;
  map.markers = plan
    ? [
        ...app.sceneMarks.facilities.map((place) => ({ place, mark: "facility" as const })),
        ...app.sceneMarks.depots.map((place) => ({ place, mark: "depot" as const })),
      ]
    : [
        ...setup.facilities.map(({ place }) => ({ place, mark: "facility" as const })),
        ...setup.depots.map((place) => ({ place, mark: "depot" as const })),
      ];
  map.chosen = plan && app.chosen !== null ? app.links.filter((link) => link.id === app.chosen) : [];
  const changed = new Set(app.tab === "compare" ? changedLinks() : []);
  map.ringed = app.links.filter((link) => changed.has(link.id) || link.id === app.chosen);
  map.cross = byKeys && (tools.tool !== null || plan);
  byId("map-tools").hidden = plan || !app.map;
  if (plan && tools.tool) tools.choose(null);
  byId<HTMLButtonElement>("clear-area").disabled = !setup.areas.length;
  const attribution = app.map?.attribution ?? "";
  byId("credit").textContent = attribution;
  showLegend(plan);
  fitOnce(plan);
  map.redraw();
}

/** What has been brought into sight: a map, and the streets that a plan serves. */
const fitted: { map: string | null; plan: string | null } = { map: null, plan: null };

/** Show all of another map, or all that another plan serves; after that the user moves the map. */
function fitOnce(plan: boolean): void {
  const { scene, setup, links, streets } = app;
  if (!plan && streets.length && fitted.map !== setup.map) {
    fitted.map = setup.map;
    allInSight();
  } else if (plan && scene && links.length) {
    const area = scene.request.area ?? null;
    const key = JSON.stringify([scene.map ?? scene.name, area]);
    if (fitted.plan === key) return;
    fitted.plan = key;
    if (area || !scene.map || fitted.map !== scene.map) allInSight();
  }
}
/** Whether the last thing touched was a key. */
let byKeys = false;

function changedLinks(): (number | null)[] {
  const { changes } = app;
  return changes ? [...changes.moved, ...changes.removed, ...changes.added].map((one) => one.link) : [];
}

function showLegend(plan: boolean): void {
  const entries = plan
    ? [["service", "served"], ["drive", "driven"], ["depot", "depot"], ...(app.sceneMarks.facilities.length ? [["facility", "facility"]] : [])]
    : [["to-serve", "to serve"], ["only-driven", "driven on only"], ["left-out", "left out"], ["depot", "depot"]];
  byId("legend").hidden = !plan && !app.map;
  fill(byId("legend"), entries, () =>
    entries.map(([mark, words]) => make("span", {}, make("i", { class: mark! }), words!)),
  );
}

function allInSight(): void {
  const lines: readonly Line[] = showsPlan() ? app.links.filter((link) => link.required) : app.streets;
  map.fit(boxOf(lines));
}

/** Choose a link and bring it into sight. */
function show(link: number): void {
  const line = app.links.find((one) => one.id === link);
  app.choose(link);
  if (line) map.show(line);
}

// --- Panels -------------------------------------------------------------------------------

function routeAt(x: number, y: number): number | null {
  const element = document.elementFromPoint(x, y);
  const row = element?.closest<HTMLElement>("[data-route]");
  if (row) return Number(row.dataset["route"]);
  if (!element || !map.element.contains(element)) return null;
  const leg = map.pick(
    app.legs.filter((one) => one.serves && one.link !== app.chosen),
    ...map.inside({ clientX: x, clientY: y }),
    REACH.touch,
  );
  return leg?.route ?? null;
}

const panels = [
  streetsPanel(app),
  fleetPanel(app, tools),
  planPanel(app, { show, routeAt }),
  comparePanel(app, show),
  jobsPanel(app),
];

let shownTab: Tab = app.tab;
app.listen(() => {
  for (const tab of TABS) {
    const chosen = app.tab === tab;
    const button = byId(`tab-${tab}`);
    button.setAttribute("aria-selected", String(chosen));
    button.tabIndex = chosen ? 0 : -1;
    byId(`panel-${tab}`).hidden = !chosen;
  }
  if (app.tab !== shownTab) byId("panels").scrollTop = 0;
  shownTab = app.tab;
  for (const panel of panels) panel();
  const title = app.scene && showsPlan() ? app.scene.name : (app.map?.name ?? "");
  byId("title").textContent = title || "arcfleet";
  document.title = title ? `${title}: arcfleet` : "arcfleet";
  byId<HTMLButtonElement>("undo").disabled = !app.history.canUndo;
  byId<HTMLButtonElement>("redo").disabled = !app.history.canRedo;
  showGo();
  showError();
  showMap();
});

function showGo(): void {
  const start = byId<HTMLButtonElement>("start");
  const again = showsPlan() && app.legs.length > 0;
  byId("stop").hidden = !app.isRunning;
  start.hidden = app.isRunning;
  start.disabled = app.busy !== null || (again ? !app.job : !app.map || !app.servedStreets.length);
  start.textContent = app.busy ?? (again ? "Re-optimise" : "Start");
}

let shownError: App["error"] = null;
function showError(): void {
  const box = byId("error");
  if (app.error === shownError) return;
  shownError = app.error;
  box.hidden = !app.error;
  box.querySelector("p")!.textContent = app.error?.message ?? "";
  for (const field of document.querySelectorAll("[aria-invalid]")) field.removeAttribute("aria-invalid");
  const name = app.error?.field?.split(".").pop();
  const field = name && document.querySelector<HTMLElement>(`[data-field="${CSS.escape(name)}"]`);
  if (field) field.setAttribute("aria-invalid", "true");
}

byId("error").querySelector("button")!.addEventListener("click", () => {
  app.error = null;
  app.update();
});
for (const tab of TABS) byId(`tab-${tab}`).addEventListener("click", () => app.openTab(tab));
arrowKeys(byId("tabs"), "[role=tab]");
byId("tabs").addEventListener("focusin", (event) => {
  const tab = (event.target as HTMLElement).id.replace("tab-", "") as Tab;
  if (tab !== app.tab) app.openTab(tab);
});
byId("start").addEventListener("click", () => {
  const seconds = Number(byId<HTMLSelectElement>("seconds").value);
  if (showsPlan() && app.legs.length) void app.reoptimise(seconds, Number(byId<HTMLInputElement>("keep").value));
  else void app.start(seconds);
});
byId("stop").addEventListener("click", () => void app.stop());
byId("undo").addEventListener("click", () => void app.undo());
byId("redo").addEventListener("click", () => void app.redo());
byId("help").addEventListener("click", () => byId<HTMLDialogElement>("help-dialog").showModal());
byId("clear-area").addEventListener("click", () => app.change({ areas: [] }));
byId("zoom-in").addEventListener("click", () => map.leaflet.zoomIn(1));
byId("zoom-out").addEventListener("click", () => map.leaflet.zoomOut(1));
byId("zoom-all").addEventListener("click", allInSight);
whenGroundChanges(() => app.update());

// --- Pointers on the map ------------------------------------------------------------------

let pointerType = "mouse";
function reach(): number {
  return pointerType === "mouse" ? REACH.mouse : REACH.touch;
}

function linkAt(x: number, y: number): Link | null {
  // Of parallel lines, one that is served comes first.
  const leg = map.pick(app.legs.filter((one) => one.serves), x, y, reach());
  return leg ? (app.links.find((one) => one.id === leg.link) ?? null) : map.pick(app.links, x, y, reach());
}

byId("stage").addEventListener(
  "pointerdown",
  (event) => {
    ({ pointerType } = event);
    if (!showsPlan() || app.chosen === null || !event.isPrimary || event.button !== 0) return;
    if (!map.element.contains(event.target as Node)) return;
    // The chosen street is dragged; anywhere else the map is.
    const [x, y] = map.inside(event);
    const [line] = map.chosen;
    if (!line || !map.pick([line], x, y, reach() + 4)) return;
    map.leaflet.dragging.disable();
    addEventListener("pointerup", () => map.leaflet.dragging.enable(), { once: true });
    addEventListener("pointercancel", () => map.leaflet.dragging.enable(), { once: true });
    dragStreet(app, event, app.chosen, line.name, routeAt);
  },
  true,
);

function useMap(x: number, y: number): void {
  if (tools.click(x, y, pointerType !== "mouse") || !showsPlan()) return;
  app.choose(linkAt(x, y)?.id ?? null);
}

map.leaflet.on("click", (event) => useMap(event.containerPoint.x, event.containerPoint.y));

const tip = byId("tip");
let tipWaits = false;
byId("stage").addEventListener("pointermove", (event) => {
  if (event.pointerType !== "mouse" || tipWaits) return;
  tipWaits = true;
  requestAnimationFrame(() => {
    tipWaits = false;
    const onMap = event.buttons === 0 && map.element.contains(event.target as Node);
    const [x, y] = map.inside(event);
    const text = onMap ? tipText(x, y) : null;
    tip.hidden = text === null;
    map.element.classList.toggle("on-chosen", onMap && map.chosen.length > 0 && map.pick(map.chosen, x, y, reach() + 4) !== null);
    if (!text) return;
    tip.replaceChildren(make("strong", {}, text[0]), text[1]);
    tip.style.transform = `translate(${Math.min(x + 14, map.element.clientWidth - 240)}px, ${Math.min(y + 14, map.element.clientHeight - 70)}px)`;
  });
});
byId("stage").addEventListener("pointerleave", () => (tip.hidden = true));

function tipText(x: number, y: number): [string, string] | null {
  if (showsPlan()) {
    const link = linkAt(x, y);
    if (!link) return null;
    const leg = app.serviceOf.get(link.id);
    return [nameOf(link.name), leg ? `route ${leg.route}, demand ${link.demand}` : "driven on only"];
  }
  const street = map.pick(app.streets, x, y, reach());
  if (!street) return null;
  const how = serves(app.setup, street) ? "to serve" : "driven on only";
  return [nameOf(street.name), `${street.kind}, ${distance(street.length)}, ${how}${street.oneWay ? ", one-way" : ""}`];
}

// --- Keys ---------------------------------------------------------------------------------

for (const type of ["keydown", "pointerdown"] as const) {
  addEventListener(
    type,
    () => {
      byKeys = type === "keydown";
      map.cross = byKeys && (tools.tool !== null || showsPlan());
      map.redraw();
    },
    true,
  );
}

addEventListener("keydown", (event) => {
  if (document.querySelector("dialog[open]")) return;
  const target = event.target as HTMLElement;
  const typing = target.matches("input:not([type=checkbox]), textarea, select");
  const key = event.key.toLowerCase();
  if ((event.ctrlKey || event.metaKey) && (key === "z" || key === "y")) {
    if (typing && target.matches("input[type=search]")) return;
    void (key === "y" || event.shiftKey ? app.redo() : app.undo());
    event.preventDefault();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (tools.key(event)) {
    event.preventDefault();
    return;
  }
  if (target === map.element && (key === "enter" || key === " ")) {
    pointerType = "mouse";
    useMap(map.element.clientWidth / 2, map.element.clientHeight / 2);
    event.preventDefault();
    return;
  }
  if (typing) return;
  const focused = target.closest<HTMLElement>("[data-link]");
  if (focused && "mxl".includes(key)) app.chosen = Number(focused.dataset["link"]);
  const { chosen } = app;
  const leg = chosen === null ? undefined : app.serviceOf.get(chosen);
  if (key === "?") byId<HTMLDialogElement>("help-dialog").showModal();
  else if (key === "/") byId(showsPlan() ? "plan-search" : "name-search").focus();
  else if (key === "escape") app.choose(null);
  else if (!showsPlan() || chosen === null || app.busy) return;
  else if (key === "m") openMoveDialog(app);
  else if (key === "x") toggleServed(app, chosen);
  else if (key === "l" && leg) app.toggleLock(leg.route);
  else return;
  event.preventDefault();
});

// --- Files dropped on the page ------------------------------------------------------------

const drop = byId("drop");
addEventListener("dragover", (event) => {
  if (!event.dataTransfer?.types.includes("Files")) return;
  event.preventDefault();
  drop.hidden = false;
});
addEventListener("dragleave", (event) => {
  if (!event.relatedTarget) drop.hidden = true;
});
addEventListener("drop", (event) => {
  event.preventDefault();
  drop.hidden = true;
  const file = event.dataTransfer?.files[0];
  if (file) void app.uploadMap(file);
});

addEventListener("hashchange", () => {
  if (location.hash !== `#job=${app.history.present.job}`) void app.begin();
});

// For the tests of the page.
Object.assign(window, { arcfleetPage: { app, map, tools, routeColour } });
void app.begin();
