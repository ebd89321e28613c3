"""`arcfleet convert`: write an instance in another format."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import Namespace

    from arcfleet.cli.options import Commands


def add_parser(commands: Commands) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "convert",
        help="write an instance in another format",
        description="Read an instance in any known format and write it in another.",
    )
    parser.add_argument("input", type=Path, metavar="INPUT")
    parser.add_argument("output", type=Path, metavar="OUTPUT")
    parser.add_argument(
        "--format",
        choices=["carplib", "mcarp", "json"],
        help="of OUTPUT; by default from its suffix: .dat, .txt, .json",
    )
    parser.set_defaults(run=run)


def run(options: Namespace) -> int:
    """Run the command."""
    from arcfleet.instance.files import read, write

    write(read(options.input), options.output, options.format)
    return 0
