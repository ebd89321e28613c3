/** The second step: demand, depots, facilities, vehicles, shift and turns. */

import type { App } from "./app";
import type { Place, VehicleType } from "./api";
import { button, byId, fill, make } from "./dom";
import type { Setup } from "./state";
import { limitsFleet, NEW_VEHICLE, usualCapacity } from "./state";
import type { Tools } from "./tools";

export function fleetPanel(app: App, tools: Tools): () => void {
  const writers: (() => void)[] = [];

  /** Tie a field to a part of the setup. */
  function field(id: string, read: (setup: Setup) => string, change: (text: string) => Partial<Setup>): void {
    const input = byId<HTMLInputElement | HTMLSelectElement>(id);
    input.addEventListener("change", () => {
      if (input instanceof HTMLInputElement && !input.reportValidity()) return;
      app.change(change(input.value.trim()));
    });
    writers.push(() => {
      if (input.value !== read(app.setup)) input.value = read(app.setup);
    });
  }

  function checkbox(id: string, read: (setup: Setup) => boolean, change: (on: boolean) => Partial<Setup>): void {
    const input = byId<HTMLInputElement>(id);
    input.addEventListener("change", () => app.change(change(input.checked)));
    writers.push(() => (input.checked = read(app.setup)));
  }

  const turns = (change: Partial<Setup["turns"]>): Partial<Setup> => ({ turns: { ...app.setup.turns, ...change } });
  const penalty = (id: string, name: "u_turn_penalty" | "left" | "right" | "straight") =>
    field(id, (setup) => String(setup.turns[name]), (text) => turns({ [name]: Number(text) }));

  field("demand", (s) => (s.demand === "length" ? "length" : "number"), (text) => ({
    demand: text === "length" ? "length" : 1,
    capacity: null,
  }));
  field("demand-number", (s) => String(s.demand), (text) => ({ demand: Number(text) || 1 }));
  field("capacity", (s) => asText(s.capacity), (text) => ({ capacity: asNumber(text) }));
  field("cost", (s) => s.cost, (text) => ({ cost: text as Setup["cost"] }));
  field("shift", (s) => s.shift, (text) => ({ shift: text }));
  checkbox("one-way", (s) => s.oneWay, (oneWay) => ({ oneWay }));
  checkbox("both-sides", (s) => s.bothSides, (bothSides) => ({ bothSides }));
  checkbox("empty-at-end", (s) => s.emptyAtEnd, (emptyAtEnd) => ({ emptyAtEnd }));
  field("fleet-limit", (s) => asText(s.fleetLimit), (text) => ({ fleetLimit: asNumber(text) }));
  checkbox("fewest-routes", (s) => s.fewestRoutes, (fewestRoutes) => ({ fewestRoutes }));
  field("balance", (s) => String(s.balance), (text) => ({ balance: Number(text) }));
  field("compactness", (s) => String(s.compactness), (text) => ({ compactness: Number(text) }));
  checkbox("restrictions", (s) => s.turns.restrictions, (restrictions) => turns({ restrictions }));
  field("u-turns", (s) => s.turns.u_turns, (text) => turns({ u_turns: text as Setup["turns"]["u_turns"] }));
  penalty("u-turn-penalty", "u_turn_penalty");
  penalty("left", "left");
  penalty("right", "right");
  penalty("straight", "straight");
  field("traffic", (s) => s.turns.traffic, (text) => turns({ traffic: text as Setup["turns"]["traffic"] }));

  byId("add-depot").addEventListener("click", () => tools.choose("depot"));
  byId("add-facility").addEventListener("click", () => tools.choose("facility"));
  byId("add-vehicle").addEventListener("click", () => {
    const taken = new Set(app.setup.vehicles.map((one) => one.name));
    let number = app.setup.vehicles.length + 1;
    while (taken.has(`Type ${number}`)) number += 1;
    app.change({ vehicles: [...app.setup.vehicles, { ...NEW_VEHICLE, name: `Type ${number}` }] });
  });

  return () => {
    const { setup } = app;
    for (const write of writers) write();
    byId("demand-number-row").hidden = setup.demand === "length";
    const capacity = byId<HTMLInputElement>("capacity");
    capacity.placeholder = app.map ? String(usualCapacity(setup, app.servedStreets)) : "";
    byId("capacity-note").textContent =
      (setup.demand === "length"
        ? "In metres of street that one trip can serve."
        : "In the unit of the demand, for one trip.") +
      (setup.capacity === null ? " If left empty, for about eight routes." : "");
    byId<HTMLInputElement>("shift").placeholder = setup.cost === "time" ? "no limit; such as 8 h" : "no limit; such as 40 km";
    byId("empty-row").hidden = !setup.facilities.length;
    byId("fleet-limit").parentElement!.hidden = !limitsFleet(setup);
    byId("vehicles-note").hidden = setup.vehicles.length > 0;
    fill(byId("depots"), setup.depots, () =>
      setup.depots.length
        ? setup.depots.map((place, index) =>
            row(`Depot ${index + 1}`, place, () => app.change({ depots: without(setup.depots, index) })),
          )
        : [make("li", { class: "faint" }, "The most central junction.")],
    );
    fill(byId("facilities"), setup.facilities, () =>
      setup.facilities.map((one, index) => {
        const set = (change: Partial<typeof one>): void =>
          app.change({ facilities: setup.facilities.map((old, i) => (i === index ? { ...old, ...change } : old)) });
        const name = make("input", {
          class: "grow",
          attributes: { "aria-label": `Name of facility ${index + 1}`, "data-key": `facility ${index}` },
          on: { change: () => set({ name: name.value }) },
        });
        name.value = one.name;
        const cost = make("input", {
          class: "narrow",
          attributes: { type: "number", min: "0", step: "1", "data-key": `facility cost ${index}` },
          on: { change: () => cost.reportValidity() && set({ cost: Number(cost.value) }) },
        });
        cost.value = String(one.cost);
        return make(
          "li",
          {},
          name,
          make("label", { class: "faint" }, "cost of a visit ", cost),
          button("×", () => app.change({ facilities: without(setup.facilities, index) }), {
            class: "small",
            attributes: { "aria-label": `Remove ${one.name}` },
          }),
        );
      }),
    );
    const table = byId("vehicles");
    table.hidden = !setup.vehicles.length;
    fill(table.querySelector("tbody")!, [setup.vehicles, setup.depots], () =>
      setup.vehicles.map((one, index) => vehicleRow(one, index)),
    );
  };

  function row(name: string, place: Place, remove: () => void): HTMLLIElement {
    return make(
      "li",
      {},
      make("span", { class: "grow" }, name, make("span", { class: "faint" }, ` ${place[1].toFixed(5)}, ${place[0].toFixed(5)}`)),
      button("×", remove, { class: "small", attributes: { "aria-label": `Remove ${name}` } }),
    );
  }

  function vehicleRow(vehicle: VehicleType, index: number): HTMLTableRowElement {
    const set = (change: Partial<VehicleType>): void =>
      app.change({
        vehicles: app.setup.vehicles.map((one, i) => (i === index ? { ...one, ...change } : one)),
      });
    const input = (words: string, value: string, change: (text: string) => Partial<VehicleType>, type = "number") => {
      const made = make("input", {
        attributes: {
          type,
          "aria-label": `${words} of ${vehicle.name}`,
          "data-key": `${words} ${index}`,
          ...(type === "number" ? { min: "0", step: "1", inputmode: "numeric", placeholder: "any" } : {}),
        },
        on: { change: () => made.reportValidity() && set(change(made.value.trim())) },
      });
      made.value = value;
      return make("td", {}, made);
    };
    const depot = make(
      "select",
      {
        attributes: { "aria-label": `Depot of ${vehicle.name}`, "data-key": `depot ${index}` },
        on: { change: () => set({ depot: app.setup.depots[Number(depot.value)] ?? null }) },
      },
      make("option", { attributes: { value: "-1" } }, "first"),
      ...app.setup.depots.map((_, i) => make("option", { attributes: { value: String(i) } }, `Depot ${i + 1}`)),
    );
    depot.value = String(
      app.setup.depots.findIndex((one) => vehicle.depot && one[0] === vehicle.depot[0] && one[1] === vehicle.depot[1]),
    );
    return make(
      "tr",
      {},
      input("Name", vehicle.name, (text) => ({ name: text || vehicle.name }), "text"),
      input("Capacity", asText(vehicle.capacity), (text) => ({ capacity: asNumber(text) })),
      input("Number", asText(vehicle.count), (text) => ({ count: asNumber(text) })),
      input("Shift", asText(vehicle.shift), (text) => ({ shift: /^\d+$/.test(text) ? Number(text) : text || null }), "text"),
      input("Cost of use", String(vehicle.fixed_cost), (text) => ({ fixed_cost: Number(text) })),
      make("td", {}, depot),
      input(
        "Classes of streets not used",
        vehicle.forbidden_kinds.join(", "),
        (text) => ({ forbidden_kinds: text.split(",").map((one) => one.trim()).filter(Boolean) }),
        "text",
      ),
      make(
        "td",
        {},
        button("×", () => app.change({ vehicles: without(app.setup.vehicles, index) }), {
          class: "small",
          attributes: { "aria-label": `Remove ${vehicle.name}` },
        }),
      ),
    );
  }
}

function without<T>(list: readonly T[], index: number): T[] {
  return list.filter((_, i) => i !== index);
}

function asText(value: number | string | null): string {
  return value === null ? "" : String(value);
}

function asNumber(text: string): number | null {
  return text && Number(text) > 0 ? Number(text) : null;
}
