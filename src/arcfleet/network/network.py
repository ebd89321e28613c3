"""Turns an Instance into the arrays that solvers search on, and plans back into streets.

A *task* is a required link; its *arcs* are the directions in which it may be served. Arc 0
is the depot. *Terminals* are the places where service can start or end, the depot being
terminal 0; the network holds one dense matrix of driving costs between them. Without turn
rules terminals are nodes. With turn rules each task has two of its own, one at each end of
its link, because what driving on costs depends on the link that the vehicle came along.
"""

from __future__ import annotations

import math
import time
import warnings
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from arcfleet import _core
from arcfleet.errors import InstanceError, MemoryWarning
from arcfleet.instance.instance import U_TURNS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from arcfleet.instance import Instance

IntArray = NDArray[np.int32]

#: In `node_distances` and `Network.distances`: no way there.
UNREACHABLE: int = _core.UNREACHABLE

#: The streets driven along by the routes of a plan; made of `Network.core`.
StreetPaths = _core.StreetPaths

#: In a network of a fleet a way that there is not costs more than this.
CLOSED_COST = 2**27

#: With more tasks driving costs are measured within areas only, where that will do.
IN_PARTS_FROM = 2800
#: With so many terminals the matrix takes 4 GB.
MAX_TERMINALS = 32_768
#: With more a warning says how much memory is needed: 8,000 tasks with turn rules.
LARGE_TERMINALS = 16_001


class Network:
    """Tasks, arcs and the costs of driving between them.

    All arrays are read-only by intent and indexed by arc, arc 0 being the depot.

    Parameters
    ----------
    instance
        Instance to build the network of.
    threads
        Number of threads for the shortest paths.
    seconds
        Time for the shortest paths. TimeoutError is raised, with the time that would be
        needed, as soon as they are foreseen to take longer.
    in_parts
        Leave out the matrix of driving costs: a search that plans in areas measures
        those within the areas at work. Then there is no `distances`.

    Attributes
    ----------
    core
        The C++ object that the solvers take: of the first vehicle type.
    cores, vehicle_class
        One such object for each set of links that some vehicle type may not use, and the
        position among them of the object of each type.
    vehicle_start, vehicle_end, facility_terminals
        Terminals of the depots of each vehicle type, and of each facility.
    arc_task
        Task of each arc, counted over the required links; -1 for the depot.
    arc_edge
        Link and direction of each arc: twice the link's position, plus one if reverse.
    arc_start, arc_end
        Terminals where service starts and ends.
    arc_service_cost, arc_demand
        Service cost and demand of each arc.
    arc_inverse
        Inverse arc: the same task in the other direction; -1 if there is none.
    terminal_nodes
        Position in `instance.nodes` of each terminal.
    """

    def __init__(
        self,
        instance: Instance,
        threads: int = 1,
        seconds: float = math.inf,
        *,
        in_parts: bool = False,
    ) -> None:
        self.instance = instance
        self.in_parts = in_parts
        links = instance.links
        end = time.perf_counter() + seconds
        if not in_parts:
            _check_size(instance)
        position = {node: index for index, node in enumerate(instance.nodes)}

        def build(forbidden: tuple[int, ...]) -> _core.Network:
            closed = np.zeros(len(links) if forbidden else 0, dtype=np.uint8)
            closed[list(forbidden)] = 1
            return _core.Network(
                num_nodes=len(instance.nodes),
                **_link_arrays(instance),
                required=np.array([link.required for link in links], dtype=np.uint8),
                demand=_array([link.demand for link in links]),
                service_cost=_array([link.service_cost or 0 for link in links]),
                reverse_service_cost=_array(
                    [link.reverse_service_cost or 0 for link in links]
                ),
                depot=position[instance.depot],
                capacity=instance.capacity,
                route_cost=instance.route_cost,
                fleet_limit=instance.fleet_limit or 0,
                **_turn_arrays(instance),
                u_turns=U_TURNS.index(instance.u_turns),
                u_turn_penalty=instance.u_turn_penalty,
                threads=threads,
                places=_array([position[node] for node in self._places()]),
                closed=closed,
                # Dearer than any plan, whatever other vehicles and prices cost.
                least_closed_cost=CLOSED_COST if instance.operations else 0,
                seconds=end - time.perf_counter(),
                in_parts=in_parts,
            )

        # One core for each set of links that some vehicle type may not use.
        classes: list[tuple[int, ...]] = []
        self.cores: list[_core.Network] = []
        self.vehicle_class = []
        try:
            for vehicle in instance.fleet:
                forbidden = tuple(sorted(vehicle.forbidden_links))
                if forbidden not in classes:
                    classes.append(forbidden)
                    self.cores.append(build(forbidden))
                self.vehicle_class.append(classes.index(forbidden))
        except OverflowError:
            raise _too_long(repr(instance.name)) from None
        self.core = self.cores[0]
        terminals = dict(
            zip(self._places(), self.core.place_terminals.tolist(), strict=True)
        )
        depots = [vehicle.depots for vehicle in instance.fleet]
        self.vehicle_start = [terminals[start] for start, _ in depots]
        self.vehicle_end = [terminals[end] for _, end in depots]
        self.facility_terminals = [terminals[each.node] for each in instance.facilities]
        self.arc_task = self.core.arc_task
        self.arc_edge = self.core.arc_edge
        self.arc_start = self.core.arc_start
        self.arc_end = self.core.arc_end
        self.arc_service_cost = self.core.arc_service_cost
        self.arc_demand = self.core.arc_demand
        self.arc_inverse = self.core.arc_inverse
        self.terminal_nodes = self.core.terminal_nodes

    @property
    def distances(self) -> IntArray:
        """Driving costs between terminals: from the end of an arc to the start of another.

        Ways that the turn rules close cost more than any other.
        """
        return self.core.distances

    def _places(self) -> tuple[int, ...]:
        """Nodes where a vehicle starts, ends or stops over, each once."""
        vehicles = self.instance.fleet
        ends = [node for vehicle in vehicles for node in vehicle.depots]
        stops = [facility.node for facility in self.instance.facilities]
        return tuple(dict.fromkeys([*ends, *stops]))

    @property
    def num_tasks(self) -> int:
        """Number of required links."""
        return self.core.num_tasks

    @property
    def num_arcs(self) -> int:
        """Number of arcs, the depot included."""
        return len(self.arc_task)


