"""What is to be solved: a street network with demands, a depot and a vehicle capacity."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, get_args

from arcfleet._checks import make_whole, one_line, whole
from arcfleet._display import notebook_html
from arcfleet.errors import InstanceError
from arcfleet.instance.operations import (
    ROUTE_LIMITS,
    Assignment,
    Facility,
    Lock,
    Vehicle,
    check_operations,
)
from arcfleet.instance.own_data import ids_words, own_attributes, own_ids

if TYPE_CHECKING:
    from collections.abc import Sequence

    from arcfleet.instance.own_data import AttributeValue, StreetId

#: Costs, demands and capacities are at most this (the core computes in 32-bit integers).
MAX_NUMBER = 2**31 - 1
#: Node numbers are at most this; street data carries 64-bit ids. Some are below 0.
MAX_NODE = 2**63 - 1
MIN_NODE = -MAX_NODE

#: (longitude, latitude) in degrees, WGS 84.
Coordinate = tuple[float, float]

#: Where a vehicle may turn round: anywhere, only where no other link leaves the node, or
#: nowhere.
UTurns = Literal["allowed", "dead-ends", "forbidden"]
U_TURNS: tuple[UTurns, ...] = get_args(UTurns)
#: What costs are counted in; "" where that is unknown or neither.
CostUnit = Literal["", "metres", "seconds"]
COST_UNITS: tuple[CostUnit, ...] = get_args(CostUnit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A piece of street between two nodes.

    A two-way link may be driven and served in both directions, a one-way link from
    `tail` to `head` only. Numbers left out are filled in at construction, so that two
    links that mean the same are equal.

    Parameters
    ----------
    tail, head
        End nodes; equal for a loop.
    cost
        Cost of driving from tail to head without serving.
    reverse_cost
        The same from head to tail; by default equal to `cost`; None on one-way links.
    one_way
        Whether the link may be driven from tail to head only.
    required
        Whether the link must be served.
    demand
        Part of the vehicle's capacity that serving it takes; 0 unless required.
    service_cost
        Cost of serving from tail to head, driving included; by default `cost`; None
        unless required.
    reverse_service_cost
        The same from head to tail; by default `service_cost` where that was given, else
        `reverse_cost`; None on one-way links and unless required.
    name
        Street name.
    geometry
        The points of the street from tail to head, both ends included; empty means a
        straight line.
    metres
        Length; None if unknown. For reports: only costs are searched on.
    seconds
        Time of driving from tail to head without serving; None if unknown. For reports.
    reverse_seconds
        The same from head to tail; by default equal to `seconds`; None on one-way links.
    service_seconds
        Time of serving in either direction, driving included; by default as driving; None
        unless required.
    kind
        Class of the street, OpenStreetMap's value of `highway`; "" if unknown. For reports.
    ways
        Numbers of the OpenStreetMap ways that the street is part of, from tail to head;
        empty if unknown. For reports.
    speed_kmh
        Mean speed of driving from tail to head in km/h; None if unknown. For reports.
    reverse_speed_kmh
        The same from head to tail; by default equal to `speed_kmh`; None on one-way links.
    ids
        Ids of the street in your own data, whole numbers or texts, from tail to head: that
        of the row it comes from, or those of all pieces that were merged into it. Two links
        may have the same.
    attributes
        Whatever else of your data the street shall keep, by name: texts, numbers, True,
        False or None.
    """

    tail: int
    head: int
    cost: int
    reverse_cost: int | None = None
    one_way: bool = False
    required: bool = False
    demand: int = 0
    service_cost: int | None = None
    reverse_service_cost: int | None = None
    name: str = ""
    geometry: tuple[Coordinate, ...] = ()
    metres: int | None = None
    seconds: int | None = None
    reverse_seconds: int | None = None
    service_seconds: int | None = None
    kind: str = ""
    ways: tuple[int, ...] = ()
    speed_kmh: float | None = None
    reverse_speed_kmh: float | None = None
    ids: tuple[StreetId, ...] = ()
    attributes: Mapping[str, AttributeValue] = dataclasses.field(
        default_factory=dict, hash=False
    )

    def __post_init__(self) -> None:
        """Fill in the defaults and check every field."""
        make_whole(self, _LINK_NUMBERS)
        where = f"on link {self.tail}-{self.head}"
        object.__setattr__(self, "geometry", _points(self.geometry))
        for field in ("one_way", "required"):
            if not isinstance(getattr(self, field), bool):
                raise InstanceError(
                    f"expected {field} to be True or False, "
                    f"got {getattr(self, field)!r} {where}"
                )
        _check_text("name", self.name, where)
        _check_text("kind", self.kind, where)
        forbidden = []
        if self.one_way:
            on = "a one-way link"
            forbidden += [("reverse_cost", on), ("reverse_service_cost", on)]
            forbidden += [("reverse_seconds", on), ("reverse_speed_kmh", on)]
        if not self.required:
            on = "a link that is not required"
            forbidden += [("service_cost", on), ("reverse_service_cost", on)]
            forbidden.append(("service_seconds", on))
            if self.demand != 0:
                raise InstanceError(
                    f"expected demand 0 on {on}, got {self.demand!r} {where}"
                )
        for field, on in forbidden:
            if getattr(self, field) is not None:
                raise InstanceError(
                    f"expected no {field} on {on}, got {getattr(self, field)!r} {where}"
                )
        if not self.one_way and self.reverse_cost is None:
            object.__setattr__(self, "reverse_cost", self.cost)
        if not self.one_way and self.reverse_seconds is None:
            object.__setattr__(self, "reverse_seconds", self.seconds)
        if not self.one_way and self.reverse_speed_kmh is None:
            object.__setattr__(self, "reverse_speed_kmh", self.speed_kmh)
        if self.required:
            self._fill_service_costs()
        for field in ("tail", "head"):
            check_integer(field, getattr(self, field), MIN_NODE, MAX_NODE, where)
        for field in ("cost", "demand"):
            check_integer(field, getattr(self, field), 0, MAX_NUMBER, where)
        for field in (
            *("reverse_cost", "service_cost", "reverse_service_cost", "metres"),
            *("seconds", "reverse_seconds", "service_seconds"),
        ):
            if getattr(self, field) is not None:
                check_integer(field, getattr(self, field), 0, MAX_NUMBER, where)
        object.__setattr__(self, "ways", tuple(map(whole, self.ways)))
        for way in self.ways:
            check_integer("way", way, MIN_NODE, MAX_NODE, where)
        for field in ("speed_kmh", "reverse_speed_kmh"):
            _check_speed(field, getattr(self, field), where)
        if type(self.ids) is not tuple or self.ids:
            object.__setattr__(self, "ids", own_ids(self.ids, where))
        if self.attributes != {}:
            object.__setattr__(self, "attributes", own_attributes(self.attributes, where))
        if len(self.geometry) == 1:
            raise InstanceError(
                f"expected no geometry or at least its two end points, got 1 point {where}"
            )
        for point in self.geometry:
            _check_coordinate(point, where)

    def ends(self, reverse: bool) -> tuple[int, int]:
        """Return the nodes where driving along the link starts and ends."""
        return (self.head, self.tail) if reverse else (self.tail, self.head)

    def step_cost(self, reverse: bool, serves: bool) -> int | None:
        """Return the cost of driving along the link, with or without serving it.

        None where there is no such cost: serving a link that is not required, or driving
        along a one-way link in reverse.
        """
        if serves:
            return self.reverse_service_cost if reverse else self.service_cost
        return self.reverse_cost if reverse else self.cost

    def step_seconds(self, reverse: bool, serves: bool) -> int | None:
        """Return the time of driving along the link, with or without serving it.

        None where it is unknown.
        """
        if serves and self.service_seconds is not None:
            return self.service_seconds
        return self.reverse_seconds if reverse else self.seconds

    @property
    def least_service_cost(self) -> int:
        """Cost of serving in the cheaper direction; 0 unless required."""
        costs = (self.service_cost, self.reverse_service_cost)
        return min((cost for cost in costs if cost is not None), default=0)

    def _fill_service_costs(self) -> None:
        given = self.service_cost
        if given is None:
            object.__setattr__(self, "service_cost", self.cost)
        if not self.one_way and self.reverse_service_cost is None:
            default = self.reverse_cost if given is None else given
            object.__setattr__(self, "reverse_service_cost", default)


