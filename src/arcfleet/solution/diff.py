"""What differs between two plans: streets that moved, and every route before and after."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from arcfleet._checks import one_line
from arcfleet.errors import SolutionError
from arcfleet.solution.drive import with_all_paths
from arcfleet.solution.files import as_solution
from arcfleet.solution.match import match_links, require_fit
from arcfleet.solution.travel import duration_text, length_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from arcfleet.instance.instance import Instance
    from arcfleet.solution.solution import Route, Solution

#: Streets that the text names.
_MOST_NAMED = 20
#: Share of the streets of the earlier plan that the later instance has at least.
_LEAST_COMMON = 0.05
_WITHOUT_NAME = "without a name"


@dataclass(frozen=True, slots=True)
class Moved:
    """A street that is on another route, or on none.

    Parameters
    ----------
    link
        Position of the link in the later instance; None if it does not have it.
    name
        Street name.
    before, after
        Number of its route in the earlier and in the later plan; None if it is not served.
    old_link
        Position of the link in the earlier instance; None if only the later plan serves it.
    """

    link: int | None
    name: str
    before: int | None
    after: int | None
    old_link: int | None = None


@dataclass(frozen=True, slots=True)
class RouteFigures:
    """Figures of one route; the length and the time are None if unknown."""

    streets: int
    load: int
    cost: int
    metres: int | None
    seconds: int | None


@dataclass(frozen=True, slots=True)
class RouteChange:
    """A route before and after; None where a plan does not have it."""

    number: int
    before: RouteFigures | None
    after: RouteFigures | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """What differs between two plans.

    Parameters
    ----------
    cost_before, cost_after
        Cost of the earlier and of the later plan.
    streets
        Number of streets that both plans serve.
    moved
        Streets that both plans serve, on different routes.
    removed
        Streets that only the earlier plan serves.
    added
        Streets that only the later plan serves.
    routes
        Routes by number, before and after.
    """

    cost_before: int
    cost_after: int
    streets: int
    moved: tuple[Moved, ...]
    removed: tuple[Moved, ...]
    added: tuple[Moved, ...]
    routes: tuple[RouteChange, ...]

    def facts(self) -> dict[str, object]:
        """Return all of it, ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        """Return the changes in a few lines, and a table of the routes."""
        return "\n".join(
            [
                f"cost      {self.cost_before} -> {self.cost_after} "
                f"({self.cost_after - self.cost_before:+})",
                f"moved     {len(self.moved)} of {self.streets} streets",
                *_named(self.moved, lambda x: f"{x.before} -> {x.after}"),
                f"removed   {_streets(len(self.removed))}",
                *_named(self.removed, lambda x: f"was on route {x.before}"),
                f"added     {_streets(len(self.added))}",
                *_named(self.added, lambda x: f"on route {x.after}"),
                "",
                *_table(self.routes),
            ]
        )


def diff(
    instance: Instance,
    before: Solution | Path | str,
    after: Solution | Path | str,
    old_instance: Instance | None = None,
) -> Diff:
    """Compare two plans, route by route and street by street.

    Routes are known by their numbers. Neither plan need serve all streets.

    Parameters
    ----------
    instance
        Instance of the later plan.
    before, after
        Earlier and later plan, or the paths of their files.
    old_instance
        Instance of the earlier plan, if it is another one. Streets are matched as for a
        repair, see `match_links`.

    Raises
    ------
    SolutionError
        If a plan is none of its instance, or hardly a street of the earlier one is in the
        later instance.
    """
    source = instance if old_instance is None else old_instance
    before, after = as_solution(before, source), as_solution(after, instance)
    require_fit(source, before)
    require_fit(instance, after)
    matches = match_links(source, instance)
    earlier = _routes_of(before)
    later = _routes_of(after)
    found_again = sum(link in matches for link in earlier)
    if found_again < _LEAST_COMMON * len(earlier):
        raise SolutionError(
            f"expected plans with streets in common, got {found_again} of {len(earlier)} "
            f"streets of the earlier plan in instance {instance.name!r}: compare plans of "
            "one town"
        )
    moved, removed = [], []
    both = set()
    for link, number in earlier.items():
        now = matches[link][0] if link in matches else None
        if now is None or now not in later:
            removed.append(Moved(now, source.links[link].name, number, None, link))
            continue
        both.add(now)
        if later[now] != number:
            moved.append(Moved(now, instance.links[now].name, number, later[now], link))
    added = [
        Moved(link, instance.links[link].name, None, number)
        for link, number in later.items()
        if link not in both
    ]
    old = _figures(source, before)
    new = _figures(instance, after)
    return Diff(
        cost_before=before.cost,
        cost_after=after.cost,
        streets=len(both),
        moved=_sorted(moved),
        removed=_sorted(removed),
        added=_sorted(added),
        routes=tuple(
            RouteChange(number, old.get(number), new.get(number))
            for number in sorted({*old, *new})
        ),
    )


def _routes_of(solution: Solution) -> dict[int, int]:
    return {
        service.link: number
        for number, route in zip(solution.numbers, solution.routes, strict=True)
        for service in route.services
    }


def _sorted(moved: list[Moved]) -> tuple[Moved, ...]:
    def key(one: Moved) -> tuple[str, int]:
        return one.name, -1 if one.link is None else one.link

    return tuple(sorted(moved, key=key))


def _figures(instance: Instance, solution: Solution) -> dict[int, RouteFigures]:
    # Lengths stay unknown where a plan has no paths and serves streets of another day.
    with suppress(SolutionError):
        solution = with_all_paths(instance, solution)
    return {
        number: _route_figures(route)
        for number, route in zip(solution.numbers, solution.routes, strict=True)
    }


def _route_figures(route: Route) -> RouteFigures:
    travel = route.travel
    return RouteFigures(
        streets=len(route.services),
        load=route.load,
        cost=route.cost,
        metres=None if travel is None else travel.metres,
        seconds=None if travel is None else travel.seconds,
    )


# --- For people ---------------------------------------------------------------------------


def _named(moved: tuple[Moved, ...], how: Callable[[Moved], str]) -> Iterator[str]:
    """Yield a line for each name and change, with the number of streets."""
    counts = Counter((one_line(x.name) or _WITHOUT_NAME, how(x)) for x in moved)
    for (name, change), count in list(counts.items())[:_MOST_NAMED]:
        yield f"          {name}, {_streets(count)}: {change}"
    if len(counts) > _MOST_NAMED:
        yield f"          and {len(counts) - _MOST_NAMED} more, see --json"


def _streets(count: int) -> str:
    return "1 street" if count == 1 else f"{count} streets"


def _table(routes: tuple[RouteChange, ...]) -> Iterator[str]:
    columns: dict[str, Callable[[RouteFigures], str | None]] = {
        "streets": lambda x: str(x.streets),
        "load": lambda x: str(x.load),
        "cost": lambda x: str(x.cost),
        "distance": lambda x: None if x.metres is None else length_text(x.metres),
        "duration": lambda x: None if x.seconds is None else duration_text(x.seconds),
    }
    figures = [x for route in routes for x in (route.before, route.after) if x is not None]
    shown = {
        name: text
        for name, text in columns.items()
        if any(text(figure) is not None for figure in figures)
    }
    rows = [["route", *shown]]
    for route in routes:
        row = [str(route.number)]
        for text in shown.values():
            before, after = (
                "-" if x is None else text(x) or "-" for x in (route.before, route.after)
            )
            row.append(before if before == after else f"{before} -> {after}")
        rows.append(row)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()
