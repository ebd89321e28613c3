"""`arcfleet dataset make`, `label` and `info`: files of many instances."""

from __future__ import annotations

from argparse import ArgumentTypeError
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from arcfleet.cli.options import (
    Command,
    add_executor,
    add_shard,
    add_shared,
    file_argument,
    number_up_to,
    option,
    positive_number,
)
from arcfleet.cli.output import add_plot, check_plot, count_of, print_either
from arcfleet.cli.progress import count_progress
from arcfleet.errors import ArcfleetError, OptionError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterator

    from arcfleet.datasets.dataset import Dataset

#: Number of maps to name in a line about a data set.
_MOST_NAMES = 12


def _make_options(parser: ArgumentParser) -> None:
    from arcfleet.datasets.make import MERGE_METRES
    from arcfleet.streets.street_arrays import BANDS
    from arcfleet.streets.tasks import SCENE_SETS, TASK_SETS, VARIED_SETS

    first, second, *_, last = TASK_SETS
    text = f"number of required streets: {first}, {second}, ... {last}; or instances that "
    text += f"differ in everything: {', '.join(VARIED_SETS)}; or scenes, whose demands are "
    text += f"lengths: {', '.join(SCENE_SETS)}"
    parser.add_argument("task_set", metavar="SET", help=text)
    option(parser, "--count", "number of instances", positive_number, "N", required=True)
    text = "data set to write (.npz)"
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="FILE", help=text)
    text = "part of the streets to cut from; no two splits share a junction"
    option(parser, "--split", text, choices=list(BANDS), default="train")
    text = "street maps that do not overlap (default: synthetic streets)"
    option(parser, "--maps", text, Path, "MAP", nargs="+", default=[])
    text = "merge junctions of MAP at most this far apart first, none for no merging"
    option(parser, "--merge", text, _merge, "METRES", default=MERGE_METRES)
    option(parser, "--mixed", "keep one-way streets one-way")
    text = (
        "draw turn rules of every instance at random: U-turns, forbidden turns, penalties"
    )
    option(parser, "--turn-rules", text)
    add_shared(parser, "seed", "workers", "quiet", "json")


def _label_options(parser: ArgumentParser) -> None:
    from arcfleet.datasets.labels import LABEL_METHODS

    file_argument(parser, "dataset", "data set (.npz)")
    text = "iterations of the method for each instance"
    option(parser, "--iterations", text, positive_number, "N", required=True)
    text, usual = "method to solve with", LABEL_METHODS[0]
    option(parser, "--method", text, choices=LABEL_METHODS, default=usual)
    text = "labels to write (default: FILE with .npz replaced by .labels.npz); with --shard"
    text += " JSON lines"
    parser.add_argument("-o", "--out", type=Path, metavar="LABELS", help=text)
    add_shard(parser, "label a part of the instances")
    add_executor(parser, "number of processes")
    add_shared(parser, "seed", "quiet", "json")


def _info_options(parser: ArgumentParser) -> None:
    file_argument(parser, "datasets", "data sets (.npz)", nargs="+")
    add_plot(parser)
    add_shared(parser, "json")


def _merge(text: str) -> float | None:
    """Parse --merge, for argparse."""
    if text == "none":
        return None
    try:
        return number_up_to(10_000, "metres")(text)
    except ArgumentTypeError as error:
        raise ArgumentTypeError(f"{error}; or none") from None


@contextmanager
def _interruptible() -> Iterator[None]:
    """Report after Ctrl-C that nothing finished is lost."""
    try:
        yield
    except KeyboardInterrupt:
        raise ArcfleetError("interrupted; the same command resumes from here") from None


def _make(options: Namespace) -> int:
    from arcfleet.datasets.make import make_dataset

    with _interruptible(), count_progress("instances", hidden=options.quiet) as bar:
        dataset = make_dataset(
            options.out,
            options.task_set,
            count=options.count,
            split=options.split,
            maps=options.maps,
            seed=options.seed,
            mixed=options.mixed,
            turn_rules=options.turn_rules,
            merge_metres=options.merge,
            workers=options.workers,
            progress=bar,
        )
    facts = {"file": str(options.out), "name": dataset.name, "instances": len(dataset)}
    text = f"{options.out}: {len(dataset)} instances of {dataset.name}"
    print_either(options, facts, text)
    return 0


