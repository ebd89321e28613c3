"""`arcfleet model`: say what a model file holds."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from arcfleet.cli.options import add_json
from arcfleet.cli.output import print_json, print_result

if TYPE_CHECKING:
    from argparse import Namespace

    from arcfleet.cli.options import Commands


def add_parser(commands: Commands) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "model",
        help="say what a model file holds",
        description="Look at the models of the learned methods.",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    info = actions.add_parser(
        "info",
        help="say what a model file holds",
        description="Say what a model file holds, after a check of every byte of it.",
    )
    info.add_argument(
        "model",
        type=Path,
        metavar="FILE",
        nargs="?",
        help="default: the one that comes with arcfleet",
    )
    add_json(info)
    info.set_defaults(run=run)


def run(options: Namespace) -> int:
    """Run the command."""
    from arcfleet.neural.checkpoint import model_path, require_packages

    path = model_path(options.model)
    require_packages("reading a model")
    from arcfleet.neural.checkpoint import read_model_info

    info = read_model_info(path)
    if options.json:
        print_json({"file": str(path), **asdict(info)})
        return 0
    rows: list[tuple[str, object]] = [
        ("file", path),
        ("kind", info.model_type),
        ("parameters", info.parameters),
        ("bytes", info.bytes),
        ("dtype", info.dtype),
        *asdict(info.config).items(),
        *((f"fact {name}", value) for name, value in info.facts.items()),
    ]
    width = max(len(name) for name, _ in rows) + 2
    print_result(
        "\n".join(
            f"{_brief(name).replace('_', ' '):{width}}{_brief(value)}"
            for name, value in rows
        )
    )
    return 0


def _brief(value: object) -> str:
    """Give a fact in one line; what holds many is for --json."""
    from arcfleet._checks import one_line

    if isinstance(value, dict | list):
        return f"{len(value)} entries, see --json"
    return one_line(str(value))
