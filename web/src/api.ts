/** The HTTP API of `arcfleet serve`, version 1. */

import type { Feature, FeatureCollection, LineString, MultiPolygon } from "geojson";

export type Place = [number, number];

export interface ErrorFacts {
  type: string;
  message: string;
  field?: string | null;
}

export interface KindCount {
  kind: string;
  streets: number;
  length: number;
}

export interface StreetMapInfo {
  id: string;
  name: string;
  state: "reading" | "ready" | "failed";
  error: ErrorFacts | null;
  streets: number;
  length: number;
  kinds: KindCount[];
  attribution: string;
  created: string;
  bundled: boolean;
}

export interface StreetFacts {
  name: string;
  kind: string;
  one_way: boolean;
  length: number;
}

export interface VehicleType {
  name: string;
  depot: Place | null;
  capacity: number | null;
  count: number | null;
  fixed_cost: number;
  shift: number | string | null;
  forbidden_kinds: string[];
}

export interface FacilityPlace {
  place: Place;
  cost: number;
  name: string;
}

export interface Operations {
  depots: Place[];
  facilities: FacilityPlace[];
  empty_at_end: boolean;
  shift: number | string | null;
  vehicles: VehicleType[];
  fleet_limit: number | null;
  fewest_routes: boolean;
  balance: number;
  compactness: number;
}

export interface Turns {
  restrictions: boolean;
  u_turns: "allowed" | "dead-ends" | "forbidden";
  u_turn_penalty: number;
  left: number;
  right: number;
  straight: number;
  traffic: "right" | "left";
}

export interface SceneRequest {
  map: string;
  name: string;
  area: MultiPolygon | null;
  border: "middle" | "leave";
  serve: { kinds: string[] | null; names: string[]; streets: number[] | null };
  exclude: { kinds: string[]; names: string[]; streets: number[] };
  capacity: number;
  demand: "length" | number;
  cost: "length" | "time";
  one_way: boolean;
  both_sides: boolean;
  depot: Place | null;
  operations: Operations | null;
  turns: Turns | null;
}

export interface Scene {
  id: string;
  map: string | null;
  name: string;
  streets: number;
  capacity: number;
  unit: { cost: "m" | "s" | "" };
  warnings: string[];
  request: Partial<SceneRequest>;
}

export interface LinkFacts {
  name: string;
  kind: string;
  required: boolean;
  demand: number;
  street: number | null;
}

export interface SceneStreets extends FeatureCollection<LineString, LinkFacts> {
  depots: Place[];
  facilities: (FacilityPlace | { place: Place; name?: string })[];
}

export interface PlanEdit {
  move?: { link: number; route: number }[];
  remove?: number[];
  add?: { link: number; demand: number | "length" }[];
}

export interface JobRequest {
  scene: string;
  seconds: number;
  start?: string;
  edit?: PlanEdit;
  lock?: number[];
  keep?: number;
}

export interface RouteFacts {
  number: number;
  vehicle: string | number | null;
  streets: number;
  load: number;
  cost: number;
  length: number | null;
  time: number | null;
}

export type JobState = "queued" | "running" | "done" | "failed" | "cancelled";

export interface Job {
  id: string;
  scene: string;
  state: JobState;
  position: number | null;
  request: { scene: string; start?: string | null; seconds?: number; edit?: PlanEdit | null };
  created: string;
  ended: string | null;
  best: { cost: number; routes: number; seconds: number; iterations: number } | null;
  result: { cost: number; routes: RouteFacts[]; stopped_by: string; fallback: string | null } | null;
  error: ErrorFacts | null;
  repair: string[];
}

export interface PlanFacts {
  route: number;
  kind: "service" | "drive";
  link: number;
  name: string;
  position: number;
}

export type PlanFeature = Feature<LineString, PlanFacts>;

export interface MovedStreet {
  link: number | null;
  name: string;
  before: number | null;
  after: number | null;
}

