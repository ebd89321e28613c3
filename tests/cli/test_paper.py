from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from arcfleet.paper.commands import COMMANDS
from tests.cli.running import arcfleet, one_sentence, succeeded

if TYPE_CHECKING:
    from pathlib import Path

QUICK = ("--quick", "--no-figures", "--device", "cpu")


def test_every_command_of_the_table_is_a_command() -> None:
    text = succeeded("paper", "--help")
    for command in COMMANDS:
        assert f"  {command.name} " in text
        assert "--out" in succeeded("paper", command.name, "--help")


def test_a_table_as_text_and_as_json(tmp_path: Path) -> None:
    command = ("paper", "table", *QUICK, "--out", tmp_path)
    ran = arcfleet(*command)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.rstrip().endswith("table.md, table.tex, table.csv")
    # Again: the costs are there.
    facts = json.loads(succeeded(*command, "--json", "--quiet"))
    assert facts["files"] == [str(tmp_path / f"table.{x}") for x in ("md", "tex", "csv")]
    assert facts["records"]


def test_settings_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "table.toml"
    file.write_text('rows = ["ps"]\ncount = 1\nquick = true\nfigures = false\n')
    command = ("paper", "table", "--config", file, "--out", tmp_path / "out", "--quiet")
    assert json.loads(succeeded(*command, "--json"))["records"]
    file.write_text('raws = ["ps"]\n')
    assert "did you mean rows?" in one_sentence(arcfleet(*command))


def test_training_by_a_recipe(tmp_path: Path) -> None:
    command = ("paper", "train", "--quick", "--device", "cpu", "--out", tmp_path, "--quiet")
    facts = json.loads(succeeded(*command, "--json"))
    assert facts["stopped_in"] is None
    ran = arcfleet(*command)
    assert "--resume" in one_sentence(ran) or "resume" in one_sentence(ran)


@pytest.mark.parametrize(
    "words", [("table",), ("nothing-like-it",), ("table", "a.npz", "--workers", "x")]
)
def test_wrong_usage(words: tuple[str, ...]) -> None:
    assert arcfleet("paper", *words).returncode in (1, 2)
