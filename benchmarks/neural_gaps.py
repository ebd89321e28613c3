"""Gaps of learned models to labels, on test sets that no training has seen.

    python -m benchmarks.neural_gaps make FOLDER --maps MAPS --workers 2
    python -m benchmarks.neural_gaps run FOLDER LINES.jsonl --models daam new=FILE
    python -m benchmarks.neural_gaps report LINES.jsonl

Task sets of Beijing's test band, two-way and with one-way streets, and scenes of six cities
that no model learns from: two-way, one-way, and with turn rules, which the scenes of users
have by default. Labels are made by ruin and recreate. A line has the costs of all instances
and of their labels, so that models are compared instance by instance.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from arcfleet.bench.machine import commit, machine
from arcfleet.datasets import Dataset, label_dataset, make_dataset
from arcfleet.datasets.labels import labels_path, open_labels
from arcfleet.errors import OptionError
from arcfleet.report.tables import table
from benchmarks import run_and_exit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from arcfleet.neural.solver import LoadedModel

UNSEEN = ["denver_downtown", "monaco", "paris_trocadero", "reisterstown_md"]
UNSEEN += ["maisons_laffitte", "andorra"]
SAMPLES = 32


class TestSet(NamedTuple):
    """A data set and its labels."""

    task_set: str
    size: int
    iterations: int
    seed: int
    split: str
    maps: list[str]
    mixed: bool
    turn_rules: bool = False


def _task_set(tasks: int, iterations: int, *, mixed: bool) -> TestSet:
    seed = 98 if mixed else 99
    beijing = ["beijing_5ring"]
    return TestSet(f"task{tasks}", 1000, iterations, seed, "test", beijing, mixed)


def _scenes(most: int, count: int, seed: int, *, mixed: bool, rules: bool) -> TestSet:
    iterations = {120: 85_000, 300: 200_000}[most]
    return TestSet(f"scenes{most}", count, iterations, seed, "train", UNSEEN, mixed, rules)


#: Iterations of two-way labels as in research/log/results.md.
SETS: dict[str, TestSet] = {
    **{
        f"two-way-{n}": _task_set(n, each * n, mixed=False)
        for n, each in (
            *((20, 1000), (30, 1000), (40, 2000), (50, 2000)),
            *((60, 2500), (80, 2500), (100, 2500)),
        )
    },
    **{
        f"one-way-{n}": _task_set(n, iterations, mixed=True)
        for n, iterations in ((20, 20_000), (50, 100_000), (100, 250_000))
    },
    "scenes-two-way": _scenes(120, 192, 87, mixed=False, rules=False),
    "scenes-one-way": _scenes(120, 192, 88, mixed=True, rules=False),
    "scenes-turns": _scenes(120, 192, 89, mixed=True, rules=True),
    "large-one-way": _scenes(300, 48, 97, mixed=True, rules=False),
    "large-turns": _scenes(300, 48, 96, mixed=True, rules=True),
}


def make(folder: Path, maps: Path, names: list[str], workers: int) -> None:
    """Make and label the sets that are missing."""
    for name in names:
        each, path, started = SETS[name], folder / f"{name}.npz", time.perf_counter()
        found = make_dataset(
            path,
            each.task_set,
            count=each.size,
            split=each.split,  # type: ignore[arg-type]
            maps=[maps / x for x in each.maps],
            seed=each.seed,
            mixed=each.mixed,
            turn_rules=each.turn_rules,
            workers=workers,
        )
        if not labels_path(path).exists():
            label_dataset(
                found, iterations=each.iterations, seed=each.seed, workers=workers
            )
        print(f"{name}: {time.perf_counter() - started:.0f} s", flush=True)


def run(args: argparse.Namespace) -> None:
    """Decode all sets by all models and strategies, a line each."""
    import arcfleet.paper.strategies  # noqa: F401  # registers those of the paper
    from arcfleet.neural.solver import decode_dataset

    models = {name: _loaded(file, args.device) for name, file in args.models}
    known = {_key(line): line for line in read(args.lines)}
    started = time.perf_counter()
    for strategy in args.strategies:
        for name in args.sets:
            dataset = Dataset.open(args.folder / f"{name}.npz")
            labels = open_labels(labels_path(Path(dataset.path)), dataset).cost.tolist()
            count = min(args.count, len(dataset))
            for model, (loaded, checksum) in models.items():
                same = {"model_sha256": checksum, "count": count}
                before = known.get((model, name, strategy))
                if before is not None:
                    if any(before[key] != value for key, value in same.items()):
                        raise OptionError(
                            f"expected lines of {model} and {name} with the same model and "
                            f"{count} instances, found others in {args.lines}: name "
                            "another file"
                        )
                    continue
                if time.perf_counter() - started > args.seconds:
                    return
                decoded = decode_dataset(
                    loaded,
                    dataset,
                    count,
                    strategy,
                    samples=SAMPLES,
                    threads=args.threads,
                    batch_size=args.batch,
                    warm_up=False,
                )
                line = {
                    "model": model,
                    "set": name,
                    "strategy": strategy,
                    **same,
                    "seconds": round(float(decoded.seconds), 3),
                    "commit": commit(),
                    "machine": machine(),
                    "costs": [int(x) for x in decoded.costs],
                    "labels": labels[:count],
                }
                with args.lines.open("a", encoding="utf-8") as file_of_lines:
                    file_of_lines.write(json.dumps(line) + "\n")
                gap, margin = interval(gaps(line))
                print(f"{model} {name} {strategy}: {gap:.2f} ± {margin:.2f} %", flush=True)


def model_file(text: str) -> tuple[str, Path | None]:
    """Parse a model: NAME=FILE, or "daam" for the shipped one."""
    name, _, file = text.partition("=")
    if not file and text != "daam":
        raise argparse.ArgumentTypeError(f"expected NAME=FILE or daam, got {text!r}")
    return name, Path(file) if file else None


def _loaded(file: Path | None, device: str) -> tuple[LoadedModel, str]:
    """Load a model, and compute the checksum of its file."""
    from arcfleet.neural.checkpoint import SHIPPED_MODEL
    from arcfleet.neural.solver import load_for_solving
    from arcfleet.neural.train.run import checksum

    return load_for_solving(file, device), checksum(file or SHIPPED_MODEL)


def read(path: Path) -> list[dict[str, Any]]:
    """Read the lines of a file; none where it is missing."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _key(line: dict[str, Any]) -> tuple[str, str, str]:
    return line["model"], line["set"], line["strategy"]


