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

from arcfleet._files import quote, signed_number, split_lines, whole_number
from arcfleet.errors import FileError, FormatWarning, SolutionError
from arcfleet.instance.instance import MAX_NODE, MIN_NODE
from arcfleet.solution.checker import check
from arcfleet.solution.solution import Route, Service, Solution

if TYPE_CHECKING:
    from pathlib import Path

    from arcfleet.instance.instance import Instance, Link

_SECONDS = re.compile(r"[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?")
_ROUTE = re.compile(r"((?:[0-9]+\s+){5}[0-9]+)\s*((?:\([^()]*\)\s*)*)")
_VISIT = re.compile(r"\(([^()]*)\)")
_VISIT_PARTS = re.compile(r"\s*([DSds])\s+([0-9]+)\s*,\s*(-?[0-9]+)\s*,\s*(-?[0-9]+)\s*")
_EXAMPLE = "0 1 1 5 76 3 (D 0,1,1) (S 12,5,11) (D 0,1,1)"


def read_text_solution(path: Path | str, text: str, instance: Instance) -> Solution:
    """Read the text of `path` as a plan for `instance`."""
    return _Reader(path, instance).read(text)


def format_text_solution(
    path: Path | str, solution: Solution, instance: Instance, seconds: float
) -> str:
    """Return the text; warn of directions and numbers of routes that it cannot tell.

    Raises SolutionError for what it cannot hold: vehicle types, facility visits and routes
    that end elsewhere than they start.
    """
    _check_holds(solution, instance)
    changed = [
        f"route {number} is {position}"
        for position, number in enumerate(solution.numbers, start=1)
        if number != position
    ]
    if changed:
        more = f" and {len(changed) - 1} more differ" if len(changed) > 1 else ""
        warnings.warn(
            f"{path}: the text form numbers routes by their position: {changed[0]} there"
            f"{more}; write a .json file to keep the numbers",
            FormatWarning,
            stacklevel=2,
        )
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
            there = (link.cost, link.service_cost)
            back = (link.reverse_cost, link.reverse_service_cost)
            if service.reverse and link.tail == link.head and there != back:
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


def text_obstacle(instance: Instance) -> str | None:
    """Return what asks for plans that a text may not be able to hold; None if nothing."""
    first = instance.fleet[0]
    obstacles = {
        "several vehicle types": len(instance.fleet) > 1,
        "routes that end elsewhere than they start": first.end != first.start,
        "facilities": bool(instance.facilities),
        "pins": bool(instance.pins),
        "locked routes": bool(instance.locks),
        "a price for change": instance.change_price > 0 and bool(instance.previous),
    }
    return next((what for what, is_asked in obstacles.items() if is_asked), None)


def _check_holds(solution: Solution, instance: Instance) -> None:
    """Raise SolutionError where the plan has what a text cannot say."""
    obstacle = None
    first = instance.fleet[0]
    for position, route in enumerate(solution.routes, start=1):
        if route.vehicle != 0:
            obstacle = f"vehicle type {route.vehicle}"
        elif first.end != first.start:
            obstacle = f"depot {first.start} at the start and {first.end} at the end"
        elif route.visits:
            obstacle = f"{len(route.visits)} facility visits"
        if obstacle is not None:
            raise SolutionError(
                f"expected a plan that the text form can hold, got {obstacle} on route "
                f"{position} of the plan; write a .json file instead"
            )


