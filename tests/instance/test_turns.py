from dataclasses import replace
from typing import Any

import pytest

from arcfleet import Instance, InstanceError, Turn, diagnose
from arcfleet.instance.instance import UTurns
from arcfleet.instance.operations import Vehicle
from arcfleet.instance.turns import TurnCosts, servable
from tests.helpers import make_instance, refused, street

#   1 --0-- 2 --1-- 3      Four two-way links and a one-way link from 2 to 4;
#           |\             node 3 is a dead end, node 5 has a loop.
#           2 3>
#           |   4
#           5 (4: loop)
TOWN = make_instance(
    street(1, 2, 4, 1),
    street(2, 3, 5, 1),
    street(2, 5, 3, 1),
    street(2, 4, 2, one_way=True),
    street(5, 5, 7),
)


def cost(instance: Instance, along: str, onto: str) -> int | None:
    """Of a turn between links named as in `-3`, which is link 3 in reverse."""
    ways = [(int(word.strip("-")), word.startswith("-")) for word in (along, onto)]
    return TurnCosts(instance).cost(*ways)


@pytest.mark.parametrize(
    ("policy", "at_junction", "at_dead_end", "beside_loop"),
    [("allowed", 6, 6, 6), ("dead-ends", None, 6, None), ("forbidden", None, None, None)],
)
def test_u_turns(
    policy: UTurns,
    at_junction: int | None,
    at_dead_end: int | None,
    beside_loop: int | None,
) -> None:
    town = replace(TOWN, u_turns=policy, u_turn_penalty=6)
    assert cost(town, "0", "-0") == at_junction
    assert cost(town, "1", "-1") == at_dead_end
    # The loop leads on, so the end of link 2 is no dead end: it can be driven round.
    assert cost(town, "2", "-2") == beside_loop
    assert cost(town, "2", "4") == 0
    assert cost(town, "4", "-4") == beside_loop
    assert cost(town, "4", "4") == 0
    assert cost(town, "0", "1") == 0


def test_named_turn_takes_precedence_over_the_u_turn_policy() -> None:
    turns = (
        Turn(0, False, 0, True, 9),
        Turn(1, False, 1, True),
        Turn(0, False, 2, False, 3),
    )
    town = replace(TOWN, turns=turns, u_turns="dead-ends", u_turn_penalty=6)
    assert cost(town, "0", "-0") == 9
    assert cost(town, "1", "-1") is None
    assert cost(town, "0", "2") == 3


def test_one_way_link_that_only_enters_leaves_a_dead_end() -> None:
    town = make_instance(
        street(1, 2, 1, 1), street(3, 2, 1, one_way=True), u_turns="dead-ends"
    )
    assert cost(town, "0", "-0") == 0


@pytest.mark.parametrize(
    ("turns", "message"),
    [
        ([Turn(0, False, 9, False)], "expected a link from 0 to 4, got 9 in turn 0"),
        (
            [Turn(0, False, 3, False), Turn(3, True, 0, True)],
            "one-way link 3 (2>4) in reverse in turn 1",
        ),
        (
            [Turn(0, True, 1, False)],
            "link 0 (1-2), which leads to node 1, and link 1 (2-3), which leads away "
            "from node 2, in turn 0",
        ),
        (
            [Turn(0, False, 1, False), Turn(0, False, 1, False)],
            "link 0 (1-2) to link 1 (2-3) again in turn 1",
        ),
        (
            [Turn(0, False, 1, False), Turn(0, False, 1, False, 4)],
            "with another penalty in turn 1",
        ),
        ([(0, False, 1, False)], "expected turns, got (0, False, 1, False) as turn 0"),
    ],
)
def test_turns_that_cannot_be(turns: list[Turn], message: str) -> None:
    with refused(InstanceError, message):
        replace(TOWN, turns=tuple(turns))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"u_turns": "sometimes"}, "expected u_turns to be one of 'allowed', 'dead-ends'"),
        ({"u_turn_penalty": -1}, "expected u_turn_penalty between 0 and"),
        ({"cost_unit": "miles"}, "expected cost_unit to be one of '', 'metres', 'seconds'"),
    ],
)
def test_rules_that_are_none(fields: dict[str, object], message: str) -> None:
    with refused(InstanceError, message):
        replace(TOWN, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1, False, 0, False), "expected link_in between 0 and"),
        ((0, 1, 0, False), "expected reverse_in to be True or False, got 1"),
        ((0, False, 0, False, -3), "expected penalty between 0 and"),
    ],
)
def test_turn_is_checked(arguments: tuple[int, bool, int, bool], message: str) -> None:
    with refused(InstanceError, message):
        Turn(*arguments)


def test_u_turn_ban_that_closes_a_street_is_named() -> None:
    assert diagnose(replace(TOWN, u_turns="dead-ends")) == ()
    (problem,) = diagnose(replace(TOWN, u_turns="forbidden"))
    assert problem.kind == "u-turns"
    assert problem.links == (1,)
    assert "U-turns are forbidden, and without one there is no way" in problem.message
    assert "link 1 (2-3)" in problem.message


def test_forbidden_turns_that_close_a_street_are_named() -> None:
    turns = (Turn(0, False, 2, False), Turn(1, True, 2, False), Turn(2, True, 2, False))
    closed = replace(TOWN, turns=turns)
    (problem,) = diagnose(closed)
    assert problem.kind == "forbidden-turns"
    assert problem.links == (2,)
    assert "forbidden turns close every way from depot 1 to link 2 (2-5)" in problem.message


def test_forbidden_turns_that_a_u_turn_gets_round_close_nothing() -> None:
    # Straight on into link 2 is forbidden, but not after turning round at node 3.
    town = replace(TOWN, turns=(Turn(0, False, 2, False),))
    assert diagnose(town) == ()


def test_what_a_vehicle_can_serve_lies_between_its_depots() -> None:
    line = make_instance(
        street(1, 2, 1, 1, one_way=True),
        street(2, 3, 1, 1, one_way=True),
        street(3, 4, 1, 1, one_way=True),
        u_turns="forbidden",
    )
    assert servable(line) == set()

    def vans(**rules: Any) -> Instance:
        van = Vehicle(name="van", start=1, capacity=10, **rules)
        return replace(line, vehicles=(van,))

    assert servable(vans(end=3)) == {0, 1}
    assert servable(vans(end=4)) == {0, 1, 2}
    assert servable(vans(end=4, forbidden_links=(1,))) == set()
    # What one type cannot serve, another may.
    other = Vehicle(name="other", start=3, end=4, capacity=10)
    both = replace(line, vehicles=(*vans(end=2).vehicles, other))
    assert servable(both) == {0, 2}
