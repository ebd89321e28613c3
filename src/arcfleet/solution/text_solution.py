"""The CARPLIB text form of a solution, shared by HGS-CARP and OR-Tools.

Header lines: total cost, number of routes, seconds and, from HGS-CARP only, the seconds
to the best solution. Then a line per route: depot number, day, route number, load, cost,
number of visits, and the visits: `(D 0,1,1)` the depot, `(S 12,5,11)` the service of the
12th required link from node 5 to node 11.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

from arcfleet._files import quote, split_lines, whole_number
from arcfleet.errors import FileError, FormatWarning, SolutionError
from arcfleet.instance.instance import MAX_NODE
from arcfleet.solution.checker import check
from arcfleet.solution.solution import Route, Service, Solution

if TYPE_CHECKING:
    from pathlib import Path

    from arcfleet.instance.instance import Instance, Link

_SECONDS = re.compile(r"[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?")
_ROUTE = re.compile(r"((?:[0-9]+\s+){5}[0-9]+)\s*((?:\([^()]*\)\s*)*)")
_VISIT = re.compile(r"\(([^()]*)\)")
_VISIT_PARTS = re.compile(r"\s*([DSds])\s+([0-9]+)\s*,\s*([0-9]+)\s*,\s*([0-9]+)\s*")
_EXAMPLE = "0 1 1 5 76 3 (D 0,1,1) (S 12,5,11) (D 0,1,1)"
#: Numbered lines of a file, blank ones left out.
_Lines = list[tuple[int, str]]


def read_text_solution(path: Path | str, text: str, instance: Instance) -> Solution:
    """Read the text of `path` as a plan for `instance`."""
    lines = [
        (number, line.strip())
        for number, line in enumerate(split_lines(text), start=1)
        if line.strip()
    ]
    cost = _header_number(path, lines, 0, "the total cost")
    count = _header_number(path, lines, 1, "the number of routes")
    header = 3
    _check_seconds(path, lines, 2)
    if len(lines) > 3 and _SECONDS.fullmatch(lines[3][1]):
        header = 4
    required = instance.required
    routes = tuple(
        _read_route(path, number, line, instance, required)
        for number, line in lines[header:]
    )
    if len(routes) != count:
        raise FileError(
            path,
            f"expected {count} routes as stated here, found {len(routes)}",
            lines[1][0],
        )
    service_cost = sum(
        _service_cost(instance.links[service.link], service)
        for route in routes
        for service in route.services
    )
    draft = Solution(
        routes=routes,
        cost=cost,
        deadhead=cost - service_cost - instance.route_cost * len(routes),
        service_cost=service_cost,
    )
    # The text states no deadhead, so none may be held against it: where it can be worked
    # out it is the true one.
    deadhead = check(instance, draft).deadhead
    return draft if deadhead is None else replace(draft, deadhead=deadhead)


def format_text_solution(
    path: Path | str, solution: Solution, instance: Instance, seconds: float
) -> str:
    """Return the text; warn of a direction that it cannot tell."""
    ids = {link: number for number, link in enumerate(instance.required, start=1)}
    depot = f"(D 0,{instance.depot},{instance.depot})"
    lines = [str(solution.cost), str(len(solution.routes)), f"{seconds:.2f}"]
    for number, route in enumerate(solution.routes, start=1):
        visits = [depot]
        for service in route.services:
            if service.link not in ids:
                raise SolutionError(
                    f"expected services of required links of instance {instance.name!r}, "
                    f"got link {service.link} in route {number}"
                )
            link = instance.links[service.link]
            if service.reverse and link.tail == link.head and not _same_both_ways(link):
                warnings.warn(
                    f"{path}: the text form cannot tell that loop {link.tail}-{link.head} "
                    f"is served in reverse in route {number}; write JSON to keep it",
                    FormatWarning,
                    stacklevel=2,
                )
            start, end = link.ends(service.reverse)
            visits.append(f"(S {ids[service.link]},{start},{end})")
        visits.append(depot)
        lines.append(
            f"0 1 {number} {route.load} {route.cost} {len(visits)} {' '.join(visits)}"
        )
    return "\n".join(lines) + "\n"


def _header_number(path: Path | str, lines: _Lines, index: int, what: str) -> int:
    if index >= len(lines):
        raise FileError(path, f"expected {what}, found the end of the file")
    number, line = lines[index]
    value = whole_number(line, 0, MAX_NODE)
    if value is None:
        raise FileError(
            path, f"expected {what} as a whole number, found {quote(line)}", number
        )
    return value


def _check_seconds(path: Path | str, lines: _Lines, index: int) -> None:
    if index >= len(lines):
        raise FileError(path, "expected the seconds, found the end of the file")
    number, line = lines[index]
    if not _SECONDS.fullmatch(line):
        raise FileError(
            path, f"expected the seconds as a number, found {quote(line)}", number
        )


def _read_route(
    path: Path | str, number: int, line: str, instance: Instance, required: tuple[int, ...]
) -> Route:
    match = _ROUTE.fullmatch(line)
    if match is None:
        raise FileError(
            path, f"expected a route like {_EXAMPLE!r}, found {quote(line)}", number
        )
    numbers = [whole_number(text, 0, MAX_NODE) for text in match[1].split()]
    load, cost, stated_visits = numbers[3:]
    if load is None or cost is None:
        raise FileError(
            path, f"expected load and cost up to {MAX_NODE}, found {quote(line)}", number
        )
    visits = _VISIT.findall(match[2])
    if len(visits) != stated_visits:
        raise FileError(
            path,
            f"expected as many visits as stated in {quote(line)}, found {len(visits)}",
            number,
        )
    services = [
        _read_visit(
            path, number, visit, instance, required, position in (0, len(visits) - 1)
        )
        for position, visit in enumerate(visits)
    ]
    if len(visits) < 2:
        raise FileError(
            path,
            f"expected a route to start and end with a depot visit, found {quote(line)}",
            number,
        )
    return Route(
        services=tuple(service for service in services if service is not None),
        load=load,
        cost=cost,
    )


def _read_visit(
    path: Path | str,
    number: int,
    visit: str,
    instance: Instance,
    required: tuple[int, ...],
    at_depot: bool,
) -> Service | None:
    """Read one visit; None for the depot."""
    found = quote(f"({visit})")
    parts = _VISIT_PARTS.fullmatch(visit)
    if parts is None or (parts[1].upper() == "D") != at_depot:
        expected = "a depot visit like (D 0,1,1) first and last"
        if not at_depot:
            expected = "a service like (S 12,5,11) between the depot visits"
        raise FileError(path, f"expected {expected}, found {found}", number)
    link_id, start, end = (whole_number(text, 0, MAX_NODE) for text in parts.groups()[1:])
    if at_depot:
        if (link_id, start, end) != (0, instance.depot, instance.depot):
            raise FileError(
                path,
                f"expected (D 0,{instance.depot},{instance.depot}) for the depot "
                f"of instance {instance.name!r}, found {found}",
                number,
            )
        return None
    if link_id is None or not 1 <= link_id <= len(required):
        raise FileError(
            path,
            f"expected a required link from 1 to {len(required)}, found {found}",
            number,
        )
    position = required[link_id - 1]
    link = instance.links[position]
    if (start, end) == (link.tail, link.head):
        return Service(position)
    if (start, end) == (link.head, link.tail):
        return Service(position, reverse=True)
    raise FileError(
        path,
        f"expected nodes {link.tail} and {link.head} of required link {link_id}, "
        f"found {found}",
        number,
    )


def _service_cost(link: Link, service: Service) -> int:
    # A one-way street served the wrong way has only its forward cost; the checker
    # refuses the direction.
    cost = link.step_cost(service.reverse, serves=True)
    return (link.service_cost if cost is None else cost) or 0


def _same_both_ways(link: Link) -> bool:
    return (link.cost, link.service_cost) == (link.reverse_cost, link.reverse_service_cost)
