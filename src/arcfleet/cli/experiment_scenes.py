"""`arcfleet experiment scenes`: plans of street scenes side by side."""

from __future__ import annotations

from argparse import RawDescriptionHelpFormatter
from pathlib import Path
from typing import TYPE_CHECKING

from arcfleet.cli.experiment_options import (
    add_report_options,
    check_run_options,
    finish,
    plan_progress,
)
from arcfleet.cli.options import add_model, positive_number, whole_number

if TYPE_CHECKING:
    from argparse import Namespace

    from arcfleet.cli.options import Commands

# The paper's figure, and ours beside it.
_METHODS = "ps,daam,maens,ruin-recreate=1000000"

_EXAMPLE = """\
example:
  arcfleet scene maps/beijing_5ring --around 116.40,39.90,700 --capacity 100 \\
      --demand 5-10 --ignore-one-way --merge 15 -o centre.json
  arcfleet experiment scenes centre.json --methods ps,daam,maens=5000 --out results

Methods are those of `arcfleet methods`, with a number as NAME=ITERATIONS.
"""


def add_parsers(names: Commands) -> None:
    """Describe the experiment."""
    parser = names.add_parser(
        "scenes",
        help="plans of street scenes by several methods, side by side",
        description="Draw plans of street scenes by several methods side by side.",
        epilog=_EXAMPLE,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("scenes", type=Path, nargs="+", metavar="SCENE")
    parser.add_argument(
        "--methods", default=_METHODS, metavar="A,B", help=f"default {_METHODS}"
    )
    add_model(parser)
    parser.add_argument(
        "--seed", type=whole_number, default=0, metavar="N", help="default 0"
    )
    parser.add_argument(
        "--workers", type=positive_number, default=1, metavar="N", help="default 1"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress")
    add_report_options(parser)
    parser.set_defaults(run=run)


def run(options: Namespace) -> int:
    """Run the experiment."""
    from arcfleet.methods import find_method, load_for_methods, model_files
    from arcfleet.neural.checkpoint import model_path
    from arcfleet.paper.rows import ModelFiles
    from arcfleet.paper.scenes import SceneFile, solve_scenes

    texts = [text for text in options.methods.split(",") if text.strip()]
    methods = [find_method(text.strip().partition("=")[0]) for text in texts]
    check_run_options(options)
    loaded = load_for_methods(methods, options.model, options.device)
    checksums, device = {}, "cpu"
    if loaded:
        files = ModelFiles({}, options.device)
        named = model_files(methods, options.model, options.device)
        checksums = {
            kind: files.checksum(model_path(path, kind)) for kind, path in named.items()
        }
        device = files.device_name()
    file = SceneFile(options.out / "scenes.jsonl")
    try:
        with plan_progress(hidden=options.quiet) as progress:
            report = solve_scenes(
                options.scenes,
                texts,
                file,
                loaded=loaded,
                model_sha256=checksums,
                device=device,
                seed=options.seed,
                workers=options.workers,
                progress=progress,
            )
    finally:
        file.close()
    finish(options, report)
    return 0
