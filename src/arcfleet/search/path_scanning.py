"""Path scanning: plans built service by service, nearest first, many times over.

One iteration is one complete plan. Iteration i depends on the seed and i alone, so the
number of threads changes the time and nothing else, unless a target cost ends the run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from arcfleet import _core
from arcfleet._checks import check_number
from arcfleet.errors import OptionError
from arcfleet.search.fleet import fleet_scanning
from arcfleet.search.run import run_engine

if TYPE_CHECKING:
    from arcfleet.network import Network
    from arcfleet.search.result import Result
    from arcfleet.search.run import RunContext


@dataclass(frozen=True, slots=True, kw_only=True)
class PathScanningSettings:
    """Parameters of path scanning, which tell its variants apart.

    Parameters
    ----------
    choice
        Rule that breaks ties between equally near arcs.
    trigger
        Condition under which a route begins to refuse arcs.
    filter
        Rule for the arcs that it then still accepts.
    alpha
        Number of mean demands that must fit into the remaining capacity for a route to
        accept any arc.
    """

    choice: _core.Choice
    trigger: _core.Trigger = _core.Trigger.never
    filter: _core.Filter = _core.Filter.ellipse
    alpha: float = 0.0

    def __post_init__(self) -> None:
        """Check every setting; rules may be given by their names."""
        for name, enum in (
            ("choice", _core.Choice),
            ("trigger", _core.Trigger),
            ("filter", _core.Filter),
        ):
            given = getattr(self, name)
            if isinstance(given, str) and given in enum.__members__:
                object.__setattr__(self, name, enum[given])
            elif not isinstance(given, enum):
                known = ", ".join(enum.__members__)
                raise OptionError(f"expected {name} to be one of {known}, got {given!r}")
        check_number("alpha", self.alpha, 0, 1e6)


#: Number of plans of "ps": one for each of the five rules.
FIVE_RULES = 5

#: Parameters of the published experiments (Arakaki and Usberti 2019).
PATH_SCANNING_VARIANTS = {
    "ps": PathScanningSettings(choice=_core.Choice.rules),
    "ps-random-rule": PathScanningSettings(choice=_core.Choice.random_rule),
    "ps-random-arc": PathScanningSettings(choice=_core.Choice.random_arc),
} | {
    name: PathScanningSettings(
        choice=_core.Choice.random_arc, trigger=trigger, filter=accepted, alpha=alpha
    )
    for name, trigger, accepted, alpha in (
        ("ps-ellipse", _core.Trigger.everywhere, _core.Filter.ellipse, 1.5),
        ("ps-efficiency", _core.Trigger.nearby, _core.Filter.efficiency, 3.0),
        ("ps-alt1", _core.Trigger.everywhere, _core.Filter.efficiency, 3.0),
        ("ps-alt2", _core.Trigger.nearby, _core.Filter.ellipse, 1.0),
    )
}


def path_scanning(network: Network, context: RunContext) -> Result:
    """Run the variant that the context names; the instance must have passed `diagnose`."""
    settings = context.params or PATH_SCANNING_VARIANTS[context.method]
    if network.instance.operations:
        return fleet_scanning(network, context, settings)
    parameters = (settings.choice, settings.trigger, settings.filter, settings.alpha)

    def make_engine() -> _core.PathScanning:
        return _core.PathScanning(network.core, *parameters, context.seed)

    return run_engine(make_engine, network, context)
