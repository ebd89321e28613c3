import pytest

from arcfleet.errors import UnsolvableError
from arcfleet.instance.diagnose import diagnose, require_solvable
from arcfleet.instance.instance import Instance, Link
from tests.helpers import make_instance as make
from tests.helpers import street


def lane(tail: int, head: int, demand: int | None = None) -> Link:
    return street(tail, head, 1, demand, one_way=True)


def task(tail: int, head: int, demand: int = 1, name: str = "") -> Link:
    return street(tail, head, 1, demand, name=name)


@pytest.mark.parametrize(
    "instance",
    [
        make(),
        make(street(2, 3)),
        make(task(1, 1, 5)),
        make(task(1, 2, 10), task(2, 3, 5), fleet_limit=2),
        make(lane(1, 2, 5), lane(2, 1)),
        # Traps and islands do no harm where nothing there is required.
        make(task(1, 2, 5), lane(2, 3), street(4, 5)),
        make(*[task(1, 2, 3)] * 7, fleet_limit=3),
        # Exactly half the capacity leaves room for another.
        make(*[task(1, 2, 5)] * 4, fleet_limit=2),
    ],
)
def test_solvable(instance: Instance) -> None:
    assert diagnose(instance) == ()
    require_solvable(instance)


@pytest.mark.parametrize(
    ("instance", "kind", "links", "words"),
    [
        (
            make(task(1, 1), task(2, 3), task(3, 4)),
            "isolated-depot",
            (1, 2),
            "depot 1, found no link to any other node|"
            "link 1 (2-3) and link 2 (3-4) must be served",
        ),
        (
            make(lane(2, 1), task(2, 3)),
            "isolated-depot",
            (1,),
            "only one-way links that enter it",
        ),
        (
            make(lane(1, 2), task(2, 3)),
            "isolated-depot",
            (1,),
            "only one-way links that leave it",
        ),
        (
            make(task(1, 2), task(8, 9, name="Quay"), street(7, 8)),
            "unreachable",
            (1,),
            "link 1 (8-9, Quay)|move the depot",
        ),
        # Node 3 is a source: its one-way street leads to the town, none leads there.
        (make(task(1, 2), lane(3, 2, 1), task(3, 3)), "unreachable", (1, 2), ""),
        # A trap behind an unreachable link.
        (make(task(1, 2), lane(8, 9, 1)), "unreachable", (1,), ""),
        (
            make(task(1, 2), *[task(8, 9)] * 8),
            "unreachable",
            tuple(range(1, 9)),
            "link 5 (8-9) and 3 more",
        ),
        (
            make(task(1, 2), lane(2, 3, 1), task(3, 4)),
            "no-return",
            (1, 2),
            "link 1 (2>3) and link 2 (3-4)|check their directions",
        ),
        (
            make(task(1, 2, 11), task(2, 3, 10), task(3, 4, 13)),
            "oversized",
            (0, 2),
            "capacity (10), got up to 13 on link 0 (1-2) and link 2 (3-4)",
        ),
        (
            make(*[task(1, 2, 3)] * 7, fleet_limit=2),
            "fleet-too-small",
            tuple(range(7)),
            "total demand of 21 at capacity 10 needs at least 3 routes",
        ),
        # A street without demand fills no vehicle; one of demand 1 does.
        (
            make(task(1, 2, 10), task(2, 3, 0), task(3, 4, 1), fleet_limit=1),
            "fleet-too-small",
            (0, 2),
            "total demand of 11 at capacity 10 needs at least 2 routes",
        ),
        (
            make(task(1, 2, 6), task(1, 3, 6), task(1, 4, 6), task(1, 5), fleet_limit=2),
            "fleet-too-small",
            (0, 1, 2),
            "3 demands above half the capacity (10)",
        ),
    ],
)
def test_the_problem_names_its_links_and_a_remedy(
    instance: Instance, kind: str, links: tuple[int, ...], words: str
) -> None:
    (problem,) = diagnose(instance)
    assert (problem.kind, problem.links) == (kind, links)
    assert all(part in problem.message for part in words.split("|"))
    assert "link 6" not in problem.message  # long lists are cut there


def test_all_problems_are_found_together() -> None:
    instance = make(task(1, 2, 11), lane(2, 3, 1), task(8, 9), fleet_limit=1)
    kinds = [problem.kind for problem in diagnose(instance)]
    assert kinds == ["unreachable", "no-return", "oversized", "fleet-too-small"]
    with pytest.raises(UnsolvableError) as caught:
        require_solvable(instance)
    for problem in diagnose(instance):
        assert problem.message in str(caught.value)
    assert str(caught.value).startswith("instance 'town' cannot be solved: ")
    # An isolated depot does not hide demands.
    kinds = [problem.kind for problem in diagnose(make(task(2, 3, 11)))]
    assert kinds == ["isolated-depot", "oversized"]
