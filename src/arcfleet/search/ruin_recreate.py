"""Ruin and recreate: the method for one hard instance.

Strings of neighbouring tasks are removed from the plan and inserted greedily; simulated
annealing decides what to keep (Christiaens and Vanden Berghe 2020). One iteration is one
such step. The temperature falls over the iterations or the seconds of a `Stop`; with any
other stop rule in cycles of a length that fits the number of tasks.

With several threads as many chains run side by side and share what they find. The same
seed, number of iterations and number of threads give the same plan.

A city of more tasks is cut into areas, which the threads share; see `AREAS_FROM`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from arcfleet import _core
from arcfleet._checks import check_number
from arcfleet.errors import InstanceError
from arcfleet.network.network import IN_PARTS_FROM, MAX_TERMINALS
from arcfleet.search.fleet import fleet_search
from arcfleet.search.run import BEGUN, run_engine, too_short
from arcfleet.search.stop import time_limit

if TYPE_CHECKING:
    from arcfleet.instance import Instance
    from arcfleet.network import Network
    from arcfleet.search.result import Result
    from arcfleet.search.run import RunContext


@dataclass(frozen=True, slots=True, kw_only=True)
class RuinRecreateSettings:
    """Parameters of ruin-and-recreate; the defaults serve all sizes.

    Parameters
    ----------
    average_removed
        Mean number of tasks that one iteration removes.
    longest_string
        Largest number of tasks in a row that are removed from one route.
    split_rate
        Share of strings that keep some tasks in their middle.
    split_growth
        Probability that one more task is kept there, asked again after each.
    blink_rate
        Share of positions that are overlooked when a task is inserted.
    first_temperature
        Temperature at the start of an annealing cycle, in mean distances from a street's
        end to the three nearest others.
    last_temperature
        Temperature at the end of an annealing cycle, in the same unit.
    most_excess
        Load above capacity allowed to a route during the search, as a share of the
        capacity.
    target_fit
        Share of plans during the search that keep the capacity; the penalty of excess
        load is adapted to it.
    """

    average_removed: float = 10.0
    longest_string: float = 10.0
    split_rate: float = 0.8
    split_growth: float = 0.99
    blink_rate: float = 0.01
    first_temperature: float = 1.0
    last_temperature: float = 0.1
    most_excess: float = 0.15
    target_fit: float = 0.3

    def __post_init__(self) -> None:
        """Check every setting."""
        for name, (least, most) in _RANGES.items():
            check_number(name, getattr(self, name), least, most)


_RANGES = {
    "average_removed": (1.0, 1e6),
    "longest_string": (1.0, 1e6),
    "split_rate": (0.0, 1.0),
    "split_growth": (0.0, 0.9999),
    "blink_rate": (0.0, 0.9),
    "first_temperature": (1e-9, 1e9),
    "last_temperature": (1e-9, 1e9),
    "most_excess": (0.0, 10.0),
    "target_fit": (0.0, 1.0),
}


#: With more tasks a city is planned in areas, unless it asks for a fleet's operations.
AREAS_FROM = IN_PARTS_FROM
#: An area has at most so many tasks, or those of five routes.
AREA_TASKS = 2000
_ROUTES_OF_AREA = 5


def plans_in_areas(instance: Instance) -> bool:
    """Return whether ruin and recreate needs driving costs within areas only."""
    return len(instance.required) > AREAS_FROM and not instance.operations


def _check_areas(instance: Instance) -> None:
    """Raise InstanceError where routes are so long that an area is too large."""
    tasks = len(instance.required)
    demand = sum(instance.links[link].demand for link in instance.required)
    routes = max(1, -(-demand // instance.capacity))
    largest = min(tasks, max(AREA_TASKS, _ROUTES_OF_AREA * tasks // routes))
    most = MAX_TERMINALS // 2
    if largest > most:
        raise InstanceError(
            f"expected routes of at most {most // _ROUTES_OF_AREA} streets, found {tasks} "
            f"tasks for {routes} {'route' if routes == 1 else 'routes'} in instance "
            f"{instance.name!r}: split it into areas or check the capacity"
        )


def ruin_recreate(network: Network, context: RunContext) -> Result:
    """Run ruin and recreate; the instance must have passed `diagnose`.

    It starts from the plan of the context, otherwise from one of path scanning.
    """
    if network.instance.operations:
        return fleet_search(network, context, context.params or RuinRecreateSettings())
    arcs, route_starts = context.warm_start(network)
    iterations, seconds = context.horizon

    settings: dict[str, float] = asdict(context.params or RuinRecreateSettings())

    def make_engine() -> _core.RuinRecreate | _core.AreaSearch:
        if plans_in_areas(network.instance):
            _check_areas(network.instance)
            before = context.seconds
            try:
                return _core.AreaSearch(
                    network.core,
                    **settings,
                    most_tasks=AREA_TASKS,
                    seed=context.seed,
                    threads=context.threads,
                    horizon_iterations=iterations,
                    horizon_seconds=seconds,
                    arcs=arcs,
                    route_starts=route_starts,
                )
            except TimeoutError as error:
                needed = before + float(error.args[0])
                limit = time_limit(context.stop) or 0.0
                raise too_short(network.instance, limit, needed) from None
        return _core.RuinRecreate(
            network.core,
            **settings,
            seed=context.seed,
            chains=context.threads,
            horizon_iterations=iterations,
            horizon_seconds=seconds,
            arcs=arcs,
            route_starts=route_starts,
        )

    try:
        return run_engine(make_engine, network, context, begun=BEGUN * network.num_tasks)
    except OverflowError:
        raise InstanceError(
            "expected the streets of one route, served by a route each, to cost at most "
            f"{_core.MAX_DISTANCE}, found more in instance {network.instance.name!r}: use "
            "a coarser unit of cost"
        ) from None
