"""Turn restrictions from small hand-written extracts."""

from pathlib import Path

import pytest

from arcfleet.errors import FormatWarning, OptionError
from arcfleet.streets.files import read_map
from arcfleet.streets.restrictions import VEHICLES
from arcfleet.streets.scene import SceneRules, cut_scene
from arcfleet.streets.street_map import StreetMap
from arcfleet.streets.turns import FREE_TURNS

#: A crossing at 1, with 2 in the west, 3 in the east, 4 in the north and 5 in the south.
PLACES = {1: (0, 0), 2: (-1, 0), 3: (1, 0), 4: (0, 1), 5: (0, -1), 6: (0, 2), 7: (1, 1)}
#: The streets that end at 1 have the number and the name of their other end.
CROSSING = {2: "2 1", 3: "1 3", 4: "1 4", 5: "5 1"}
NAMES = {2: "West", 3: "East", 4: "North", 5: "South"}
Members = list[tuple[str, int, str]]


def members(origin: int, via: int, target: int) -> Members:
    return [("way", origin, "from"), ("node", via, "via"), ("way", target, "to")]


def relation(number: int, parts: Members, tags: str) -> str:
    pairs = [tag.split("=", 1) for tag in f"type=restriction|{tags}".split("|") if tag]
    inner = "".join(f'<member type="{t}" ref="{r}" role="{o}"/>' for t, r, o in parts)
    inner += "".join(f'<tag k="{key}" v="{value}"/>' for key, value in pairs)
    return f'<relation id="{number}" version="1">{inner}</relation>'


def town(
    path: Path,
    *relations: str,
    ways: dict[int, str] = CROSSING,
    tags: dict[int, str] | None = None,
    **options: str,
) -> StreetMap:
    nodes = "".join(
        f'<node id="{n}" lon="{8 + x / 1000}" lat="{y / 1000}" version="1"/>'
        for n, (x, y) in PLACES.items()
    )
    lines = ""
    for number, points in ways.items():
        more = (tags or {}).get(number, "highway=residential")
        pairs = [
            tag.split("=") for tag in f"{more} name={NAMES.get(number, 'Way')}".split()
        ]
        refs = "".join(f'<nd ref="{point}"/>' for point in points.split())
        marks = "".join(f'<tag k="{key}" v="{value}"/>' for key, value in pairs)
        lines += f'<way id="{number}" version="1">{refs}{marks}</way>'
    path.write_text(f'<osm version="0.6">{nodes}{lines}{"".join(relations)}</osm>')
    return read_map(path, **options)  # type: ignore[arg-type]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "town.osm"


def forbidden(street_map: StreetMap) -> set[tuple[int, int, int]]:
    """The forbidden turns by the ends of the streets and the junction between them."""
    found = set()
    for turn in street_map.turns:
        start, via = street_map.streets[turn.street_in].ends(turn.reverse_in)
        again, end = street_map.streets[turn.street_out].ends(turn.reverse_out)
        assert via == again
        found.add((start, via, end))
    return found


LEFT = {(2, 1, 4)}


@pytest.mark.parametrize(
    ("parts", "tags", "expected"),
    [
        (members(2, 1, 4), "restriction=no_left_turn", LEFT),
        (members(2, 1, 5), "restriction=no_right_turn", {(2, 1, 5)}),
        (members(2, 1, 3), "restriction=no_straight_on", {(2, 1, 3)}),
        (members(2, 1, 2), "restriction=no_u_turn", {(2, 1, 2)}),
        (
            [*members(2, 1, 4), ("way", 3, "from")],
            "restriction=no_entry",
            {(2, 1, 4), (3, 1, 4)},
        ),
        (
            [*members(2, 1, 4), ("way", 5, "to")],
            "restriction=no_exit",
            {(2, 1, 4), (2, 1, 5)},
        ),
        (
            members(2, 1, 3),
            "restriction=only_straight_on",
            {(2, 1, 2), (2, 1, 4), (2, 1, 5)},
        ),
        (
            members(5, 1, 3),
            "restriction=only_right_turn",
            {(5, 1, 5), (5, 1, 2), (5, 1, 4)},
        ),
        (members(2, 1, 4), "restriction=no_left_turn|except=psv;bicycle", LEFT),
        (members(2, 1, 4), "restriction:hgv=no_left_turn", LEFT),
        (members(2, 1, 4), "restriction:hgv=no_left_turn|except=hgv", LEFT),
        (members(2, 1, 4), "restriction=no_left_turn;no_u_turn", LEFT),
        ([*members(2, 1, 4), ("node", 3, "location_hint")], "restriction=no_exit", LEFT),
    ],
)
def test_what_a_relation_forbids(
    path: Path, parts: Members, tags: str, expected: set[tuple[int, int, int]]
) -> None:
    street_map = town(path, relation(9, parts, tags))
    assert forbidden(street_map) == expected
    report = street_map.restrictions
    assert report is not None
    assert (report.obeyed, report.conditional, report.skipped) == (1, 0, ())
    assert report.vehicle == "hgv"


