"""Large instances: speed, memory, and costs at all points of a run.

    python -m benchmarks.scale scenes FOLDER      # instances, made from ../shared
    python -m benchmarks.scale jobs               # what is to be run, and the core-minutes
    python -m benchmarks.scale run FOLDER --cores 15 --out lines.jsonl
    python -m benchmarks.scale tables lines.jsonl

`run` needs the folder alone. Each job is a process of its own, so that its memory is its
own, and adds one line to the file; jobs that have a line are not run again.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import arcfleet
from arcfleet.bench.machine import commit, machine
from arcfleet.report.tables import table
from benchmarks import run_and_exit, shared_dir

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: Scenes of Beijing: the metres around its centre, None for all, and further options.
SCENES: dict[str, tuple[int | None, str]] = {
    "bj-100": (1110, ""),
    "bj-250": (1470, ""),
    "bj-500": (1750, ""),
    "bj-1000": (2270, ""),
    "bj-2068": (3000, ""),
    "bj-2583": (3350, ""),
    "bj-5452": (4800, ""),
    "bj-10634": (7000, ""),
    "bj-23822": (None, ""),
    "bj-500-two-way": (1750, "--ignore-one-way"),
    "bj-1000-two-way": (2270, "--ignore-one-way"),
    "bj-2068-two-way": (3000, "--ignore-one-way"),
}
FILES = ("egl/egl-s4-A.dat", "egl-large/egl-g2-A.dat", "hefei/Hefei-10.txt")
#: Cost of the Chinese postman tour of each, the optimum with one route: all streets once,
#: and a matching of the odd junctions (research/log/long-routes.md).
TOURS = {"egl-s4-A": 5_213, "egl-g2-A": 751_367, "Hefei-10": 842_690}
ARCFLEET = [sys.executable, "-c", "import sys, arcfleet_command as a; sys.exit(a.main())"]
_ALL = "bj-23822"
_POINTS = 64
_SEEDS = (1, 2, 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A run: what to solve, and how."""

    group: str
    instance: str
    seconds: float
    threads: int = 1
    seed: int = 1
    routes: int = 0  # capacity for so many routes; 0: as in the file
    iterations: int = 0  # instead of seconds
    bound: bool = False  # a lower bound instead of a plan
    districts: int = 0  # solved by so many workers as threads; 0: the whole

    @property
    def key(self) -> str:
        """Identity of the job; the same run may serve several tables."""
        return json.dumps(asdict(replace(self, group="")))


def jobs() -> Iterator[Job]:
    """List all jobs, the long ones first, so that they leave no gap at the end."""
    yield Job(group="city", instance=_ALL, seconds=3600, threads=2)
    yield Job(group="city", instance=_ALL, seconds=600, threads=2)
    cities = (_ALL, "bj-10634", "bj-5452", "bj-2068", "Hefei-10")
    for seconds, seeds in ((600, _SEEDS[:1]), (60, _SEEDS)):
        for seed in seeds:
            for name in cities:
                yield Job(group="gap", instance=name, seconds=seconds, seed=seed)
    tangled = ("Hefei-10", "bj-2068", "bj-1000")
    for divisor in (1, 2, 4, 8, 16, 32, 64):
        for name in tangled:
            for seed in _SEEDS:
                limit = 60 / divisor
                yield Job(group="anytime", instance=name, seconds=limit, seed=seed)
    for name in ("Hefei-10", "bj-1000", "bj-2068", "bj-5452"):
        for seed in _SEEDS:
            for threads in (2, 1):
                yield Job(
                    group="threads", instance=name, seconds=30, threads=threads, seed=seed
                )
    for name in TOURS:
        for routes in (1, 5):
            for seed in _SEEDS:
                yield Job(
                    group="routes", instance=name, seconds=30, routes=routes, seed=seed
                )
    for name, (_, options) in SCENES.items():
        if not options:
            yield Job(group="rate", instance=name, seconds=10)
    for seed in _SEEDS:
        for name in ("bj-500", "bj-1000", "bj-2068"):
            for scene in (name, f"{name}-two-way"):
                # Not by the clock: the shortest ways of two-way streets take longer.
                yield Job(
                    group="one-way",
                    instance=scene,
                    seconds=0,
                    seed=seed,
                    iterations=300_000,
                )
    for name in ("egl-s4-A", "egl-g2-A"):
        for seed in _SEEDS:
            yield Job(group="pins", instance=name, seconds=0, seed=seed, iterations=20_000)
    for seed in (1, 2):
        for districts in (0, 4, 8):
            yield Job(
                group="districts",
                instance=_ALL,
                seconds=60,
                threads=2,
                seed=seed,
                districts=districts,
            )
    for name in TOURS:  # where highspy is installed; they need `--only bounds`
        yield Job(group="bounds", instance=name, seconds=180, routes=5, bound=True)


