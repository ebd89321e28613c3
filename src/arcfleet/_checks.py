"""Checks of arguments and names, shared by all layers."""

from __future__ import annotations

import difflib
import math
from contextlib import contextmanager
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from arcfleet.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def check_whole_number(name: str, value: object, least: int, most: int) -> None:
    """Raise OptionError unless `value` is an integer from `least` to `most`."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise OptionError(
            f"expected {name} to be a whole number from {least} to {most}, got {value!r}"
        )


def check_number(name: str, value: object, least: float, most: float) -> None:
    """Raise OptionError unless `value` is a number from `least` to `most`."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (is_number and least <= value <= most):  # type: ignore[operator]
        raise OptionError(f"expected {name} between {least:g} and {most:g}, got {value!r}")


def whole(value: Any) -> Any:
    """Return a whole number of any type as an int, and anything else as it is."""
    kind = type(value)
    if value is None or kind is int or kind is bool:
        return value
    if kind.__name__ in ("bool_", "bool"):  # numpy's
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real) and float(value).is_integer():
        return int(float(value))
    return value


def make_whole(record: object, fields: Iterable[str]) -> None:
    """Make whole numbers of other types, such as numpy's, ints in a frozen dataclass."""
    for field in fields:
        value = getattr(record, field)
        if type(value) is not int and value is not None and type(value) is not bool:
            object.__setattr__(record, field, whole(value))


def is_empty(value: Any) -> bool:
    """Return whether a cell of a table has no value: None, NaN, NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and math.isnan(value)


def nearest_name(name: object, known: Iterable[str]) -> str | None:
    """Return the known name that resembles `name` most; None if none does."""
    close = difflib.get_close_matches(str(name).lower(), list(known), n=1)
    return close[0] if close else None


def name_hint(name: object, known: Iterable[str]) -> str:
    """Return the end of a message on an unknown name: the nearest known one, or all."""
    near = nearest_name(name, known)
    return f"did you mean {near!r}?" if near else f"known are {', '.join(known)}"


@contextmanager
def needs(package: str, purpose: str, extra: str, otherwise: str = "") -> Iterator[None]:
    """Turn a failed import of an optional package into an OptionError."""
    try:
        yield
    except ImportError as error:
        raise OptionError(
            f"{purpose} needs {package}, which is not installed: "
            f"install arcfleet[{extra}]{otherwise}"
        ) from error


def one_line(text: str) -> str:
    """Return a name fit to print: no line ends, no control characters."""
    return "".join(c if c.isprintable() else "?" for c in text)
