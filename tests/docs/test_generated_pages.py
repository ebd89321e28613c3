"""The generated pages hold what the code holds."""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path

import pytest

import arcfleet
from arcfleet.cli.main import build_parser
from tools.docs import api_page, cli_page, results_pages, settings_page

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"


def test_every_public_name_is_on_the_api_page_once() -> None:
    listed = [name for names in api_page.subjects().values() for name in names]
    assert sorted(listed) == sorted(x for x in arcfleet.__all__ if not x.startswith("__"))


def test_every_command_and_option_is_on_the_cli_page() -> None:
    page = cli_page.page()
    options = 0
    for command, _ in cli_page.commands(build_parser()):
        section = page.split(f"## `{command.prog}`")[1].split("\n## ")[0]
        for action in cli_page.actions(command):
            if action.help != argparse.SUPPRESS and action.dest != "help":
                shown = action.option_strings or action.choices or [action.metavar]
                assert all(f"{name}" in section for name in shown)
                options += 1
    assert options > 200
    assert "| `--no-improvement N` | stop after N iterations without improvement |" in page


@pytest.mark.parametrize(
    "dotted", [dotted for _, dotted in settings_page.SETTINGS.values()]
)
def test_every_setting_has_a_meaning(dotted: str) -> None:
    for name, _, _, meaning in settings_page.rows(settings_page.load(dotted)):
        assert meaning, f"{dotted}: {name} has no description"


def test_settings_of_parts_stand_in_their_place() -> None:
    @dataclasses.dataclass(frozen=True)
    class Part:
        """A part.

        Parameters
        ----------
        steps
            Number of steps.
        """

        steps: int = 5

    @dataclasses.dataclass(frozen=True)
    class Whole:
        """The whole.

        Parameters
        ----------
        seed
            Seed of the random number generator.
        """

        part: Part = dataclasses.field(default_factory=lambda: Part(steps=7))
        seed: int = 0

    assert list(settings_page.rows(Whole)) == [
        ("`steps`", "`int`", "`7`", "Number of steps."),
        ("`seed`", "`int`", "`0`", "Seed of the random number generator."),
    ]


def test_gaps_of_a_results_page_are_means_over_seeds_then_instances(tmp_path: Path) -> None:
    run = {
        **{"set": "gdb", "method": "ruin-recreate", "time_limit": 0.5, "error": None},
        **{
            "reference": 100,
            "seconds_to_best": 0.1,
            "machine": "a machine",
            "commit": "abc",
        },
    }
    runs = [
        {**run, "instance": "gdb1", "seed": 0, "cost": 101, "gap_percent": 1.0},
        {**run, "instance": "gdb1", "seed": 1, "cost": 103, "gap_percent": 3.0},
        {**run, "instance": "gdb2", "seed": 0, "cost": 100, "gap_percent": 0.0},
        {**run, "instance": "gdb3", "seed": 0, "cost": None, "error": "no plan"},
    ]
    folder = tmp_path / "carplib"
    folder.mkdir()
    (folder / "runs.jsonl").write_text("\n".join(map(json.dumps, runs)))
    (folder / "note.md").write_text("A note.\n")
    page = results_pages.carplib(tmp_path)
    assert "| gdb | `ruin-recreate` | 0.5 s | 2 | 2 | 1.000 | 0.10 s | 1 of 3 |" in page
    assert "Measured on a machine. Commit abc. A note." in page


def test_instances_are_counted_by_whose_plans_are_cheaper(tmp_path: Path) -> None:
    run = {
        **{"set": "gdb", "time_limit": 0.5, "seed": 0, "error": None, "reference": 100},
        **{"machine": "a machine", "commit": "abc"},
    }
    costs = {"gdb1": (100, 110), "gdb2": (100, 100), "gdb3": (105, 104)}
    runs = [
        {
            **run,
            "instance": name,
            "method": method,
            "cost": cost,
            "gap_percent": cost - 100.0,
        }
        for name, pair in costs.items()
        for method, cost in zip(("ruin-recreate", "PyVRP 1"), pair, strict=True)
    ]
    folder = tmp_path / "side-by-side"
    folder.mkdir()
    (folder / "runs.jsonl").write_text("\n".join(map(json.dumps, runs)))
    assert "| gdb | 0.5 s | 3 | 1.667 | 4.667 | 1, 1, 1 |" in results_pages.beside_pyvrp(
        tmp_path
    )


def test_every_table_of_drivable_plans_has_its_command_and_commit() -> None:
    _, *sections = results_pages.drivable(RESULTS).split("\n## ")
    assert len(sections) == 4
    for section in sections:
        assert "\npython -m benchmarks." in section
        assert "Measured on " in section
        assert " Commit " in section


def test_the_lines_of_all_results_pages_are_there() -> None:
    for page, folders in results_pages.SOURCES.items():
        for folder in folders:
            assert list((RESULTS / folder).rglob("*.jsonl")), (page, folder)
