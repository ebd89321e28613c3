/** What the user has set up, as values that never change, and the stack of undo and redo. */

import type { Position } from "geojson";
import type { FacilityPlace, KindCount, Operations, Place, SceneRequest, Turns, VehicleType } from "./api";
import type { Street } from "./streets";
import { inArea } from "./streets";

export interface Setup {
  map: string | null;
  /** Rings of the areas; none means the whole map. */
  areas: Position[][];
  border: "middle" | "leave";
  /** Classes that are served; null means all but motorways and trunk roads. */
  kinds: string[] | null;
  /** Streets served or left out by name. */
  names: Record<string, boolean>;
  /** Single streets served or left out, against class and name. */
  picked: Record<number, boolean>;
  capacity: number | null;
  demand: "length" | number;
  cost: "length" | "time";
  oneWay: boolean;
  bothSides: boolean;
  depots: Place[];
  facilities: FacilityPlace[];
  emptyAtEnd: boolean;
  shift: string;
  vehicles: VehicleType[];
  fleetLimit: number | null;
  fewestRoutes: boolean;
  balance: number;
  compactness: number;
  turns: Turns;
}

export const NEW_SETUP: Setup = {
  map: null,
  areas: [],
  border: "middle",
  kinds: null,
  names: {},
  picked: {},
  capacity: null,
  demand: "length",
  cost: "length",
  oneWay: true,
  bothSides: false,
  depots: [],
  facilities: [],
  emptyAtEnd: true,
  shift: "",
  vehicles: [],
  fleetLimit: null,
  fewestRoutes: false,
  balance: 0,
  compactness: 0,
  turns: {
    restrictions: true,
    u_turns: "dead-ends",
    u_turn_penalty: 0,
    left: 0,
    right: 0,
    straight: 0,
    traffic: "right",
  },
};

/** One moment of the work: what undo goes back to. */
export interface Moment {
  setup: Setup;
  job: string | null;
  /** Routes that the next search leaves as they are. */
  locks: readonly number[];
}

export class History {
  private past: Moment[] = [];
  private future: Moment[] = [];

  constructor(private now: Moment) {}

  get present(): Moment {
    return this.now;
  }

  get canUndo(): boolean {
    return this.past.length > 0;
  }

  get canRedo(): boolean {
    return this.future.length > 0;
  }

  push(next: Partial<Moment>): void {
    this.past.push(this.now);
    this.future = [];
    this.now = { ...this.now, ...next };
  }

  /** Start anew: what was before cannot be undone. */
  reset(next: Moment): void {
    this.past = [];
    this.future = [];
    this.now = next;
  }

  undo(): boolean {
    return this.step(this.past, this.future);
  }

  redo(): boolean {
    return this.step(this.future, this.past);
  }

  private step(from: Moment[], to: Moment[]): boolean {
    const next = from.pop();
    if (!next) return false;
    to.push(this.now);
    this.now = next;
    return true;
  }
}

/** Classes that are driven on, and served only where they are asked for. */
const DRIVEN_KINDS = new Set(["motorway", "motorway_link", "trunk", "trunk_link"]);

export function servesKind(setup: Setup, kind: string): boolean {
  return setup.kinds ? setup.kinds.includes(kind) : !DRIVEN_KINDS.has(kind);
}

/** Return whether a street is to be served. */
export function serves(setup: Setup, street: Street): boolean {
  if (!inArea(street, setup.areas, setup.border)) return false;
  return setup.picked[street.id] ?? setup.names[street.name] ?? servesKind(setup, street.kind);
}

/** Return the capacity that makes about eight routes, in round numbers. */
export function usualCapacity(setup: Setup, served: readonly Street[]): number {
  const demands = served.map((street) => (setup.demand === "length" ? street.length : setup.demand));
  const each = demands.reduce((sum, one) => sum + one, 0) / 8;
  const step = 10 ** Math.max(Math.floor(Math.log10(Math.max(each, 1))) - 1, 0);
  return Math.max(Math.ceil(each / step) * step, 1);
}

