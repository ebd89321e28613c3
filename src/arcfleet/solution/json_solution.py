"""Our own JSON solution, with the street path of each route."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from arcfleet._files import quote
from arcfleet.errors import FormatWarning
from arcfleet.instance.formats.strict_json import JsonObject, dump, open_document
from arcfleet.instance.instance import MAX_NODE
from arcfleet.solution.drive import check_links
from arcfleet.solution.solution import Route, Service, Solution, Step
from arcfleet.solution.travel import Travel, travel_facts

if TYPE_CHECKING:
    from pathlib import Path

    from arcfleet.instance.instance import Instance

FORMAT = "arcfleet-solution"
#: Version 2 brought the length and time of routes. A file that has none of them is written
#: as version 1, which older programs read.
VERSION = 2

_SOLUTION_KEYS = frozenset(
    ("instance", "cost", "deadhead", "service_cost", "travel", "seconds", "routes")
)
_ROUTE_KEYS = frozenset(("services", "load", "cost", "travel", "path"))
_TRAVEL_KEYS = frozenset(Travel.__dataclass_fields__)
_SERVICE_KEYS = frozenset(("link", "reverse"))
_STEP_KEYS = frozenset(("link", "reverse", "serves"))


def read_json_solution(path: Path | str, text: str, instance: Instance) -> Solution:
    """Read the JSON text of `path`."""
    document = open_document(path, text, FORMAT, VERSION, _SOLUTION_KEYS)
    name = document.text("instance", instance.name)
    if name != instance.name:
        warnings.warn(
            f"{path}: expected a solution of instance {quote(instance.name)}, "
            f"found one of {quote(name)}",
            FormatWarning,
            stacklevel=2,
        )
    if "seconds" in document:
        document.number("seconds")
    last = len(instance.links) - 1
    return Solution(
        routes=tuple(
            _read_route(item, last) for item in document.objects("routes", _ROUTE_KEYS)
        ),
        cost=_amount(document, "cost"),
        deadhead=_amount(document, "deadhead"),
        service_cost=_amount(document, "service_cost"),
        travel=_read_travel(document),
    )


def format_json_solution(solution: Solution, instance: Instance, seconds: float) -> str:
    """Return the JSON text, one route a line."""
    travels = {solution.travel, *(route.travel for route in solution.routes)}
    members: dict[str, object] = {
        "format": FORMAT,
        "version": 1 if travels == {None} else VERSION,
        "instance": instance.name,
        "cost": solution.cost,
        "deadhead": solution.deadhead,
        "service_cost": solution.service_cost,
        **travel_facts(solution.travel),
        "seconds": seconds,
    }
    check_links(instance, solution)
    lines = [f"{dump(key)}: {dump(value)}" for key, value in members.items()]
    routes = ",\n  ".join(dump(_route_members(route)) for route in solution.routes)
    lines.append(f'"routes": [\n  {routes}\n ]' if routes else '"routes": []')
    return "{\n " + ",\n ".join(lines) + "\n}\n"


def _amount(item: JsonObject, key: str) -> int:
    # A wrong statement, even a negative one, is for the checker to find.
    return item.integer(key, -MAX_NODE, MAX_NODE)


def _read_travel(item: JsonObject) -> Travel | None:
    known = item.optional_object("travel", _TRAVEL_KEYS)
    if known is None:
        return None
    return Travel(**{key: _amount(known, key) for key in _TRAVEL_KEYS if key in known})


def _read_route(item: JsonObject, last: int) -> Route:
    return Route(
        services=tuple(
            Service(service.integer("link", 0, last), service.flag("reverse"))
            for service in item.objects("services", _SERVICE_KEYS)
        ),
        load=_amount(item, "load"),
        cost=_amount(item, "cost"),
        path=tuple(
            Step(step.integer("link", 0, last), step.flag("reverse"), step.flag("serves"))
            for step in item.objects("path", _STEP_KEYS, optional=True)
        ),
        travel=_read_travel(item),
    )


def _route_members(route: Route) -> dict[str, object]:
    members: dict[str, object] = {
        "load": route.load,
        "cost": route.cost,
        **travel_facts(route.travel),
        "services": [
            {"link": service.link, "reverse": service.reverse} for service in route.services
        ],
    }
    if route.path:
        members["path"] = [
            {"link": step.link, "reverse": step.reverse, "serves": step.serves}
            for step in route.path
        ]
    return members
