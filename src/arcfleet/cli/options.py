"""Argument types that several commands share."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import ArgumentParser, _SubParsersAction

    Commands = _SubParsersAction[ArgumentParser]


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


def add_json(parser: ArgumentParser) -> None:
    """Give a command the option --json."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")
