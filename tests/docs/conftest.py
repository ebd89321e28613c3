"""Examples may register methods, formats and strategies; other tests see none."""

from collections.abc import Iterator
from typing import Any

import pytest

from arcfleet.instance.formats import FORMATS
from arcfleet.methods import METHODS
from arcfleet.neural.strategies import STRATEGIES


@pytest.fixture(autouse=True)
def tables() -> Iterator[None]:
    """Restore the tables of methods, formats and strategies."""
    every_table: list[dict[str, Any]] = [METHODS, FORMATS, STRATEGIES]
    before = [dict(table) for table in every_table]
    yield
    for table, entries in zip(every_table, before, strict=True):
        table.clear()
        table.update(entries)