def arc_distances(
    *,
    num_nodes: int,
    tail: IntArray,
    head: IntArray,
    cost: IntArray,
    reverse_cost: IntArray,
    required: NDArray[np.bool_],
    depot: int,
    turns: tuple[IntArray, IntArray, IntArray],
    u_turns: int,
    u_turn_penalty: int,
) -> IntArray:
    """Driving costs between the arcs of streets with turn rules, (arcs, arcs).

    Entry [i, j] is from the end of arc i to the start of arc j; arc 0 is the depot.

    Parameters
    ----------
    num_nodes, tail, head, cost, reverse_cost, required
        Streets; a reverse cost of -1 means that a link is one-way.
    depot
        Node where routes start and end.
    turns
        Turns that have a rule: twice the link before and after each, plus one where it is
        driven from head to tail; and the penalties, -1 where they are forbidden.
    u_turns, u_turn_penalty
        Rule of U-turns, as position in `U_TURNS`, and their penalty.
    """
    nothing = np.zeros(len(tail), dtype=np.int32)
    into, out, penalty = turns
    try:
        core = _core.Network(
            num_nodes=num_nodes,
            **{"tail": tail, "head": head, "cost": cost, "reverse_cost": reverse_cost},
            required=required.astype(np.uint8),
            demand=nothing,
            service_cost=nothing,
            reverse_service_cost=nothing,
            depot=depot,
            capacity=1,
            route_cost=0,
            fleet_limit=0,
            **{"turn_in": into, "turn_out": out, "turn_penalty": penalty},
            u_turns=u_turns,
            u_turn_penalty=u_turn_penalty,
            threads=1,
            places=_array([depot]),
            closed=np.zeros(0, dtype=np.uint8),
            least_closed_cost=0,
            seconds=math.inf,
            in_parts=False,
        )
    except OverflowError:
        raise _too_long("the batch") from None
    found: IntArray = core.distances[core.arc_end[:, None], core.arc_start]
    if core.closed_cost:
        found = np.where(found >= core.closed_cost, UNREACHABLE, found)
    return found


