"""Turn rules of the pieces of data sets."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from arcfleet.instance.turns import Direction, TurnCosts, reach
from arcfleet.streets.drawn_rules import Streets, all_turns, turn_angles
from arcfleet.streets.street_arrays import StreetArrays, to_arrays
from arcfleet.streets.tasks import TASK_SETS, VARIED_SETS, Piece
from tests.towns import town


@pytest.fixture(scope="module", params=[False, True], ids=["two-way", "mixed"])
def streets(request: pytest.FixtureRequest) -> StreetArrays:
    return to_arrays(town(4, one_way=0.4, blocks=40), mixed=request.param)


def drawn(streets: StreetArrays, task_set: Any, count: int) -> list[Piece]:
    cutter = task_set.cutter(streets, turn_rules=True)
    return [cutter.cut(np.random.default_rng(number)) for number in range(count)]


@pytest.mark.parametrize("task_set", [TASK_SETS["task20"], VARIED_SETS["varied60"]])
def test_every_task_is_driven_to_from_every_other(
    streets: StreetArrays, task_set: Any
) -> None:
    for piece in drawn(streets, task_set, 25):
        instance = piece.instance("piece")
        assert instance.has_turn_rules
        turns = TurnCosts(instance)
        onward: dict[Direction, list[Direction]] = {}
        backward: dict[Direction, list[Direction]] = {}
        for index, link in enumerate(instance.links):
            for reverse in (False,) if link.one_way else (False, True):
                along = index, reverse
                onward[along] = [onto for onto, _ in turns.onward(along)]
                for onto in onward[along]:
                    backward.setdefault(onto, []).append(along)
        arcs = {
            (index, reverse)
            for index in instance.required
            for reverse in ((False,) if instance.links[index].one_way else (False, True))
        }
        first = min(arcs)
        assert arcs - {first} <= reach([first], onward)
        assert arcs - {first} <= reach([first], backward)
        from_depot = reach(turns.leaving(instance.depot), onward)
        assert arcs & from_depot
        home = {along for along in onward if _end(instance, along) == instance.depot}
        reached = reach([first], onward)
        assert home & reached


def _end(instance: Any, along: tuple[int, bool]) -> int:
    end: int = instance.links[along[0]].ends(along[1])[1]
    return end


def test_rules_differ_from_piece_to_piece(streets: StreetArrays) -> None:
    kinds: Counter[tuple[bool, ...]] = Counter()
    for piece in drawn(streets, TASK_SETS["task20"], 80):
        instance = piece.instance("piece")
        forbids = any(turn.penalty is None for turn in instance.turns)
        prices = any(turn.penalty for turn in instance.turns)
        assert (instance.u_turns == "allowed") <= (instance.u_turn_penalty >= 0 and prices)
        kinds[forbids, prices, instance.u_turns == "dead-ends"] += 1
    assert 25 <= kinds[False, False, True] <= 55, "the rules of scenes by default"
    assert kinds[True, False, True] >= 5
    assert sum(n for kind, n in kinds.items() if kind[1]) >= 8
    assert sum(n for kind, n in kinds.items() if not kind[2]) >= 3


def test_turns_and_their_angles() -> None:
    # A cross of streets: from the south, the west is to the left.
    cross = Streets(
        longitude=np.array([0, 0, 1, 0, -1], dtype=np.float32),
        latitude=np.array([0, -1, 0, 1, 0], dtype=np.float32),
        tail=np.array([1, 0, 0, 0], dtype=np.int32),
        head=np.array([0, 2, 3, 4], dtype=np.int32),
        cost=np.full(4, 100, dtype=np.int32),
        one_way=np.zeros(4, dtype=np.bool_),
    )
    turns = all_turns(cross)
    angles = turn_angles(cross, turns)
    pairs = zip(turns.into.tolist(), turns.out.tolist(), strict=True)
    found = dict(zip(pairs, angles.tolist(), strict=True))
    assert found[0, 2] == pytest.approx(90)  # to the east, right
    assert found[0, 4] == pytest.approx(0)
    assert found[0, 6] == pytest.approx(-90)
    assert found[7, 2] == pytest.approx(0)
    assert turns.back.sum() == 8, "one at either end of each street"
