"""Printing results, so that a broken stdout costs neither the plan nor the exit code."""

from __future__ import annotations

import json
import os
import sys

from arcfleet.errors import FileError


def print_result(text: str) -> None:
    """Print to stdout at once.

    A reader that has gone (`| head`) or a stdout that was closed is no error of ours. A
    full disk is: it raises FileError.
    """
    if sys.stdout is None:  # closed by the caller, as with `>&-`
        return
    try:
        print(text, flush=True)
    except BrokenPipeError:
        _discard_stdout()
    except OSError as error:
        _discard_stdout()
        raise FileError(
            "standard output", f"cannot be written ({error.strerror}); free some space"
        ) from error


def print_json(facts: object) -> None:
    """Print one JSON object on one line."""
    print_result(json.dumps(facts, ensure_ascii=False))


def _discard_stdout() -> None:
    # Python would complain when it flushes stdout at exit, unless that leads nowhere.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
