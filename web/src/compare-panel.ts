/** The fourth step: what changed since an earlier plan, such as yesterday's. */

import { api } from "./api";
import type { App } from "./app";
import { arrowKeys, byId, button, count, fill, make } from "./dom";
import { costText, nameOf, swatch } from "./plan-panel";

export function comparePanel(app: App, show: (link: number) => void): () => void {
  const choice = byId<HTMLSelectElement>("compare-with");
  choice.addEventListener("change", () => void app.compare(choice.value || null));
  const file = byId<HTMLInputElement>("compare-file");
  byId("compare-upload").addEventListener("click", () => file.click());
  file.addEventListener("change", () => {
    const [chosen] = file.files ?? [];
    if (chosen) void app.comparePlanFile(chosen);
    file.value = "";
  });
  arrowKeys(byId("moved"), "button");

  return () => {
    const { job, changes } = app;
    const hasPlan = job !== null && app.legs.length > 0;
    byId("compare-none").hidden = hasPlan;
    byId("compare-some").hidden = !hasPlan;
    if (!hasPlan) return;
    const others = app.jobs.filter((one) => one.id !== job.id && one.result);
    fill(choice, [others.map((one) => one.id), job.id], () => [
      make("option", { attributes: { value: "" } }, "Choose a plan"),
      ...others.map((one) =>
        make(
          "option",
          { attributes: { value: one.id } },
          `${new Date(one.created).toLocaleString()}: ${one.result!.cost}, ${count(one.result!.routes.length, "route")}`,
        ),
      ),
    ]);
    choice.value = app.comparedWith ?? "";
    fill(byId("compare-result"), [changes, app.comparedWith], () => {
      if (!changes) return [];
      const by = changes.cost.after - changes.cost.before;
      const words = by === 0 ? "no change" : `${by < 0 ? "−" : "+"}${costText(app, Math.abs(by))}`;
      return [
        make("p", { class: "figures" }, `Cost ${costText(app, changes.cost.before)} → ${costText(app, changes.cost.after)} (${words})`),
        make(
          "p",
          {},
          `${count(changes.moved.length, "street")} on another route, ${changes.removed.length} no longer served, ${changes.added.length} served now.`,
        ),
        make(
          "p",
          {},
          make(
            "a",
            { class: "button", attributes: { href: api.diffUrl(job.id, app.comparedWith!), target: "_blank", rel: "noopener" } },
            "Open both plans side by side",
          ),
        ),
      ];
    });
    const rows = changes ? [...changes.moved, ...changes.removed, ...changes.added] : [];
    fill(byId("moved"), rows, () =>
      rows.map((one) =>
        make(
          "li",
          {},
          button(nameOf(one.name), () => one.link !== null && show(one.link), {
            class: "street",
            attributes: { "aria-label": `${nameOf(one.name)}: ${routeWords(one.before)} before, ${routeWords(one.after)} now` },
          }),
          one.before === null ? make("span", { class: "faint" }, "new") : swatch(one.before),
          "→",
          one.after === null ? make("span", { class: "faint" }, "none") : swatch(one.after),
        ),
      ),
    );
  };
}

function routeWords(route: number | null): string {
  return route === null ? "no route" : `route ${route}`;
}
