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

from arcfleet.cli import check, convert, info, methods, solve
from arcfleet.errors import ArcfleetError

if TYPE_CHECKING:
    from collections.abc import Sequence

_COMMANDS = (solve, check, info, convert, methods)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help(sys.stderr)
        return 2
    warnings.showwarning = _show_warning
    warnings.simplefilter("always", UserWarning)
    try:
        code: int = options.run(options)
        sys.stdout.flush()
    except ArcfleetError as error:
        print(f"arcfleet: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("arcfleet: interrupted before there was a result", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader of our output has gone (`| head`): that is no error of ours. Python
        # would complain at exit, when it flushes stdout, unless that leads nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code


def _parser() -> argparse.ArgumentParser:
    from arcfleet import __version__

    parser = argparse.ArgumentParser(
        prog="arcfleet",
        description="Plan routes for fleets that work along streets.",
        epilog="Try: arcfleet solve FILE --time 5 --plot plan.png",
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