@pytest.mark.parametrize(
    "tags",
    [
        "restriction=no_left_turn|hour_on=07:00|hour_off=09:00",
        "restriction=no_left_turn|day_on=Monday",
        "restriction:conditional=no_left_turn @ (Mo-Fr 07:00-09:00; 16:00-18:00)",
        "restriction:hgv:conditional=no_left_turn @ (weight&gt;7.5)",
        "restriction:conditional=no_left_turn @ (08:00-09:00); none @ (Su)",
    ],
)
def test_what_holds_at_some_hours_is_obeyed_at_all(path: Path, tags: str) -> None:
    street_map = town(path, relation(9, members(2, 1, 4), tags))
    assert forbidden(street_map) == LEFT
    report = street_map.restrictions
    assert report is not None
    assert (report.obeyed, report.conditional) == (1, 1)


@pytest.mark.parametrize(
    ("parts", "tags", "reason", "said"),
    [
        (members(2, 1, 4), "restriction=no_left_turn|except=hgv", "excepted", ""),
        (members(2, 1, 4), "restriction=no_left_turn|except=motor_vehicle", "excepted", ""),
        (members(2, 1, 4), "restriction=no_exit|restriction:hgv=none", "excepted", ""),
        (members(2, 1, 4), "restriction:bus=no_left_turn", "other vehicles", ""),
        (members(2, 1, 99), "restriction=no_left_turn", "not read", ""),
        (members(99, 1, 4), "restriction=only_left_turn", "not read", ""),
        (
            [("way", 2, "from"), ("way", 3, "via"), ("way", 4, "to")],
            "restriction=no_u_turn",
            "via ways",
            "relation 9 (West, East, North)",
        ),
        (
            [*members(2, 1, 4), ("node", 3, "via")],
            "restriction=no_u_turn",
            "via ways",
            "relation 9 (West, North)",
        ),
        (
            [("way", 2, "from"), ("way", 4, "to")],
            "restriction=no_left_turn",
            "broken",
            "it has no member via",
        ),
        (
            [("node", 1, "via"), ("way", 4, "to")],
            "restriction=no_left_turn",
            "broken",
            "it has no member from",
        ),
        (
            [("node", 1, "via"), ("way", 2, "from")],
            "restriction=no_left_turn",
            "broken",
            "it has no member to",
        ),
        (members(2, 4, 4), "restriction=no_left_turn", "broken", "West does not touch"),
        (
            [("node", 2, "from"), ("node", 1, "via"), ("way", 4, "to")],
            "restriction=no_left_turn",
            "broken",
            "its member from is no way",
        ),
        (members(2, 1, 4), "restriction=no_way", "broken", "'no_way' is no restriction"),
        (members(2, 1, 4), "note=x", "broken", "it does not say what it forbids"),
        (
            [*members(2, 1, 4), ("way", 5, "to")],
            "restriction=only_left_turn",
            "broken",
            "several members",
        ),
        (
            [*members(2, 1, 4), ("way", 5, "from")],
            "restriction=only_left_turn",
            "broken",
            "several members",
        ),
    ],
)
def test_what_is_not_obeyed_is_counted(
    path: Path, parts: Members, tags: str, reason: str, said: str
) -> None:
    street_map = town(path, relation(9, parts, tags))
    assert street_map.turns == ()
    report = street_map.restrictions
    assert report is not None
    assert report.obeyed == 0
    assert report.counts == {reason: 1}
    assert said in str(report.skipped[0])
    is_named = reason in ("via ways", "broken")
    assert len(report.named) == is_named


