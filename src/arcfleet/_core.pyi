"""
The machinery of arcfleet in C++; for network, search, bounds and neural only.
"""

from collections.abc import Mapping, Sequence
import enum
from typing import Annotated, Final

import numpy
from numpy.typing import NDArray


UNREACHABLE: int = 2147483647

MAX_DISTANCE: int = 536870911

def distance_matrix(num_nodes: int, tail: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], head: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], cost: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], reverse_cost: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], sources: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], targets: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], threads: int) -> Annotated[NDArray[numpy.int32], dict(shape=(None, None))]:
    """
    Shortest distances between nodes; reverse_cost is negative on one-way links.
    """

class Network:
    """Tasks, arcs and the distances between terminals."""

    def __init__(self, num_nodes: int, tail: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], head: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], cost: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], reverse_cost: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], required: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], demand: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], service_cost: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], reverse_service_cost: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], depot: int, capacity: int, route_cost: int, fleet_limit: int, turn_in: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], turn_out: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], turn_penalty: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], u_turns: int, u_turn_penalty: int, threads: int, places: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], closed: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], least_closed_cost: int, seconds: float, in_parts: bool) -> None: ...

    @property
    def num_tasks(self) -> int: ...

    @property
    def closed_cost(self) -> int: ...

    @property
    def arc_task(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,))]: ...

    @property
    def arc_edge(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,))]: ...

    @property
    def arc_start(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,))]: ...

    @property
    def arc_end(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,))]: ...

    @property
    def arc_service_cost(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,))]: ...

    @property
    def arc_demand(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,))]: ...

    @property
    def arc_inverse(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,))]: ...

    @property
    def terminal_nodes(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,))]: ...

    @property
    def place_terminals(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,))]: ...

    @property
    def distances(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None, None), writable=False)]:
        """Distances between terminals: a read-only view, not a copy."""

    def nearest_others(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,))]:
        """The nearest other task of each task; -1 where there is none."""

    def drive(self, start: int, end: int) -> Annotated[NDArray[numpy.int32], dict(shape=(None,))]:
        """Edges driven between two terminals."""

class StreetPaths:
    """The streets driven along by the routes of a plan."""

    def __init__(self, network: Network) -> None: ...

    def of(self, route: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.uint8], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))]]:
        """
        Edges driven by a route, for each whether it is served this time, and the costs of driving to each service and home.
        """

class AreaSearch:
    """Ruin and recreate in areas of a city."""

    def __init__(self, network: Network, average_removed: float, longest_string: float, split_rate: float, split_growth: float, blink_rate: float, first_temperature: float, last_temperature: float, most_excess: float, target_fit: float, most_tasks: int, seed: int, threads: int, horizon_iterations: int, horizon_seconds: float, arcs: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], route_starts: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def run(self, iterations: int, seconds: float, target: int, threads: int) -> None: ...

    @property
    def iterations(self) -> int: ...

    @property
    def has_plan(self) -> bool: ...

    @property
    def best_cost(self) -> int: ...

    @property
    def no_improvement(self) -> int: ...

    def best_plan(self) -> tuple[Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))]]:
        """Arcs of all routes, and where each route starts."""

    def history(self) -> list[tuple[float, int, int]]:
        """Seconds, iteration and cost of each improvement."""

