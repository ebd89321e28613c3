"""Notebooks: run without a kernel, and shown as pages.

Code cells run one after the other in one namespace, in this process and in a folder of
their own; like in Jupyter, the value of a last expression is the output of its cell.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PLACEHOLDER = "<div class='notebook-output' data-output='{}'></div>"


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell after its run.

    Parameters
    ----------
    kind
        "markdown" or "code".
    source
        Its text.
    printed
        What a code cell wrote to stdout.
    shown
        HTML of its last value, where the value has any.
    """

    kind: str
    source: str
    printed: str = ""
    shown: str = ""


def read(path: Path) -> list[Cell]:
    """Read the cells of a notebook file."""
    document = json.loads(path.read_text("utf-8"))
    return [Cell(cell["cell_type"], "".join(cell["source"])) for cell in document["cells"]]


def run(path: Path) -> list[Cell]:
    """Run all code cells in a new folder that has the files beside the notebook, too."""
    names: dict[str, Any] = {"__name__": "__main__"}
    cells = read(path)
    home = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        for file in path.parent.iterdir():
            if file.is_file():
                shutil.copy(file, folder)
        os.chdir(folder)
        try:
            return [_run_cell(cell, names, path.name) for cell in cells]
        finally:
            os.chdir(home)


def markdown(cells: list[Cell], name: str) -> tuple[str, list[str]]:
    """Return the page of a notebook, and the HTML that belongs into its placeholders."""
    lines: list[str] = []
    outputs: list[str] = []
    for cell in cells:
        if cell.kind == "markdown":
            lines += [cell.source, ""]
            continue
        lines += ["```python", cell.source, "```", ""]
        if cell.printed:
            lines += ["```text", cell.printed.rstrip("\n"), "```", ""]
        if cell.shown:
            lines += [_PLACEHOLDER.format(len(outputs)), ""]
            outputs.append(cell.shown)
    lines.append(
        f"This page is the notebook [{name}]({name}); download it to go on from here."
    )
    return "\n".join(lines) + "\n", outputs


def with_outputs(html: str, outputs: list[str]) -> str:
    """Fill the placeholders of a page."""
    for number, output in enumerate(outputs):
        html = html.replace(
            _PLACEHOLDER.format(number), f"<div class='notebook-output'>{output}</div>"
        )
    return html


def _run_cell(cell: Cell, names: dict[str, Any], file: str) -> Cell:
    if cell.kind != "code":
        return cell
    tree = ast.parse(cell.source, file)
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)  # type: ignore[attr-defined]
    printed = io.StringIO()
    value = None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, file, "exec"), names)
        if last is not None:
            value = eval(compile(last, file, "eval"), names)
    text, shown = printed.getvalue(), ""
    if value is not None:
        html = getattr(value, "_repr_html_", None)
        if callable(html):
            shown = html()
        else:
            text += f"{value!r}\n"
    return Cell(cell.kind, cell.source, text, shown)