export interface Changes {
  moved: MovedStreet[];
  removed: MovedStreet[];
  added: MovedStreet[];
  cost: { before: number; after: number };
}

/** An answer of the server that is an error; its message is a sentence for people. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly field: string | null,
  ) {
    super(message);
  }
}

const SILENT = "The server does not answer; check that arcfleet serve still runs, then try again.";

function refusal(status: number, text: string): Refusal {
  if (status === 401) location.assign("/login");
  try {
    const { error } = JSON.parse(text) as { error: ErrorFacts };
    return new Refusal(status, error.message, error.field ?? null);
  } catch {
    return new Refusal(status, status ? `The server refused this (status ${status}).` : SILENT, null);
  }
}

async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
  const headers: Record<string, string> = {};
  if (body !== undefined) {
    headers["Content-Type"] = "application/json";
    headers["Idempotency-Key"] = newKey();
  }
  let answer: Response;
  try {
    answer = await fetch(path, {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  } catch {
    throw refusal(0, "");
  }
  if (!answer.ok) throw refusal(answer.status, await answer.text());
  return (answer.status === 204 ? undefined : await answer.json()) as T;
}

function newKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((x) => x.toString(16).padStart(2, "0")).join("");
}

const get = <T>(path: string) => call<T>("GET", path);
const v1 = (...parts: string[]) => ["/v1", ...parts.map(encodeURIComponent)].join("/");

export const api = {
  maps: async () => (await get<{ maps: StreetMapInfo[] }>("/v1/maps")).maps,
  map: (id: string) => get<StreetMapInfo>(v1("maps", id)),
  mapStreets: (id: string) =>
    get<FeatureCollection<LineString, StreetFacts>>(v1("maps", id, "streets")),
  deleteMap: (id: string) => call<void>("DELETE", v1("maps", id)),
  createScene: (request: SceneRequest) => call<Scene>("POST", "/v1/scenes", request),
  scene: (id: string) => get<Scene>(v1("scenes", id)),
  sceneStreets: (id: string) => get<SceneStreets>(v1("scenes", id, "streets")),
  createJob: (request: JobRequest) => call<Job>("POST", "/v1/jobs", request),
  createPlan: (scene: string, plan: unknown) => call<Job>("POST", "/v1/plans", { scene, plan }),
  job: (id: string) => get<Job>(v1("jobs", id)),
  jobs: (after: string | null) =>
    get<{ jobs: Job[] }>(`/v1/jobs?limit=30${after ? `&after=${encodeURIComponent(after)}` : ""}`),
  stop: (id: string) => call<Job>("POST", `${v1("jobs", id)}/stop`, {}),
  cancel: (id: string) => call<unknown>("DELETE", v1("jobs", id)),
  plan: (id: string) => get<{ features: Feature[] }>(`${v1("jobs", id, "plan")}?format=geojson`),
  planUrl: (id: string, format: string) => `${v1("jobs", id, "plan")}?format=${format}`,
  diff: (id: string, earlier: string) => get<Changes>(`${v1("jobs", id, "diff", earlier)}?format=json`),
  diffUrl: (id: string, earlier: string) => `${v1("jobs", id, "diff", earlier)}?format=html`,
  events: (id: string) => new EventSource(v1("jobs", id, "events")),
};

/** Upload a map; fetch cannot tell how much of a body is sent, so this is an XMLHttpRequest. */
export function uploadMap(file: File, progress: (share: number) => void): Promise<StreetMapInfo> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", `/v1/maps?name=${encodeURIComponent(file.name)}`);
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.setRequestHeader("Idempotency-Key", newKey());
    request.upload.onprogress = (event) => progress(event.loaded / Math.max(event.total, 1));
    request.onload = () =>
      request.status < 300
        ? resolve(JSON.parse(request.responseText) as StreetMapInfo)
        : reject(refusal(request.status, request.responseText));
    request.onerror = () => reject(refusal(0, ""));
    request.send(file);
  });
}