class Separator:
    """Node sets whose cuts are violated, and the pool of them."""

    def __init__(self, num_nodes: int, tail: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], head: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], demand: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], pair_tail: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], pair_head: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], outside: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], capacity: int) -> None: ...

    def find_first(self) -> int: ...

    def find_components(self, deadheads: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], most: int) -> int: ...

    def find_odd(self, deadheads: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], most: int) -> int: ...

    def find_by_flow(self, deadheads: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], seed: int, attempts: int, most: int) -> int: ...

    def find_by_growth(self, deadheads: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], seed: int, attempts: int, perturbed: bool, most: int) -> int: ...

    @property
    def num_rows(self) -> int: ...

    def row_starts(self, first: int) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """Where the pairs of each row start, and the end of all."""

    def row_pairs(self, first: int) -> Annotated[NDArray[numpy.int32], dict(shape=(None,))]: ...

    def row_least(self, first: int) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]: ...

    def row_family(self, first: int) -> Annotated[NDArray[numpy.uint8], dict(shape=(None,))]:
        """0 connected, 1 odd, 2 capacity."""

    def violations(self, deadheads: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """Of every row of the pool; above 0 where violated."""

    def odd_nodes(self) -> Annotated[NDArray[numpy.uint8], dict(shape=(None,))]: ...

    def cancel(self) -> None:
        """Ends what another thread looks for."""

class TripPricer:
    """Trips of negative reduced cost, without short cycles."""

    def __init__(self, num_nodes: int, arc_tail: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], arc_head: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], arc_column: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], side_tail: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], side_head: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], side_task: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], demand: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], outside: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], capacity: int, costs: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], num_near: int) -> None: ...

    most_tasks: Final[int] = ...
    """(arg: object, /) -> int"""

    def price(self, columns: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], sides: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], tolerance: int, most_labels: int) -> bool:
        """Returns whether no trip costs less than the first kept, or -tolerance."""

    def find_single(self, columns: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """Keeps a trip of each task alone."""

    def trip_costs(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]: ...

    def trip_starts(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]: ...

    def trip_sides(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,))]: ...

    def drive_starts(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]: ...

    def drives(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,))]: ...

    def cancel(self) -> None:
        """Ends what another thread looks for."""

class Encoder:
    def __init__(self, width: int, heads: int, hidden: int) -> None: ...

    @staticmethod
    def is_fast_here() -> bool: ...

    def add_layer(self, query_key_value: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], attention_norm: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], widen: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], widen_bias: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], narrow: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], narrow_bias: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], feed_forward_norm: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], slopes: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)]) -> None: ...

    def run(self, start: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], incoming: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], visible: Annotated[NDArray[numpy.bool_], dict(order='C', device='cpu', writable=False)], found: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], threads: int = 1) -> None: ...

class FleetSearch:
    """Ruin and recreate over plans of a fleet."""

    def __init__(self, networks: Sequence[Network], rules: FleetRules, average_removed: float, longest_string: float, split_rate: float, split_growth: float, blink_rate: float, first_temperature: float, last_temperature: float, most_excess: float, target_fit: float, seed: int, chains: int, horizon_iterations: int, horizon_seconds: float, arcs: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], route_starts: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], route_vehicles: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], route_slots: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], vias: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def run(self, iterations: int, seconds: float, target: int, threads: int) -> None: ...

    @property
    def iterations(self) -> int: ...

    @property
    def has_plan(self) -> bool: ...

    @property
    def best_cost(self) -> int: ...

    @property
    def no_improvement(self) -> int: ...

    def best_plan(self) -> tuple[Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))]]:
        """Arcs of all routes, and where each route starts."""

    def history(self) -> list[tuple[float, int, int]]:
        """Seconds, iteration and cost of each improvement."""

    def best_fleet(self) -> tuple[Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.uint8], dict(shape=(None,))]]:
        """
        Of the best plan: vehicle type and numbered slot of each route, and for each arc whether the vehicle comes by way of a facility.
        """

class FleetRules:
    """What an instance asks of a plan."""

    def __init__(self, vehicles: Mapping[str, Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]], facilities: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], empty_at_end: bool, exact_fleet: bool, fewest_routes: bool, balance: float, compactness: int, change_price: int, numbered_slots: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], home: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], pin: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], locked: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], may_serve: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], locked_costs: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

class FleetScanning:
    """Builds plans of a fleet by path scanning and keeps the best."""

    def __init__(self, networks: Sequence[Network], rules: FleetRules, choice: Choice, trigger: Trigger, filter: Filter, alpha: float, seed: int) -> None: ...

    def run(self, iterations: int, seconds: float, target: int, threads: int) -> None: ...

    @property
    def iterations(self) -> int: ...

    @property
    def has_plan(self) -> bool: ...

    @property
    def best_cost(self) -> int: ...

    @property
    def no_improvement(self) -> int: ...

    def best_plan(self) -> tuple[Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))]]:
        """Arcs of all routes, and where each route starts."""

    def history(self) -> list[tuple[float, int, int]]:
        """Seconds, iteration and cost of each improvement."""

    def best_fleet(self) -> tuple[Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.uint8], dict(shape=(None,))]]:
        """
        Of the best plan: vehicle type and numbered slot of each route, and for each arc whether the vehicle comes by way of a facility.
        """

