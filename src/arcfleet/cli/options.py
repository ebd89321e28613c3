"""Argument types that several commands share."""

from __future__ import annotations

import argparse
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import ArgumentParser, _SubParsersAction
    from collections.abc import Callable, Sequence

    Commands = _SubParsersAction[ArgumentParser]

_WESTERN = re.compile(r"-\.?\d[^,]*(,[^,]+)+")


def whole_number(text: str) -> int:
    """Parse an integer that is at least 0, for argparse."""
    if not (text.isascii() and text.isdigit() and len(text) <= 20):
        raise argparse.ArgumentTypeError(f"expected a whole number, got {text[:40]!r}")
    return int(text)


def positive_number(text: str) -> int:
    """Parse an integer that is at least 1, for argparse."""
    value = whole_number(text)
    if value == 0:
        raise argparse.ArgumentTypeError("expected a number of at least 1, got 0")
    return value


def seconds(text: str) -> float:
    """Parse a time in seconds, for argparse."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1e9:
        raise argparse.ArgumentTypeError(
            f"expected a time from 0 to 1e9 seconds, got {text[:40]!r}"
        )
    return value


def coordinates(count: int, form: str) -> Callable[[str], tuple[float, ...]]:
    """Make a parser of `count` numbers with commas between, for argparse.

    Parameters
    ----------
    count
        How many numbers.
    form
        How to write them, for the message, as in `LON,LAT`.
    """

    def parse(text: str) -> tuple[float, ...]:
        try:
            numbers = tuple(float(part) for part in text.split(","))
        except ValueError:
            numbers = ()
        if len(numbers) != count or not all(map(math.isfinite, numbers)):
            raise argparse.ArgumentTypeError(f"expected {form}, got {text[:60]!r}")
        return numbers

    return parse


def attach_coordinates(arguments: Sequence[str]) -> list[str]:
    """Write `--depot -71.3,42.5` as `--depot=-71.3,42.5`.

    In the western hemisphere a place begins with a minus, and argparse would take it for
    an option.
    """
    attached: list[str] = []
    for argument in arguments:
        option = attached[-1] if attached else ""
        if _WESTERN.fullmatch(argument) and option.startswith("--") and "=" not in option:
            attached[-1] = f"{option}={argument}"
        else:
            attached.append(argument)
    return attached


def add_model(parser: ArgumentParser) -> None:
    """Give a command the options of learned methods, --model and --device."""
    parser.add_argument(
        "--model",
        type=Path,
        metavar="FILE",
        help="model for learned methods of its kind (default: what comes with arcfleet)",
    )
    parser.add_argument(
        "--device",
        default="auto",
        metavar="NAME",
        help="where a learned method works: auto (default), cpu, cuda, cuda:1",
    )


def add_json(parser: ArgumentParser) -> None:
    """Give a command the option --json."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")
