"""Read and write solution files: the CARPLIB text form and our own JSON.

Reading only checks that the file refers to links of this instance; the checker verifies
the plan and its costs.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from arcfleet._checks import nearest_name
from arcfleet._files import read_text, write_text_atomically
from arcfleet.errors import OptionError
from arcfleet.solution.drive import with_all_paths
from arcfleet.solution.json_solution import format_json_solution, read_json_solution
from arcfleet.solution.solution import Solution
from arcfleet.solution.text_solution import (
    format_text_solution,
    read_text_solution,
    text_obstacle,
)

if TYPE_CHECKING:
    from arcfleet.instance.instance import Instance

_FORMATS = ("carplib", "json")


def read_solution(path: Path | str, instance: Instance) -> Solution:
    """Read a plan for `instance`; the content tells the format."""
    text = read_text(path)
    if text.lstrip().startswith(("{", "[")):
        return read_json_solution(path, text, instance)
    return read_text_solution(path, text, instance)


def as_solution(source: object, instance: Instance) -> Solution:
    """Return a plan for `instance`, reading it if it is the path of a file."""
    if isinstance(source, str | Path):
        return read_solution(source, instance)
    if not isinstance(source, Solution):
        remedy = ": take its solution" if hasattr(source, "solution") else ""
        raise OptionError(
            f"expected a Solution or the path of one, got {type(source).__name__}{remedy}"
        )
    return source


def write_solution(
    instance: Instance,
    solution: Solution,
    path: Path | str,
    seconds: float = 0.0,
    file_format: str | None = None,
) -> None:
    """Write a plan for `instance`.

    Parameters
    ----------
    instance
        The instance that the plan solves; SolutionError if it has no such links.
    solution
        The plan. The text form holds its services and costs; JSON its street paths too,
        which are computed where the plan has none.
    path
        The file; it is replaced only when the new one is complete.
    seconds
        Time that the search took.
    file_format
        "carplib" (text) or "json"; by default "json" for the suffix .json, else text.
    """
    if file_format is None:
        file_format = _format_of(path)
    if file_format not in _FORMATS:
        near = nearest_name(file_format, _FORMATS)
        hint = f"; did you mean {near}?" if near else ""
        raise OptionError(
            f"expected file_format carplib or json, got {file_format!r}{hint}"
        )
    if not 0 <= seconds < math.inf:
        raise OptionError(f"expected seconds of 0 or more, got {seconds!r}")
    if file_format == "json":
        solution = with_all_paths(instance, solution)
        text = format_json_solution(solution, instance, seconds)
    else:
        text = format_text_solution(path, solution, instance, seconds)
    write_text_atomically(path, text)


def check_holds_plans(instance: Instance, path: Path | str) -> None:
    """Raise OptionError where `path` is a text that may not hold plans of `instance`.

    For use before a search, which would be lost.
    """
    obstacle = text_obstacle(instance)
    if obstacle is not None and _format_of(path) != "json":
        raise OptionError(
            f"expected a .json file for a plan with {obstacle}, which a text cannot hold, "
            f"got {Path(path).name!r}: write .json"
        )


def _format_of(path: Path | str) -> str:
    return "json" if Path(path).suffix.lower() == ".json" else "carplib"
