"""Options that change an instance for the day, and what they keep of an earlier plan."""

from __future__ import annotations

from argparse import ArgumentTypeError
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arcfleet.cli.options import names, option, positive_number, whole_number
from arcfleet.cli.output import note
from arcfleet.errors import FileError, OptionError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from arcfleet.instance import Instance
    from arcfleet.instance.change import LinkDemand
    from arcfleet.solution import Solution

REPEATABLE: dict[str, Any] = {"action": "append", "default": []}


def add_changes(parser: ArgumentParser) -> None:
    """Add --start and what belongs to it, --pin, --exclude-name and --out-instance."""
    group = parser.add_argument_group("the next day")
    text = "warm-start from this plan; what does not fit the instance is repaired"
    option(group, "--start", text, Path, "PLAN")
    add_old_instance(group)
    text = "price of every street that leaves its route of the plan, in the unit of costs"
    option(group, "--keep", text, whole_number, "PRICE")
    text = "routes of the plan that stay as they are"
    option(group, "--lock", text, route_numbers, "ROUTE[,ROUTE]", default=[])
    text = "serve streets of this name on this route; repeatable"
    option(group, "--pin", text, street_and_route, "NAME=ROUTE", **REPEATABLE)
    text = "do not serve streets of this name, drive on them only; repeatable"
    option(group, "--exclude-name", text, str, "NAME", **REPEATABLE)
    add_out_instance(group)


def add_old_instance(parser: Any) -> None:
    """Add --old-instance."""
    text = "instance of the earlier plan, if its links have other positions"
    option(parser, "--old-instance", text, Path, "FILE")


def add_out_instance(parser: Any) -> None:
    """Add --out-instance."""
    text = "write the instance with these changes (.json)"
    option(parser, "--out-instance", text, Path, "FILE")


def changed(options: Namespace, instance: Instance) -> tuple[Instance, Solution | None]:
    """Return the instance as the options change it, and the plan to start from."""
    from arcfleet.instance.change import exclude, pin
    from arcfleet.instance.files import read
    from arcfleet.solution.start import prepare_start

    instance = exclude(instance, options.exclude_name)
    instance = pin(instance, options.pin)
    if options.start is None:
        for name in ("keep", "lock", "old_instance"):
            if getattr(options, name) not in (None, []):
                raise OptionError(
                    f"expected --start with --{name.replace('_', '-')}, got none: name the "
                    "plan"
                )
        return instance, None
    old = None if options.old_instance is None else read(options.old_instance)
    plan = read_plan(options.start, instance if old is None else old, known=old is not None)
    instance, repaired = prepare_start(
        instance, plan, price=options.keep, locked=options.lock, old_instance=old
    )
    if not repaired.ok:
        note(f"searching without {options.start}: {repaired.reason}")
        return instance, None
    if repaired.notes:
        note(f"repaired {options.start}: {repaired}")
    return instance, repaired.solution


def note_unwritten(options: Namespace) -> None:
    """Warn that a plan belongs to an instance that is not written."""
    if options.out is not None and options.out_instance is None:
        note(
            f"{options.out} belongs to the instance with these changes; --out-instance "
            "writes it"
        )


def read_plan(path: Path, instance: Instance, *, known: bool = True) -> Solution:
    """Read a plan; where its instance is not known for sure, say what to do about it."""
    from arcfleet.solution.files import read_solution

    try:
        return read_solution(path, instance)
    except FileError as error:
        if known or "link" not in str(error):
            raise
        raise OptionError(
            f"{error}: if the plan was made for another instance, add --old-instance"
        ) from error


def route_numbers(text: str) -> list[int]:
    """Parse route numbers with commas between, for argparse."""
    return [positive_number(one) for one in names(text)]


def street_and_route(text: str) -> tuple[str, int]:
    """Parse `NAME=ROUTE`, for argparse."""
    name, _, route = text.rpartition("=")
    if not name.strip() or not route.strip().isdigit():
        raise ArgumentTypeError(
            f"expected a street and its route as in 'Mill Lane=2', got {text[:60]!r}"
        )
    return name.strip(), positive_number(route.strip())


def street_and_demand(text: str) -> tuple[str, LinkDemand]:
    """Parse `NAME=DEMAND`, for argparse."""
    name, _, demand = text.rpartition("=")
    demand = demand.strip()
    if name.strip() and demand == "length":
        return name.strip(), "length"
    if not name.strip() or not demand.isdigit():
        raise ArgumentTypeError(
            "expected a street and the demand of its links as in 'Mill Lane=120' or "
            f"'Mill Lane=length', got {text[:60]!r}"
        )
    return name.strip(), whole_number(demand)
