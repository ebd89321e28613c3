/** What the page knows and does: the moment the user is at, what the server sent for it, and actions. */

import type { Feature, LineString } from "geojson";
import type { Changes, Job, LinkFacts, PlanEdit, PlanFacts, Scene, StreetMapInfo } from "./api";
import { api, Refusal, uploadMap } from "./api";
import type { Point } from "./curve";
import type { Moment, Setup } from "./state";
import { History, NEW_SETUP, sceneRequest, serves, setupOf } from "./state";
import type { Line, Street } from "./streets";
import { lineOf, streetsOf } from "./streets";

export type Tab = "streets" | "fleet" | "plan" | "compare" | "jobs";

/** A link of a scene. */
export interface Link extends Line, Omit<LinkFacts, "name"> {}

/** A step of a route along a link. */
export interface Leg extends Line {
  route: number;
  link: number;
  serves: boolean;
  position: number;
}

/** Seconds of search after a change by hand: the routes it touches are put in order again. */
const EDIT_SECONDS = 1;
/** Milliseconds between questions about a map that is being read. */
const ASK_EVERY = 500;

export class App {
  readonly history = new History({ setup: NEW_SETUP, job: null, locks: [] });
  tab: Tab = "streets";
  maps: StreetMapInfo[] = [];
  /** Streets of the map of the setup. */
  streets: Street[] = [];
  job: Job | null = null;
  scene: Scene | null = null;
  links: Link[] = [];
  sceneMarks: { depots: [number, number][]; facilities: [number, number][] } = { depots: [], facilities: [] };
  legs: Leg[] = [];
  /** The ended job whose last plan `legs` is; null while a better one may come. */
  finalPlan: string | null = null;
  curve: Point[] = [];
  jobs: Job[] = [];
  moreJobs = false;
  /** Earlier plan that is compared with, and what changed since. */
  comparedWith: string | null = null;
  changes: Changes | null = null;
  /** Position of the chosen link. */
  chosen: number | null = null;
  /** The only route that is shown, and the route that a dragged street is over. */
  only: number | null = null;
  dropRoute: number | null = null;
  upload: { name: string; share: number; reading: boolean } | null = null;
  /** What the page waits for, in words. */
  busy: string | null = null;
  error: { message: string; field: string | null } | null = null;

  private readonly listeners: (() => void)[] = [];
  private served: { setup: Setup | null; of: Street[]; found: Street[] } = { setup: null, of: [], found: [] };
  private streetsOfMap: string | null = null;
  private events: EventSource | null = null;
  private fetching = false;
  private fetchAgain = false;
  private updating = false;

  get setup(): Setup {
    return this.history.present.setup;
  }

  get map(): StreetMapInfo | null {
    return this.maps.find((one) => one.id === this.setup.map) ?? null;
  }

  get isRunning(): boolean {
    return this.job?.state === "running" || this.job?.state === "queued";
  }

  /** Streets that the setup serves. */
  get servedStreets(): Street[] {
    const { setup, streets } = this;
    if (this.served.setup !== setup || this.served.of !== streets) {
      this.served = { setup, of: streets, found: streets.filter((street) => serves(setup, street)) };
    }
    return this.served.found;
  }

  /** The leg that serves each link. */
  get serviceOf(): Map<number, Leg> {
    return new Map(this.legs.filter((leg) => leg.serves).map((leg) => [leg.link, leg]));
  }

  listen(action: () => void): void {
    this.listeners.push(action);
  }

  /** Show what has changed, once before the next frame. */
  update(): void {
    if (this.updating) return;
    this.updating = true;
    queueMicrotask(() => {
      this.updating = false;
      for (const action of this.listeners) action();
    });
  }

  /** Do something that may be refused; the sentence of a refusal is shown. */
  async attempt<T>(words: string | null, action: () => Promise<T>): Promise<T | undefined> {
    this.error = null;
    if (words) this.busy = words;
    this.update();
    try {
      return await action();
    } catch (error) {
      this.fail(error);
      return undefined;
    } finally {
      if (words) this.busy = null;
      this.update();
    }
  }

  fail(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    this.error = { message, field: error instanceof Refusal ? error.field : null };
    this.update();
  }

