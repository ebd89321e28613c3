"""Entry point of the `arcfleet` command.

Results go to stdout, everything else to stderr. Exit codes: 0 done, 1 bad input or a
faulty plan, 2 wrong usage, 130 interrupted before there was a result.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import time
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING

from arcfleet.cli import HAS_PAPER
from arcfleet.cli.bench import BENCH
from arcfleet.cli.bound import BOUND
from arcfleet.cli.dataset import DATASET
from arcfleet.cli.instance import CONVERT, INFO, METHODS, MODEL
from arcfleet.cli.map import MAP
from arcfleet.cli.next_day import DIFF, EDIT
from arcfleet.cli.options import CommandParser, add_commands, attach_coordinates
from arcfleet.cli.output import note
from arcfleet.cli.paper import PAPER
from arcfleet.cli.scene import SCENE
from arcfleet.cli.serve import SERVE
from arcfleet.cli.solve import CHECK, COMPARE, SHOW, SOLVE
from arcfleet.cli.solve_many import MERGE, SOLVE_MANY
from arcfleet.cli.time_limit import process_start
from arcfleet.cli.train import TRAIN
from arcfleet.errors import ArcfleetError, OptionError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from arcfleet.cli.options import Command

#: Every command, in the groups of `arcfleet --help`.
GROUPS: dict[str, tuple[Command, ...]] = {
    "plan routes": (SOLVE, SOLVE_MANY, EDIT, DIFF, COMPARE, SHOW, CHECK, BOUND, METHODS),
    "plan in the browser": (SERVE,),
    "maps and data": (MAP, SCENE, INFO, CONVERT, DATASET),
    "the learned solver": (TRAIN, MODEL),
    "measuring": (BENCH,),
    "many machines": (MERGE,),
}
if HAS_PAPER:
    GROUPS["the paper"] = (PAPER,)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    # Before torch is imported: its threads would wait for each other by spinning, and where
    # others want the cores, too, a plan of a second takes half a minute so.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # Time limits count from the start of the process; of a call, from the call.
    started = process_start() if arguments is None else time.perf_counter()
    words = attach_coordinates(sys.argv[1:] if arguments is None else arguments)
    if sys.stdout is not None:
        # A street name that the terminal cannot show must not end the run.
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    warnings.showwarning = _show_warning
    warnings.simplefilter("always", UserWarning)
    # Some libraries say so of each other by warnings for users.
    warnings.simplefilter("ignore", DeprecationWarning)
    try:
        with _terminated_as_interrupted():
            return _run(words, started)
    except ArcfleetError as error:
        note(f"{error}")
    except KeyboardInterrupt:
        note("interrupted before all was done")
        return 130
    except MemoryError:
        note(
            "expected the instance to fit in memory, found too little: split it into "
            "smaller areas"
        )
    return 1


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Treat SIGTERM, which service managers and `timeout` send, as Ctrl-C."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: object) -> None:
        signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _run(words: list[str], started: float) -> int:
    if (pointer := _pointer(words)) is not None:
        note(pointer)
        return 2
    if words[:1] == ["paper"] and not HAS_PAPER:
        raise OptionError(
            "expected the folder arcfleet/paper, found none: this installation has no "
            "reproduction of the paper"
        )
    parser = _parser()
    options = parser.parse_args(words)
    if options.command is None:
        parser.print_help(sys.stderr)
        return 2
    options.started = started
    code: int = options.run(options)
    return code


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands, with all their options."""
    parser = _parser()
    parser.complete(recursively=True)
    return parser


def _parser() -> CommandParser:
    """Return the parser of all commands, which add their options on first use."""
    from arcfleet import __version__

    commands = [command for group in GROUPS.values() for command in group]
    width = max(len(command.name) for command in commands) + 2
    listed = [
        f"{title}:\n" + "".join(f"  {x.name:{width}}{x.summary}\n" for x in group)
        for title, group in GROUPS.items()
    ]
    parser = CommandParser(
        prog="arcfleet",
        usage="arcfleet [-h] [--version] COMMAND ...",
        description="Plan routes for fleets that work along streets.\n\n"
        + "\n".join(listed),
        epilog="example:\n"
        "  arcfleet solve example:denver --time 5 --html plan.html\n\n"
        "Every command has --help. Exit codes: 0 done, 1 bad input or a faulty plan,\n"
        "2 wrong usage, 130 interrupted before there was a result.\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"arcfleet {__version__}")
    add_commands(parser, commands, dest="command", help=argparse.SUPPRESS, prog="arcfleet")
    return parser


def _pointer(words: Sequence[str]) -> str | None:
    """Return where a command that has another name now is; None for all others."""
    former = " ".join(words[:2])
    if former in ("train s2v-dqn", "train vrp-dl"):
        now = f"paper {former}"
    elif former == "train curriculum":
        now = "paper train"
    elif former == "experiment all":
        now = "paper COMMAND --quick"
    elif words[:1] == ["experiment"]:
        now = former.replace("experiment", "paper")
    else:
        return None
    return f"arcfleet {former} is now arcfleet {now}"


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: object = None,
    line: str | None = None,
) -> None:
    note(f"warning: {message}")


if __name__ == "__main__":
    sys.exit(main())