def gaps(line: dict[str, Any]) -> NDArray[np.float64]:
    """Return the gap of each instance in percent."""
    labels = np.maximum(np.array(line["labels"], dtype=np.float64), 1)
    return 100 * (np.array(line["costs"]) - labels) / labels


def interval(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return the mean and half of its 95 % confidence interval."""
    margin = 1.96 * values.std(ddof=1) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return float(values.mean()), float(margin)


def report(path: Path) -> None:
    """Print a table for each strategy; the last column compares with the first model."""
    lines = {_key(line): line for line in read(path)}
    for strategy in dict.fromkeys(key[2] for key in lines):
        models = list(dict.fromkeys(m for m, _, s in lines if s == strategy))
        rows = []
        for name in SETS:
            found = [lines.get((model, name, strategy)) for model in models]
            cells = ["" if x is None else _text(gaps(x)) for x in found]
            first, last = found[0], found[-1]
            apart = ""
            if first is not None and last is not None and len(models) > 1:
                apart = _text(gaps(last) - gaps(first))
            rows.append((name, *cells, apart))
        print(strategy)
        header = ["set", *models, "difference"]
        print(table([x for x in rows if any(x[1:])], header))


def _text(values: NDArray[np.float64]) -> str:
    mean, margin = interval(values)
    return f"{mean:.2f} ± {margin:.2f}"


def main() -> None:
    """Parse the command line and do what it says."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("make", help="make the test sets and their labels")
    one.add_argument("folder", type=Path)
    one.add_argument("--maps", type=Path, required=True)
    one.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    one.add_argument("--workers", type=int, default=1)
    one = commands.add_parser("run", help="decode them")
    one.add_argument("folder", type=Path)
    one.add_argument("lines", type=Path)
    one.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    one.add_argument(
        "--models",
        type=model_file,
        nargs="+",
        default=[("daam", None)],
        metavar="NAME=FILE",
        help="models, daam for the shipped one",
    )
    one.add_argument("--strategies", nargs="+", default=["as-decoded", "neural-lns"])
    one.add_argument("--device", default="auto")
    one.add_argument("--count", type=int, default=1000, help="instances of each set")
    one.add_argument("--batch", type=int, default=None)
    one.add_argument("--threads", type=int, default=1)
    one.add_argument("--seconds", type=float, default=1e9, help="begin nothing after this")
    one = commands.add_parser("report", help="print tables")
    one.add_argument("lines", type=Path)
    args = parser.parse_args()
    if args.command == "make":
        make(args.folder, args.maps, args.sets, args.workers)
    elif args.command == "run":
        run(args)
    else:
        report(args.lines)


if __name__ == "__main__":
    run_and_exit(main)
