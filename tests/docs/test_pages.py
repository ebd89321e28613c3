"""The written pages: links, formats field by field, and the limits they keep."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

import arcfleet
import arcfleet.datasets
from arcfleet.batch_file import PlanLine
from arcfleet.instance.operations import Facility, Lock, Vehicle
from arcfleet.solution.json_solution import format_json_solution
from arcfleet.solution.solution import FacilityVisit
from arcfleet.streets.joins import unmatched_csv
from tools.docs import results_pages

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
#: Written beside the site; mkdocs does not look at their links.
OTHERS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "research").rglob("*.md")),
]
FORMATS = (ROOT / "docs" / "reference" / "formats.md").read_text("utf-8")
_LONGEST = 130


@pytest.mark.parametrize("page", OTHERS, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text("utf-8")):
        if not target.startswith(("http:", "https:", "mailto:")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_lines_are_short_but_for_tables(page: Path) -> None:
    code = False
    for number, line in enumerate(page.read_text("utf-8").splitlines(), 1):
        code ^= line.startswith("```")
        if not (code or line.startswith("|")):
            assert len(line) <= _LONGEST, f"{page.name}:{number}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_has_one_title_and_starts_with_prose(page: Path) -> None:
    lines = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL).splitlines()
    assert [line for line in lines if line.startswith("# ")] == lines[:1]
    assert lines[2]
    assert not lines[2].startswith(("#", "|", "!"))


def test_the_readme_has_at_most_100_lines() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 100


def test_the_fields_of_an_instance_are_listed() -> None:
    assert fields("an instance") == set(arcfleet.Instance.__dataclass_fields__)
    assert fields("a link") == set(arcfleet.Link.__dataclass_fields__)
    assert fields("a vehicle") == set(Vehicle.__dataclass_fields__)
    assert fields("a facility") == set(Facility.__dataclass_fields__)
    assert fields("a locked route") == set(Lock.__dataclass_fields__)


def test_the_fields_of_an_unmatched_row_are_listed() -> None:
    assert fields("an unmatched row") == set(unmatched_csv([]).strip().split(","))


def test_the_fields_of_a_solution_are_listed(tmp_path: Path) -> None:
    instance = arcfleet.read("example:denver")
    links = tuple(replace(link, metres=link.cost, seconds=9) for link in instance.links)
    instance = replace(instance, links=links)
    solution = arcfleet.solve(instance, "ps", seed=1).solution
    visit = FacilityVisit(facility=0, services=1, steps=1)
    first = replace(solution.routes[0], number=7, vehicle=1, visits=(visit,))
    vehicles = tuple(
        Vehicle(name=name, start=instance.depot, capacity=instance.capacity)
        for name in ("small", "large")
    )
    facilities = (Facility(node=instance.nodes[0]),)
    instance = replace(instance, vehicles=vehicles, facilities=facilities)
    text = format_json_solution(
        replace(solution, routes=(first, *solution.routes[1:]), visit_cost=9), instance, 0.0
    )
    (tmp_path / "plan.json").write_text(text, encoding="utf-8")
    plan = json.loads((tmp_path / "plan.json").read_text("utf-8"))
    assert fields("a solution") == set(plan) - {"format", "version"}
    assert fields("a route") - {"link", "reverse", "serves"} == set(plan["routes"][0])
    assert fields("travel") == set(plan["travel"]) == set(plan["routes"][0]["travel"])


@pytest.mark.parametrize(
    ("what", "file"),
    [("a run", "side-by-side/runs.jsonl"), ("a series", "runtime/runs.jsonl")],
)
def test_the_fields_of_json_lines_are_listed(what: str, file: str) -> None:
    path = ROOT / "benchmarks" / "results" / file
    with path.open(encoding="utf-8") as lines:
        first = json.loads(next(lines))
    renamed = {"judged": "verified"}
    assert fields(what) == {renamed.get(name, name) for name in first} - {"format"}


def test_the_fields_of_plan_lines_are_listed() -> None:
    assert fields("a plan line") == set(PlanLine.__dataclass_fields__)


def test_the_stable_names_are_listed() -> None:
    page = (ROOT / "docs" / "reference" / "stable-names.md").read_text("utf-8")
    for module in (arcfleet, arcfleet.datasets):
        block = page.split(f"names of `{module.__name__}` |\n")[1].split("\n\n")[0]
        listed = re.findall(r"`(\w+)`", block)
        assert sorted(listed) == sorted(module.__all__)


def fields(what: str) -> set[str]:
    """Return the names in the first column of the table after its comment."""
    block = FORMATS.split(f"<!-- fields of {what} -->\n")[1].split("\n\n")[0]
    rows = block.splitlines()[2:]
    return {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])}


@pytest.mark.parametrize("folder", [".", "search", "neural"])
def test_the_architecture_names_every_folder_and_file(folder: str) -> None:
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text("utf-8")
    for path in sorted((ROOT / "src" / "arcfleet" / folder).iterdir()):
        if path.name == "weights" or path.name.startswith("__"):
            continue
        if path.is_dir():
            assert f"{path.name}/" in page
        elif path.suffix == ".py":
            assert path.name in page


def test_every_page_is_in_the_navigation_once() -> None:
    listed = re.findall(
        r"(\S+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE
    )
    docs = ROOT / "docs"
    written = {path.relative_to(docs).as_posix() for path in PAGES}
    notebooks = {
        path.relative_to(docs).with_suffix(".md").as_posix()
        for path in docs.rglob("*.ipynb")
    }
    generated = {
        *("reference/api.md", "reference/cli.md", "reference/settings.md"),
        *("explanation/file-to-map.md", "explanation/data-set-to-plan.md"),
        *results_pages.SOURCES,
    }
    assert sorted(listed) == sorted(written | notebooks | generated)
