"""The two walks: every function on the way, read off a run of the code itself."""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import arcfleet
from tools.docs.trace import first_calls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tools.docs.trace import Call

VILLAGE = Path(__file__).resolve().parents[2] / "examples" / "village.json"


def pages() -> dict[str, str]:
    """Return both pages, by their names below docs/."""
    return {
        "explanation/file-to-map.md": file_to_map(),
        "explanation/data-set-to-plan.md": data_set_to_plan(),
    }


def file_to_map() -> str:
    """Return the walk from a file to a map."""
    return _page(
        "Walk: file to map",
        "an instance file and the map of its plan",
        [
            'instance = arcfleet.read("village.json")',
            "stop = arcfleet.Stop(iterations=300)",
            'result = arcfleet.solve(instance, "ruin-recreate", stop=stop)',
            'arcfleet.write_html(instance, result.solution, "map.html")',
        ],
        walk_of_a_file(),
    )


def data_set_to_plan() -> str:
    """Return the walk from a data set to a learned plan."""
    return _page(
        "Walk: data set to learned plan",
        "the making of a data set and a plan of a model that was trained on it",
        [
            'dataset = make_dataset("train.npz", "task20", count=4)',
            "label_dataset(dataset, iterations=50)",
            'pretrain("run", config, data=["train.npz"], validation=["train.npz"])',
            'model = "run/model.safetensors"',
            'arcfleet.solve(dataset[0], "daam-sample", stop=stop, model=model)',
        ],
        walk_of_a_data_set(),
    )


def walk_of_a_file() -> dict[str, Call]:
    """Read a file, solve it and write a map; return the calls of each part."""
    instances: list[arcfleet.Instance] = []
    results: list[arcfleet.Result] = []

    def solve() -> None:
        stop = arcfleet.Stop(iterations=300)
        results.append(arcfleet.solve(instances[0], "ruin-recreate", stop=stop))

    return _walk(
        {
            "Read the file": lambda: instances.append(arcfleet.read(VILLAGE)),
            "Solve": solve,
            "Write the map": lambda: arcfleet.write_html(
                instances[0], results[0].solution, "map.html"
            ),
        }
    )


def walk_of_a_data_set() -> dict[str, Call]:
    """Make, label, pre-train and solve, all tiny; return the calls of each part."""
    from arcfleet.datasets import Dataset, label_dataset, make_dataset
    from arcfleet.neural.model import DaamConfig
    from arcfleet.neural.train.config import PretrainConfig, RunConfig
    from arcfleet.neural.train.pretrain import pretrain

    model = DaamConfig(width=16, layers=1, heads=2, feed_forward=16)
    run = RunConfig(steps=2, validations=1)
    config = PretrainConfig(model=model, run=run, tokens=500)
    files = ["train.npz"]

    def solve() -> None:
        instance = Dataset.open(files[0])[0]
        stop = arcfleet.Stop(iterations=20)
        trained = "run/model.safetensors"
        arcfleet.solve(instance, "daam-sample", stop=stop, model=trained, device="cpu")

    return _walk(
        {
            "Make the data set": lambda: make_dataset(files[0], "task20", count=4),
            "Label it": lambda: label_dataset(Dataset.open(files[0]), iterations=50),
            "Pre-train": lambda: pretrain(
                "run", config, data=files, validation=files, device="cpu"
            ),
            "Solve": solve,
        }
    )


def _page(title: str, between: str, program: list[str], parts: dict[str, Call]) -> str:
    lines = [
        f"# {title}",
        "",
        f"Every function of the package between {between}, in the order of their first "
        "calls. A function is indented below the one that called it; helpers stand in "
        "brackets. The list is read off a run of this version.",
        "",
        "```text",
        *program,
        "```",
    ]
    for heading, call in parts.items():
        lines += ["", f"## {heading}", "", *listing(call.below)]
    return "\n".join(lines) + "\n"


def _walk(parts: dict[str, Callable[[], object]]) -> dict[str, Call]:
    """Run the parts one after the other in a new folder, without a word."""
    home = Path.cwd()
    output = io.TextIOWrapper(io.BytesIO(), "utf-8")
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(output),
    ):
        os.chdir(folder)
        try:
            done: dict[str, Call] = {}
            for title, part in parts.items():
                done[title] = first_calls(part, done.values())
            return done
        finally:
            os.chdir(home)


def listing(calls: Iterable[Call], depth: int = 0) -> Iterator[str]:
    """Yield the lines of a nested list; helpers stand in the line of their caller."""
    for call in calls:
        if call.minor:
            continue
        name = f"{call.module.removeprefix('arcfleet.')}.{call.name}"
        text = call.summary().rstrip(".")
        helpers = [f"`{x.name.replace('.<locals>', '')}`" for x in _minor(call.below)]
        line = f"{'    ' * depth}- `{name.replace('.<locals>', '')}`"
        line += f": {text}." if text else ""
        yield line + (f" ({', '.join(helpers)})" if helpers else "")
        yield from listing(call.below, depth + 1)


def _minor(calls: Iterable[Call]) -> Iterator[Call]:
    for call in calls:
        if call.minor:
            yield call
            yield from _minor(call.below)