def chosen(only: str, scale: float) -> list[Job]:
    """Return the jobs of some groups, without those that another one is, too."""
    wanted = only.split(",") if only else []
    usual = {x.group for x in jobs()} - {"bounds", "districts"}
    made = [x for x in jobs() if x.group in (wanted or usual)]
    made = [
        replace(x, seconds=x.seconds * scale, iterations=int(x.iterations * scale))
        for x in made
    ]
    return list({job.key: job for job in reversed(made)}.values())[::-1]


def make_scenes(folder: Path) -> None:
    """Write all instances; scenes are compressed."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in FILES:
        shutil.copyfile(shared_dir() / "carplib" / file, folder / Path(file).name)
    for name, (metres, options) in SCENES.items():
        path = folder / f"{name}.json"
        words = [*ARCFLEET, "scene", str(shared_dir() / "maps" / "beijing_5ring")]
        words += ["-o", str(path), "--capacity", "20000", "--name", name, *options.split()]
        if metres is not None:
            words += ["--around", f"116.39,39.91,{metres}"]
        subprocess.run(words, check=True, capture_output=True)
        (folder / f"{name}.json.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
        path.unlink()


def _peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run_job(job: Job, folder: Path) -> dict[str, object]:
    """Run a job in this process, and return its line."""
    found = [x for x in folder.glob(f"{job.instance}.*") if x.suffix != ".gz"]
    began = time.perf_counter()
    instance = arcfleet.read(found[0])
    read_seconds, read_megabytes = time.perf_counter() - began, _peak_megabytes()
    if job.routes:
        demand = sum(instance.links[link].demand for link in instance.required)
        share = demand if job.routes == 1 else -(-demand * 102 // (100 * job.routes))
        instance = replace(instance, capacity=share)
    facts = {
        **asdict(job),
        "key": job.key,
        "tasks": len(instance.required),
        "machine": machine(),
        "commit": commit(),
    }
    if job.bound:
        found_bound = arcfleet.bound(instance, seconds=job.seconds)
        return {**facts, "cost": found_bound.value}
    stop = arcfleet.Stop(seconds=job.seconds)
    if job.iterations:
        stop = arcfleet.Stop(iterations=job.iterations)
    before = time.process_time()
    how: dict[str, Any] = {"stop": stop, "threads": job.threads, "seed": job.seed}
    if job.districts:
        result = arcfleet.solve_districts(
            instance, job.districts, workers=job.threads, **how
        )
    else:
        result = arcfleet.solve(instance, **how)
    spent = time.process_time() - before
    megabytes = _peak_megabytes()
    report = arcfleet.check(instance, result.solution)
    if not report.ok or report.cost != result.cost:
        raise SystemExit(f"{job.key}: {report.faults[:1]}")
    history = result.history
    limit = job.seconds or result.seconds
    return {
        **facts,
        "cost": result.cost,
        "routes_used": result.solution.num_routes,
        "iterations": result.iterations,
        "elapsed": round(result.seconds, 3),
        "cpu_seconds": round(spent, 2),
        "read_seconds": round(read_seconds, 2),
        "first_seconds": round(history[0].seconds, 3),
        "read_megabytes": round(read_megabytes, 1),
        "megabytes": round(megabytes, 1),
        "load": os.getloadavg()[0],
        # After 1/64, 2/64 ... of the run.
        "costs": [
            min(
                (x.cost for x in history if x.seconds <= limit * part / _POINTS),
                default=None,
            )
            for part in range(1, _POINTS)
        ]
        + [result.cost],
        "notes": list(result.notes),
    }


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a file, without one that was cut off at the end."""
    lines = []
    for text in path.read_text().splitlines() if path.exists() else ():
        try:
            lines.append(json.loads(text))
        except ValueError:
            print(f"{path}: a line is cut off and left out", file=sys.stderr)
    return lines


