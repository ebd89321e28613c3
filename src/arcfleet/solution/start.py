"""A plan to start a search from: what the search keeps of it, and the plan made fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arcfleet.solution.keep import keep, lock, require_known_routes
from arcfleet.solution.match import carry_over
from arcfleet.solution.repair import repair

if TYPE_CHECKING:
    from collections.abc import Sequence

    from arcfleet.instance.instance import Instance
    from arcfleet.solution.repair import Repair
    from arcfleet.solution.solution import Solution


def prepare_start(
    instance: Instance,
    solution: Solution,
    *,
    price: int | None = None,
    locked: Sequence[int] = (),
    old_instance: Instance | None = None,
) -> tuple[Instance, Repair]:
    """Return the instance that keeps what it should of a plan, and the plan repaired.

    Parameters
    ----------
    instance
        Today's instance.
    solution
        Earlier plan.
    price
        Price of every street that leaves its route of the plan; None leaves that of the
        instance.
    locked
        Numbers of routes of the plan that stay as they are.
    old_instance
        Instance of the earlier plan; None if links have kept their positions.
    """
    carried = carry_over(instance, solution, old_instance)
    instance = lock(instance, carried, locked)
    if price is not None:
        instance = keep(instance, carried, price)
    require_known_routes(instance, carried)
    return instance, repair(instance, solution, old_instance)
