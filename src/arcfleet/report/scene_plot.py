"""Plans of several scenes by several methods side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from arcfleet.report.panels import PAGE_INCHES, add_caption
from arcfleet.report.picture import save_picture
from arcfleet.report.plot import check_plottable, credit_lines, draw_plan

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from arcfleet.instance.instance import Instance
    from arcfleet.solution.solution import Solution

_DOTS_PER_INCH = 220
_LEFT = 0.22  # inches for the names of the scenes
_TOP = 0.22  # inches for the titles above each row
_SPACE = 0.06


class ScenePlans(NamedTuple):
    """A scene, and plans of it.

    Parameters
    ----------
    name
        Beside its row.
    instance
        The scene.
    plans
        One for each method, in the same order in every scene, with their titles.
    """

    name: str
    instance: Instance
    plans: Sequence[tuple[str, Solution]]


def draw_scenes(scenes: Sequence[ScenePlans], path: Path, caption: str = "") -> None:
    """Draw a row of plans for each scene into a picture file.

    Routes have colours, other streets are grey, depots red; deadheads are dashed.

    Raises
    ------
    OptionError
        If the suffix is unknown or matplotlib is not installed.
    FileError
        If the file cannot be written.
    """
    check_plottable(path)
    from matplotlib.figure import Figure

    columns = max(len(scene.plans) for scene in scenes)
    side = (PAGE_INCHES - _LEFT) / columns
    height = (side + _TOP) * len(scenes)
    figure = Figure(figsize=(PAGE_INCHES, height))
    for row, scene in enumerate(scenes):
        bottom = height - (row + 1) * (side + _TOP)
        figure.text(
            0.5 * _LEFT / PAGE_INCHES,
            (bottom + side / 2) / height,
            scene.name,
            rotation=90,
            ha="center",
            va="center",
            fontsize=7.5,
            parse_math=False,
        )
        for column, (title, plan) in enumerate(scene.plans):
            axes = figure.add_axes(
                (
                    (_LEFT + column * side + _SPACE / 2) / PAGE_INCHES,
                    bottom / height,
                    (side - _SPACE) / PAGE_INCHES,
                    (side - _SPACE) / height,
                )
            )
            draw_plan(axes, scene.instance, plan, title)
    owed = dict.fromkeys(x for scene in scenes for x in credit_lines(scene.instance))
    add_caption(figure, " ".join([caption, *owed]).strip())
    save_picture(figure, path, dots_per_inch=_DOTS_PER_INCH)