def run_jobs(
    wanted: list[Job], folder: Path, out: Path, cores: int, until: float | None
) -> None:
    """Run jobs side by side, as many as there are cores for."""
    for packed in folder.glob("*.gz"):
        if not packed.with_suffix("").exists():
            packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))
    done = {line["key"] for line in read_lines(out)}
    left = [job for job in wanted if job.key not in done]
    began, total = time.monotonic(), len(left)
    running: dict[subprocess.Popen[str], Job] = {}
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    while left or running:
        free = cores - sum(job.threads for job in running.values())
        for job in list(left):
            # Reading, and checking the plan, take some seconds more.
            end = time.monotonic() - began + job.seconds + 15
            if until is not None and end > until:
                left.remove(job)
                print(f"left out for want of time: {job.key}", flush=True)
            elif job.threads <= min(free, cores):
                left.remove(job)
                free -= job.threads
                words = [sys.executable, "-m", "benchmarks.scale", "one", str(folder)]
                words += [json.dumps(asdict(job))]
                running[
                    subprocess.Popen(
                        words, stdout=subprocess.PIPE, text=True, env=environment
                    )
                ] = job
        for process, job in list(running.items()):
            if process.poll() is None:
                continue
            del running[process]
            assert process.stdout is not None
            line = process.stdout.read().strip()
            if process.returncode == 0 and line:
                with out.open("a") as file:
                    file.write(line + "\n")
            else:
                print(f"FAILED: {job.key}", flush=True)
            seconds = time.monotonic() - began
            print(
                f"{seconds:6.0f} s, {len(left) + len(running)} of {total} left: {job.key}",
                flush=True,
            )
        if left and not running and all(job.threads > cores for job in left):
            raise SystemExit(f"{len(left)} jobs need more threads than --cores {cores}")
        time.sleep(0.1)


def _percent(value: float, digits: int = 2) -> str:
    return f"{100 * value:.{digits}f}"


class Tables:
    """Tables of all lines; a run may serve several of them."""

    def __init__(self, lines: Iterable[dict[str, Any]]) -> None:
        self.lines = list({line["key"]: line for line in lines}.values())
        self.best: dict[tuple[str, int], int] = {}
        self.bounds: dict[tuple[str, int], int] = {}
        for line in self.lines:
            key = (line["instance"], line["routes"])
            if line["bound"]:
                self.bounds[key] = max(line["cost"], self.bounds.get(key, 0))
            else:
                self.best[key] = min(line["cost"], self.best.get(key, line["cost"]))

    def of(self, scale: float, group: str) -> list[dict[str, Any]]:
        """Return the lines of a group, in the order of its jobs."""
        known = {line["key"]: line for line in self.lines}
        wanted = (x for x in jobs() if x.group == group)
        scaled = (
            replace(x, seconds=x.seconds * scale, iterations=int(x.iterations * scale))
            for x in wanted
        )
        return [known[x.key] for x in scaled if x.key in known]

    def gap(self, line: dict[str, Any]) -> float:
        """Return the gap of a run to the best of all runs."""
        best = self.best[line["instance"], line["routes"]]
        return float(line["cost"] / best - 1)


def _rate(line: dict[str, Any]) -> float:
    """Return the iterations in a second of search, after the first plan."""
    return float(line["iterations"] / max(1e-6, line["elapsed"] - line["first_seconds"]))


def sources(lines: Iterable[dict[str, Any]]) -> list[str]:
    """Return the machines and commits of lines."""
    return sorted({f"{x['machine']}, commit {x['commit']}" for x in lines})