  openTab(tab: Tab): void {
    this.tab = tab;
    if (tab === "jobs" || tab === "compare") void this.attempt(null, () => this.loadJobs());
    this.update();
  }

  /** Begin with what the address names: a plan or a map. */
  async begin(): Promise<void> {
    await this.attempt("Loading…", async () => {
      await this.loadMaps();
      const [what, id] = location.hash.slice(1).split("=");
      if (what === "job" && id) await this.openJob(id, true);
      else if (what === "map" && id && this.maps.some((one) => one.id === id)) await this.chooseMap(id);
    });
  }

  // --- The setup ------------------------------------------------------------------------

  /** Change the setup, as a step that can be undone. */
  change(change: Partial<Setup>): void {
    this.history.push({ setup: { ...this.setup, ...change } });
    this.error = null;
    this.update();
  }

  /** Load the list of maps, and again until the server has read them all. */
  private async loadMaps(): Promise<void> {
    this.maps = await api.maps();
    this.update();
    if (this.maps.some((one) => one.state === "reading")) {
      setTimeout(() => void this.attemptQuietly(() => this.loadMaps()), ASK_EVERY);
    }
  }

  async chooseMap(id: string): Promise<void> {
    if (id === this.setup.map && !this.history.present.job) return;
    this.history.push({ setup: { ...NEW_SETUP, map: id }, job: null, locks: [] });
    await this.arrive();
  }

  async uploadMap(file: File): Promise<void> {
    await this.attempt(null, async () => {
      this.tab = "streets";
      this.upload = { name: file.name, share: 0, reading: false };
      this.update();
      try {
        let info = await uploadMap(file, (share) => {
          this.upload = { name: file.name, share, reading: share >= 1 };
          this.update();
        });
        this.upload = { name: file.name, share: 1, reading: true };
        this.update();
        while (info.state === "reading") {
          await new Promise((resolve) => setTimeout(resolve, ASK_EVERY));
          info = await api.map(info.id);
        }
        await this.loadMaps();
        if (info.state === "failed") {
          throw new Refusal(422, info.error?.message ?? "This map could not be read.", null);
        }
        await this.chooseMap(info.id);
      } finally {
        this.upload = null;
      }
    });
  }

  async removeMap(id: string): Promise<void> {
    await this.attempt(null, async () => {
      await api.deleteMap(id);
      await this.loadMaps();
      if (this.setup.map === id) {
        this.history.reset({ setup: NEW_SETUP, job: null, locks: [] });
        await this.arrive();
      }
    });
  }

  // --- Plans ----------------------------------------------------------------------------

  /** Plan the streets of the setup from nothing. */
  async start(seconds: number): Promise<void> {
    await this.attempt("Preparing the streets…", async () => {
      await this.stopFirst();
      const scene = await api.createScene(sceneRequest(this.setup, this.streets, this.map?.name ?? ""));
      const job = await api.createJob({ scene: scene.id, seconds });
      this.history.push({ job: job.id, locks: [] });
      this.tab = "plan";
      await this.arrive();
    });
  }

  /** Search again from this plan; locked routes stay. */
  async reoptimise(seconds: number, keep: number): Promise<void> {
    await this.follow(null, seconds, keep);
  }

  /** Change the plan by hand. */
  async edit(edit: PlanEdit): Promise<void> {
    await this.follow(edit, EDIT_SECONDS, 0);
  }

  async stop(): Promise<void> {
    await this.attempt(null, () => this.stopFirst());
  }

  async cancel(id: string): Promise<void> {
    await this.attempt(null, async () => {
      await api.cancel(id);
      await this.loadJobs();
    });
  }

  async openJob(id: string, anew = false): Promise<void> {
    const job = await api.job(id);
    const scene = await api.scene(job.scene);
    const { request } = scene;
    const known = this.maps.find((one) => one.id === scene.map);
    let setup = NEW_SETUP;
    if (known) {
      const streets = await this.loadStreets(known.id);
      setup = setupOf({ ...request, map: known.id }, streets, known.kinds);
    }
    const moment: Moment = { setup, job: id, locks: [] };
    if (anew) this.history.reset(moment);
    else this.history.push(moment);
    this.tab = "plan";
    await this.arrive();
  }

