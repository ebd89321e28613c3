import pytest

from benchmarks.engine_speed import INSTANCES
from benchmarks.fleet_speed import OPERATIONS, compare
from tests.shared_data import shared_dir


@pytest.mark.parametrize("operations", OPERATIONS)
def test_both_searches_are_compared(operations: str) -> None:
    shared_dir()
    line = compare(INSTANCES[0], operations, turns=2, iterations=20)
    assert line["instance"] == "egl-s4-A"
    assert line["fleet_speed"] > 0
