"""Examples may register methods and formats; other tests must not see them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from arcfleet.instance.formats import FORMATS
from arcfleet.methods import METHODS

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def tables() -> Iterator[None]:
    """Restore the tables of methods and formats."""
    both: list[dict[str, Any]] = [METHODS, FORMATS]
    before = [dict(table) for table in both]
    yield
    for table, entries in zip(both, before, strict=True):
        table.clear()
        table.update(entries)
