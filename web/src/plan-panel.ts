/** The third step: watch the search, change the plan by hand, search again, download. */

import type { RouteFacts } from "./api";
import { api } from "./api";
import type { App, Leg } from "./app";
import { inkOn, routeColour } from "./colours";
import { drawCurve } from "./curve";
import { arrowKeys, button, byId, count, distance, duration, figure, fill, isTouch, make } from "./dom";
import { follow } from "./drag";
import { folded } from "./streets";

const DOWNLOADS: [string, string, string][] = [
  ["gpx", "GPX tracks", "a track for each route, for navigation"],
  ["sheets", "Driver's sheets", "a sheet for each route, with directions"],
  ["pdf", "Sheets as PDF", "a sheet for each route, to print"],
  ["geojson", "GeoJSON", "lines for map software"],
  ["xlsx", "Excel", "the streets in driving order"],
  ["csv", "CSV", "the streets in driving order"],
  ["json", "Plan", "to compare with tomorrow"],
  ["html", "Map", "an interactive map in one file"],
  ["kml", "KML", "lines for Google Earth"],
];
const MOST_FOUND = 12;
/** Milliseconds between two sentences for screen readers. */
const SPEAK_EVERY = 3000;

export interface PlanActions {
  /** Show a link on the map. */
  show(link: number): void;
  /** Return the route under a point of the window, on the map or in the list. */
  routeAt(x: number, y: number): number | null;
}

/** Return a cost in the unit of the scene. */
export function costText(app: App, cost: number): string {
  const unit = app.scene?.unit.cost;
  return unit === "m" ? distance(cost) : unit === "s" ? duration(cost) : figure(cost);
}

export function nameOf(name: string): string {
  return name || "Street without a name";
}

/** Drag the street of a link to another route. */
export function dragStreet(app: App, event: PointerEvent, link: number, name: string, routeAt: PlanActions["routeAt"]): void {
  const from = app.serviceOf.get(link)?.route ?? null;
  follow(event, {
    label: nameOf(name),
    target: (x, y) => {
      const route = routeAt(x, y);
      return route === from ? null : route;
    },
    over: (route) => {
      app.dropRoute = route;
      app.update();
    },
    drop: (route) => moveTo(app, link, route),
  });
}

export function moveTo(app: App, link: number, route: number): void {
  const move = { link, route };
  void app.edit(app.serviceOf.has(link) ? { move: [move] } : { add: [added(app, link)], move: [move] });
}

/** Leave the street of a link out of the plan, or serve it again. */
export function toggleServed(app: App, link: number): void {
  void app.edit(app.serviceOf.has(link) ? { remove: [link] } : { add: [added(app, link)] });
}

function added(app: App, link: number): { link: number; demand: number | "length" } {
  const { demand } = app.setup;
  return { link, demand };
}

