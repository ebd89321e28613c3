"""`arcfleet dataset`: make, label and describe files of many instances."""

from __future__ import annotations

from argparse import ArgumentTypeError, RawDescriptionHelpFormatter
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from arcfleet.cli.options import add_json, positive_number, whole_number
from arcfleet.cli.output import print_json, print_result
from arcfleet.errors import ArcfleetError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterator

    from arcfleet.cli.options import Commands
    from arcfleet.datasets.dataset import Dataset
    from arcfleet.datasets.statistics import DatasetStatistics
    from arcfleet.report.dataset_plot import DatasetFigures

#: Maps that are named in a line about a data set.
_MOST_NAMES = 12

_EXAMPLES = """\
examples:
  arcfleet dataset make task20 --count 20000 --split train --maps maps/beijing_5ring \\
      --workers 2 -o task20-train.npz
  arcfleet dataset label task20-train.npz --iterations 5000 --workers 2
  arcfleet dataset info task20-train.npz task20-test.npz --plot sets.png

Making and labelling go on where they were when the same command is given again.
"""


def add_parser(commands: Commands) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "dataset",
        help="make, label and describe files of many instances",
        description="Make, label and describe files of many instances.",
        epilog=_EXAMPLES,
        formatter_class=RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    _add_make(actions)
    _add_label(actions)
    _add_info(actions)


def _add_make(actions: Commands) -> None:
    parser = actions.add_parser(
        "make",
        help="cut instances out of streets",
        description="Cut the instances of a Task set out of street maps.",
    )
    parser.add_argument("task_set", metavar="SET", help="task20, task30, ... task100")
    parser.add_argument("--count", type=positive_number, required=True, metavar="N")
    parser.add_argument(
        "--split",
        choices=["train", "validation", "test"],
        default="train",
        help="no two splits share a junction; default train",
    )
    parser.add_argument(
        "--maps",
        type=Path,
        nargs="+",
        default=[],
        metavar="MAP",
        help="street maps that do not overlap; synthetic streets without",
    )
    parser.add_argument(
        "--merge",
        type=_metres,
        default=15.0,
        metavar="M",
        help="merge junctions of MAP at most M metres apart first, none for no merging; "
        "default 15",
    )
    parser.add_argument("--mixed", action="store_true", help="one-way streets stay one-way")
    parser.add_argument(
        "-o", "--out", type=Path, required=True, metavar="FILE", help="ending in .npz"
    )
    _add_work(parser)
    parser.set_defaults(run=run_make)


def _add_label(actions: Commands) -> None:
    parser = actions.add_parser(
        "label",
        help="solve every instance and keep the plans",
        description="Solve every instance of a data set and keep the plans beside it.",
    )
    parser.add_argument("dataset", type=Path, metavar="FILE")
    parser.add_argument(
        "--method", choices=["ruin-recreate", "maens"], default="ruin-recreate"
    )
    parser.add_argument(
        "--iterations",
        type=positive_number,
        required=True,
        metavar="N",
        help="of the method, for each instance",
    )
    parser.add_argument(
        "-o",
        "--out",
        type=Path,
        metavar="LABELS",
        help="by default FILE with .labels.npz in the place of .npz",
    )
    _add_work(parser)
    parser.set_defaults(run=run_label)


def _add_info(actions: Commands) -> None:
    parser = actions.add_parser(
        "info",
        help="say what data sets hold",
        description="Say what data sets hold, several side by side.",
    )
    parser.add_argument("datasets", type=Path, nargs="+", metavar="FILE")
    parser.add_argument(
        "--plot", type=Path, metavar="FILE", help="draw it (.png, .svg, .pdf)"
    )
    add_json(parser)
    parser.set_defaults(run=run_info)


def _add_work(parser: ArgumentParser) -> None:
    parser.add_argument("--seed", type=whole_number, default=0, metavar="N")
    parser.add_argument(
        "--workers",
        type=positive_number,
        default=1,
        metavar="N",
        help="processes; changes nothing but the time; default 1",
    )
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def _metres(text: str) -> float | None:
    if text == "none":
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 10_000:
        raise ArgumentTypeError(
            f"expected metres from 0 to 10000 or none, got {text[:40]!r}"
        )
    return value