class Maens:
    """Memetic algorithm with extended neighbourhood search."""

    def __init__(self, network: Network, population: int, offspring: int, trials: int, local_search_rate: float, merge_pairs: int, rank_by_cost_rate: float, tries_per_offspring: int, seed: int, arcs: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], route_starts: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def run(self, iterations: int, seconds: float, target: int, threads: int) -> None: ...

    @property
    def iterations(self) -> int: ...

    @property
    def has_plan(self) -> bool: ...

    @property
    def best_cost(self) -> int: ...

    @property
    def no_improvement(self) -> int: ...

    def best_plan(self) -> tuple[Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))]]:
        """Arcs of all routes, and where each route starts."""

    def history(self) -> list[tuple[float, int, int]]:
        """Seconds, iteration and cost of each improvement."""

class Choice(enum.Enum):
    rules = 0

    random_rule = 1

    random_arc = 2

class Trigger(enum.Enum):
    never = 0

    everywhere = 1

    nearby = 2

class Filter(enum.Enum):
    ellipse = 0

    efficiency = 1

class PathScanning:
    """Builds plans and keeps the cheapest."""

    def __init__(self, network: Network, choice: Choice, trigger: Trigger, filter: Filter, alpha: float, seed: int) -> None: ...

    def run(self, iterations: int, seconds: float, target: int, threads: int) -> None: ...

    @property
    def iterations(self) -> int: ...

    @property
    def has_plan(self) -> bool: ...

    @property
    def best_cost(self) -> int: ...

    @property
    def no_improvement(self) -> int: ...

    def best_plan(self) -> tuple[Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))]]:
        """Arcs of all routes, and where each route starts."""

    def history(self) -> list[tuple[float, int, int]]:
        """Seconds, iteration and cost of each improvement."""

class RuinRecreate:
    """Ruin and recreate, several chains side by side."""

    def __init__(self, network: Network, average_removed: float, longest_string: float, split_rate: float, split_growth: float, blink_rate: float, first_temperature: float, last_temperature: float, most_excess: float, target_fit: float, seed: int, chains: int, horizon_iterations: int, horizon_seconds: float, arcs: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], route_starts: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def run(self, iterations: int, seconds: float, target: int, threads: int) -> None: ...

    @property
    def iterations(self) -> int: ...

    @property
    def has_plan(self) -> bool: ...

    @property
    def best_cost(self) -> int: ...

    @property
    def no_improvement(self) -> int: ...

    def best_plan(self) -> tuple[Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))]]:
        """Arcs of all routes, and where each route starts."""

    def history(self) -> list[tuple[float, int, int]]:
        """Seconds, iteration and cost of each improvement."""

def split_many(networks: Sequence[Network], network_of: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], arcs: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], order_starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], choose_directions: bool, threads: int) -> tuple[Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.uint8], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))]]:
    """Cuts orders of services into routes at least cost."""

def split_gathered(directions: int, service: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], back: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], drive: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], demand: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], can_turn: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], order_starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], order_lengths: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], capacity: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], route_cost: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], fleet_limit: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], threads: int) -> tuple[Annotated[NDArray[numpy.uint8], dict(shape=(None,))], Annotated[NDArray[numpy.uint8], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))]]:
    """
    Cuts orders of services, given by their costs, into routes at least cost.
    """

def split_trips(networks: Sequence[Network], rules: FleetRules, arcs: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], choose_directions: bool) -> tuple[Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.uint8], dict(shape=(None,))]] | None:
    """
    Cuts an order of services into routes and trips of a fleet at least cost: arcs, where each route starts, its vehicle type, and for each arc whether the vehicle comes by way of a facility. None where the rules leave no way of cutting it.
    """
