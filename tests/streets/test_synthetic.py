from collections import Counter
from itertools import pairwise
from math import hypot

import networkx as nx
import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from arcfleet.errors import OptionError
from arcfleet.streets.synthetic import SyntheticSettings, random_settings, synthetic_streets
from tests.street_strategies import directed_graph

SHARES = {
    "jitter": st.floats(0, 0.4),
    "dead_ends": st.floats(0, 1),
    "bare": st.floats(0, 1),
}


@settings(max_examples=40)
@given(
    st.builds(
        SyntheticSettings,
        columns=st.integers(2, 12),
        rows=st.integers(2, 12),
        missing=st.floats(0, 1),
        one_way=st.floats(0, 1),
        **SHARES,
    ),
    st.integers(0, 2**32),
)
def test_a_town_is_connected_and_its_lengths_are_those_of_its_lines(
    chosen: SyntheticSettings, seed: int
) -> None:
    found = synthetic_streets(chosen, seed=seed)
    assert found == synthetic_streets(chosen, seed=seed)
    assert nx.is_weakly_connected(directed_graph(found))
    for street in found.streets:
        points = found.points(street)
        assert points[0] == found.junctions[street.tail]
        assert points[-1] == found.junctions[street.head]
        line = sum(hypot(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(points))
        assert street.metres == pytest.approx(line * 111_320, abs=0.2)


@settings(max_examples=60)
@given(
    st.builds(
        SyntheticSettings,
        columns=st.integers(2, 14),
        rows=st.integers(2, 14),
        block_metres=st.floats(1, 500),
        unevenness=st.floats(0, 2),
        missing=st.floats(0, 0.6),
        **SHARES,
    ),
    st.integers(0, 2**32),
)
def test_streets_meet_at_junctions_and_bends_only(
    chosen: SyntheticSettings, seed: int
) -> None:
    found = synthetic_streets(chosen, seed=seed)
    # Whole numbers, as the map stores seven digits of a degree.
    lines = [
        [(round(x * 1e7), round(y * 1e7)) for x, y in pair]
        for street in found.streets
        for pair in pairwise(found.points(street))
    ]
    drawn = [shapely.LineString(line) for line in lines]
    for one, other in shapely.STRtree(drawn).query(drawn, "intersects").T.tolist():
        if one < other:
            common = set(lines[one]) & set(lines[other])
            assert len(common) == 1
            assert drawn[one].intersection(drawn[other]).equals(shapely.Point(*common))


def test_degrees_and_lengths_resemble_those_of_real_maps() -> None:
    assert synthetic_streets(seed=0) != synthetic_streets(seed=1)
    draw = np.random.default_rng(0)
    degrees: Counter[int] = Counter()
    lengths = []
    for seed in range(6):
        found = synthetic_streets(random_settings(draw, mixed=False), seed=seed)
        ends = Counter(e for s in found.streets for e in (s.tail, s.head))
        degrees.update(ends.values())
        lengths += [street.metres for street in found.streets]
        assert not any(street.one_way for street in found.streets)
    total = degrees.total()
    # The ranges that real maps keep to, see research/log/data-and-map-speed.md.
    assert 0.1 < degrees[1] / total < 0.3
    assert 0.35 < degrees[3] / total < 0.6
    assert 0.1 < degrees[4] / total < 0.35
    assert 70 < float(np.median(lengths)) < 180


def test_one_way_lines_make_one_way_streets() -> None:
    found = synthetic_streets(SyntheticSettings(one_way=0.5), seed=2)
    assert 0.25 < np.mean([street.one_way for street in found.streets]) < 0.6
    none_left = synthetic_streets(SyntheticSettings(one_way=1.0, missing=0), seed=2)
    assert np.mean([s.one_way for s in none_left.streets]) > 0.95


@pytest.mark.parametrize(
    ("field", "value"),
    [("columns", 1), ("rows", 2.5), ("missing", 1.1), ("block_metres", float("nan"))],
)
def test_settings_are_checked(field: str, value: float) -> None:
    with pytest.raises(OptionError, match=f"expected {field} (between|to be)"):
        SyntheticSettings(**{field: value})  # type: ignore[arg-type]
