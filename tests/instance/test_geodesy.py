import math

import numpy as np
import pyproj
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arcfleet.instance.geodesy import (
    earth_centred,
    line_lengths,
    line_middles,
    metres_from,
)
from arcfleet.instance.instance import Coordinate

WGS84 = pyproj.Geod(ellps="WGS84")


@given(st.floats(-180, 180), st.floats(-90, 90), st.floats(0, 360), st.floats(0.01, 1e6))
def test_lengths_are_geodesic(
    longitude: float, latitude: float, azimuth: float, metres: float
) -> None:
    east, north, _ = WGS84.fwd(longitude, latitude, azimuth, metres)
    (length,) = line_lengths([((longitude, latitude), (east, north))])
    # Well within the 0.5 % that is asked for; below a metre degrees are rounded.
    assert length == pytest.approx(metres, rel=1e-3, abs=1e-6)


def test_street_lengths_are_geodesic_to_a_millimetre_per_kilometre() -> None:
    for latitude in range(-90, 91, 5):
        east, north, _ = WGS84.fwd(20.0, latitude, 37.0, 1000.0)
        assert line_lengths([((20.0, latitude), (east, north))])[0] == pytest.approx(
            1000.0, abs=1e-3
        )


@given(st.floats(-180, 180), st.floats(-90, 90), st.floats(0, 360), st.floats(0, 1e6))
def test_distances_from_a_place_are_lengths_of_lines(
    longitude: float, latitude: float, azimuth: float, metres: float
) -> None:
    place = (longitude, latitude)
    east, north, _ = WGS84.fwd(longitude, latitude, azimuth, metres)
    points = [(east, north), place]
    lines = [(place, point) for point in points]
    assert metres_from(place, points).tolist() == pytest.approx(
        line_lengths(lines), rel=1e-9, abs=1e-6
    )
    assert metres_from(place, []).tolist() == []


def test_lines_are_measured_apart() -> None:
    line = ((8.0, 48.0), (8.01, 48.0), (8.01, 48.01))
    together = WGS84.line_length([p[0] for p in line], [p[1] for p in line])
    far = ((116.0, 40.0), (116.0, 40.001))
    lengths = line_lengths([line, (), ((1.0, 1.0),), far, line[::-1]])
    assert lengths == pytest.approx([together, 0, 0, 111.04, together], rel=1e-3)


@pytest.mark.parametrize("lines", [[], [()], [((1.0, 2.0),)]])
def test_too_few_points_have_no_length(lines: list[tuple[Coordinate, ...]]) -> None:
    assert line_lengths(lines) == [0.0] * len(lines)


def test_the_middle_of_a_line_is_half_way_along_it() -> None:
    bent = ((8.0, 48.0), (8.0, 48.002), (8.0, 48.002), (8.0, 48.006))
    straight = ((116.0, 40.0), (116.001, 40.0))
    point = ((1.0, 1.0),)
    still = ((2.0, 2.0), (2.0, 2.0))
    found = line_middles([bent, point, straight, still, still, bent[::-1]])
    expected = [
        (8.0, 48.003),
        (1.0, 1.0),
        (116.0005, 40.0),
        *[(2.0, 2.0)] * 2,
        (8.0, 48.003),
    ]
    assert np.allclose(found, expected, rtol=0, atol=1e-7)
    assert line_middles([]) == []


@given(
    st.lists(
        st.lists(
            st.tuples(st.floats(7.0, 7.1), st.floats(50.0, 50.1)), min_size=2, max_size=5
        ),
        min_size=1,
        max_size=4,
    )
)
def test_both_halves_of_a_line_are_as_long(lines: list[list[Coordinate]]) -> None:
    for line, middle in zip(lines, line_middles(lines), strict=True):
        ways = [
            line_lengths([[*line[:cut], middle], [middle, *line[cut:]]])
            for cut in range(1, len(line))
        ]
        whole = line_lengths([line])[0]
        assert any(way == pytest.approx([whole / 2] * 2, rel=1e-3, abs=0.1) for way in ways)


def test_earth_centred_agrees_with_proj() -> None:
    points = [(8.0, 48.0), (-179.9, -89.0), (0.0, 0.0), (116.4, 39.9)]
    transformer = pyproj.Transformer.from_crs("EPSG:4979", "EPSG:4978", always_xy=True)
    for row, (longitude, latitude) in zip(earth_centred(points), points, strict=True):
        expected = transformer.transform(longitude, latitude, 0.0)
        assert np.allclose(row, expected, rtol=0, atol=1e-6)


def test_the_180th_meridian_is_no_gap() -> None:
    (length,) = line_lengths([((179.9999, 0.0), (-179.9999, 0.0))])
    assert math.isclose(length, 22.26, rel_tol=1e-3)
