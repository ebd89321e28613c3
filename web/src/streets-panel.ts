/** The first step: a map, and the streets of it that are served. */

import type { App } from "./app";
import { arrowKeys, button, byId, count, distance, figure, fill, make } from "./dom";
import { servesKind } from "./state";
import { folded } from "./streets";

/** Most names that a search lists. */
const MOST_FOUND = 8;

export function streetsPanel(app: App): () => void {
  const file = byId<HTMLInputElement>("upload-file");
  byId("upload").addEventListener("click", () => file.click());
  file.addEventListener("change", () => {
    const [chosen] = file.files ?? [];
    if (chosen) void app.uploadMap(chosen);
    file.value = "";
  });
  const border = byId<HTMLSelectElement>("border");
  border.addEventListener("change", () => app.change({ border: border.value as "middle" | "leave" }));
  const search = byId<HTMLInputElement>("name-search");
  search.addEventListener("input", () => app.update());
  arrowKeys(byId("maps"), ".choice");

  const setName = (name: string, served: boolean | null): void => {
    const names = { ...app.setup.names };
    if (served === null) delete names[name];
    else names[name] = served;
    app.change({ names });
  };
  const setKind = (kind: string, served: boolean): void => {
    const all = (app.map?.kinds ?? []).map((one) => one.kind);
    app.change({
      kinds: all.filter((one) => (one === kind ? served : servesKind(app.setup, one))),
    });
  };

  return () => {
    const { setup, map } = app;
    fill(byId("maps"), [app.maps, setup.map], () =>
      app.maps.map((one) => {
        const facts =
          one.state === "ready"
            ? `${count(one.streets, "street")}, ${distance(one.length)}${one.bundled ? ", comes with arcfleet" : ""}`
            : one.state === "reading"
              ? "is being read…"
              : (one.error?.message ?? "could not be read");
        const chosen = one.id === setup.map;
        const choice = button("", () => void app.attempt("Loading the streets…", () => app.chooseMap(one.id)), {
          class: "choice",
          attributes: { "data-key": one.id, "aria-pressed": String(chosen) },
        });
        choice.disabled = one.state !== "ready";
        choice.append(make("strong", {}, one.name), make("span", { class: "faint" }, facts));
        return make(
          "li",
          {},
          choice,
          !one.bundled &&
            one.state !== "reading" &&
            button("Remove", () => void app.removeMap(one.id), {
              class: "small",
              attributes: { "aria-label": `Remove the map ${one.name}`, "data-key": `remove ${one.id}` },
            }),
        );
      }),
    );
    const upload = app.upload;
    fill(byId("upload-state"), upload && [upload.name, upload.reading, Math.round(upload.share * 20)], () => {
      if (!upload) return [];
      const bar = make("progress", { attributes: { max: "1", "aria-label": "Upload" } });
      if (!upload.reading) bar.value = upload.share;
      return [
        make("p", {}, upload.reading ? `Reading the streets of ${upload.name}…` : `Uploading ${upload.name}…`),
        bar,
      ];
    });
    byId("choose").hidden = !map;
    if (!map) return;
    border.value = setup.border;
    border.parentElement!.hidden = !setup.areas.length;
    const served = app.servedStreets;
    const metres = served.reduce((sum, one) => sum + one.length, 0);
    byId("served").textContent = `${figure(served.length)} of ${count(app.streets.length, "street")}, ${distance(metres)}`;
    fill(byId("kinds"), [map.id, map.kinds.map((one) => servesKind(setup, one.kind))], () =>
      map.kinds.map(({ kind, streets, length }) => {
        const box = make("input", {
          attributes: { type: "checkbox", "data-key": kind },
          on: { change: () => setKind(kind, box.checked) },
        });
        box.checked = servesKind(setup, kind);
        return make(
          "li",
          {},
          make(
            "label",
            {},
            box,
            make("span", {}, kind || "without a class"),
            make("span", { class: "faint" }, `${count(streets, "street")}, ${distance(length)}`),
          ),
        );
      }),
    );
    const wanted = folded(search.value.trim());
    const found = new Map<string, number>();
    if (wanted) {
      for (const street of app.streets) {
        if (street.name && folded(street.name).includes(wanted)) {
          found.set(street.name, (found.get(street.name) ?? 0) + 1);
        }
      }
    }
    const shown = [...found]
      .sort(([one], [other]) => Number(folded(other).startsWith(wanted)) - Number(folded(one).startsWith(wanted)))
      .slice(0, MOST_FOUND);
    fill(byId("names-found"), [wanted, shown, setup.names], () => {
      if (wanted && !shown.length) return [make("li", { class: "faint" }, "No street has this name.")];
      return shown.map(([name, pieces]) =>
        make(
          "li",
          {},
          make("span", { class: "grow" }, name, make("span", { class: "faint" }, ` ${count(pieces, "piece")}`)),
          nameButton(name, true, "Serve"),
          nameButton(name, false, "Leave out"),
        ),
      );
    });
    fill(byId("names"), setup.names, () =>
      Object.entries(setup.names).map(([name, one]) =>
        make(
          "li",
          {},
          make("span", { class: "grow" }, name, make("span", { class: "faint" }, one ? " is served" : " is left out")),
          button("×", () => setName(name, null), {
            class: "small",
            attributes: { "aria-label": `Forget the choice for ${name}` },
          }),
        ),
      ),
    );
  };

  function nameButton(name: string, served: boolean, words: string): HTMLButtonElement {
    return button(words, () => setName(name, app.setup.names[name] === served ? null : served), {
      class: "small",
      attributes: {
        "aria-label": `${words}: ${name}`,
        "aria-pressed": String(app.setup.names[name] === served),
        "data-key": `${served} ${name}`,
      },
    });
  }
}