export function planPanel(app: App, actions: PlanActions): () => void {
  const search = byId<HTMLInputElement>("plan-search");
  const dialog = byId<HTMLDialogElement>("move-dialog");
  const routeChoice = byId<HTMLSelectElement>("move-route");
  const open = new Set<number>();
  let spoken = "";
  let spokenAt = 0;

  search.addEventListener("input", () => app.update());
  byId("chosen-move").addEventListener("click", () => openMoveDialog(app));
  byId("chosen-exclude").addEventListener("click", () => {
    if (app.chosen !== null) toggleServed(app, app.chosen);
  });
  dialog.addEventListener("close", () => {
    if (dialog.returnValue === "ok" && app.chosen !== null) moveTo(app, app.chosen, Number(routeChoice.value));
  });
  const list = byId("routes");
  arrowKeys(list, ".street");
  arrowKeys(byId("plan-found"), "button");
  list.addEventListener("pointerdown", (event) => {
    const target = event.target as HTMLElement;
    const row = target.closest<HTMLElement>("[data-link]");
    if (!row || event.button !== 0) return;
    // A finger scrolls the list; it drags by the handle only.
    if (isTouch(event) && !target.closest(".handle")) return;
    const link = Number(row.dataset["link"]);
    if (!isTouch(event)) event.preventDefault();
    dragStreet(app, event, link, app.serviceOf.get(link)?.name ?? "", actions.routeAt);
  });
  for (const [format, words, title] of DOWNLOADS) {
    byId("downloads").append(
      make("a", { class: "button", attributes: { "data-format": format, title, download: "" } }, words),
    );
  }

  return () => {
    const { job, legs } = app;
    byId("no-plan").hidden = job !== null;
    byId("has-plan").hidden = job === null;
    if (!job) return;
    const text = stateText(app);
    byId("state").textContent = text;
    const now = Date.now();
    if (text !== spoken && (now - spokenAt > SPEAK_EVERY || !app.isRunning)) {
      byId("announce").textContent = spoken = text;
      spokenAt = now;
    }
    const notes = [...job.repair, ...(app.scene?.warnings ?? []), ...(job.result?.fallback ? [job.result.fallback] : [])];
    fill(byId("notes"), notes, () => notes.map((one) => make("li", {}, one)));
    byId("curve-box").hidden = app.curve.length === 0;
    drawCurve(byId<HTMLElement>("curve") as unknown as SVGSVGElement, app.curve, job.best?.seconds ?? 0, (cost) => costText(app, cost));

    const services = app.serviceOf;
    const chosen = app.chosen === null ? null : (app.links.find((one) => one.id === app.chosen) ?? null);
    byId("chosen").hidden = !chosen;
    if (chosen) {
      const leg = services.get(chosen.id);
      byId("chosen-name").textContent = nameOf(chosen.name);
      byId("chosen-facts").textContent = leg ? `on route ${leg.route}` : "is driven on only";
      byId("chosen-exclude").firstChild!.textContent = leg ? "Do not serve " : "Serve ";
    }

    const wanted = folded(search.value.trim());
    const found = wanted
      ? legs.filter((leg) => leg.serves && folded(leg.name).includes(wanted)).slice(0, MOST_FOUND)
      : [];
    fill(byId("plan-found"), [wanted, found.map((leg) => [leg.link, leg.route])], () => {
      if (wanted && !found.length) return [make("li", { class: "faint" }, "No street of the plan has this name.")];
      return found.map((leg) =>
        make(
          "li",
          {},
          button(nameOf(leg.name), () => actions.show(leg.link), { class: "street", attributes: { "data-key": `found ${leg.link}` } }),
          swatch(leg.route),
        ),
      );
    });

    const figures = new Map((job.result?.routes ?? []).map((one) => [one.number, one]));
    const byRoute = new Map<number, Leg[]>();
    for (const leg of legs) if (leg.serves) byRoute.set(leg.route, [...(byRoute.get(leg.route) ?? []), leg]);
    const { locks } = app.history.present;
    const shown = [
      [...byRoute].map(([route, own]) => [route, own.length, open.has(route) && own.map((leg) => leg.link)]),
      [...figures.values()],
      locks,
      app.only,
      app.chosen,
      app.dropRoute,
      app.isRunning,
    ];
    fill(list, shown, () =>
      [...byRoute].map(([route, own]) => routeRow(route, own, figures.get(route) ?? null, locks.includes(route))),
    );
    byId("again").hidden = app.isRunning || !legs.length;
    for (const link of byId("downloads").querySelectorAll("a")) {
      if (legs.length) link.setAttribute("href", api.planUrl(job.id, link.dataset["format"]!));
      else link.removeAttribute("href");
    }
  };

  function routeRow(route: number, own: readonly Leg[], facts: RouteFacts | null, locked: boolean): HTMLLIElement {
    const isOpen = open.has(route);
    const header = make(
      "div",
      { class: "row" },
      button(
        "",
        () => {
          if (!open.delete(route)) open.add(route);
          app.update();
        },
        {
          class: "name",
          attributes: {
            "aria-expanded": String(isOpen),
            "aria-label": `Route ${route}, ${count(own.length, "street")}`,
            "data-key": `route ${route}`,
          },
        },
      ),
      button("Only", () => {
        app.only = app.only === route ? null : route;
        app.update();
      }, {
        class: "small",
        attributes: { "aria-pressed": String(app.only === route), "aria-label": `Show only route ${route}`, "data-key": `only ${route}` },
      }),
      button(locked ? "Locked" : "Lock", () => app.toggleLock(route), {
        class: "small lock",
        attributes: { "aria-pressed": String(locked), "aria-label": `Lock route ${route}`, "data-key": `lock ${route}` },
      }),
    );
    header.querySelector(".name")!.append(
      swatch(route),
      make("span", {}, make("strong", {}, `Route ${route}`), ...routeText(app, own, facts).map((line) => make("span", { class: "faint" }, line))),
    );
    const item = make("li", { class: "route", attributes: { "data-route": String(route) } }, header);
    item.classList.toggle("over", app.dropRoute === route);
    if (isOpen) {
      item.append(
        make(
          "ol",
          { attributes: { "aria-label": `Streets of route ${route}` } },
          ...own.map((leg) =>
            make(
              "li",
              {},
              button("", () => actions.show(leg.link), {
                class: "street",
                attributes: {
                  "data-link": String(leg.link),
                  "data-key": `link ${leg.link}`,
                  "aria-pressed": String(app.chosen === leg.link),
                },
              }),
            ),
          ),
        ),
      );
      for (const street of item.querySelectorAll<HTMLElement>(".street")) {
        const leg = own.find((one) => one.link === Number(street.dataset["link"]));
        street.append(make("span", { class: "handle", attributes: { "aria-hidden": "true" } }, "⠿"), nameOf(leg?.name ?? ""));
      }
    }
    return item;
  }
}

