import math

import numpy as np
import pyproj
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arcfleet.instance.geodesy import earth_centred, line_lengths, metres_from
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


def test_earth_centred_agrees_with_proj() -> None:
    points = [(8.0, 48.0), (-179.9, -89.0), (0.0, 0.0), (116.4, 39.9)]
    transformer = pyproj.Transformer.from_crs("EPSG:4979", "EPSG:4978", always_xy=True)
    for row, (longitude, latitude) in zip(earth_centred(points), points, strict=True):
        expected = transformer.transform(longitude, latitude, 0.0)
        assert np.allclose(row, expected, rtol=0, atol=1e-6)


def test_the_180th_meridian_is_no_gap() -> None:
    (length,) = line_lengths([((179.9999, 0.0), (-179.9999, 0.0))])
    assert math.isclose(length, 22.26, rel_tol=1e-3)