@dataclass(frozen=True, slots=True)
class Turn:
    """The price of driving from one link straight on to another, or that it is forbidden.

    Parameters
    ----------
    link_in, reverse_in
        Position of the link that the vehicle comes along, and whether it drives it from
        head to tail.
    link_out, reverse_out
        The same of the link that it leaves along.
    penalty
        Cost of the turn, in the unit of all costs; None means that it is forbidden.
    """

    link_in: int
    reverse_in: bool
    link_out: int
    reverse_out: bool
    penalty: int | None = None

    def __post_init__(self) -> None:
        """Check every field; whether the links meet, the instance checks."""
        make_whole(self, ("link_in", "reverse_in", "link_out", "reverse_out", "penalty"))
        where = "on a turn"
        for field in ("link_in", "link_out"):
            check_integer(field, getattr(self, field), 0, MAX_NUMBER, where)
        for field in ("reverse_in", "reverse_out"):
            if not isinstance(getattr(self, field), bool):
                raise InstanceError(
                    f"expected {field} to be True or False, "
                    f"got {getattr(self, field)!r} {where}"
                )
        if self.penalty is not None:
            check_integer("penalty", self.penalty, 0, MAX_NUMBER, where)


#: Prices of uneven routes are at most this.
MAX_BALANCE = 1e6
_OPERATIONS: dict[str, type] = {
    "vehicles": Vehicle,
    "facilities": Facility,
    "pins": Assignment,
    "locks": Lock,
    "previous": Assignment,
}


