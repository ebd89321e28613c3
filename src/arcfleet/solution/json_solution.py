"""Our own JSON solution, with the street path of each route."""

from __future__ import annotations

import json
import warnings
from typing import TYPE_CHECKING, Any

from arcfleet._display import as_document
from arcfleet._files import quote
from arcfleet.errors import FormatWarning
from arcfleet.instance.formats.strict_json import JsonObject, dump, open_document
from arcfleet.instance.instance import MAX_NODE, MIN_NODE
from arcfleet.solution.drive import check_links
from arcfleet.solution.solution import FacilityVisit, Route, Service, Solution, Step
from arcfleet.solution.travel import Travel, travel_facts

if TYPE_CHECKING:
    from pathlib import Path

    from arcfleet.instance.instance import Instance

FORMAT = "arcfleet-solution"
#: Version 2 brought the length and time of routes; version 3 vehicle types, facility visits
#: and numbers of routes; version 4 names and ends of the streets served; version 5 their
#: ids. A file is written in the oldest version that holds it, which older programs read.
VERSION = 5

_SOLUTION_KEYS = frozenset(
    (
        *("instance", "cost", "deadhead", "service_cost", "visit_cost", "travel"),
        *("seconds", "routes"),
    )
)
_ROUTE_KEYS = frozenset(
    ("number", "vehicle", "load", "cost", "travel", "services", "visits", "path")
)
_VISIT_KEYS = frozenset(("facility", "services", "steps"))
_TRAVEL_KEYS = frozenset(Travel.__dataclass_fields__)
_SERVICE_KEYS = frozenset(("link", "reverse", "name", "ids", "from", "to"))
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
    return Solution(
        routes=tuple(
            _read_route(item, instance) for item in document.objects("routes", _ROUTE_KEYS)
        ),
        cost=_amount(document, "cost"),
        deadhead=_amount(document, "deadhead"),
        service_cost=_amount(document, "service_cost"),
        travel=_read_travel(document),
        visit_cost=_amount(document, "visit_cost") if "visit_cost" in document else 0,
    )


def format_json_solution(solution: Solution, instance: Instance, seconds: float) -> str:
    """Return the JSON text, one route a line."""
    members = solution_members(solution, instance, seconds)
    routes = ",\n  ".join(dump(route) for route in members.pop("routes"))
    lines = [f"{dump(key)}: {dump(value)}" for key, value in members.items()]
    lines.append(f'"routes": [\n  {routes}\n ]' if routes else '"routes": []')
    return "{\n " + ",\n ".join(lines) + "\n}\n"


@as_document.register(Solution)
def solution_document(solution: Solution, instance: Instance | None) -> dict[str, Any]:
    """Return the document of a plan in plain dicts and lists."""
    document: dict[str, Any] = json.loads(dump(solution_members(solution, instance)))
    return document


def solution_members(
    solution: Solution, instance: Instance | None, seconds: float | None = None
) -> dict[str, Any]:
    """Return the document of a plan; without the instance there are no streets in it."""
    streets = None
    if instance is not None:
        check_links(instance, solution)
        if any(link.name or link.ids for link in instance.links):
            streets = instance
    return {
        "format": FORMAT,
        "version": _version(solution, streets),
        **({} if instance is None else {"instance": instance.name}),
        "cost": solution.cost,
        "deadhead": solution.deadhead,
        "service_cost": solution.service_cost,
        **({"visit_cost": solution.visit_cost} if solution.visit_cost else {}),
        **travel_facts(solution.travel),
        **({} if seconds is None else {"seconds": seconds}),
        "routes": [_route_members(route, streets) for route in solution.routes],
    }


def _version(solution: Solution, streets: Instance | None) -> int:
    """Return the oldest version that holds the plan."""
    served = {service.link for route in solution.routes for service in route.services}
    if streets is not None and served:
        return 5 if any(streets.links[link].ids for link in served) else 4
    if solution.visit_cost or any(
        route.vehicle or route.visits or route.number is not None
        for route in solution.routes
    ):
        return 3
    travels = {solution.travel, *(route.travel for route in solution.routes)}
    return 1 if travels == {None} else 2


