/** All plans of this machine, newest first. */

import type { Job } from "./api";
import type { App } from "./app";
import { arrowKeys, button, byId, count, figure, fill, make } from "./dom";

export function jobsPanel(app: App): () => void {
  byId("jobs-more").addEventListener("click", () => void app.attempt(null, () => app.loadOlderJobs()));
  arrowKeys(byId("jobs"), ".choice");
  return () => {
    fill(byId("jobs"), [app.jobs, app.job?.id], () =>
      app.jobs.length
        ? app.jobs.map((job) => {
            const choice = button("", () => void app.attempt("Loading the plan…", () => app.openJob(job.id)), {
              class: "choice",
              attributes: { "aria-pressed": String(job.id === app.job?.id), "data-key": job.id },
            });
            choice.append(
              make("strong", {}, new Date(job.created).toLocaleString()),
              make("span", { class: "faint" }, facts(job)),
            );
            const running = job.state === "queued" || job.state === "running";
            return make(
              "li",
              {},
              choice,
              running && button("Cancel", () => void app.cancel(job.id), { class: "small" }),
            );
          })
        : [make("li", { class: "faint" }, "No plans yet.")],
    );
    byId("jobs-more").hidden = !app.moreJobs;
  };
}

const STATES: Record<Job["state"], string> = {
  queued: "waiting",
  running: "searching",
  done: "done",
  failed: "failed",
  cancelled: "cancelled",
};

function facts(job: Job): string {
  const how = job.request.edit ? "changed by hand" : job.request.start ? "re-optimised" : "";
  const cost = job.result?.cost ?? job.best?.cost;
  const routes = job.result?.routes.length ?? job.best?.routes;
  return [
    STATES[job.state],
    how,
    cost === undefined ? "" : `cost ${figure(cost)}`,
    routes === undefined ? "" : count(routes, "route"),
    job.error?.message ?? "",
  ]
    .filter(Boolean)
    .join(" · ");
}
