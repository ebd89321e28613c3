"""Checks of the sizes of a model, the same for every kind."""

from __future__ import annotations

from arcfleet.errors import OptionError


def require_sizes(config: object, **least: int) -> None:
    """Raise OptionError unless sizes of a model are whole numbers, and large enough."""
    for name, smallest in least.items():
        value = getattr(config, name)
        if type(value) is not int:  # a bool is an int, but no size
            raise OptionError(f"expected {name} to be a whole number, got {value!r:.40}")
        if value < smallest:
            raise OptionError(f"expected {name} to be at least {smallest}, got {value}")


def require_divisors(width: int, **heads: int) -> None:
    """Raise OptionError unless every number of heads divides the width."""
    for name, count in heads.items():
        if width % count:
            raise OptionError(
                f"expected a width that {name} divides, got width {width} and "
                f"{count} {name}"
            )