  async loadJobs(): Promise<void> {
    this.jobs = (await api.jobs(null)).jobs;
    this.moreJobs = this.jobs.length === 30;
    this.update();
  }

  async loadOlderJobs(): Promise<void> {
    const older = (await api.jobs(this.jobs[this.jobs.length - 1]?.id ?? null)).jobs;
    this.jobs = [...this.jobs, ...older];
    this.moreJobs = older.length === 30;
    this.update();
  }

  toggleLock(route: number): void {
    const { locks } = this.history.present;
    this.history.push({
      locks: locks.includes(route) ? locks.filter((one) => one !== route) : [...locks, route].sort((a, b) => a - b),
    });
    this.update();
  }

  choose(link: number | null): void {
    this.chosen = link;
    this.update();
  }

  // --- Comparing ------------------------------------------------------------------------

  async compare(earlier: string | null): Promise<void> {
    this.comparedWith = earlier;
    this.changes = null;
    const { job } = this;
    if (job && earlier) {
      await this.attempt("Comparing…", async () => {
        this.changes = await api.diff(job.id, earlier);
      });
    }
    this.update();
  }

  async comparePlanFile(file: File): Promise<void> {
    const { scene } = this;
    if (!scene) return;
    const job = await this.attempt("Reading the plan…", async () => {
      let plan: unknown;
      try {
        plan = JSON.parse(await file.text());
      } catch {
        throw new Error(`${file.name} is no plan; choose a .json file that was downloaded as “Plan”.`);
      }
      const made = await api.createPlan(scene.id, plan);
      await this.loadJobs();
      return made;
    });
    if (job) await this.compare(job.id);
  }

  // --- Undo -----------------------------------------------------------------------------

  async undo(): Promise<void> {
    await this.travel(() => this.history.undo());
  }

  async redo(): Promise<void> {
    await this.travel(() => this.history.redo());
  }

  private async travel(step: () => boolean): Promise<void> {
    const running = this.isRunning ? this.job : null;
    if (!step()) return;
    const { job } = this.history.present;
    await this.attempt(null, async () => {
      if (running && running.id !== job) await this.stopFirst();
      if (!job && (this.tab === "plan" || this.tab === "compare")) this.tab = "streets";
      await this.arrive();
    });
  }

  // --- What the server knows ------------------------------------------------------------

  private async follow(edit: PlanEdit | null, seconds: number, keep: number): Promise<void> {
    await this.attempt(edit ? "Changing the plan…" : "Starting…", async () => {
      await this.stopFirst();
      const { job } = this;
      if (!job) return;
      const { locks } = this.history.present;
      const made = await api.createJob({
        scene: job.scene,
        seconds,
        start: job.id,
        ...(edit ? { edit } : {}),
        ...(locks.length ? { lock: [...locks] } : {}),
        ...(keep ? { keep } : {}),
      });
      this.history.push({ job: made.id });
      this.tab = "plan";
      await this.arrive();
    });
  }

  /** Stop a search and wait until its plan is kept. */
  private async stopFirst(): Promise<void> {
    const { job } = this;
    if (!job || !this.isRunning) return;
    let now: Job;
    try {
      now = await api.stop(job.id);
    } catch (error) {
      if (!(error instanceof Refusal && error.status === 409)) throw error;
      now = await api.job(job.id); // It has just ended.
    }
    while (now.state === "running" || now.state === "queued") {
      await new Promise((resolve) => setTimeout(resolve, 100));
      now = await api.job(job.id);
    }
    if (this.job?.id === now.id) this.job = now;
  }

  private async loadStreets(id: string): Promise<Street[]> {
    if (this.streetsOfMap !== id) {
      this.streets = streetsOf(await api.mapStreets(id));
      this.streetsOfMap = id;
    }
    return this.streets;
  }

  /** Load what the present moment shows. */
  private async arrive(): Promise<void> {
    const { setup, job } = this.history.present;
    const address = job ? `#job=${job}` : setup.map ? `#map=${setup.map}` : " ";
    window.history.replaceState(null, "", address.trim() || location.pathname);
    this.update();
    if (setup.map) await this.loadStreets(setup.map);
    else {
      this.streets = [];
      this.streetsOfMap = null;
    }
    if (this.history.present.job !== job) return;
    if (job !== (this.job?.id ?? null)) await this.showJob(job);
    this.update();
  }