@contextmanager
def _interruptible() -> Iterator[None]:
    """Say after Ctrl-C that nothing finished is lost."""
    try:
        yield
    except KeyboardInterrupt:
        raise ArcfleetError("interrupted; the same command goes on from here") from None


def run_make(options: Namespace) -> int:
    """Run `arcfleet dataset make`."""
    from arcfleet.cli.count_bar import count_bar
    from arcfleet.datasets.make import make_dataset

    with _interruptible(), count_bar("instances", hidden=options.quiet) as bar:
        dataset = make_dataset(
            options.out,
            options.task_set,
            count=options.count,
            split=options.split,
            maps=options.maps,
            seed=options.seed,
            mixed=options.mixed,
            merge_metres=options.merge,
            workers=options.workers,
            progress=bar,
        )
    print_result(f"{options.out}: {len(dataset)} instances of {dataset.name}")
    return 0


def run_label(options: Namespace) -> int:
    """Run `arcfleet dataset label`."""
    from arcfleet.cli.count_bar import count_bar
    from arcfleet.datasets.dataset import Dataset
    from arcfleet.datasets.label import label_dataset

    dataset = Dataset.open(options.dataset)
    with _interruptible(), count_bar("labels", hidden=options.quiet) as bar:
        labels = label_dataset(
            dataset,
            options.out,
            method=options.method,
            iterations=options.iterations,
            seed=options.seed,
            workers=options.workers,
            progress=bar,
        )
    mean = float(labels.cost.mean())
    print_result(f"{labels.path}: {len(labels)} labels, mean cost {mean:.1f}")
    return 0


def run_info(options: Namespace) -> int:
    """Run `arcfleet dataset info`."""
    from arcfleet.datasets.dataset import Dataset
    from arcfleet.datasets.statistics import statistics_rows, summarise
    from arcfleet.report.tables import table

    if options.plot is not None:
        from arcfleet.report.dataset_plot import plot_datasets
        from arcfleet.report.picture import check_plottable

        check_plottable(options.plot)
    datasets = [Dataset.open(path) for path in options.datasets]
    facts = [summarise(dataset) for dataset in datasets]
    labels = [path.name.removesuffix(".npz") for path in options.datasets]
    if options.plot is not None:
        plot_datasets(
            [_figures(*each) for each in zip(datasets, facts, labels, strict=True)],
            options.plot,
        )
    if options.json:
        print_json(
            {
                "datasets": [
                    {"file": str(path), **asdict(fact), "header": dataset.facts}
                    for path, fact, dataset in zip(
                        options.datasets, facts, datasets, strict=True
                    )
                ]
            }
        )
        return 0
    made_with = [
        [name, *(str(dataset.facts.get(name, "")) for dataset in datasets)]
        for name in ("split", "seed")
    ]
    print_result(table([*made_with, *statistics_rows(facts)], ["", *labels]))
    for label, dataset in zip(labels, datasets, strict=True):
        credit = f" ({dataset.credit})" if dataset.credit else ""
        print_result(f"{label}: streets of {_map_names(dataset)}{credit}")
    return 0


def _map_names(dataset: Dataset) -> str:
    names = dataset.facts.get("maps") or ["unknown maps"]
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(map(str, names[:_MOST_NAMES])) + more


def _figures(dataset: Dataset, facts: DatasetStatistics, label: str) -> DatasetFigures:
    import numpy as np

    from arcfleet.datasets.statistics import least_routes
    from arcfleet.report.dataset_plot import DatasetFigures

    piece = dataset.piece(0)
    return DatasetFigures(
        label=label,
        degrees=facts.degrees,
        lengths=dataset.arrays["cost"],
        nodes=dataset.arrays["num_nodes"],
        links=dataset.arrays["num_links"],
        demands=dataset.arrays["demand"][dataset.arrays["demand"] > 0],
        routes=least_routes(dataset),
        places=np.column_stack([piece.longitude, piece.latitude]).astype(np.float64),
        ends=np.column_stack([piece.tail, piece.head]).astype(np.int64),
        required=piece.demand > 0,
        depot=piece.depot,
        attribution=dataset.credit,
    )