/** Return what the server is asked for. */
export function sceneRequest(setup: Setup, streets: readonly Street[], name: string): SceneRequest {
  const served = streets.filter((street) => serves(setup, street));
  const single = Object.keys(setup.picked).length > 0;
  const byName = (wanted: boolean) =>
    Object.keys(setup.names).filter((one) => setup.names[one] === wanted);
  const [first, ...further] = setup.depots;
  const operations: Operations = {
    // Vehicle types name their own depots.
    depots: setup.vehicles.length ? [] : further,
    facilities: setup.facilities,
    empty_at_end: setup.emptyAtEnd,
    shift: asShift(setup.shift),
    vehicles: setup.vehicles,
    fleet_limit: limitsFleet(setup) ? setup.fleetLimit : null,
    fewest_routes: setup.fewestRoutes,
    balance: setup.balance,
    compactness: setup.compactness,
  };
  return {
    map: setup.map ?? "",
    name,
    area: setup.areas.length
      ? { type: "MultiPolygon", coordinates: setup.areas.map((ring) => [closed(ring)]) }
      : null,
    border: setup.border,
    serve: {
      kinds: single ? null : setup.kinds,
      names: single ? [] : byName(true),
      streets: single ? served.map((street) => street.id) : null,
    },
    exclude: { kinds: [], names: single ? [] : byName(false), streets: [] },
    capacity: setup.capacity ?? usualCapacity(setup, served),
    demand: setup.demand,
    cost: setup.cost,
    one_way: setup.oneWay,
    both_sides: setup.bothSides,
    depot: first ?? null,
    operations,
    turns: setup.turns,
  };
}

/** Return whether the number of routes can be limited: vehicle types have numbers of their own. */
export function limitsFleet(setup: Setup): boolean {
  return !setup.vehicles.length && setup.depots.length < 2;
}

function asShift(text: string): number | string | null {
  const given = text.trim();
  if (!given) return null;
  return /^\d+$/.test(given) ? Number(given) : given;
}

function closed(ring: Position[]): Position[] {
  return [...ring, ring[0]!];
}

/** Return the setup that a scene was asked for with; `kinds` are those of its map. */
export function setupOf(
  request: Partial<SceneRequest>,
  streets: readonly Street[],
  kinds: readonly KindCount[],
): Setup {
  const operations: Partial<Operations> = request.operations ?? {};
  const names: Record<string, boolean> = {};
  for (const name of request.serve?.names ?? []) names[name] = true;
  for (const name of request.exclude?.names ?? []) names[name] = false;
  const setup: Setup = {
    ...NEW_SETUP,
    map: request.map ?? null,
    areas: (request.area?.coordinates ?? []).map((polygon) => polygon[0]!.slice(0, -1)),
    border: request.border ?? NEW_SETUP.border,
    kinds: request.serve?.kinds ?? null,
    names,
    capacity: request.capacity ?? null,
    demand: request.demand ?? "length",
    cost: request.cost ?? "length",
    oneWay: request.one_way ?? true,
    bothSides: request.both_sides ?? false,
    depots: distinct([
      ...(request.depot ? [request.depot] : []),
      ...(operations.depots ?? []),
      ...(operations.vehicles ?? []).flatMap((one) => (one.depot ? [one.depot] : [])),
    ]),
    facilities: operations.facilities ?? [],
    emptyAtEnd: operations.empty_at_end ?? true,
    shift: String(operations.shift ?? ""),
    vehicles: (operations.vehicles ?? []).map((one) => ({ ...NEW_VEHICLE, ...one })),
    fleetLimit: operations.fleet_limit ?? null,
    fewestRoutes: operations.fewest_routes ?? false,
    balance: operations.balance ?? 0,
    compactness: operations.compactness ?? 0,
    turns: { ...NEW_SETUP.turns, ...request.turns },
  };
  const exactly = request.serve?.streets;
  if (exactly) {
    const wanted = new Set(exactly);
    setup.kinds = kinds.map((one) => one.kind).filter((kind) => !DRIVEN_KINDS.has(kind));
    setup.picked = Object.fromEntries(
      streets
        .filter((one) => inArea(one, setup.areas, setup.border))
        .filter((one) => wanted.has(one.id) !== servesKind(setup, one.kind))
        .map((one) => [one.id, wanted.has(one.id)]),
    );
  }
  return setup;
}

function distinct(places: readonly Place[]): Place[] {
  return [...new Map(places.map((place) => [place.join(), place])).values()];
}

export const NEW_VEHICLE: VehicleType = {
  name: "",
  depot: null,
  capacity: null,
  count: null,
  fixed_cost: 0,
  shift: null,
  forbidden_kinds: [],
};
