"""Figures into picture files: whole or not at all, and the same each time."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from arcfleet._checks import needs
from arcfleet._files import check_writable, write_bytes_atomically
from arcfleet.errors import OptionError

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

SUFFIXES = (".png", ".svg", ".pdf")

_DATELESS: dict[str, dict[str, Any]] = {
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}


def check_plottable(path: Path) -> None:
    """Raise what `plot` would raise about its file, before the work that leads to it."""
    if path.suffix.lower() not in SUFFIXES:
        raise OptionError(
            f"expected a picture file ending in {', '.join(SUFFIXES)}, got {path.name!r}"
        )
    with needs("matplotlib", "plotting", "plot"):
        import matplotlib.figure  # noqa: F401
    check_writable(path)


def new_figure(path: Path, **options: Any) -> Figure:
    """Return an empty figure for a file, or raise what `check_plottable` does."""
    check_plottable(path)
    from matplotlib.figure import Figure

    # A Figure of its own, not pyplot: no window, no state shared with the caller.
    return Figure(**options)


def save_picture(figure: Figure, path: Path, *, dots_per_inch: int) -> None:
    """Write a figure, cut to what is drawn on it; equal figures give equal files."""
    from matplotlib import rc_context

    suffix = path.suffix.lower()
    picture = io.BytesIO()
    # matplotlib dates its files, and names the parts of an SVG file by random numbers.
    with rc_context({"svg.hashsalt": "arcfleet"}):
        figure.savefig(
            picture,
            format=suffix[1:],
            dpi=dots_per_inch,
            bbox_inches="tight",
            metadata=_DATELESS.get(suffix),
        )
    write_bytes_atomically(path, picture.getvalue())
