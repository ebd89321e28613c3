"""Changes of an instance by street names: exclude streets, require others, pin them."""

from __future__ import annotations

import difflib
import statistics
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from arcfleet._checks import whole
from arcfleet.errors import OptionError
from arcfleet.instance.operations import Assignment

if TYPE_CHECKING:
    from arcfleet.instance.instance import Instance, Link

#: A street: its name, which may be that of several links, the position of one link, or
#: `id:` and an id of the owner's data.
StreetName = str | int
#: Pins as a dict, or as pairs where a street may come twice.
Pins = Mapping[Any, int] | Iterable[tuple[StreetName, int]]
#: Demand of each link of a street, or "length" for its metres.
LinkDemand = int | Literal["length"]
#: Demands by names or positions of links.
Demands = Mapping[Any, LinkDemand]

_POSITION, _ID = "link:", "id:"


def exclude(instance: Instance, streets: StreetName | Iterable[StreetName]) -> Instance:
    """Return the instance in which some streets are not required; they may be driven on.

    Pins, locked routes and the previous plan lose these streets.

    Parameters
    ----------
    instance
        Instance to change.
    streets
        Names, regardless of case and accents, or positions of links; or one of them.

    Raises
    ------
    OptionError
        If a street is not in the instance, or is not required.
    """
    gone = {link for one in as_streets(streets) for link in find_links(instance, one)}
    links = tuple(
        not_required(link) if position in gone else link
        for position, link in enumerate(instance.links)
    )
    locks = (
        replace(lock, services=left)
        for lock in instance.locks
        if (left := tuple(one for one in lock.services if one[0] not in gone))
    )
    return replace(
        instance,
        links=links,
        pins=tuple(pin for pin in instance.pins if pin.link not in gone),
        previous=tuple(one for one in instance.previous if one.link not in gone),
        locks=tuple(locks),
    )


def require(instance: Instance, demands: Demands) -> Instance:
    """Return the instance in which more streets are required.

    Serving them costs, and takes, as much more than driving as on the required links, on
    average.

    Parameters
    ----------
    instance
        Instance to change.
    demands
        Demand of each link of a street, by names or positions of links; "length" for the
        metres of the link.

    Raises
    ------
    OptionError
        If a street is not in the instance, is required already, or has no known length.
    """
    wanted: dict[int, int] = {}
    for street, demand in as_demands(demands).items():
        for position in find_links(instance, street, required=False):
            metres = instance.links[position].metres
            if demand == "length" and metres is None:
                raise OptionError(
                    f"expected a demand of {instance.describe_link(position)}, whose "
                    "length is unknown, got 'length': give a number"
                )
            wanted[position] = max(1, metres or 0) if demand == "length" else demand
    factors = _service_factors(instance)
    links = tuple(
        _required(link, wanted[position], *factors) if position in wanted else link
        for position, link in enumerate(instance.links)
    )
    return replace(instance, links=links)


def pin(instance: Instance, pins: Pins) -> Instance:
    """Return the instance in which streets must be on given routes.

    A new pin replaces the one that the instance has for a street.

    Parameters
    ----------
    instance
        Instance to change.
    pins
        Number of the route of each street, by names or positions of links.

    Raises
    ------
    OptionError
        If a street is not in the instance, or is not required.
    InstanceError
        If pins contradict each other or a locked route.
    """
    wanted = dict.fromkeys(
        Assignment(position, route)
        for street, route in as_pairs(pins)
        for position in find_links(instance, street)
    )
    links = {one.link for one in wanted}
    kept = (one for one in instance.pins if one in wanted or one.link not in links)
    return replace(instance, pins=tuple(dict.fromkeys((*kept, *wanted))))


def as_pairs(pins: Pins) -> tuple[tuple[StreetName, int], ...]:
    """Return pins as pairs of a street and its route; OptionError if they are none."""
    given: object = pins.items() if isinstance(pins, Mapping) else pins
    pairs = tuple(given) if isinstance(given, Iterable) else (given,)
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise OptionError(
                "expected streets with the numbers of their routes as in "
                f"{{'Mill Lane': 2}}, got {pair!r:.60}"
            )
    return tuple((street, route) for street, route in pairs)


def as_streets(streets: StreetName | Iterable[StreetName]) -> tuple[StreetName, ...]:
    """Return streets as a tuple, also a single one; OptionError if they are none."""
    if isinstance(streets, str | int):
        return (streets,)
    given: object = streets
    if not isinstance(given, Iterable):
        raise OptionError(
            f"expected names of streets as in ['Mill Lane'], got {streets!r:.60}"
        )
    return tuple(streets)