def test_streets_of_kinds_that_are_not_read(path: Path) -> None:
    service = {4: "highway=service"}
    rule = relation(9, members(2, 1, 4), "restriction=no_left_turn")
    report = town(path, rule, tags=service).restrictions
    assert report is not None
    assert report.counts == {"not read": 1}
    # Who must drive onto a street that is not read may drive onto none that is.
    rule = relation(9, members(2, 1, 4), "restriction=only_left_turn")
    expected = {(2, 1, 2), (2, 1, 3), (2, 1, 5)}
    assert forbidden(town(path, rule, tags=service)) == expected


def test_a_turn_that_one_way_streets_rule_out(path: Path) -> None:
    one_way = {4: "highway=residential oneway=-1"}
    rule = relation(9, members(2, 1, 4), "restriction=no_left_turn")
    report = town(path, rule, tags=one_way).restrictions
    assert report is not None
    assert report.counts == {"one-way": 1}
    rule = relation(9, members(2, 1, 4), "restriction=only_left_turn")
    report = town(path, rule, tags=one_way).restrictions
    assert report is not None
    assert report.counts == {"broken": 1}


def test_the_vehicle_can_be_another(path: Path) -> None:
    rule = relation(9, members(2, 1, 4), "restriction=no_left_turn|except=bus")
    assert forbidden(town(path, rule, vehicle="bus")) == set()
    assert forbidden(town(path, rule, vehicle="taxi")) == LEFT
    rule = relation(9, members(2, 1, 4), "restriction=no_left_turn|except=psv")
    assert forbidden(town(path, rule, vehicle="bus")) == set()
    rule = relation(9, members(2, 1, 4), "restriction:motorcar=no_left_turn")
    assert forbidden(town(path, rule, vehicle="motorcar")) == LEFT
    with pytest.raises(OptionError, match="got 'lorry': known are hgv, goods"):
        read_map(path, vehicle="lorry")
    for vehicle in VEHICLES:
        town(path, rule, vehicle=vehicle)


MOTOR = (
    "hgv",
    "goods",
    "motorcar",
    "motorcycle",
    "moped",
    "bus",
    "taxi",
    "psv",
    "emergency",
)
#: Words of OpenStreetMap, and the vehicles that each of them is about.
CLASSES = {
    **{one: (one,) for one in MOTOR if one != "psv"},
    "psv": ("bus", "taxi", "psv"),
    "motor_vehicle": (*MOTOR, "motor_vehicle"),
    "bicycle": ("bicycle",),
    "vehicle": (*MOTOR, "motor_vehicle", "bicycle", "vehicle"),
}


@pytest.mark.parametrize(("word", "vehicles"), CLASSES.items())
def test_words_stand_for_all_vehicles_of_their_class(
    path: Path, word: str, vehicles: tuple[str, ...]
) -> None:
    assert set(CLASSES) == set(VEHICLES)
    excepted = relation(9, members(2, 1, 4), f"restriction=no_left_turn|except={word}")
    meant = relation(9, members(2, 1, 4), f"restriction:{word}=no_left_turn")
    for vehicle in VEHICLES:
        is_meant = vehicle in vehicles
        assert forbidden(town(path, excepted, vehicle=vehicle)) == (
            set() if is_meant else LEFT
        )
        assert forbidden(town(path, meant, vehicle=vehicle)) == (
            LEFT if is_meant else set()
        )


@pytest.mark.parametrize("key", ["hour_on", "hour_off", "day_on", "day_off"])
def test_each_way_of_saying_when(path: Path, key: str) -> None:
    rule = relation(9, members(2, 1, 4), f"restriction=no_left_turn|{key}=7")
    report = town(path, rule).restrictions
    assert report is not None
    assert (report.obeyed, report.conditional) == (1, 1)


@pytest.mark.parametrize(
    "value", ["no_left_turn", "no_right_turn", "no_u_turn", "only_straight_on"]
)
def test_signs_half_way_that_ask_for_nothing_are_obeyed(path: Path, value: str) -> None:
    rule = relation(9, members(4, 4, 4), f"restriction={value}")
    report = town(path, rule, ways={**CROSSING, 4: "1 4 6"}).restrictions
    assert report is not None
    assert (report.obeyed, report.skipped) == (1, ())


