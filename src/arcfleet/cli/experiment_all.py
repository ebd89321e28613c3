"""`arcfleet experiment all --quick`: every experiment on tiny inputs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from arcfleet.cli.options import positive_number

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from arcfleet.cli.options import Commands


def add_parsers(names: Commands) -> None:
    """Describe the command."""
    parser = names.add_parser(
        "all",
        help="every experiment on tiny inputs, to see that all of it runs",
        description=(
            "Make tiny data sets, models and scenes from synthetic streets and run every "
            "experiment on them. The figures that come out say nothing of the methods."
        ),
    )
    parser.add_argument(
        "--quick", action="store_true", required=True, help="tiny inputs, the only way"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    parser.add_argument(
        "--workers", type=positive_number, default=1, metavar="N", help="default 1"
    )
    parser.add_argument("--no-figures", action="store_true", help="no figures")
    parser.set_defaults(run=run)


def run(options: Namespace) -> int:
    """Run the experiments one after the other."""
    from arcfleet.cli.main import main
    from arcfleet.neural.checkpoint import require_packages

    require_packages("experiments with learned methods")
    from arcfleet.neural.device import torch_threads

    with torch_threads(1):  # more would only wait for each other on models so small
        for command in _commands(options):
            print(f"arcfleet experiment {' '.join(command)}", file=sys.stderr, flush=True)
            code = main(["experiment", *command])
            if code:
                return code
    return 0


def _commands(options: Namespace) -> Iterator[list[str]]:
    """Give the command line of each experiment."""
    from arcfleet.paper.quick import make_quick_files
    from arcfleet.paper.rows import ROW_TYPES, TABLE_ROWS

    out: Path = options.out
    files = make_quick_files(out / "inputs")
    numbers = {"plans": 20, "iterations": 30, "samples": 2}
    rows = [
        f"{name}={numbers[kind.unit]}" if kind.unit else name
        for name, kind in ROW_TYPES.items()
        if name in TABLE_ROWS and (kind.model is None or kind.model in files.models)
    ]
    models = [
        x for name, path in files.models.items() for x in ("--model", f"{name}={path}")
    ]
    tests = [str(path) for path in files.test]
    where = ["--out", str(out), *(["--no-figures"] if options.no_figures else [])]
    common = ["--workers", str(options.workers), "--quiet", *where]
    on_cpu = ["--device", "cpu", *common]
    learned = ["--rows", ",".join(rows), *models, *on_cpu]
    whole = [str(files.whole), tests[1], "--labelled", tests[0]]
    yield ["table", *whole, "--search-count", "5", *learned]
    yield ["runtime", *whole, "--count", "3", "--search-count", "3", *learned]
    yield ["pareto", *whole, "--search-count", "5", "--scale", "task20", *learned]
    named = ["--model", f"task20={files.models['daam-sl']}"]
    named += ["--model", f"both={files.models['daam']}"]
    yield ["generalise", *tests, *named, "--seen", "synthetic", *on_cpu]
    yield [
        *("ablation", *tests, "--data", *map(str, files.train)),
        *("--validation", *map(str, files.validation), "--inputs", "mds,mds+gat"),
        *("--pretrain-config", str(files.pretrain_config)),
        *("--finetune-config", str(files.finetune_config), *on_cpu),
    ]
    yield [
        "convergence",
        *(f"{name}={out / 'ablation' / name / 'task20'}" for name in ("mds", "mds+gat")),
        *where,
    ]
    methods = "ps,daam-greedy,maens=30,ruin-recreate=30"
    model = ["--model", str(files.models["daam"]), *on_cpu]
    yield ["scenes", *map(str, files.scenes), "--methods", methods, *model]
    yield ["report", "table", str(out), *where]
