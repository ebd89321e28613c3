"""The lines of a table: ways to decode, path scanning, and searches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from arcfleet.errors import OptionError
from arcfleet.methods import METHODS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from arcfleet.experiments.table_rows import Settings

#: How the model decodes: `neural.evaluation.Decoding`.
DECODINGS = ("greedy", "greedy-optimised", "recipe", "sample")

#: The path-scanning rules of the paper's table.
SCANNING = ("ps", "ps-ellipse", "ps-efficiency", "ps-alt1", "ps-alt2")

#: Searches, which take iterations.
SEARCHES = ("ruin-recreate", "maens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A line of the table.

    Parameters
    ----------
    method
        One of DECODINGS, SCANNING or SEARCHES.
    settings
        In the order of their names.
    count
        Solve only so many instances of each set; None for all.
    """

    method: str
    settings: Settings = ()
    count: int | None = None

    @property
    def is_learned(self) -> bool:
        """Whether it needs a model."""
        return self.method in DECODINGS

    @property
    def label(self) -> str:
        """Its name in tables."""
        given = dict(self.settings)
        if self.method == "sample":
            return f"sample {given['samples']}, temperature {given['temperature']:g}"
        if self.method in SEARCHES:
            return f"{self.method}, {given['iterations']} iterations"
        if self.method in SCANNING:
            return f"{self.method}, {given['iterations']} plans"
        return self.method


def plan_contenders(
    methods: Sequence[str],
    *,
    samples: int = 32,
    temperatures: Sequence[float] = (1.0,),
    scanning_plans: int | None = None,
    iterations: Mapping[str, int] | None = None,
    search_count: int | None = None,
    seed: int = 0,
) -> list[Contender]:
    """List the lines of the table.

    Parameters
    ----------
    methods
        Among DECODINGS and SCANNING.
    samples, temperatures
        Of "sample"; each temperature is a line.
    scanning_plans
        Plans of each path scanning but `ps`; by default what is usual for it.
    iterations
        Of each of SEARCHES that is to run.
    search_count
        Instances that the searches solve of each set; by default all.
    seed
        Of all random choices.

    Raises
    ------
    OptionError
        If a method is unknown, or there is none.
    """
    contenders: list[Contender] = []
    for method in dict.fromkeys(methods):
        if method == "sample":
            contenders += [
                Contender(
                    method=method,
                    settings=(
                        ("samples", samples),
                        ("seed", seed),
                        ("temperature", float(temperature)),
                    ),
                )
                for temperature in dict.fromkeys(temperatures)
            ]
        elif method in DECODINGS:
            contenders.append(Contender(method=method))
        elif method in SCANNING:
            plans = METHODS[method].default_stop.iterations or 1
            # Plain path scanning has five rules, which give one plan each, ever the same.
            if scanning_plans is not None and method != "ps":
                plans = scanning_plans
            contenders.append(
                Contender(method=method, settings=(("iterations", plans), ("seed", seed)))
            )
        else:
            raise OptionError(
                f"expected methods among {', '.join((*DECODINGS, *SCANNING))}, "
                f"got {method!r}"
            )
    for method, limit in (iterations or {}).items():
        if method not in SEARCHES:
            raise OptionError(
                f"expected iterations of {' or '.join(SEARCHES)}, got them of {method!r}"
            )
        contenders.append(
            Contender(
                method=method,
                settings=(("iterations", limit), ("seed", seed)),
                count=search_count,
            )
        )
    if not contenders:
        raise OptionError("expected at least one method to compare, got none")
    return contenders