def tables(
    lines: Iterable[dict[str, Any]], scale: float = 1.0
) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield the title and the rows, the header first, of each group that has lines."""
    for title, rows in _rows(Tables(lines), scale):
        if len(rows) > 1:
            yield title, rows


def print_tables(files: Iterable[Path], scale: float) -> None:
    """Print a table for each group that has lines."""
    lines = [line for file in files for line in read_lines(file)]
    print("\n".join(sources(lines)))
    for title, rows in tables(lines, scale):
        print(f"\n## {title}\n\n{table(rows[1:], rows[0])}")


def _rows(made: Tables, scale: float) -> Iterator[tuple[str, list[list[str]]]]:
    header = ["tasks", "iterations/s", "first plan, s", "MB", "MB of the instance"]
    rows = [header]
    for line in made.of(scale, "rate"):
        facts = [
            f"{line['tasks']:,}",
            f"{_rate(line):,.0f}",
            f"{line['first_seconds']:.2f}",
        ]
        rows.append([*facts, f"{line['megabytes']:.0f}", f"{line['read_megabytes']:.0f}"])
    yield "Speed and memory against tasks, one thread", rows

    rows = [["instance", "s", "gap of each seed, %", "mean", "best of all runs"]]
    for (name, seconds), lines in _grouped(made.of(scale, "gap"), "instance", "seconds"):
        gaps = [made.gap(line) for line in lines]
        shown = " ".join(_percent(gap) for gap in gaps)
        least = f"{made.best[name, 0]:,}"
        rows.append([name, f"{seconds:g}", shown, _percent(statistics.mean(gaps)), least])
    yield "Gap to the best of all runs, one thread", rows

    header = ["threads", "s", "first plan, s", "read, s", "MB", "CPU s"]
    rows = [[*header, "gap after 1/10", "1/2", "all, %"]]
    for line in made.of(scale, "city"):
        city = made.best[_ALL, 0]
        after = [line["costs"][k] for k in (6, 31, 63)]
        names = ("threads", "seconds", "first_seconds", "read_seconds", "megabytes")
        facts = [f"{line[name]:g}" for name in (*names, "cpu_seconds")]
        rows.append(
            [*facts, *("-" if x is None else _percent(x / city - 1) for x in after)]
        )
    yield "All of Beijing", rows

    header = ["instance", "routes", "gap of each seed, %", "mean"]
    rows = [[*header, "bound or optimum", "best above it, %"]]
    for (name, routes), lines in _grouped(made.of(scale, "routes"), "instance", "routes"):
        bound = TOURS[name] if routes == 1 else made.bounds.get((name, routes))
        best = made.best[name, routes]
        reference = TOURS[name] if routes == 1 else best
        gaps = [line["cost"] / reference - 1 for line in lines]
        above = "-" if bound is None else _percent(best / bound - 1)
        facts = [name, str(routes), " ".join(map(_percent, gaps))]
        rows.append([*facts, _percent(statistics.mean(gaps)), str(bound or "-"), above])
    yield "Few long routes: one against the optimum, five against the best", rows

    rows = [["instance", "tasks", "one-way, iterations/s", "two-way", "ratio of each seed"]]
    both: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in made.of(scale, "one-way"):
        both[line["instance"]].append(line)
    for name, lines in both.items():
        others = {x["seed"]: x for x in both.get(f"{name}-two-way", ())}
        pairs = [(_rate(x), _rate(others[x["seed"]])) for x in lines if x["seed"] in others]
        if pairs:
            means = [f"{statistics.mean(x):,.0f}" for x in zip(*pairs, strict=True)]
            ratios = " ".join(f"{one / two:.2f}" for one, two in pairs)
            rows.append([name, f"{lines[0]['tasks']:,}", *means, ratios])
    yield "One-way streets against the same streets both ways", rows

    points = (1, 2, 4, 8, 16, 32, 64)
    rows = [["instance", *(f"{x}/64" for x in points)]]
    for (name,), lines in _grouped(made.of(scale, "anytime"), "instance"):
        cells = []
        for point in points:
            by_seed = {x["seed"]: x for x in lines if x["seconds"] == 60 * scale}
            behind = [
                by_seed[x["seed"]]["costs"][point - 1] / x["cost"] - 1
                for x in lines
                if x["seconds"] == 60 * scale * point / _POINTS
                and x["seed"] in by_seed
                and by_seed[x["seed"]]["costs"][point - 1] is not None
            ]
            shown = " ".join(_percent(x) for x in behind)
            mean = f"**{_percent(statistics.mean(behind))}**" if behind else "-"
            cells.append(f"{mean} ({shown})")
        rows.append([name, *cells])
    yield "At points of a 60 s run, percent behind a run of that length: mean (seeds)", rows

    rows = [["instance", "seed", "one thread", "two threads", "two less, %"]]
    won = 0
    for (name, seed), lines in _grouped(made.of(scale, "threads"), "instance", "seed"):
        by_threads = {x["threads"]: x["cost"] for x in lines}
        if len(by_threads) == 2:
            less = 1 - by_threads[2] / by_threads[1]
            won += less > 0
            costs = [f"{by_threads[1]:,}", f"{by_threads[2]:,}"]
            rows.append([name, str(seed), *costs, _percent(less)])
    yield f"Two threads against one at equal wall time: better in {won} pairs", rows

    rows = [["districts", "threads", "s", "cost of each seed", "gap to the best, %"]]
    for (number, threads, seconds), lines in _grouped(
        made.of(scale, "districts"), "districts", "threads", "seconds"
    ):
        each = " ".join(f"{x['cost']:,}" for x in lines)
        gap = " ".join(_percent(made.gap(x)) for x in lines)
        rows.append([str(number or "-"), str(threads), f"{seconds:g}", each, gap])
    yield "All of Beijing in districts, and as a whole", rows

    rows = [["instance", "seed", "cost after 20,000 iterations"]]
    for line in made.of(scale, "pins"):
        rows.append([line["instance"], str(line["seed"]), f"{line['cost']:,}"])
    yield "Pinned plans", rows


def _grouped(
    lines: Iterable[dict[str, Any]], *names: str
) -> list[tuple[tuple[Any, ...], list[dict[str, Any]]]]:
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for line in lines:
        groups[tuple(line[name] for name in names)].append(line)
    return list(groups.items())


def main() -> None:
    """Make the scenes, list or run the jobs, or print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    scenes = commands.add_parser("scenes", help="make the instances")
    scenes.add_argument("folder", type=Path)
    one = commands.add_parser("one", help="run one job in this process")
    one.add_argument("folder", type=Path)
    one.add_argument("job", help="as in the file of lines")
    listed = commands.add_parser("jobs", help="list the jobs and their core-minutes")
    run = commands.add_parser("run", help="run the jobs")
    run.add_argument("folder", type=Path)
    run.add_argument("--out", type=Path, default=Path("lines.jsonl"))
    run.add_argument("--cores", type=int, default=os.cpu_count() or 1)
    run.add_argument("--until", type=float, metavar="S", help="begin none that ends later")
    tables = commands.add_parser("tables", help="print the tables")
    tables.add_argument("files", type=Path, nargs="+")
    for command in (listed, run, tables):
        command.add_argument("--scale", type=float, default=1.0, help="of all time limits")
    for command in (listed, run):
        command.add_argument("--only", default="", metavar="GROUP[,GROUP]")
    given = parser.parse_args()
    if given.command == "scenes":
        make_scenes(given.folder)
    elif given.command == "one":
        print(json.dumps(run_job(Job(**json.loads(given.job)), given.folder)))
    elif given.command == "tables":
        print_tables(given.files, given.scale)
    elif given.command == "jobs":
        minutes: dict[str, float] = defaultdict(float)
        for job in chosen(given.only, given.scale):
            minutes[job.group] += job.threads * job.seconds / 60
            print(job.key)
        for group, each in minutes.items():
            print(f"{group}: {each:.1f} core-minutes")
        print(f"in all: {sum(minutes.values()):.1f} core-minutes")
    else:
        wanted = chosen(given.only, given.scale)
        run_jobs(wanted, given.folder, given.out, given.cores, given.until)


if __name__ == "__main__":
    run_and_exit(main)
