"""Gap against seconds: a GPU with its cores, and the cores alone, on batches of instances.

    python -m benchmarks.neural_time run FOLDER LINES.jsonl --sets two-way-100 --workers 16
    python -m benchmarks.neural_time report LINES.jsonl --picture PICTURE.png

FOLDER holds the sets of `benchmarks.neural_gaps`. Ruin and recreate solves batches from
nothing, and from the plans of a learned strategy, by so many processes: some batches, one
after the other, so that the GPU decodes one while the processes improve the one before. The
seconds, those of a batch in the mean, include reading the instances and making their
networks, and the strategy. The batches are the same instances over again. The checker
verifies plans of the first instances of every row, untimed. Rounds are taken by turns, the
median counts; every strategy is decoded once before.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arcfleet.bench.machine import commit, machine
from arcfleet.datasets import Dataset
from arcfleet.datasets.labels import labels_path, open_labels
from arcfleet.errors import OptionError
from arcfleet.network import Network
from arcfleet.report.charts import Point, draw_pareto
from arcfleet.report.tables import table
from arcfleet.search.ruin_recreate import ruin_recreate
from arcfleet.search.run import RunContext
from arcfleet.search.stop import Stop
from arcfleet.solution.checker import check
from arcfleet.solution.plan import from_plan
from benchmarks import run_and_exit
from benchmarks.neural_gaps import SAMPLES, SETS, gaps, interval

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

ITERATIONS = (100, 300, 1_000, 2_000, 3_000, 6_000, 10_000)
#: Strategies, and the iterations of ruin and recreate from their plans.
LEARNED: dict[str, tuple[int, ...]] = {
    "as-decoded": (0, 100, 300, 1_000, 2_000, 3_000, 6_000, 10_000),
    "augmented": (0, 1_000, 3_000, 6_000, 10_000),
    "neural-lns": (0, 10_000),
}
#: Batches of a row.
_BATCHES = 3
#: Instances of every row whose plans the checker verifies.
_VERIFIED = 64
#: Instances of a task of the pool.
_CHUNK = 8


def main() -> None:
    """Parse the command line and do what it says."""
    parser = argparse.ArgumentParser(description="Gap against seconds on one machine.")
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("run", help="measure")
    one.add_argument("folder", type=Path)
    one.add_argument("lines", type=Path)
    one.add_argument("--sets", nargs="+", choices=list(SETS), default=["two-way-100"])
    one.add_argument("--model", default=None)
    one.add_argument("--device", default="auto")
    one.add_argument("--count", type=int, default=1000, help="instances of each set")
    one.add_argument("--workers", type=int, default=1)
    one.add_argument("--threads", type=int, default=1, help="of Split and torch")
    one.add_argument("--rounds", type=int, default=1)
    one.add_argument("--seconds", type=float, default=1e9, help="begin nothing after this")
    one = commands.add_parser("report", help="print a table, draw a picture")
    one.add_argument("lines", type=Path)
    one.add_argument("--set", default="two-way-100")
    one.add_argument("--picture", type=Path)
    args = parser.parse_args()
    if args.command == "run":
        run(args)
    else:
        report(args.lines, args.set, args.picture)


def run(args: argparse.Namespace) -> None:
    """Measure all rows of each set by turns, a line each."""
    from arcfleet.neural.checkpoint import SHIPPED_MODEL
    from arcfleet.neural.solver import device_name, load_for_solving
    from arcfleet.neural.train.run import checksum

    ended = time.perf_counter() + args.seconds
    loaded = load_for_solving(args.model, args.device)
    facts = {
        "model_sha256": checksum(args.model or SHIPPED_MODEL),
        "device": device_name(loaded.device),
        "machine": machine(),
        "workers": args.workers,
        "threads": args.threads,
        "commit": commit(),
    }
    # Not forked: torch has threads.
    context = get_context("spawn")
    with ProcessPoolExecutor(args.workers, mp_context=context) as pool:
        for name in args.sets:
            path = args.folder / f"{name}.npz"
            dataset = Dataset.open(path)
            count = min(args.count, len(dataset))
            labels = open_labels(labels_path(path), dataset).cost[:count].tolist()
            for strategy in LEARNED:  # libraries choose their kernels
                decode(loaded, dataset, count, strategy, args.threads)
            search(pool, path, count, 1, None)
            for _ in range(args.rounds):
                for row in rows():
                    if time.perf_counter() > ended:
                        return
                    line = measure(row, loaded, pool, path, count, args.threads)
                    line |= {"set": name, "labels": labels, **facts}
                    with args.lines.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(line) + "\n")
                    text = f"{name} {row}: {1000 * line['seconds'] / count:.2f} ms, "
                    print(text + f"{interval(gaps(line))[0]:.2f} %", flush=True)


def rows() -> list[tuple[str, int]]:
    """Return all rows: a strategy, or none, and iterations of the search, or none."""
    alone = [("", iterations) for iterations in ITERATIONS]
    return alone + [(name, each) for name, many in LEARNED.items() for each in many]


def measure(
    row: tuple[str, int],
    loaded: Any,
    pool: ProcessPoolExecutor,
    path: Path,
    count: int,
    threads: int,
) -> dict[str, Any]:
    """Make plans of some batches, and return the costs and the seconds of a batch."""
    strategy, iterations = row
    started = time.perf_counter()
    plans: dict[int, Any] | None = None
    costs: list[int] = []
    searches = []
    for _ in range(_BATCHES):
        if strategy:
            decoded = decode(loaded, Dataset.open(path), count, strategy, threads)
            costs, plans = decoded.costs.tolist(), decoded.plans
        if iterations:
            searches.append(begin_search(pool, path, count, iterations, plans))
    for each in searches:
        costs = collected(each)
    seconds = (time.perf_counter() - started) / _BATCHES
    some = min(_VERIFIED, count)
    if search(pool, path, some, iterations, plans, verify=True) != costs[:some]:
        raise AssertionError(f"other plans of {path} the second time")
    facts = {"strategy": strategy, "iterations": iterations}
    return {**facts, "seconds": round(seconds, 4), "costs": costs}


def decode(loaded: Any, dataset: Dataset, count: int, strategy: str, threads: int) -> Any:
    """Decode a batch and keep all plans."""
    from arcfleet.neural.solver import decode_dataset

    options: dict[str, Any] = {"samples": SAMPLES, "keep": range(count)}
    return decode_dataset(
        loaded, dataset, count, strategy, warm_up=False, threads=threads, **options
    )


def search(
    pool: ProcessPoolExecutor,
    path: Path,
    count: int,
    iterations: int,
    plans: dict[int, Any] | None,
    *,
    verify: bool = False,
) -> list[int]:
    """Return the costs of ruin and recreate from nothing or from plans.

    With 0 iterations the plans stay as they are.
    """
    return collected(begin_search(pool, path, count, iterations, plans, verify=verify))


def collected(parts: Iterable[list[int]]) -> list[int]:
    """Return the costs of all parts; waits for them."""
    return [cost for costs in parts for cost in costs]


def begin_search(
    pool: ProcessPoolExecutor,
    path: Path,
    count: int,
    iterations: int,
    plans: dict[int, Any] | None,
    *,
    verify: bool = False,
) -> Iterator[list[int]]:
    """Begin what `search` does, and return the costs of each part as they come."""
    parts = [range(i, min(i + _CHUNK, count)) for i in range(0, count, _CHUNK)]
    started = [None if plans is None else [plans[i] for i in part] for part in parts]
    what = [(path, iterations, verify)] * len(parts)
    return pool.map(_search_part, what, parts, started)


def _search_part(
    what: tuple[Path, int, bool], part: range, plans: Sequence[Any] | None
) -> list[int]:
    path, iterations, verify = what
    dataset, costs = _open(path), []
    for place, index in enumerate(part):
        network = Network(dataset[index])
        start = None if plans is None else from_plan(network, *plans[place])
        context = RunContext(
            method="ruin-recreate",
            stop=Stop(iterations=iterations or 1),
            seed=index,
            start=start,
        )
        plan = start
        if iterations or plan is None:
            plan = ruin_recreate(network, context).solution
        if verify and not check(network.instance, plan).ok:
            raise AssertionError(f"a wrong plan of instance {index} of {path}")
        costs.append(int(plan.cost))
    return costs


@cache
def _open(path: Path) -> Dataset:
    return Dataset.open(path)


def report(path: Path, name: str, picture: Path | None) -> None:
    """Print the medians of a set, and draw them."""
    lines = [json.loads(x) for x in path.read_text(encoding="utf-8").splitlines()]
    lines = [line for line in lines if line["set"] == name]
    alike = ("model_sha256", "device", "machine", "workers", "threads")
    if len({tuple(line[key] for key in alike) for line in lines}) != 1:
        raise OptionError(
            f"expected lines of {name} with the same {', '.join(alike)} in {path}, found "
            "others or none: keep them in files of their own"
        )
    by_row: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for line in lines:
        by_row.setdefault((line["strategy"], line["iterations"]), []).append(line)
    found = []
    for (strategy, iterations), measured in by_row.items():
        seconds = statistics.median(x["seconds"] for x in measured)
        gap, margin = interval(gaps(measured[0]))
        found.append(
            (strategy, iterations, seconds / len(measured[0]["costs"]), gap, margin)
        )
    points = []
    for strategy, _, seconds, gap, margin in found:
        rivals = [x for x in found if x[2] <= seconds and x[3] < gap]
        points.append(
            Point(
                label=strategy or "ruin-recreate",
                seconds=seconds,
                gap_percent=gap,
                half_width=margin,
                on_gpu=bool(strategy) and lines[0]["device"] != "cpu",
                is_best=not rivals,
            )
        )
    header = ["start", "iterations", "ms", "gap", "hours of 1,000,000", "best"]
    print(
        table(
            [
                (
                    strategy or "nothing",
                    iterations,
                    f"{1000 * seconds:.2f}",
                    f"{gap:.2f} ± {margin:.2f}",
                    f"{seconds * 1e6 / 3600:.2f}",
                    "yes" if point.is_best else "",
                )
                for (strategy, iterations, seconds, gap, margin), point in zip(
                    found, points, strict=True
                )
            ],
            header,
        )
    )
    if picture is not None:
        draw_pareto(points, picture, title=f"Gap against seconds, {name}")


if __name__ == "__main__":
    run_and_exit(main)
