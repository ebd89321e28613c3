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


def test_ways_are_cut_at_common_points() -> None:
    crossing = ends_of(Way(points=(0, 1, 2, 3)), Way(points=(4, 2, 5), direction=1))
    assert crossing == [
        (0, 2, False, 3),
        (2, 3, False, 2),
        (4, 2, True, 2),
        (2, 5, True, 2),
    ]


def test_an_end_on_another_way_is_a_junction() -> None:
    assert ends_of(Way(points=(0, 1, 2)), Way(points=(1, 3))) == [
        (0, 1, False, 2),
        (1, 2, False, 2),
        (1, 3, False, 2),
    ]


def test_a_way_against_its_points_is_turned() -> None:
    assert ends_of(Way(points=(0, 1, 2), direction=-1)) == [(2, 0, True, 3)]


def test_rings_and_lollipops() -> None:
    assert ends_of(Way(points=(0, 1, 2, 0))) == [(0, 0, False, 4)]
    assert ends_of(Way(points=(5, 0, 1, 2, 0))) == [(5, 0, False, 2), (0, 0, False, 4)]


def test_ways_end_where_the_extract_was_cut() -> None:
    assert ends_of(Way(points=(99, 0, 1, 98, 2, 97, 3, 4, 5))) == [
        (0, 1, False, 2),
        (3, 5, False, 3),
    ]


def test_points_given_twice_in_a_row_are_one() -> None:
    assert ends_of(Way(points=(0, 0, 1, 1, 2)), Way(points=(3, 3))) == [(0, 2, False, 3)]


def test_kind_name_length_and_attribution_are_kept() -> None:
    way = Way(points=(0, 1, 2), kind="residential", name="High Street")
    street_map = map_of_ways([way], PLACES, name="m", attribution="c")
    (street,) = street_map.streets
    assert (street.kind, street.name) == ("residential", "High Street")
    assert street.geometry == (PLACES[0], PLACES[1], PLACES[2])
    assert 149 < street.metres < 150
    assert (street_map.name, street_map.attribution) == ("m", "c")
