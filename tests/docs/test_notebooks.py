"""The notebooks run from top to bottom, and are committed without outputs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools.docs import notebook

GUIDE = Path(__file__).parents[2] / "docs" / "guide"
NOTEBOOKS = sorted(GUIDE.glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_is_committed_without_outputs(path: Path) -> None:
    document = json.loads(path.read_text("utf-8"))
    assert (document["nbformat"], document["nbformat_minor"]) == (4, 5)
    for cell in document["cells"]:
        assert cell["id"]
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)


def test_your_town_in_five_minutes() -> None:
    cells = notebook.run(GUIDE / "your-town.ipynb")
    printed = "".join(cell.printed for cell in cells)
    assert "no faults" in printed
    assert "149 streets." in printed
    assert sum("<svg" in cell.shown for cell in cells) == 2


def test_train_and_use_the_learned_solver() -> None:
    cells = notebook.run(GUIDE / "learned-solver.ipynb")
    printed = "".join(cell.printed for cell in cells)
    assert printed.count("to the labels") == 2
    costs = dict(line.rsplit(maxsplit=1) for line in printed.splitlines()[-3:])
    assert costs.keys() == {"toy", "shipped", "ruin-recreate"}


def test_cells_share_names_and_show_their_last_value(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("from a file")
    path = write(
        tmp_path,
        "from pathlib import Path\nx = Path('a.txt').read_text()\nprint('printed')",
        "x",
        "None",
    )
    first, second, third = notebook.run(path)
    assert (first.printed, first.shown) == ("printed\n", "")
    assert second.printed == "'from a file'\n"
    assert third.printed == ""


def test_a_cell_that_fails_fails_the_notebook(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        notebook.run(write(tmp_path, "1 / 0"))


def test_html_goes_into_the_page_untouched(tmp_path: Path) -> None:
    method = "def _repr_html_(self): return '<b>*a*\\n\\n</b>'"
    source = f"class Shown:\n    {method}\nShown()"
    text, outputs = notebook.markdown(notebook.run(write(tmp_path, source)), "page.ipynb")
    assert outputs == ["<b>*a*\n\n</b>"]
    assert outputs[0] in notebook.with_outputs(text, outputs)


def write(folder: Path, *sources: str) -> Path:
    """Write a notebook of code cells."""
    cells = [{"cell_type": "code", "source": [source]} for source in sources]
    path = folder / "page.ipynb"
    path.write_text(json.dumps({"cells": cells}))
    return path