def test_only_from_a_one_way_street_that_leads_away(path: Path) -> None:
    rule = relation(9, members(2, 1, 4), "restriction=only_left_turn")
    away = {2: "highway=residential oneway=-1"}
    report = town(path, rule, tags=away).restrictions
    assert report is not None
    assert report.counts == {"one-way": 1}


def test_only_onto_a_street_that_is_not_read_from_one_that_runs_across(path: Path) -> None:
    rule = relation(9, members(2, 1, 4), "restriction=only_left_turn")
    ways = {2: "2 1 3", 4: "1 4", 5: "1 5"}
    report = town(path, rule, ways=ways, tags={4: "highway=service"}).restrictions
    assert report is not None
    assert report.counts == {"ambiguous": 1}
    assert [str(one) for one in report.named] == [
        "relation 9 (West): West runs across node 1"
    ]


#: The same crossing, with the ways not cut there.
ACROSS = {2: "2 1 3", 4: "4 1 5"}


@pytest.mark.parametrize(
    ("ways", "parts", "value", "expected"),
    [
        # The sides tell which part of the way is meant.
        ({2: "2 1", 3: "1 3", 4: "4 1 5"}, (2, 4), "no_left_turn", {(2, 1, 4)}),
        ({2: "2 1", 3: "1 3", 4: "4 1 5"}, (2, 4), "no_right_turn", {(2, 1, 5)}),
        (
            {2: "2 1", 3: "1 3", 4: "4 1 5"},
            (2, 4),
            "only_right_turn",
            {(2, 1, 2), (2, 1, 3), (2, 1, 4)},
        ),
        ({2: "2 1 3", 4: "1 4", 5: "1 5"}, (2, 4), "no_left_turn", {(2, 1, 4)}),
        # With both across, two turns fit; and a ban of each is on the safe side.
        (ACROSS, (2, 4), "no_left_turn", {(2, 1, 4), (3, 1, 5)}),
        (ACROSS, (2, 4), "only_left_turn", None),
        (ACROSS, (2, 2), "no_u_turn", {(2, 1, 2), (3, 1, 3)}),
        # None fits: all are meant.
        ({2: "2 1", 3: "1 3", 4: "4 1 5"}, (2, 4), "no_u_turn", {(2, 1, 4), (2, 1, 5)}),
        ({2: "2 1", 3: "1 3", 4: "4 1 5"}, (2, 4), "only_u_turn", None),
    ],
)
def test_ways_that_run_on_across_the_node(
    path: Path,
    ways: dict[int, str],
    parts: tuple[int, int],
    value: str,
    expected: set[tuple[int, int, int]] | None,
) -> None:
    rule = relation(9, members(parts[0], 1, parts[1]), f"restriction={value}")
    street_map = town(path, rule, ways=ways)
    assert forbidden(street_map) == (expected or set())
    report = street_map.restrictions
    assert report is not None
    assert report.counts == ({} if expected else {"ambiguous": 1})


@pytest.mark.parametrize(
    ("ways", "parts", "value", "expected"),
    [
        # From 7 by 4 to 1 the street arrives at the crossing heading south.
        ({4: "7 4 1", 2: "2 1 3"}, (4, 2), "no_left_turn", {(7, 1, 3)}),
        ({4: "7 4 1", 2: "2 1 3"}, (4, 2), "no_right_turn", {(7, 1, 2)}),
        ({4: "1 4 7", 2: "2 1 3"}, (4, 2), "no_left_turn", {(7, 1, 3)}),
        # And leaves it heading north.
        ({2: "2 1", 3: "1 3", 4: "7 4 1 5"}, (2, 4), "no_left_turn", {(2, 1, 7)}),
        ({2: "2 1", 3: "1 3", 4: "5 1 4 7"}, (3, 4), "no_right_turn", {(3, 1, 7)}),
    ],
)
def test_sides_are_those_at_the_junction(
    path: Path,
    ways: dict[int, str],
    parts: tuple[int, int],
    value: str,
    expected: set[tuple[int, int, int]],
) -> None:
    rule = relation(9, members(parts[0], 1, parts[1]), f"restriction={value}")
    assert forbidden(town(path, rule, ways=ways)) == expected


def test_a_u_turn_within_a_street_needs_no_rule(path: Path) -> None:
    rule = relation(9, members(4, 4, 4), "restriction=no_u_turn")
    street_map = town(path, rule, ways={**CROSSING, 4: "1 4 6"})
    assert street_map.turns == ()
    assert street_map.restrictions is not None
    assert street_map.restrictions.obeyed == 1


