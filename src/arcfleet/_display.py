"""What values turn into: HTML of notebooks, documents, tables.

Later stages register how, so that values import none of them: `report.notebook` the
pictures, `solution.json_solution` and `solution.geojson` what plans become.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any


@singledispatch
def notebook_html(value: object) -> str | None:
    """Return a value as HTML; None for a type that has no picture."""
    return None


@singledispatch
def as_document(value: object, instance: Any) -> dict[str, Any]:
    """Return a value as the document of its JSON file, in plain dicts and lists."""
    raise TypeError(f"expected a value with a JSON file, got {type(value).__name__}")


@singledispatch
def as_geodataframe(value: object, instance: Any) -> Any:
    """Return a value as a table of geopandas."""
    raise TypeError(f"expected a value that is a table, got {type(value).__name__}")
