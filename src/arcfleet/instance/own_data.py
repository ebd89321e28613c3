"""Ids and attributes that streets keep from the table or map of their owner.

Nothing searches on them. They travel from the data into the instance, its file and the
files of its plans, so that a plan can be joined back to the data.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from arcfleet._checks import one_line
from arcfleet.errors import InstanceError

if TYPE_CHECKING:
    from collections.abc import Collection

#: An id of a street in its owner's data.
StreetId = int | str
#: What an attribute of a street may hold.
AttributeValue = str | int | float | bool | None
#: Whole numbers are within this, as 64 bits hold.
_LARGEST = 2**63 - 1
_OWN = "own_"


def own_ids(ids: Any, where: str) -> tuple[StreetId, ...]:
    """Return ids as plain whole numbers and texts; a single one may stand for itself."""
    if isinstance(ids, str) or not isinstance(ids, Iterable):
        ids = (ids,)
    return tuple(own_id(each, where) for each in ids)


def own_id(value: Any, where: str) -> StreetId:
    """Return an id as a plain int or str; raise InstanceError if it is neither."""
    plain = plain_value(value)
    if isinstance(plain, float) and plain.is_integer():
        plain = int(plain)  # a column of numbers with an empty cell
    if isinstance(plain, str) and plain:
        return _text("an id", plain, where)
    if isinstance(plain, int) and not isinstance(plain, bool) and abs(plain) <= _LARGEST:
        return plain
    raise InstanceError(
        "expected an id to be a whole number of 64 bits or a text that is not empty, got "
        f"{_shown(value)} {where}"
    )


def own_attributes(attributes: Any, where: str) -> dict[str, AttributeValue]:
    """Return a copy of attributes with plain values; raise InstanceError if unfit."""
    if not isinstance(attributes, Mapping):
        raise InstanceError(
            f"expected attributes as a dict, got {attributes!r:.60} {where}"
        )
    return {
        _name(name, where): _value(name, value, where) for name, value in attributes.items()
    }


def plain_value(value: Any) -> Any:
    """Return numbers and texts of numpy and others as Python's own; others as they are."""
    if value is None or type(value) in (str, int, float, bool):
        return value
    if type(value).__name__ in ("bool_", "bool"):  # numpy's
        return bool(value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Integral):
        return int(value)
    return float(value) if isinstance(value, Real) else value


def beside(
    attributes: Mapping[str, AttributeValue], taken: Collection[str]
) -> dict[str, AttributeValue]:
    """Return attributes for a table that has the columns `taken`: theirs become own_…."""
    found = {}
    for name, value in attributes.items():
        plain = name
        while plain.startswith(_OWN):  # own_route is that of another column, route
            plain = plain.removeprefix(_OWN)
        found[_OWN + name if plain in taken else name] = value
    return found


def ids_words(ids: tuple[StreetId, ...]) -> str:
    """Return ids for a message, as in `id 7` or `ids 7, 8, …`."""
    shown = ", ".join(one_line(str(each))[:40] for each in ids[:3])
    return f"id{'s' * (len(ids) > 1)} {shown}{', …' * (len(ids) > 3)}"


def _name(name: object, where: str) -> str:
    if not isinstance(name, str) or not name:
        raise InstanceError(
            "expected names of attributes as texts that are not empty, got "
            f"{name!r:.60} {where}"
        )
    return _text("the name of an attribute", name, where)


def _value(name: object, value: object, where: str) -> AttributeValue:
    plain = plain_value(value)
    if isinstance(plain, str):
        return _text(f"attribute {name!r:.40}", plain, where)
    if plain is None or isinstance(plain, bool):
        return plain
    if isinstance(plain, int) and abs(plain) <= _LARGEST:
        return plain
    if isinstance(plain, float) and math.isfinite(plain):
        return plain
    raise InstanceError(
        f"expected attribute {name!r:.40} to be a text, a finite number of 64 bits, True, "
        f"False or None, got {_shown(value)} {where}"
    )


def _shown(value: object) -> str:
    # Python refuses to write integers of thousands of digits.
    huge = isinstance(value, int) and abs(value) > 10**40
    return "a huge number" if huge else f"{value!r:.60}"


def _text(what: str, text: str, where: str) -> str:
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise InstanceError(
            f"expected {what} to be a text that UTF-8 can hold, got {text!r:.60} {where}"
        )
    return text
