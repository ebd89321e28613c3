"""Plain-text tables for terminals and documents."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Also right-aligns what was formatted by the caller, such as `1,024` and `+3.5 %`.
_NUMBER = re.compile(r"[+-]?\d[\d,]*(\.\d+)?([eE][+-]?\d+)?( ?%)?|[+-]?(inf|nan)")
_MISSING = "-"


def table(rows: Sequence[Sequence[object]], header: Sequence[str]) -> str:
    """Align rows under a header, numbers to the right; None is shown as `-`."""
    for row in rows:
        if len(row) != len(header):
            raise ValueError(
                f"expected {len(header)} cells per row, got {len(row)}: {row!r}"
            )
    cells = [[_MISSING if cell is None else str(cell) for cell in row] for row in rows]
    widths = [
        max(len(name), *(len(row[column]) for row in cells)) if cells else len(name)
        for column, name in enumerate(header)
    ]
    numeric = [
        any(row[column] != _MISSING for row in cells)
        and all(row[column] == _MISSING or _NUMBER.fullmatch(row[column]) for row in cells)
        for column in range(len(header))
    ]

    def line(texts: Sequence[str]) -> str:
        aligned = (
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(texts, widths, numeric, strict=True)
        )
        return "  ".join(aligned).rstrip()

    rule = "  ".join("-" * width for width in widths)
    return "\n".join([line(header), rule, *(line(row) for row in cells)])


def markdown_table(rows: Sequence[Sequence[object]], header: Sequence[str]) -> str:
    """Write rows under a header in Markdown; the first column to the left."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    texts = (
        [_MISSING if cell is None else str(cell).replace("|", "\\|") for cell in line]
        for line in lines
    )
    return "\n".join(f"| {' | '.join(line)} |" for line in texts)


#: What LaTeX would take for something else.
_LATEX = {
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "µ": r"$\mu$",
}


def latex_table(
    rows: Sequence[Sequence[object]], header: Sequence[str], *, caption: str, label: str
) -> str:
    """Write rows under a header for LaTeX, with the rules of the package booktabs."""

    def line(cells: Sequence[object]) -> str:
        texts = (_MISSING if cell is None else _escaped(str(cell)) for cell in cells)
        return " & ".join(texts) + r" \\"

    return "\n".join(
        [
            r"\begin{table*}",
            r"\centering\footnotesize",
            rf"\begin{{tabular}}{{@{{}}l{'r' * (len(header) - 1)}@{{}}}}",
            r"\toprule",
            line(header),
            r"\midrule",
            *(line(row) for row in rows),
            r"\bottomrule",
            r"\end{tabular}",
            rf"\caption{{{_escaped(caption)}}}",
            rf"\label{{{label}}}",
            r"\end{table*}",
            "",
        ]
    )


def _escaped(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text)