/** Ask for the route that the chosen street is moved to. */
export function openMoveDialog(app: App): void {
  const { chosen } = app;
  const link = app.links.find((one) => one.id === chosen);
  if (!link || !app.legs.length) return;
  const from = app.serviceOf.get(link.id)?.route;
  const routes = [...new Set(app.legs.map((leg) => leg.route))].filter((one) => one !== from);
  byId("move-street").textContent = from === undefined ? nameOf(link.name) : `${nameOf(link.name)}, now on route ${from}`;
  const choice = byId<HTMLSelectElement>("move-route");
  choice.replaceChildren(
    ...routes.map((route) => make("option", { attributes: { value: String(route) } }, `Route ${route}`)),
  );
  const dialog = byId<HTMLDialogElement>("move-dialog");
  dialog.returnValue = "";
  dialog.showModal();
  choice.focus();
}

function stateText(app: App): string {
  const { job } = app;
  if (!job) return "";
  const { best, result } = job;
  const last = app.curve[app.curve.length - 1];
  const cost = result?.cost ?? last?.cost ?? best?.cost;
  const routes = result?.routes.length ?? best?.routes;
  const plan = cost === undefined ? "" : `${costText(app, cost)}${routes ? `, ${count(routes, "route")}` : ""}`;
  switch (job.state) {
    case "queued":
      return job.position ? `Waiting; number ${job.position} in the queue.` : "Waiting for a free worker…";
    case "running":
      return plan ? `Searching… ${plan}` : "Searching…";
    case "done":
      return `${plan}${result?.stopped_by === "user" ? ", stopped by you" : ""}`;
    case "failed":
      return "No plan was found.";
    case "cancelled":
      return plan ? `Cancelled; the best plan was kept: ${plan}` : "Cancelled.";
  }
}

/** Return the figures of a route in lines. */
function routeText(app: App, own: readonly Leg[], facts: RouteFacts | null): string[] {
  if (!facts) return [count(own.length, "street")];
  const { scene, setup } = app;
  const load = `load ${figure(facts.load)}`;
  const lines = [
    [count(facts.streets, "street"), facts.length === null ? "" : distance(facts.length), setup.vehicles.length ? facts.vehicle : ""],
    [facts.time === null ? "" : duration(facts.time), setup.vehicles.length ? load : `${load} of ${figure(scene?.capacity ?? 0)}`],
  ];
  return lines.map((line) => line.filter(Boolean).join(" · "));
}

export function swatch(route: number): HTMLSpanElement {
  const made = make("span", { class: "swatch" }, String(route));
  made.style.backgroundColor = routeColour(route);
  made.style.color = inkOn(routeColour(route));
  return made;
}
