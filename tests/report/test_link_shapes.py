from dataclasses import replace

import numpy as np
import pytest

from arcfleet.instance.instance import Instance, Link
from arcfleet.report.layout import layout, link_shapes, longitude_scale

BENT = ((5.0, 60.0), (5.01, 60.005), (5.0, 60.01))
INSTANCE = Instance(
    name="bend",
    nodes=(1, 2),
    links=(
        Link(tail=1, head=2, cost=5, geometry=BENT),
        Link(tail=2, head=1, cost=6, one_way=True),
        Link(tail=2, head=2, cost=2),
    ),
    depot=1,
    capacity=2,
    coordinates=((5.0, 60.0), (5.0, 60.01)),
)


def test_streets_follow_their_geometry_as_on_a_map() -> None:
    assert longitude_scale(INSTANCE) == pytest.approx(0.5, rel=1e-3)
    places = layout(INSTANCE)
    bent, straight, loop = link_shapes(INSTANCE, places)
    np.testing.assert_allclose(bent, np.array(BENT) * (longitude_scale(INSTANCE), 1.0))
    np.testing.assert_allclose(straight, places[::-1])
    np.testing.assert_allclose(loop[[0, -1]], places[[1, 1]])
    assert np.ptp(loop, axis=0).min() > 0


def test_without_coordinates_geometry_has_no_place() -> None:
    bare = replace(INSTANCE, coordinates=())
    places = layout(bare)
    for link, shape in zip(bare.links, link_shapes(bare, places), strict=True):
        ends = [bare.nodes.index(node) for node in (link.tail, link.head)]
        np.testing.assert_allclose(shape[[0, -1]], places[ends], atol=1e-9)
