import pytest

from arcfleet.errors import UnsolvableError
from arcfleet.instance.diagnose import Problem, diagnose, require_solvable
from arcfleet.instance.instance import Instance, Link


def street(
    tail: int, head: int, demand: int | None = None, one_way: bool = False, name: str = ""
) -> Link:
    return Link(
        tail=tail,
        head=head,
        cost=1,
        one_way=one_way,
        required=demand is not None,
        demand=demand or 0,
        name=name,
    )


def make(*links: Link, capacity: int = 10, fleet_limit: int | None = None) -> Instance:
    nodes = {1} | {node for link in links for node in (link.tail, link.head)}
    return Instance(
        name="town",
        nodes=tuple(sorted(nodes)),
        links=links,
        depot=1,
        capacity=capacity,
        fleet_limit=fleet_limit,
    )


def only(instance: Instance) -> Problem:
    (problem,) = diagnose(instance)
    return problem


@pytest.mark.parametrize(
    "instance",
    [
        make(),
        make(street(2, 3)),
        make(street(1, 1, 5)),
        make(street(1, 2, 10), street(2, 3, 5), fleet_limit=2),
        make(street(1, 2, 5, one_way=True), street(2, 1, one_way=True)),
        # Traps and islands do no harm where nothing there is required.
        make(street(1, 2, 5), street(2, 3, one_way=True), street(4, 5)),
    ],
)
def test_solvable(instance: Instance) -> None:
    assert diagnose(instance) == ()
    require_solvable(instance)


def test_isolated_depot_is_reported_alone() -> None:
    problem = only(make(street(1, 1, 1), street(2, 3, 1), street(3, 4, 1)))
    assert problem.kind == "isolated-depot"
    assert problem.links == (1, 2)
    assert "depot 1, found no link to any other node" in problem.message
    assert "link 1 (2-3) and link 2 (3-4) must be served" in problem.message


@pytest.mark.parametrize(
    ("one_way", "lack"),
    [
        (street(2, 1, one_way=True), "only one-way links that enter it"),
        (street(1, 2, one_way=True), "only one-way links that leave it"),
    ],
)
def test_depot_without_exit_or_entry_is_isolated(one_way: Link, lack: str) -> None:
    problem = only(make(one_way, street(2, 3, 1)))
    assert problem.kind == "isolated-depot"
    assert lack in problem.message


def test_unreachable_links_are_named_with_the_remedy() -> None:
    problem = only(make(street(1, 2, 1), street(8, 9, 1, name="Quay"), street(7, 8)))
    assert problem.kind == "unreachable"
    assert problem.links == (1,)
    assert "link 1 (8-9, Quay)" in problem.message
    assert "move the depot" in problem.message


def test_link_that_only_leads_in_is_unreachable() -> None:
    # Node 3 is a source: its one-way street leads to the town, none leads there.
    problem = only(make(street(1, 2, 1), street(3, 2, 1, one_way=True), street(3, 3, 1)))
    assert problem.kind == "unreachable"
    assert problem.links == (1, 2)


def test_one_way_trap() -> None:
    problem = only(make(street(1, 2, 1), street(2, 3, 1, one_way=True), street(3, 4, 1)))
    assert problem.kind == "no-return"
    assert problem.links == (1, 2)
    assert "link 1 (2>3) and link 2 (3-4)" in problem.message
    assert "check their directions" in problem.message


def test_trap_behind_an_unreachable_link_is_only_unreachable() -> None:
    assert only(make(street(1, 2, 1), street(8, 9, 1, one_way=True))).kind == "unreachable"


def test_oversized() -> None:
    problem = only(make(street(1, 2, 11), street(2, 3, 10), street(3, 4, 13)))
    assert problem.kind == "oversized"
    assert problem.links == (0, 2)
    assert "capacity (10), got up to 13 on link 0 (1-2) and link 2 (3-4)" in problem.message


def test_fleet_too_small_for_the_total() -> None:
    links = [street(1, 2, 3) for _ in range(7)]
    problem = only(make(*links, capacity=10, fleet_limit=2))
    assert problem.kind == "fleet-too-small"
    assert "total demand of 21 at capacity 10 needs at least 3 routes" in problem.message
    assert diagnose(make(*links, capacity=10, fleet_limit=3)) == ()


def test_fleet_too_small_for_the_large_demands() -> None:
    links = (street(1, 2, 6), street(1, 3, 6), street(1, 4, 6), street(1, 5, 1))
    problem = only(make(*links, fleet_limit=2))
    assert problem.kind == "fleet-too-small"
    assert problem.links == (0, 1, 2)
    assert "3 demands above half the capacity (10)" in problem.message
    # Exactly half the capacity leaves room for another.
    assert diagnose(make(*(street(1, 2, 5) for _ in range(4)), fleet_limit=2)) == ()


def test_long_lists_are_cut_in_the_message_only() -> None:
    problem = only(make(street(1, 2, 1), *(street(8, 9, 1) for _ in range(8))))
    assert problem.links == tuple(range(1, 9))
    assert "link 5 (8-9) and 3 more" in problem.message
    assert "link 6" not in problem.message


def test_all_problems_are_found_together() -> None:
    instance = make(
        street(1, 2, 11),
        street(2, 3, 1, one_way=True),
        street(8, 9, 1),
        fleet_limit=1,
    )
    kinds = [problem.kind for problem in diagnose(instance)]
    assert kinds == ["unreachable", "no-return", "oversized", "fleet-too-small"]
    with pytest.raises(UnsolvableError) as caught:
        require_solvable(instance)
    for problem in diagnose(instance):
        assert problem.message in str(caught.value)
    assert str(caught.value).startswith("instance 'town' cannot be solved: ")


def test_isolated_depot_does_not_hide_demands() -> None:
    kinds = [problem.kind for problem in diagnose(make(street(2, 3, 11)))]
    assert kinds == ["isolated-depot", "oversized"]
