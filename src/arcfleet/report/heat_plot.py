"""A table of numbers as coloured squares, the numbers written into them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from arcfleet.report.panels import PAGE_INCHES, add_caption
from arcfleet.report.picture import save_picture
from arcfleet.report.plot import check_plottable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_DOTS_PER_INCH = 200
_ROW_INCHES = 0.36
_LEAST_HEIGHT = 2.3  # inches: room for the words beside the colours


def draw_heat(
    values: Sequence[Sequence[float | None]],
    path: Path,
    *,
    rows: Sequence[str],
    columns: Sequence[str],
    x_label: str,
    y_label: str,
    value_label: str,
    caption: str = "",
) -> None:
    """Draw a table of numbers, darker where they are larger, into a picture file.

    Parameters
    ----------
    values
        By row and column; None leaves a square empty.
    path
        The file.
    rows, columns
        Their names.
    x_label, y_label, value_label
        What columns, rows and colours mean.
    caption
        Below it, small.

    Raises
    ------
    OptionError
        If the suffix is unknown or matplotlib is not installed.
    FileError
        If the file cannot be written.
    """
    check_plottable(path)
    from matplotlib.figure import Figure

    grid = np.array([[np.nan if x is None else x for x in row] for row in values])
    figure = Figure(
        figsize=(PAGE_INCHES, max(_LEAST_HEIGHT, 1.1 + _ROW_INCHES * len(rows)))
    )
    axes = figure.add_subplot()
    # One hue from light to dark: what is darker is larger for every reader.
    image = axes.imshow(grid, cmap="Blues", aspect="auto", vmin=min(0.0, np.nanmin(grid)))
    darkest = np.nanmax(grid)
    for (row, column), value in np.ndenumerate(grid):
        if np.isfinite(value):
            axes.text(
                column,
                row,
                f"{value:.2f}",
                ha="center",
                va="center",
                fontsize=7.5,
                color="white" if value > 0.6 * darkest else "black",
            )
    axes.set_xticks(range(len(columns)), columns, fontsize=7.5)
    axes.set_yticks(range(len(rows)), rows, fontsize=7.5)
    axes.set_xlabel(x_label, fontsize=8)
    axes.set_ylabel(y_label, fontsize=8)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    bar = figure.colorbar(image, ax=axes, pad=0.02)
    bar.set_label(value_label, fontsize=7)
    bar.ax.tick_params(labelsize=6.5)
    figure.tight_layout()
    add_caption(figure, caption)
    save_picture(figure, path, dots_per_inch=_DOTS_PER_INCH)
