import math
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from arcfleet.instance.instance import Instance, Link
from arcfleet.report.layout import embed, layout, link_shapes, longitude_scale
from tests.helpers import make_instance, street


def pairwise(places: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.hypot(*(places[:, None] - places[None]).transpose(2, 0, 1)))


def make(*links: Link, nodes: int, **more: Any) -> Instance:
    return make_instance(*links, nodes=tuple(range(nodes)), depot=0, **more)


def full_grid(side: int) -> Instance:
    """Every pair of grid points joined by a straight street, 1000 per step."""
    points = [(x, y) for x in range(side) for y in range(side)]
    links = [
        street(a, b, round(1000 * math.dist(points[a], points[b])))
        for a, b in combinations(range(len(points)), 2)
    ]
    return make(*links, nodes=len(points))


def test_exact_distances_are_reproduced() -> None:
    places = layout(full_grid(5))
    points = np.array([(x, y) for x in range(5) for y in range(5)], dtype=np.float64)
    assert np.allclose(pairwise(places), 1000 * pairwise(points), rtol=0.01, atol=1)


def test_line_of_streets_becomes_a_line() -> None:
    links = [street(i, i + 1, 10 * (i + 1)) for i in range(5)]
    actual = pairwise(layout(make(*links, nodes=6)))
    assert [actual[i, i + 1] for i in range(5)] == pytest.approx(
        [10, 20, 30, 40, 50], rel=0.02
    )
    assert actual[0, 5] == pytest.approx(150, rel=0.02)


def test_coordinates_are_used_with_longitude_scaled() -> None:
    # At latitude 60 a degree of longitude is half as long as one of latitude.
    places = ((10.0, 59.0), (12.0, 61.0))
    instance = make_instance(nodes=(7, 3), depot=7, coordinates=places)
    assert layout(instance) == pytest.approx(np.array([[5.0, 59.0], [6.0, 61.0]]))


def test_plane_coordinates_are_left_alone() -> None:
    instance = make(nodes=2, coordinates=((1000.0, 2000.0), (1100.0, 2000.0)))
    assert longitude_scale(instance) == 1.0
    assert layout(instance)[1, 0] == 1100.0


def test_same_instance_same_layout() -> None:
    assert np.array_equal(layout(full_grid(3)), layout(full_grid(3)))


def test_one_node() -> None:
    assert layout(make(nodes=1)).shape == (1, 2)
    assert np.isfinite(layout(make(street(0, 0, 3), nodes=1))).all()


def test_nodes_without_links_lie_apart() -> None:
    places = layout(make(nodes=7))
    assert np.isfinite(places).all()
    assert pairwise(places)[np.triu_indices(7, 1)].min() > 0


def test_parts_do_not_overlap() -> None:
    ring = [Link(tail=i, head=(i + 1) % 6, cost=10) for i in range(6)]
    places = layout(make(*ring, street(6, 7, 10), nodes=9))
    assert np.isfinite(places).all()
    low, high = places[:6].min(axis=0), places[:6].max(axis=0)
    for place in places[6:]:
        assert (place < low).any() or (place > high).any()


@pytest.mark.parametrize("count", [2, 3, 8])
def test_all_zero_distances_still_give_different_places(count: int) -> None:
    actual = pairwise(embed(np.zeros((count, count))))
    assert np.isfinite(actual).all()
    assert actual[np.triu_indices(count, 1)].min() > 0.1


def test_nodes_at_distance_zero_stay_close_but_apart() -> None:
    actual = pairwise(embed(np.array([[0.0, 0, 10], [0, 0, 10], [10, 10, 0]])))
    assert 0 < actual[0, 1] < 3
    assert actual[0, 2] == pytest.approx(10, rel=0.1)


def test_pairs_that_one_way_streets_keep_apart_are_joined() -> None:
    far = 2.0**31 - 1
    # u -> w <- v: neither u nor v reaches the other.
    actual = pairwise(embed(np.array([[0, 5, far], [5, 0, 5], [far, 5, 0]])))
    assert actual[0, 2] == pytest.approx(10, rel=0.05)


BENT = ((5.0, 60.0), (5.01, 60.005), (5.0, 60.01))
BENDING = make_instance(
    street(1, 2, 5, geometry=BENT),
    street(2, 1, 6, one_way=True),
    street(2, 2, 2),
    coordinates=((5.0, 60.0), (5.0, 60.01)),
)


def test_streets_follow_their_geometry_as_on_a_map() -> None:
    assert longitude_scale(BENDING) == pytest.approx(0.5, rel=1e-3)
    places = layout(BENDING)
    bent, straight, loop = link_shapes(BENDING, places)
    np.testing.assert_allclose(bent, np.array(BENT) * (longitude_scale(BENDING), 1.0))
    np.testing.assert_allclose(straight, places[::-1])
    np.testing.assert_allclose(loop[[0, -1]], places[[1, 1]])
    assert np.ptp(loop, axis=0).min() > 0


def test_without_coordinates_geometry_has_no_place() -> None:
    bare = replace(BENDING, coordinates=())
    places = layout(bare)
    for link, shape in zip(bare.links, link_shapes(bare, places), strict=True):
        ends = [bare.nodes.index(node) for node in (link.tail, link.head)]
        np.testing.assert_allclose(shape[[0, -1]], places[ends], atol=1e-9)
