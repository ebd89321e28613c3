import pytest

from arcfleet.streets.ways import Way, map_of_ways

PLACES = {number: (8.0 + number / 1000, 48.0) for number in range(10)}


def ends_of(*ways: Way) -> list[tuple[int, int, bool, int]]:
    street_map = map_of_ways(ways, PLACES, name="m", attribution="c")
    assert set(street_map.junctions) == {
        end for street in street_map.streets for end in (street.tail, street.head)
    }
    return [
        (street.tail, street.head, street.one_way, len(street_map.points(street)))
        for street in street_map.streets
    ]


@pytest.mark.parametrize(
    ("ways", "expected"),
    [
        # Cut at common points.
        (
            [Way(points=(0, 1, 2, 3)), Way(points=(4, 2, 5), direction=1)],
            [(0, 2, False, 3), (2, 3, False, 2), (4, 2, True, 2), (2, 5, True, 2)],
        ),
        # An end on another way is a junction.
        (
            [Way(points=(0, 1, 2)), Way(points=(1, 3))],
            [(0, 1, False, 2), (1, 2, False, 2), (1, 3, False, 2)],
        ),
        # A way against its points is turned.
        ([Way(points=(0, 1, 2), direction=-1)], [(2, 0, True, 3)]),
        # Rings and lollipops.
        ([Way(points=(0, 1, 2, 0))], [(0, 0, False, 4)]),
        ([Way(points=(5, 0, 1, 2, 0))], [(5, 0, False, 2), (0, 0, False, 4)]),
        # Ways end where the extract was cut.
        (
            [Way(points=(99, 0, 1, 98, 2, 97, 3, 4, 5))],
            [(0, 1, False, 2), (3, 5, False, 3)],
        ),
        # Points given twice in a row are one.
        ([Way(points=(0, 0, 1, 1, 2)), Way(points=(3, 3))], [(0, 2, False, 3)]),
    ],
)
def test_streets_end_at_junctions(
    ways: list[Way], expected: list[tuple[int, int, bool, int]]
) -> None:
    assert ends_of(*ways) == expected


def test_kind_name_length_and_attribution_are_kept() -> None:
    way = Way(points=(0, 1, 2), kind="residential", name="High Street")
    street_map = map_of_ways([way], PLACES, name="m", attribution="c")
    (street,) = street_map.streets
    assert (street.kind, street.name) == ("residential", "High Street")
    assert street.geometry == (PLACES[0], PLACES[1], PLACES[2])
    assert 149 < street.metres < 150
    assert (street_map.name, street_map.attribution) == ("m", "c")
