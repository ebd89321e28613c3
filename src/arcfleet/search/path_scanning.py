"""Path scanning: plans built service by service, nearest first, many times over.

One iteration is one complete plan. Iteration i depends on the seed and i alone, so the
number of threads changes the time and nothing else, unless a target cost ends the run.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from arcfleet import _core
from arcfleet.errors import OptionError
from arcfleet.search.run import run_engine

if TYPE_CHECKING:
    from arcfleet.network import Network
    from arcfleet.search.progress import ProgressCallback
    from arcfleet.search.result import Result
    from arcfleet.search.stop import Stop
    from arcfleet.solution import Solution


@dataclass(frozen=True, slots=True, kw_only=True)
class PathScanningVariant:
    """One member of the family.

    Parameters
    ----------
    choice
        How ties between equally near arcs are broken.
    trigger
        When a route begins to refuse arcs.
    filter
        Which arcs it then still accepts.
    alpha
        Mean demands that must still fit for a route not to be choosy.
    plans
        Plans to build where no stop rule is given.
    """

    choice: _core.Choice
    trigger: _core.Trigger = _core.Trigger.never
    filter: _core.Filter = _core.Filter.ellipse
    alpha: float = 0.0
    plans: int = 1000


#: Parameters of the published experiments (Arakaki and Usberti 2019).
PATH_SCANNING_VARIANTS = {
    "ps": PathScanningVariant(choice=_core.Choice.rules, plans=5),
    "ps-random-rule": PathScanningVariant(choice=_core.Choice.random_rule),
    "ps-random-arc": PathScanningVariant(choice=_core.Choice.random_arc),
    "ps-ellipse": PathScanningVariant(
        choice=_core.Choice.random_arc,
        trigger=_core.Trigger.everywhere,
        filter=_core.Filter.ellipse,
        alpha=1.5,
    ),
    "ps-efficiency": PathScanningVariant(
        choice=_core.Choice.random_arc,
        trigger=_core.Trigger.nearby,
        filter=_core.Filter.efficiency,
        alpha=3.0,
    ),
    "ps-alt1": PathScanningVariant(
        choice=_core.Choice.random_arc,
        trigger=_core.Trigger.everywhere,
        filter=_core.Filter.efficiency,
        alpha=3.0,
    ),
    "ps-alt2": PathScanningVariant(
        choice=_core.Choice.random_arc,
        trigger=_core.Trigger.nearby,
        filter=_core.Filter.ellipse,
        alpha=1.0,
    ),
}


def path_scanning(
    network: Network,
    *,
    method: str,
    stop: Stop,
    seed: int,
    threads: int,
    started: float,
    progress: ProgressCallback | None,
    start: Solution | None = None,
) -> Result:
    """Run the variant named `method`; the instance must have passed `diagnose`."""
    if start is not None:
        raise OptionError(
            f"expected a method that goes on from a plan, got {method!r}: "
            "use 'ruin-recreate' or give no start"
        )
    variant = PATH_SCANNING_VARIANTS[method]
    engine_started = time.perf_counter()
    engine = _core.PathScanning(
        network.core, variant.choice, variant.trigger, variant.filter, variant.alpha, seed
    )
    return run_engine(
        engine,
        network,
        method=method,
        stop=stop,
        seed=seed,
        threads=threads,
        started=started,
        engine_started=engine_started,
        progress=progress,
    )
