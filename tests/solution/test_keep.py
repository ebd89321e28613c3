from dataclasses import replace

import pytest

from arcfleet import (
    Assignment,
    Instance,
    InstanceError,
    OptionError,
    Route,
    Service,
    Solution,
    exclude,
    keep,
    lock,
    pin,
)
from arcfleet.solution.keep import require_known_routes
from arcfleet.solution.renumber import renumber
from tests.helpers import refused, star


def route(*links: int, number: int | None = None, vehicle: int = 0) -> Route:
    services = tuple(Service(link) for link in links)
    return Route(services=services, load=0, cost=0, number=number, vehicle=vehicle)


def plan(*routes: Route) -> Solution:
    return Solution(routes=routes, cost=0, deadhead=0, service_cost=0)


@pytest.fixture
def town() -> Instance:
    return star(2, 2, 2, 2)


def test_keep_has_the_route_of_every_street_that_is_still_served(town: Instance) -> None:
    today = keep(exclude(town, [1]), plan(route(2, 1), route(0, number=7)), 40)
    assert today.previous == (Assignment(0, 7), Assignment(2, 1))
    assert today.change_price == 40
    assert today.operations == ("a price for change",)
    with refused(OptionError, "expected the price for change to be a whole number"):
        keep(town, plan(), -1)


def test_locked_routes_lose_streets_that_are_gone(town: Instance) -> None:
    today = lock(exclude(town, [1]), plan(route(2, 1), route(0, 3, number=7)), [1, 7])
    assert [(one.route, one.services) for one in today.locks] == [
        (1, ((2, False),)),
        (7, ((0, False), (3, False))),
    ]
    assert lock(today, plan(route(2, 1)), [1]).locks == today.locks


def test_unknown_routes_are_named_in_one_sentence(town: Instance) -> None:
    some = plan(route(0, 1), route(2))
    with refused(OptionError, "got 5: the plan has routes 1 to 2"):
        lock(town, some, [5])
    with refused(OptionError, "got 2: the plan has routes 4, 9"):
        lock(town, plan(route(0, number=9), route(1, number=4)), [2])
    with refused(OptionError, "got route 2, which has none: leave it out"):
        lock(exclude(town, [2]), some, [2])
    require_known_routes(pin(town, {0: 3}), some)
    with refused(OptionError, "got 4 for link 0 (1-2): the plan has routes 1 to 2, and 3"):
        require_known_routes(pin(town, {0: 4}), some)


def test_pins_that_contradict_a_locked_route_are_refused(town: Instance) -> None:
    locked = lock(town, plan(route(0, 1), route(2)), [1])
    with refused(InstanceError, "pinned to route 2 and locked in route 1"):
        pin(locked, {0: 2})
    with refused(InstanceError, "which is locked without it"):
        pin(locked, {3: 1})


def test_a_pin_against_a_locked_route_names_the_remedy(town: Instance) -> None:
    locked = lock(town, plan(route(0, 1), route(2)), [1])
    with refused(InstanceError, "pin it there, or unlock the route (edit --free 1)"):
        pin(locked, {0: 2})
    with refused(InstanceError, "pin it elsewhere, or unlock the route (edit --free 1)"):
        pin(locked, {3: 1})


def test_locks_given_again_replace_older_ones(town: Instance) -> None:
    locked = lock(town, plan(route(0, 1), route(2), route(3)), [1, 3])
    again = lock(locked, plan(route(1), route(2, 0), route(3)), [2])
    assert [(one.route, one.services) for one in again.locks] == [
        (2, ((2, False), (0, False))),
        (3, ((3, False),)),
    ]


def test_routes_get_the_numbers_of_those_they_resemble() -> None:
    earlier = plan(route(0, 1, 2, number=4), route(3, 4, number=2))
    later = plan(route(9), route(3, 0), route(1, 2))
    renumbered = renumber(later, earlier)
    assert renumbered.numbers == (1, 2, 4)
    assert renumbered.routes[1:] == (
        replace(later.routes[1], number=2),
        replace(later.routes[2], number=4),
    )
