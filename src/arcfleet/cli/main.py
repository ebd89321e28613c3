"""Entry point of the `arcfleet` command.

Results go to stdout, everything else to stderr. Exit codes: 0 done, 1 bad input or a
faulty plan, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from typing import TYPE_CHECKING

from arcfleet.cli import (
    bench,
    check,
    compare,
    convert,
    dataset,
    experiment,
    info,
    methods,
    model,
    scene,
    show,
    solve,
    train,
)
from arcfleet.cli.options import attach_coordinates
from arcfleet.errors import ArcfleetError

if TYPE_CHECKING:
    from collections.abc import Sequence

_COMMANDS = (
    scene,
    solve,
    compare,
    show,
    check,
    info,
    convert,
    methods,
    bench,
    experiment,
    dataset,
    train,
    model,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    # Before torch is imported: its threads would wait for each other by spinning, and where
    # others want the cores, too, a plan of a second takes half a minute so.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    parser = _parser()
    options = parser.parse_args(
        attach_coordinates(sys.argv[1:] if arguments is None else arguments)
    )
    if options.command is None:
        parser.print_help(sys.stderr)
        return 2
    if sys.stdout is not None:
        # A street name that the terminal cannot show must not end the run.
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    warnings.showwarning = _show_warning
    warnings.simplefilter("always", UserWarning)
    try:
        code: int = options.run(options)
    except ArcfleetError as error:
        print(f"arcfleet: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("arcfleet: interrupted before all was done", file=sys.stderr)
        return 1
    except MemoryError:
        print(
            "arcfleet: expected the instance to fit in memory, found too little: "
            "split it into smaller areas",
            file=sys.stderr,
        )
        return 1
    return code


def _parser() -> argparse.ArgumentParser:
    from arcfleet import __version__

    parser = argparse.ArgumentParser(
        prog="arcfleet",
        description="Plan routes for fleets that work along streets.",
        epilog="Try: arcfleet solve example:denver --time 5 --html plan.html",
    )
    parser.add_argument("--version", action="version", version=f"arcfleet {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for command in _COMMANDS:
        command.add_parser(commands)
    return parser


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: object = None,
    line: str | None = None,
) -> None:
    print(f"arcfleet: warning: {message}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
