"""The examples of README and site do what they say."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from arcfleet.cli.main import main
from tools.docs.examples import commands, examples, program

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
WITH_EXAMPLES = [page for page in PAGES if any(x.runs for x in examples(page))]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that examples speak of."""
    guide = DOCS / "guide"
    for name in (
        guide / "downtown.geojson",
        guide / "bins.csv",
        ROOT / "examples" / "village.json",
    ):
        shutil.copy(name, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "page", WITH_EXAMPLES, ids=lambda page: str(page.relative_to(ROOT))
)
def test_the_examples_of_a_page_run_in_order(page: Path, folder: Path) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    for example in examples(page):
        if not example.runs:
            continue
        if example.language == "python":
            exec(compile(program(example), f"{page.name}:{example.line}", "exec"), names)
        else:
            for words in commands(example):
                assert main(words) == 0, f"{page.name}:{example.line}: {words}"


def test_a_comment_before_a_block_keeps_it_from_running(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- not run: no map -->\n```sh\narcfleet scene x\n```\n\n"
        "```sh\narcfleet solve a.dat --time 5 \\\n    --seed 1  # why\nmake demo\n```\n"
    )
    first, second = examples(page)
    assert (first.runs, second.runs) == (False, True)
    assert commands(second) == [["solve", "a.dat", "--time", "0.2", "--seed", "1"]]


def test_limits_in_programs_are_shortened(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nStop(seconds=60)\n```\n")
    assert program(examples(page)[0]) == "Stop(seconds=0.2)\n"
