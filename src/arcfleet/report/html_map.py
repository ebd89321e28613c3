"""A plan, or two of them, as one HTML file: a map to move, search, play and print.

The file opens from the disk without any network. Its page lies in `page/`, its data comes
from `map_facts`.
"""

from __future__ import annotations

import html
import json
import re
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from arcfleet._files import check_output, write_text_atomically
from arcfleet.report.base_map import load_base_map
from arcfleet.report.map_facts import diff_facts, plan_facts
from arcfleet.solution.diff import diff
from arcfleet.solution.drive import check_paths, with_all_paths
from arcfleet.solution.files import as_solution

if TYPE_CHECKING:
    from arcfleet.instance.instance import Instance
    from arcfleet.report.base_map import BaseMap
    from arcfleet.solution.bound import Bound
    from arcfleet.solution.solution import Solution

SUFFIXES = (".html", ".htm")

_SCRIPTS = (
    *("plan.js", "view.js", "base.js", "draw.js", "labels.js", "hover.js", "panel.js"),
    *("load.js", "search.js", "changes.js", "play.js", "here.js", "print.js", "start.js"),
)


def write_html(
    instance: Instance,
    solution: Solution,
    path: Path | str,
    *,
    base_map: Path | str | None = None,
    base_map_credit: str = "",
    bound: Bound | None = None,
) -> None:
    """Write a plan as a map that any browser shows.

    Parameters
    ----------
    instance
        The streets; without coordinates their places are worked out from the costs.
    solution
        The plan; street paths are worked out where it has none.
    path
        The file; it is replaced only when the new one is complete.
    base_map
        A URL with `{z}`, `{x}` and `{y}` of raster tiles that the browser fetches, or a
        PMTiles file of raster tiles, whose tiles around the plan become part of the page.
        Without one the page needs no network.
    base_map_credit
        Attribution of the base map; by default the one that the PMTiles file has, else
        its source.
    bound
        Lower bound, which tells how far the plan can be from the best possible one.

    Raises
    ------
    OptionError
        If the suffix is unknown, or the base map is none or the plan not on the globe.
    InstanceError
        If the instance is too large to be laid out without coordinates.
    SolutionError
        If the plan cannot be driven along the streets of the instance.
    FileError
        If the file cannot be written.
    """
    check_html(Path(path))
    solution = _driven(instance, solution)
    base = load_base_map(base_map, base_map_credit, instance, solution)
    facts = plan_facts(instance, solution)
    facts["gap"] = None if bound is None else bound.gap_text(solution.cost)
    write_text_atomically(path, _page(f"{instance.name}: plan", facts, base))


def write_diff_html(
    instance: Instance,
    before: Solution | Path | str,
    after: Solution | Path | str,
    path: Path | str,
    old_instance: Instance | None = None,
    *,
    base_map: Path | str | None = None,
    base_map_credit: str = "",
) -> None:
    """Write two plans as one map: side by side or by turns, with the streets that moved.

    Parameters
    ----------
    instance
        Instance of the later plan.
    before, after
        Earlier and later plan, or the paths of their files.
    path
        The file; it is replaced only when the new one is complete.
    old_instance
        Instance of the earlier plan, if it is another one, see `diff`.
    base_map, base_map_credit
        Base map and its attribution, as for `write_html`.

    Raises
    ------
    OptionError
        If the suffix is unknown, or the base map is none or the plan not on the globe.
    InstanceError
        If the instance is too large to be laid out without coordinates.
    SolutionError
        If a plan is none of its instance or cannot be driven along its streets.
    FileError
        If the file cannot be written.
    """
    check_html(Path(path))
    source = instance if old_instance is None else old_instance
    before, after = as_solution(before, source), as_solution(after, instance)
    found = diff(instance, before, after, old_instance)
    before, after = _driven(source, before), _driven(instance, after)
    base = load_base_map(base_map, base_map_credit, instance, after)
    facts = diff_facts(instance, before, after, found, source)
    write_text_atomically(path, _page(f"{instance.name}: two plans", facts, base))


def check_html(path: Path) -> None:
    """Raise what `write_html` would raise about its file, before the work for it."""
    check_output(path, SUFFIXES, "an HTML file")


def _driven(instance: Instance, solution: Solution) -> Solution:
    solution = with_all_paths(instance, solution)
    check_paths(instance, solution)
    return solution


def _page(title: str, facts: dict[str, object], base: BaseMap) -> str:
    folder = resources.files("arcfleet.report") / "page"

    def asset(file: str) -> str:
        return (folder / file).read_text(encoding="utf-8")

    data = json.dumps(facts | base.facts, ensure_ascii=False, separators=(",", ":"))
    parts = {
        "title": html.escape(title),
        "images": f" {base.origin}" if base.origin else "",
        "style": asset("page.css"),
        "script": "\n".join(asset(file) for file in _SCRIPTS),
        # Without "<" no street name can end the element that holds the data.
        "plan": data.replace("<", "\\u003c"),
    }
    # In one pass, so that nothing in the data is taken for a placeholder.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], asset("page.html"))