# Without slots, so that what is computed from all streets can be kept.
@dataclass(frozen=True, kw_only=True)
class Instance:
    """A capacitated arc routing problem: serve every required link at least total cost.

    Nodes keep the numbers of the file or map they came from. Links are known by their
    position in `links`, counted from 0.

    Parameters
    ----------
    name
        A name for people.
    nodes
        Node numbers, each once; by default those of the links.
    links
        Streets; parallel links and loops are allowed.
    depot
        Node where every route starts and ends.
    capacity
        Largest total demand of one route.
    route_cost
        Fixed cost of every route that is driven (MCARP's dumping cost).
    fleet_limit
        Largest number of routes; None means any number.
    stated_vehicles
        The number of vehicles the file states; kept for writing it back, no limit.
    upper_bound
        Cost of a known plan, where the file states one; for information.
    comment
        Free text of the file.
    attribution
        Attribution of the map data, which its licence asks for on every picture and copy;
        empty if none is due.
    coordinates
        One (longitude, latitude) per node, in the order of `nodes`, or a dict of them by
        node; empty if unknown.
    turns
        Turns that are forbidden or have a penalty; all others are free. A turn happens
        between any two links driven one after the other, serving or not; none where a
        route leaves the depot at its start or returns to it at its end.
    u_turns
        Where a vehicle may turn round, so that it leaves a node by the link that it came
        along: "allowed" everywhere, at "dead-ends" only, which no other link leaves, or
        "forbidden". A `Turn` of its own for such a turn takes precedence.
    u_turn_penalty
        Cost of turning round, where that is allowed and `turns` does not name it.
    cost_unit
        Unit of all costs: "metres", "seconds" or "" (unknown, or money).
    max_route_cost
        Longest route (shift): largest sum of service, deadhead and facility visits; None
        means no limit.
    vehicles
        Vehicle types. Where they are given, they replace `route_cost`, `fleet_limit` and
        `max_route_cost`; `depot` is then the start of the first type and `capacity` the
        largest one.
    facilities
        Where vehicles empty or refill. With any, `capacity` bounds a trip, the stretch
        between two visits, not the route.
    empty_at_end
        Whether every vehicle visits a facility before it ends its route. Otherwise it does
        only where that shortens the way home.
    exact_fleet
        Whether every vehicle drives a route: `fleet_limit` and every `count` are exact.
    fewest_routes
        Whether a plan with fewer routes is better whatever it costs.
    balance
        Price of uneven routes: a plan counts as dearer by `balance` times the squared
        coefficient of variation of its routes' costs, as a share of its cost.
    compactness
        Price, in the unit of all costs, of every street whose nearest other street is on
        another route.
    pins
        Streets that must be on a given route.
    locks
        Routes that stay as they are.
    previous
        Route of each street in an earlier plan.
    change_price
        Price of every street that is not on its route of `previous`.
    """

    name: str = ""
    nodes: tuple[int, ...] = ()
    links: tuple[Link, ...]
    depot: int
    capacity: int
    route_cost: int = 0
    fleet_limit: int | None = None
    stated_vehicles: int | None = None
    upper_bound: int | None = None
    comment: str = ""
    attribution: str = ""
    coordinates: tuple[Coordinate, ...] = ()
    turns: tuple[Turn, ...] = ()
    u_turns: UTurns = "allowed"
    u_turn_penalty: int = 0
    cost_unit: CostUnit = ""
    max_route_cost: int | None = None
    vehicles: tuple[Vehicle, ...] = ()
    facilities: tuple[Facility, ...] = ()
    empty_at_end: bool = True
    exact_fleet: bool = False
    fewest_routes: bool = False
    balance: float = 0.0
    compactness: int = 0
    pins: tuple[Assignment, ...] = ()
    locks: tuple[Lock, ...] = ()
    previous: tuple[Assignment, ...] = ()
    change_price: int = 0

    def __post_init__(self) -> None:
        """Check every field and how they fit together."""
        make_whole(self, _INSTANCE_NUMBERS)
        where = f"in instance {self.name!r:.80}"
        for field in ("nodes", "links", "coordinates", "turns", *_OPERATIONS):
            items = getattr(self, field)
            if not isinstance(items, Iterable):
                raise InstanceError(
                    f"expected {field} as a tuple, got {items!r:.60} {where}: give () for "
                    "none"
                )
            if field == "coordinates" and isinstance(items, Mapping):
                items = self._places(items, where)
            object.__setattr__(self, field, tuple(items))
        self._fill_nodes()
        object.__setattr__(self, "coordinates", _points(self.coordinates))
        for field in ("name", "comment", "attribution"):
            _check_text(field, getattr(self, field), where)
        known: set[int] = set()
        for node in self.nodes:
            check_integer("node number", node, MIN_NODE, MAX_NODE, where)
            if node in known:
                raise InstanceError(
                    f"expected every node once, got node {node} twice {where}"
                )
            known.add(node)
        for index, link in enumerate(self.links):
            if not isinstance(link, Link):
                raise InstanceError(f"expected links, got {link!r} as link {index} {where}")
            for node in (link.tail, link.head):
                if node not in known:
                    raise InstanceError(
                        f"expected a known node, got node {node} "
                        f"on {self.describe_link(index)} {where}"
                    )
        check_integer("depot", self.depot, MIN_NODE, MAX_NODE, where)
        if self.depot not in known:
            raise InstanceError(
                f"expected a known node as depot, got {self.depot!r} {where}"
            )
        check_integer("capacity", self.capacity, 1, MAX_NUMBER, where)
        check_integer("route_cost", self.route_cost, 0, MAX_NUMBER, where)
        for field in ("stated_vehicles", "upper_bound"):
            if getattr(self, field) is not None:
                check_integer(field, getattr(self, field), 0, MAX_NODE, where)
        if self.fleet_limit is not None:
            check_integer("fleet_limit", self.fleet_limit, 1, MAX_NUMBER, where)
        if self.coordinates and len(self.coordinates) != len(self.nodes):
            raise InstanceError(
                f"expected coordinates for all {len(self.nodes)} nodes or for none, "
                f"got {len(self.coordinates)} {where}"
            )
        for node, point in zip(self.nodes, self.coordinates, strict=False):
            _check_coordinate(point, f"on node {node} {where}")
        for field, choices in (("u_turns", U_TURNS), ("cost_unit", COST_UNITS)):
            if getattr(self, field) not in choices:
                known_values = ", ".join(map(repr, choices))
                raise InstanceError(
                    f"expected {field} to be one of {known_values}, "
                    f"got {getattr(self, field)!r} {where}"
                )
        check_integer("u_turn_penalty", self.u_turn_penalty, 0, MAX_NUMBER, where)
        self._check_turns(where)
        self._check_operations(where)

    def _places(self, places: Mapping[Any, Any], where: str) -> list[Any]:
        """Return places that are given by node, in the order of the nodes."""
        if not self.nodes:
            object.__setattr__(self, "nodes", tuple(places))
        missing = [node for node in self.nodes if node not in places]
        if missing:
            raise InstanceError(
                f"expected coordinates for every node, got none for node {missing[0]!r} "
                f"{where}"
            )
        return [places[node] for node in self.nodes]

    def _fill_nodes(self) -> None:
        """Take the nodes from the links where none are given."""
        nodes: Iterable[Any] = self.nodes
        if not self.nodes:
            links = (link for link in self.links if isinstance(link, Link))
            ends = (node for link in links for node in (link.tail, link.head))
            nodes = dict.fromkeys((self.depot, *ends))
        object.__setattr__(self, "nodes", tuple(whole(node) for node in nodes))

    def _check_operations(self, where: str) -> None:
        """Check vehicles, facilities and the shape of plans."""
        for field, wanted in _OPERATIONS.items():
            for item in getattr(self, field):
                if not isinstance(item, wanted):
                    raise InstanceError(f"expected {field}, got {item!r} {where}")
        for field in ("empty_at_end", "exact_fleet", "fewest_routes"):
            if not isinstance(getattr(self, field), bool):
                raise InstanceError(
                    f"expected {field} to be True or False, "
                    f"got {getattr(self, field)!r} {where}"
                )
        for field, limit in self._limits().items():
            if limit is not None:
                check_integer(field, limit, 1, MAX_NUMBER, where)
        for field in ("compactness", "change_price"):
            check_integer(field, getattr(self, field), 0, MAX_NUMBER, where)
        balance: object = self.balance
        if (
            isinstance(balance, bool)
            or not isinstance(balance, int | float)
            or not 0 <= balance <= MAX_BALANCE
        ):
            raise InstanceError(
                f"expected balance between 0 and {MAX_BALANCE:g}, got {balance!r} {where}"
            )
        object.__setattr__(self, "balance", float(self.balance))
        if self.vehicles:
            first = self.vehicles[0]
            largest = max(vehicle.capacity for vehicle in self.vehicles)
            for what, value, usual, remedy in (
                (f"depot {first.start}", self.depot, first.start, "start"),
                (f"capacity {largest}", self.capacity, largest, "capacity"),
                ("no route_cost", self.route_cost, 0, "fixed_cost"),
                ("no fleet_limit (--fleet-limit)", self.fleet_limit, None, "count"),
                *(
                    (f"no {field} (--{field.replace('_', '-')})", value, None, field)
                    for field, value in self._limits().items()
                ),
            ):
                if value != usual:
                    raise InstanceError(
                        f"expected {what} beside vehicle types, got {value} {where}: give "
                        f"{remedy} of each type"
                    )
        check_operations(self, where)

    def _check_turns(self, where: str) -> None:
        """Check that every turn can be driven at all, and that none is given twice."""
        known: dict[tuple[int, bool, int, bool], int | None] = {}
        for number, turn in enumerate(self.turns):
            here = f"in turn {number} {where}"
            if not isinstance(turn, Turn):
                raise InstanceError(
                    f"expected turns, got {turn!r} as turn {number} {where}"
                )
            here = f"in turn {number} {where}"
            ends = []
            for index, reverse in (
                (turn.link_in, turn.reverse_in),
                (turn.link_out, turn.reverse_out),
            ):
                if index >= len(self.links):
                    raise InstanceError(
                        f"expected a link from 0 to {len(self.links) - 1}, "
                        f"got {index} {here}: correct its number or leave the turn out"
                    )
                if reverse and self.links[index].one_way:
                    raise InstanceError(
                        "expected a direction that may be driven, got one-way "
                        f"{self.describe_link(index)} in reverse {here}"
                    )
                ends.append(self.links[index].ends(reverse))
            if ends[0][1] != ends[1][0]:
                raise InstanceError(
                    "expected a turn between links that meet, got "
                    f"{self.describe_link(turn.link_in)}, which leads to node "
                    f"{ends[0][1]}, and {self.describe_link(turn.link_out)}, which "
                    f"leads away from node {ends[1][0]}, {here}"
                )
            key = (turn.link_in, turn.reverse_in, turn.link_out, turn.reverse_out)
            if key in known:
                again = "again" if known[key] == turn.penalty else "with another penalty"
                raise InstanceError(
                    "expected every turn once, got that from "
                    f"{self.describe_link(turn.link_in)} to "
                    f"{self.describe_link(turn.link_out)} {again} {here}"
                )
            known[key] = turn.penalty

    @cached_property
    def fleet(self) -> tuple[Vehicle, ...]:
        """Vehicle types; a single one, without a name, where `vehicles` gives none."""
        if self.vehicles:
            return self.vehicles
        return (
            Vehicle(
                name="vehicle",
                start=self.depot,
                capacity=self.capacity,
                count=self.fleet_limit,
                fixed_cost=self.route_cost,
                **self._limits(),
            ),
        )

    def _limits(self) -> dict[str, Any]:
        """Return the limits of routes for a single vehicle type, by their fields."""
        return {field: getattr(self, field) for field in ROUTE_LIMITS}

    @cached_property
    def operations(self) -> tuple[str, ...]:
        """What the instance asks for beyond the classical problem, in words."""
        asked = {
            **{
                f"a {limit.name}": any(getattr(x, field) is not None for x in self.fleet)
                for field, limit in ROUTE_LIMITS.items()
            },
            "vehicle types": bool(self.vehicles),
            "facilities": bool(self.facilities),
            "an exact fleet": self.exact_fleet,
            "fewest routes first": self.fewest_routes,
            "balance": self.balance > 0,
            "compactness": self.compactness > 0,
            "pins": bool(self.pins),
            "locked routes": bool(self.locks),
            "a price for change": self.change_price > 0 and bool(self.previous),
        }
        return tuple(name for name, is_asked in asked.items() if is_asked)

    @property
    def has_turn_rules(self) -> bool:
        """Whether any turn is forbidden or has a penalty."""
        return bool(self.turns or self.u_turns != "allowed" or self.u_turn_penalty)

    @cached_property
    def required(self) -> tuple[int, ...]:
        """Positions of the required links, in order; the tasks of the network."""
        return tuple(i for i, link in enumerate(self.links) if link.required)

    @cached_property
    def total_demand(self) -> int:
        """Sum of all demands."""
        return sum(link.demand for link in self.links)

    @property
    def least_routes(self) -> int:
        """Lower bound on the number of routes.

        The routes hold the total demand unless there are facilities, are long enough for
        all services, and are as many as pins, locks and an exact fleet ask for.
        """
        fleet = self.fleet
        named = {x.route for x in self.pins} | {x.route for x in self.locks}
        bounds = [int(bool(self.required)), len(named)]
        if self.exact_fleet and self.required:
            bounds.append(sum(vehicle.count or 0 for vehicle in fleet))
        if not self.facilities:
            capacities = [(vehicle.capacity, vehicle.count) for vehicle in fleet]
            bounds.append(_least_number(self.total_demand, capacities))
        for field, limit in ROUTE_LIMITS.items():
            sizes = [(getattr(x, field), x.count) for x in fleet if getattr(x, field)]
            if len(sizes) == len(fleet):
                bounds.append(_least_number(limit.work(self, self.required), sizes))
        return max(bounds)

    @property
    def least_trips(self) -> int:
        """Lower bound on the number of trips: they hold the total demand."""
        return max(-(-self.total_demand // self.capacity), int(bool(self.required)))

    @property
    def notice(self) -> str:
        """Attribution and comment in one text, for formats with a single field for both."""
        if self.attribution in self.comment:
            return self.comment
        return "; ".join(text for text in (self.attribution, self.comment) if text)

    def __str__(self) -> str:
        """Return the size and the properties of the instance, in a few lines."""
        one_way = sum(link.one_way for link in self.links)
        lines = [
            f"instance    {one_line(self.name) or '-'}",
            f"nodes       {len(self.nodes)}, {self._describe_depots()}",
            f"links       {len(self.links)}, {one_way} of them one-way",
            f"required    {len(self.required)}, total demand {self.total_demand}",
            f"capacity    {self.capacity}, so at least {self._describe_least()}",
        ]
        for vehicle in self.vehicles:
            lines.append(f"vehicle     {vehicle.describe()}")
        if self.facilities:
            named = (x.name or f"node {x.node}" for x in self.facilities)
            lines.append(f"facilities  {', '.join(map(one_line, named))}")
        if self.fleet_limit is not None:
            lines.append(f"fleet       at most {self.fleet_limit} routes")
        if self.route_cost:
            lines.append(f"route cost  {self.route_cost}")
        if self.has_turn_rules:
            lines.append(f"turns       {self.describe_turn_rules()}")
        if self.operations:
            lines.append(f"operations  {', '.join(self.operations)}")
        return "\n".join(lines)

    def _repr_html_(self) -> str | None:
        return notebook_html(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the instance as plain dicts and lists, as its JSON file holds it.

        `json.dump` writes it into a file that `arcfleet.read` reads.
        """
        from arcfleet.instance.formats.json_format import format_json

        document: dict[str, Any] = json.loads(format_json("", self))
        return document

    def _describe_least(self) -> str:
        if self.facilities:
            return f"{self.least_trips} trips"
        return f"{self.least_routes} routes"

    def _describe_depots(self) -> str:
        nodes = dict.fromkeys(x for v in self.fleet for x in (v.start, v.end))
        return f"depot{'s' if len(nodes) > 1 else ''} {', '.join(map(str, nodes))}"

    def describe_turn_rules(self) -> str:
        """Return the turn rules in a few words, as in `12 forbidden, no U-turns`."""
        forbidden = sum(turn.penalty is None for turn in self.turns)
        u_turns = {
            "allowed": "U-turns everywhere",
            "dead-ends": "U-turns at dead ends only",
            "forbidden": "no U-turns",
        }[self.u_turns]
        if self.u_turn_penalty and self.u_turns != "forbidden":
            u_turns += f" at a cost of {self.u_turn_penalty}"
        penalties = len(self.turns) - forbidden
        return f"{forbidden} forbidden, {penalties} with a penalty, {u_turns}"

    def describe_link(self, index: int) -> str:
        """Return the name of a link for messages, as in `link 17 (5-9, High Street)`."""
        link = self.links[index]
        arrow = ">" if link.one_way else "-"
        name = " ".join(link.name.split())  # a message stays one line
        street = f", {name}" if name else ""
        own = f", {ids_words(link.ids)}" if link.ids else ""
        return f"link {index} ({link.tail}{arrow}{link.head}{street}{own})"


def _least_number(total: int, sizes: Sequence[tuple[int, int | None]]) -> int:
    """Return how many bins hold a total, the largest first; sizes come with their counts.

    Where all of them are too small, the largest go on: more bins than there are.
    """
    number = 0
    ordered = sorted(sizes, reverse=True, key=lambda pair: pair[0])
    for size, count in ordered:
        needed = -(-total // size)
        if count is None or needed <= count:
            return number + needed
        number += count
        total -= count * size
    return number - (-total // ordered[0][0])


def stated_attribution(comment: str, has_coordinates: bool) -> str:
    """Return the attribution that the comment of a file without a field for it states.

    The comment of a map begins with its attribution, which need not hold a ©. Without
    coordinates there is no map: there comments are notes, as the bounds in CARPLIB files,
    and only lines with a © are attributions.
    """
    lines = [line for line in comment.splitlines() if line.strip()]
    first = 1 if has_coordinates else 0
    return "\n".join(lines[:first] + [line for line in lines[first:] if "©" in line])


#: Fields that also take whole numbers of other types, such as numpy's.
_LINK_NUMBERS = (
    *("tail", "head", "cost", "reverse_cost", "demand", "service_cost"),
    *("reverse_service_cost", "metres", "seconds", "reverse_seconds", "service_seconds"),
    *("one_way", "required"),
)
_INSTANCE_NUMBERS = (
    *("depot", "capacity", "route_cost", "fleet_limit", "u_turn_penalty"),
    *("max_route_cost", "stated_vehicles", "upper_bound", "compactness", "change_price"),
    *("empty_at_end", "exact_fleet", "fewest_routes"),
)


def _points(points: Any) -> tuple[Any, ...]:
    """Return points as tuples of floats; a line of shapely, arrays and lists are taken."""
    if hasattr(points, "coords"):
        points = [point[:2] for point in points.coords]  # without heights
    if type(points) is tuple and all(map(_is_point, points)):
        return points
    return tuple(_point(point) for point in points)


def _is_point(point: Any) -> bool:
    return (
        type(point) is tuple
        and len(point) == 2
        and type(point[0]) is float
        and type(point[1]) is float
    )


def _point(point: Any) -> Any:
    try:
        first, second = point
    except (TypeError, ValueError):
        return point  # the check says what is wrong with it
    if all(isinstance(x, Real) and not isinstance(x, bool) for x in (first, second)):
        return float(first), float(second)
    return point


def check_integer(field: str, value: object, least: int, most: int, where: str) -> None:
    """Raise InstanceError unless `value` is an integer from `least` to `most`."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InstanceError(f"expected {field} to be an integer, got {value!r} {where}")
    if not least <= value <= most:
        raise InstanceError(
            f"expected {field} between {least} and {most}, got {value} {where}"
        )


def _check_text(field: str, value: object, where: str) -> None:
    if not isinstance(value, str):
        raise InstanceError(f"expected {field} to be a text, got {value!r} {where}")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise InstanceError(
            f"expected {field} to be a text that UTF-8 can hold, got {value!r} {where}"
        )


def _check_speed(field: str, value: object, where: str) -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is not None and not (is_number and 0 < value < math.inf):  # type: ignore[operator]
        raise InstanceError(f"expected {field} to be above 0, got {value!r} {where}")


def _check_coordinate(point: object, where: str) -> None:
    if (
        not isinstance(point, tuple)
        or len(point) != 2
        or not all(isinstance(value, float) and math.isfinite(value) for value in point)
    ):
        raise InstanceError(
            f"expected (longitude, latitude) as two finite floats, got {point!r} {where}"
        )