@pytest.mark.parametrize("value", ["no_straight_on", "no_entry", "only_left_turn"])
def test_a_street_that_a_sign_closes_half_way_is_named(path: Path, value: str) -> None:
    rule = relation(9, members(4, 4, 4), f"restriction={value}")
    report = town(path, rule, ways={**CROSSING, 4: "1 4 6"}).restrictions
    assert report is not None
    assert [str(one) for one in report.named] == [
        f"relation 9 (North): {value} within North, at node 4, which is no junction"
    ]


@pytest.mark.parametrize(
    ("first", "second", "target"),
    [
        ("only_left_turn", "only_right_turn", 5),
        ("only_left_turn", "no_left_turn", 4),
    ],
)
def test_contradictions_are_one_sentence_and_not_obeyed(
    path: Path, first: str, second: str, target: int
) -> None:
    rules = [
        relation(8, members(2, 1, 4), f"restriction={first}"),
        relation(9, members(2, 1, target), f"restriction={second}"),
        relation(10, members(3, 1, 4), "restriction=no_right_turn"),
    ]
    with pytest.warns(FormatWarning) as caught:
        street_map = town(path, *rules)
    (warning,) = caught
    text = str(warning.message)
    onto = "North or South" if target == 5 else "North"
    assert text == (
        f"{path}: expected turn restrictions that agree, found relations 8 ({first}) and "
        f"9 ({second}) from West onto {onto} at node 1; none of them is obeyed, correct "
        "them on OpenStreetMap"
    )
    assert forbidden(street_map) == {(3, 1, 4)}
    report = street_map.restrictions
    assert report is not None
    assert (report.obeyed, report.counts) == (1, {"contradictory": 2})
    assert str(report.named[0]) == "relation 8 (West, North)"


def test_many_contradictions_are_one_sentence(path: Path) -> None:
    rules = [
        relation(10 * origin + target, members(origin, 1, target), f"restriction=only_{s}")
        for origin, target, s in (
            (2, 4, "left_turn"),
            (2, 3, "straight_on"),
            (3, 5, "left_turn"),
            (3, 2, "straight_on"),
        )
    ]
    with pytest.warns(FormatWarning, match=r"at node 1, and 1 more; none") as caught:
        town(path, *rules)
    assert len(caught) == 1


def test_the_same_rule_twice_is_no_contradiction(path: Path) -> None:
    rules = [relation(n, members(2, 1, 4), "restriction=only_left_turn") for n in (8, 9)]
    street_map = town(path, *rules, relation(7, members(2, 1, 5), "restriction=no_exit"))
    assert forbidden(street_map) == {(2, 1, 2), (2, 1, 3), (2, 1, 5)}


def test_numbers_below_zero(path: Path) -> None:
    town(path, relation(9, members(2, 1, 4), "restriction=no_left_turn"))
    text = path.read_text()
    path.write_text(
        text.replace('id="1" lon', 'id="-1" lon').replace('ref="1"', 'ref="-1"')
    )
    ((_, via, _),) = forbidden(read_map(path))
    assert via > 5


def test_a_rule_between_pieces_of_one_street_keeps_them_apart(path: Path) -> None:
    ways = {12: "2 1", 13: "1 3"}  # both of the same name
    assert len(town(path, ways=ways).streets) == 1
    rule = relation(9, members(12, 1, 13), "restriction=no_straight_on")
    street_map = town(path, rule, ways=ways)
    assert len(street_map.streets) == 2
    assert forbidden(street_map) == {(2, 1, 3)}


def test_rules_reach_the_instance_unless_it_is_to_be_free(path: Path) -> None:
    street_map = town(path, relation(9, members(2, 1, 4), "restriction=no_left_turn"))
    instance = cut_scene(street_map, SceneRules(capacity=10**6)).instance
    (turn,) = instance.turns
    along, onto = instance.links[turn.link_in], instance.links[turn.link_out]
    assert (along.name, onto.name, turn.penalty) == ("West", "North", None)
    assert instance.u_turns == "dead-ends"
    free = cut_scene(street_map, SceneRules(capacity=10**6, turns=FREE_TURNS)).instance
    assert not free.has_turn_rules
