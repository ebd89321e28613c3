"""How values show themselves in notebooks; `report.notebook` registers the pictures."""

from __future__ import annotations

from functools import singledispatch


@singledispatch
def notebook_html(value: object) -> str | None:
    """Return a value as HTML; None for a type that has no picture."""
    return None