def _label(options: Namespace) -> int:
    from arcfleet.datasets.dataset import Dataset
    from arcfleet.datasets.labels import label_dataset

    dataset = Dataset.open(options.dataset)
    if options.shard is not None:
        return _label_part(options, dataset)
    with _interruptible(), count_progress("labels", hidden=options.quiet) as bar:
        labels = label_dataset(
            dataset,
            options.out,
            method=options.method,
            iterations=options.iterations,
            seed=options.seed,
            workers=options.workers,
            executor=options.executor,
            progress=bar,
        )
    mean = float(labels.cost.mean())
    facts = {"file": str(labels.path), "labels": len(labels), "mean_cost": mean}
    text = f"{labels.path}: {len(labels)} labels, mean cost {mean:.1f}"
    print_either(options, facts, text)
    return 0


def _label_part(options: Namespace, dataset: Dataset) -> int:
    from arcfleet.datasets.labels import label_part

    if options.out is None:
        raise OptionError(
            "expected --out FILE beside --shard, got none: name a file for it"
        )
    with _interruptible(), count_progress("labels", hidden=options.quiet) as bar:
        count = label_part(
            dataset,
            options.out,
            options.shard,
            method=options.method,
            iterations=options.iterations,
            seed=options.seed,
            workers=options.workers,
            executor=options.executor,
            progress=bar,
        )
    facts = {"file": str(options.out), "shard": str(options.shard), "labels": count}
    text = f"{options.out}: {count_of(count, 'label')} of part {options.shard}"
    print_either(options, facts, text)
    return 0


def _info(options: Namespace) -> int:
    from arcfleet.datasets.dataset import Dataset
    from arcfleet.datasets.statistics import figures_of, statistics_rows, summarise
    from arcfleet.report.tables import table

    check_plot(options.plot)
    datasets = [Dataset.open(path) for path in options.datasets]
    facts = [summarise(dataset) for dataset in datasets]
    labels = [path.name.removesuffix(".npz") for path in options.datasets]
    if options.plot is not None:
        from arcfleet.report.dataset_plot import plot_datasets

        pairs = zip(datasets, labels, strict=True)
        plot_datasets([figures_of(*pair) for pair in pairs], options.plot)
    made_with = [
        [name, *(str(dataset.facts.get(name, "")) for dataset in datasets)]
        for name in ("split", "seed")
    ]
    found, lines = [], [table([*made_with, *statistics_rows(facts)], ["", *labels])]
    for number, (label, dataset) in enumerate(zip(labels, datasets, strict=True)):
        file, known = str(options.datasets[number]), asdict(facts[number])
        found.append({"file": file, **known, "header": dataset.facts})
        note = f" ({dataset.attribution})" if dataset.attribution else ""
        lines.append(f"{label}: streets of {_map_names(dataset)}{note}")
    print_either(options, {"datasets": found}, "\n".join(lines))
    return 0


def _map_names(dataset: Dataset) -> str:
    names = dataset.facts.get("maps") or ["unknown maps"]
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(map(str, names[:_MOST_NAMES])) + more


DATASET = Command(
    name="dataset",
    summary="make, label and describe data sets of many instances",
    epilog="""\
example:
  arcfleet dataset make task20 --count 1000 -o task20.npz
  arcfleet dataset label task20.npz --iterations 5000
  arcfleet dataset info task20.npz
""",
    commands=(
        Command(
            name="make",
            summary="cut the instances of a data set out of street maps",
            options=_make_options,
            run=_make,
            epilog="""\
example:
  arcfleet dataset make task20 --count 20000 --split train --maps maps/beijing_5ring \\
      --workers 2 -o task20-train.npz

The same command resumes after Ctrl-C or a kill.
""",
        ),
        Command(
            name="label",
            summary="solve every instance of a data set and keep the plans as labels",
            options=_label_options,
            run=_label,
            epilog="""\
example:
  arcfleet dataset label task20-train.npz --iterations 5000 --workers 2
  arcfleet dataset label task20-train.npz --iterations 5000 --shard 3/10 -o parts/3.jsonl
  arcfleet merge task20-train.labels.npz parts/*.jsonl

The same command resumes after Ctrl-C or a kill.
""",
        ),
        Command(
            name="info",
            summary="show the sizes and statistics of data sets side by side",
            options=_info_options,
            run=_info,
            epilog="""\
example:
  arcfleet dataset info task20-train.npz task20-test.npz --plot sets.png
""",
        ),
    ),
)
