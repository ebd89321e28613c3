from pathlib import Path

import pytest

from arcfleet import _core
from benchmarks.engine_speed import INSTANCES, TURNS, compare
from tests.shared_data import shared_dir


@pytest.mark.parametrize("engine", TURNS)
def test_a_build_is_compared_with_itself(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared_dir()
    monkeypatch.setitem(TURNS, engine, (3, 3))
    build = Path(_core.__file__)
    line = compare(build, build, engine, INSTANCES[0], turns=2)
    assert "egl-s4-A" in str(line)