  private async showJob(id: string | null): Promise<void> {
    this.events?.close();
    this.events = null;
    this.curve = [];
    this.changes = null;
    this.comparedWith = null;
    this.only = null;
    if (!id) {
      this.job = this.scene = null;
      this.legs = this.links = [];
      this.chosen = null;
      return;
    }
    const job = await api.job(id);
    if (this.history.present.job !== id) return;
    this.job = job;
    this.finalPlan = null;
    // The earlier plan stays in sight while the next one, which starts from it, is made.
    if (!job.request.start) this.legs = [];
    await this.loadScene(job);
    this.listenTo(id);
  }

  private async loadScene(job: Job): Promise<void> {
    if (this.scene?.id === job.scene) return;
    const [scene, streets] = await Promise.all([api.scene(job.scene), api.sceneStreets(job.scene)]);
    if (this.job?.id !== job.id) return;
    this.scene = scene;
    this.links = streets.features.map((feature) => ({
      ...lineOf(Number(feature.id), feature.properties.name, feature.geometry.coordinates),
      kind: feature.properties.kind,
      required: feature.properties.required,
      demand: feature.properties.demand,
      street: feature.properties.street,
    }));
    this.sceneMarks = {
      depots: streets.depots,
      facilities: streets.facilities.map((one) => one.place),
    };
    this.update();
  }

  private listenTo(id: string): void {
    const source = (this.events = api.events(id));
    const current = () => this.events === source;
    const take = (event: Event, action: (data: unknown) => void) => {
      if (!current()) return;
      action(JSON.parse((event as MessageEvent<string>).data));
      this.update();
    };
    const takeJob = (data: unknown) => {
      this.job = data as Job;
      void this.attemptQuietly(() => this.loadScene(this.job!));
    };
    source.addEventListener("state", (event) => take(event, takeJob));
    source.addEventListener("progress", (event) =>
      take(event, (data) => {
        const { seconds, cost } = data as Point;
        if (cost !== null) this.curve.push({ seconds, cost });
      }),
    );
    source.addEventListener("plan", (event) => take(event, () => void this.fetchPlan(id)));
    source.addEventListener("end", (event) =>
      take(event, (data) => {
        takeJob(data);
        source.close();
        this.events = null;
        if (this.job!.error) this.error = { message: this.job!.error.message, field: this.job!.error.field ?? null };
        if (this.job!.best ?? this.job!.result) void this.fetchPlan(id);
      }),
    );
    source.addEventListener("error", () => {
      if (current() && source.readyState === EventSource.CLOSED) {
        this.fail(new Error("The server ended the connection; reload the page to go on."));
      }
    });
  }

  /** Fetch the best plan; better ones that come meanwhile are fetched after it. */
  private async fetchPlan(id: string): Promise<void> {
    if (this.fetching) {
      this.fetchAgain = true;
      return;
    }
    this.fetching = true;
    await this.attemptQuietly(async () => {
      const final = this.job?.id === id && !this.isRunning;
      const plan = await api.plan(id);
      if (this.job?.id !== id) return;
      this.legs = legsOf(plan.features);
      this.finalPlan = final ? id : null;
    });
    this.fetching = false;
    this.update();
    if (this.fetchAgain) {
      this.fetchAgain = false;
      if (this.job) await this.fetchPlan(this.job.id);
    }
  }

  private async attemptQuietly(action: () => Promise<void>): Promise<void> {
    try {
      await action();
    } catch (error) {
      // No plan yet is no error.
      if (!(error instanceof Refusal && error.status === 409)) this.fail(error);
    }
  }
}

function legsOf(features: readonly Feature[]): Leg[] {
  const legs: Leg[] = [];
  for (const feature of features) {
    const facts = feature.properties as PlanFacts;
    if (feature.geometry.type !== "LineString" || (facts.kind !== "service" && facts.kind !== "drive")) continue;
    legs.push({
      ...lineOf(legs.length, facts.name, (feature.geometry as LineString).coordinates),
      route: facts.route,
      link: facts.link,
      serves: facts.kind === "service",
      position: facts.position,
    });
  }
  return legs.sort((one, other) => one.route - other.route || one.position - other.position);
}