def as_demands(demands: Demands) -> Demands:
    """Return demands as they are; OptionError if they are none."""
    if not isinstance(demands, Mapping):
        raise OptionError(
            "expected streets with the demand of their links as in {'Mill Lane': 120}, got "
            f"{demands!r:.60}"
        )
    return demands


def find_links(
    instance: Instance, street: StreetName, *, required: bool = True
) -> tuple[int, ...]:
    """Return the links of a street: those that are required, or those that are not.

    Parameters
    ----------
    instance
        Instance that has them.
    street
        Name, regardless of case and accents; position of a link, also as `link:17`; or id
        of your own data as `id:B-3`.
    required
        Whether to return required links or the others.

    Raises
    ------
    OptionError
        If there are none.
    """
    found = _all_links(instance, street)
    matching = tuple(one for one in found if instance.links[one].required == required)
    if not matching:
        state = "is only driven on" if required else "is required already"
        what = "to be served" if required else "only driven on"
        raise OptionError(
            f"expected a street that is {what} in instance {instance.name!r}, got "
            f"{street!r}, which {state}"
        )
    return matching


def _all_links(instance: Instance, street: StreetName) -> tuple[int, ...]:
    street = whole(street)
    last, given = len(instance.links) - 1, street
    if isinstance(street, str) and street.lower().startswith(_POSITION):
        digits = street[len(_POSITION) :].strip()
        street = int(digits) if digits.isascii() and digits.isdigit() else -1
    if isinstance(street, int):
        if not 0 <= street <= last:
            raise OptionError(
                f"expected a link from 0 to {last} in instance {instance.name!r}, got "
                f"{given!r}"
            )
        return (street,)
    if not isinstance(street, str):
        raise OptionError(
            f"expected the name of a street or the position of a link, got {street!r:.60}"
        )
    if street.lower().startswith(_ID):
        own = street[len(_ID) :].strip()
        found = tuple(
            position
            for position, link in enumerate(instance.links)
            if own in map(str, link.ids)
        )
        if not found:
            raise OptionError(
                f"expected the id of a street in instance {instance.name!r}, got "
                f"{street!r:.80}, which none has"
            )
        return found
    wanted = fold_name(street)
    found = tuple(
        position
        for position, link in enumerate(instance.links)
        if wanted and fold_name(link.name) == wanted
    )
    if not found:
        raise OptionError(
            f"expected the name of a street in instance {instance.name!r}, got "
            f"{street!r}: {_suggestion(instance, wanted)}"
        )
    return found


def fold_name(name: str) -> str:
    """Return a name without case, accents and superfluous spaces, to compare it."""
    # Letters of other forms, as in mathematics, have no case until they are taken apart.
    folded = unicodedata.normalize("NFKD", name).casefold()
    apart = unicodedata.normalize("NFKD", folded)
    plain = "".join(letter for letter in apart if not unicodedata.combining(letter))
    return " ".join(plain.split())


def not_required(link: Link) -> Link:
    """Return the link to be driven on only."""
    return replace(
        link,
        required=False,
        demand=0,
        service_cost=None,
        reverse_service_cost=None,
        service_seconds=None,
    )


def _suggestion(instance: Instance, wanted: str) -> str:
    known = {fold_name(link.name): " ".join(link.name.split()) for link in instance.links}
    known.pop("", None)
    if not known:
        return "its streets have no names, use positions as in 'link:17'"
    near = difflib.get_close_matches(wanted, known, n=3)
    if near:
        return f"did you mean {' or '.join(repr(known[one]) for one in near)}?"
    return "check its spelling, or use a position as in 'link:17'"


def _service_factors(instance: Instance) -> tuple[float, float]:
    """Return how much more serving costs and takes than driving, on average."""
    served = [link for link in instance.links if link.required]
    costs = [(link.service_cost or 0) / link.cost for link in served if link.cost]
    times = [
        link.service_seconds / link.seconds
        for link in served
        if link.seconds and link.service_seconds is not None
    ]
    return (
        statistics.fmean(costs) if costs else 1.0,
        statistics.fmean(times) if times else 1.0,
    )


def _required(link: Link, demand: int, cost_factor: float, time_factor: float) -> Link:
    seconds, reverse_cost = link.seconds, link.reverse_cost
    return replace(
        link,
        required=True,
        demand=demand,
        service_cost=round(link.cost * cost_factor),
        reverse_service_cost=(
            None if reverse_cost is None else round(reverse_cost * cost_factor)
        ),
        service_seconds=None if seconds is None else round(seconds * time_factor),
    )