def node_distances(instance: Instance, threads: int = 1) -> IntArray:
    """Driving costs between all nodes, in the order of `instance.nodes`.

    UNREACHABLE stands where there is no way.
    """
    everywhere = np.arange(len(instance.nodes), dtype=np.int32)
    return _distances_from(everywhere, instance, _link_arrays(instance), threads)


def distances_from(instance: Instance, nodes: IntArray) -> IntArray:
    """Driving costs from some nodes to all, one row for each of them.

    `nodes` are positions in `instance.nodes`; UNREACHABLE stands where there is no way.
    """
    return _distances_from(nodes, instance, _link_arrays(instance), 1)


def distances_around(
    instance: Instance, nodes: IntArray, threads: int = 1
) -> tuple[IntArray, IntArray]:
    """Driving costs from some nodes to all and from all to them, one row for each of them.

    `nodes` are positions in `instance.nodes`; UNREACHABLE stands where there is no way.
    """
    links = _link_arrays(instance)
    # Ways to a node are ways from it where every street runs the other way.
    turned = {**links, "tail": links["head"], "head": links["tail"]}
    return (
        _distances_from(nodes, instance, links, threads),
        _distances_from(nodes, instance, turned, threads),
    )


def _distances_from(
    sources: IntArray, instance: Instance, links: dict[str, IntArray], threads: int
) -> IntArray:
    everywhere = np.arange(len(instance.nodes), dtype=np.int32)
    try:
        return _core.distance_matrix(
            num_nodes=len(instance.nodes),
            **links,
            sources=sources,
            targets=everywhere,
            threads=threads,
        )
    except OverflowError:
        raise _too_long(repr(instance.name)) from None


def _link_arrays(instance: Instance) -> dict[str, IntArray]:
    position = {node: index for index, node in enumerate(instance.nodes)}
    links = instance.links
    return {
        "tail": _array([position[link.tail] for link in links]),
        "head": _array([position[link.head] for link in links]),
        "cost": _array([link.cost for link in links]),
        "reverse_cost": _array(
            [-1 if link.reverse_cost is None else link.reverse_cost for link in links]
        ),
    }


def _turn_arrays(instance: Instance) -> dict[str, IntArray]:
    turns = instance.turns
    return {
        "turn_in": _array([2 * turn.link_in + turn.reverse_in for turn in turns]),
        "turn_out": _array([2 * turn.link_out + turn.reverse_out for turn in turns]),
        "turn_penalty": _array(
            [-1 if turn.penalty is None else turn.penalty for turn in turns]
        ),
    }


def _check_size(instance: Instance) -> None:
    """Raise InstanceError for a matrix that is too large; warn of a large one."""
    tasks = len(instance.required)
    fleet = instance.fleet
    places = {node for vehicle in fleet for node in vehicle.depots}
    places |= {facility.node for facility in instance.facilities}
    if instance.has_turn_rules:
        terminals = 2 * tasks + len(places)
    else:
        links = instance.links
        ends = {node for x in links if x.required for node in (x.tail, x.head)}
        terminals = len(ends | places)
    # The searches keep a transposed copy, and the same by way of facilities.
    matrices = len({vehicle.forbidden_links for vehicle in fleet})
    matrices *= 4 if instance.facilities else 2
    if terminals > MAX_TERMINALS:
        expected = f"required links with at most {MAX_TERMINALS} end nodes, got {terminals}"
        if instance.has_turn_rules:
            most = (MAX_TERMINALS - 1) // 2
            expected = f"at most {most} required links where turns have rules, got {tasks}"
        raise InstanceError(
            f"expected {expected} in instance {instance.name!r}: split it into areas"
        )
    if terminals > LARGE_TERMINALS:
        warnings.warn(
            f"instance {instance.name!r} has {tasks} tasks: its driving "
            f"costs need {4 * matrices * terminals**2 / 1e9:.1f} GB of memory",
            MemoryWarning,
            stacklevel=3,
        )


def _array(values: Sequence[int]) -> IntArray:
    return np.array(values, dtype=np.int32)


def _too_long(name: str) -> InstanceError:
    return InstanceError(
        f"expected shortest paths of at most {_core.MAX_DISTANCE}, found a longer one "
        f"in instance {name}: use a coarser unit of cost"
    )