class _Reader:
    """Reads one file; every mistake is a FileError with its line."""

    def __init__(self, path: Path | str, instance: Instance) -> None:
        self.path = path
        self.instance = instance
        self.required = instance.required
        # The text has one depot and one fixed cost: those of the first vehicle type.
        self.depot = instance.fleet[0].start
        self.fixed_cost = instance.fleet[0].fixed_cost

    def read(self, text: str) -> Solution:
        numbered = enumerate(map(str.strip, split_lines(text)), start=1)
        lines = [(number, line) for number, line in numbered if line]
        header: list[tuple[int, str, str]] = []
        for what in ("the total cost", "the number of routes", "the seconds"):
            if len(header) == len(lines):
                raise FileError(self.path, f"expected {what}, found the end of the file")
            header.append((*lines[len(header)], what))
        cost, count = (self._whole_number(*entry) for entry in header[:2])
        number, line, _ = header[2]
        if not _SECONDS.fullmatch(line):
            raise self._wrong(number, "the seconds as a number", line)
        has_best = len(lines) > 3 and _SECONDS.fullmatch(lines[3][1])
        routes = tuple(self._route(*entry) for entry in lines[4 if has_best else 3 :])
        if len(routes) != count:
            raise FileError(
                self.path,
                f"expected {count} routes as stated here, found {len(routes)}",
                lines[1][0],
            )
        service_cost = sum(
            _service_cost(self.instance.links[service.link], service)
            for route in routes
            for service in route.services
        )
        draft = Solution(
            routes=routes,
            cost=cost,
            deadhead=cost - service_cost - self.fixed_cost * len(routes),
            service_cost=service_cost,
        )
        # The text states no deadhead, so none may be held against it: where it can be
        # worked out it is the true one.
        deadhead = check(self.instance, draft).deadhead
        return draft if deadhead is None else replace(draft, deadhead=deadhead)

    def _wrong(self, number: int, expected: str, found: str) -> FileError:
        return FileError(self.path, f"expected {expected}, found {quote(found)}", number)

    def _whole_number(self, number: int, line: str, what: str) -> int:
        value = whole_number(line, 0, MAX_NODE)
        if value is None:
            raise self._wrong(number, f"{what} as a whole number", line)
        return value

    def _route(self, number: int, line: str) -> Route:
        match = _ROUTE.fullmatch(line)
        if match is None:
            raise self._wrong(number, f"a route like {_EXAMPLE!r}", line)
        numbers = [whole_number(text, 0, MAX_NODE) for text in match[1].split()]
        load, cost, stated_visits = numbers[3:]
        if load is None or cost is None:
            raise self._wrong(number, f"load and cost up to {MAX_NODE}", line)
        visits = _VISIT.findall(match[2])
        if len(visits) != stated_visits:
            raise FileError(
                self.path,
                f"expected as many visits as stated in {quote(line)}, found {len(visits)}",
                number,
            )
        last = len(visits) - 1
        services = [
            self._visit(number, visit, at_depot=position in (0, last))
            for position, visit in enumerate(visits)
        ]
        if len(visits) < 2:
            raise self._wrong(number, "a route to start and end with a depot visit", line)
        served = tuple(service for service in services if service is not None)
        return Route(services=served, load=load, cost=cost)

    def _visit(self, number: int, visit: str, *, at_depot: bool) -> Service | None:
        """Read one visit; None for the depot."""
        found = f"({visit})"
        parts = _VISIT_PARTS.fullmatch(visit)
        if parts is None or (parts[1].upper() == "D") != at_depot:
            expected = "a depot visit like (D 0,1,1) first and last"
            if not at_depot:
                expected = "a service like (S 12,5,11) between the depot visits"
            raise self._wrong(number, expected, found)
        task = whole_number(parts[2], 0, MAX_NODE)
        start, end = (signed_number(parts[i], MIN_NODE, MAX_NODE) for i in (3, 4))
        if at_depot:
            depot = self.depot
            if (task, start, end) != (0, depot, depot):
                of = f"for the depot of instance {self.instance.name!r}"
                raise self._wrong(number, f"(D 0,{depot},{depot}) {of}", found)
            return None
        if task is None or not 1 <= task <= len(self.required):
            expected = f"a required link from 1 to {len(self.required)}"
            raise self._wrong(number, expected, found)
        position = self.required[task - 1]
        link = self.instance.links[position]
        for reverse in (False, True):
            if (start, end) == link.ends(reverse):
                return Service(position, reverse)
        expected = f"nodes {link.tail} and {link.head} of required link {task}"
        raise self._wrong(number, expected, found)


def _service_cost(link: Link, service: Service) -> int:
    # A one-way street served the wrong way has only its forward cost; the checker
    # refuses the direction.
    cost = link.step_cost(service.reverse, serves=True)
    return (link.service_cost if cost is None else cost) or 0