def _amount(item: JsonObject, key: str) -> int:
    # A wrong statement, even a negative one, is for the checker to find.
    return item.integer(key, -MAX_NODE, MAX_NODE)


def _read_travel(item: JsonObject) -> Travel | None:
    known = item.optional_object("travel", _TRAVEL_KEYS)
    if known is None:
        return None
    return Travel(**{key: _amount(known, key) for key in _TRAVEL_KEYS if key in known})


def _read_route(item: JsonObject, instance: Instance) -> Route:
    last = len(instance.links) - 1
    visits = list(item.items("visits", optional=True))
    if visits and not instance.facilities:
        item.refuse(item.place("visits"), "no visits, as there are no facilities,", visits)
    return Route(
        services=tuple(
            _read_service(service, instance)
            for service in item.objects("services", _SERVICE_KEYS)
        ),
        load=_amount(item, "load"),
        cost=_amount(item, "cost"),
        path=tuple(
            Step(step.integer("link", 0, last), step.flag("reverse"), step.flag("serves"))
            for step in item.objects("path", _STEP_KEYS, optional=True)
        ),
        travel=_read_travel(item),
        vehicle=item.optional_integer("vehicle", 0, len(instance.fleet) - 1) or 0,
        visits=tuple(
            FacilityVisit(
                facility=visit.integer("facility", 0, len(instance.facilities) - 1),
                services=_amount(visit, "services"),
                steps=_amount(visit, "steps") if "steps" in visit else None,
            )
            for visit in item.objects("visits", _VISIT_KEYS, optional=True)
        ),
        number=item.optional_integer("number", -MAX_NODE, MAX_NODE),
    )


def _read_service(item: JsonObject, instance: Instance) -> Service:
    service = Service(
        item.integer("link", 0, len(instance.links) - 1), item.flag("reverse")
    )
    # People read the name; ends and ids show whether the plan is one of this instance.
    item.text("name", "")
    link = instance.links[service.link]
    if "ids" in item and item.ids("ids") != link.ids:
        expected = (
            f"ids {quote(dump(link.ids))}, those of link {service.link} of instance "
            f"{quote(instance.name)},"
        )
        item.refuse(item.place("ids"), expected, dump(item.ids("ids")))
    ends = link.ends(service.reverse)
    for key, verb, node in zip(("from", "to"), ("starts", "ends"), ends, strict=True):
        stated = item.optional_integer(key, MIN_NODE, MAX_NODE)
        if stated not in (None, node):
            expected = (
                f"node {node}, where link {service.link} of instance "
                f"{quote(instance.name)} {verb},"
            )
            item.refuse(item.place(key), expected, stated)
    return service


def _service_members(service: Service, instance: Instance | None) -> dict[str, object]:
    """Return a service; with an instance, also name, ids and ends of its street."""
    members: dict[str, object] = {"link": service.link, "reverse": service.reverse}
    if instance is None:
        return members
    link = instance.links[service.link]
    start, end = link.ends(service.reverse)
    if link.name:
        members["name"] = link.name
    if link.ids:
        members["ids"] = list(link.ids)
    return members | {"from": start, "to": end}


def _route_members(route: Route, streets: Instance | None) -> dict[str, object]:
    members: dict[str, object] = {
        **({} if route.number is None else {"number": route.number}),
        **({"vehicle": route.vehicle} if route.vehicle else {}),
        "load": route.load,
        "cost": route.cost,
        **travel_facts(route.travel),
        "services": [_service_members(service, streets) for service in route.services],
    }
    if route.visits:
        members["visits"] = [_visit_members(visit) for visit in route.visits]
    if route.path:
        members["path"] = [
            {"link": step.link, "reverse": step.reverse, "serves": step.serves}
            for step in route.path
        ]
    return members


def _visit_members(visit: FacilityVisit) -> dict[str, object]:
    members: dict[str, object] = {"facility": visit.facility, "services": visit.services}
    return members if visit.steps is None else members | {"steps": visit.steps}
