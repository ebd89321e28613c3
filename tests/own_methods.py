"""Methods, stop rules and settings as a user would write them, in a module of their own."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from arcfleet import Incumbent, Progress, Result, RunContext
from arcfleet.network import Network
from arcfleet.search.split import split


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderSettings:
    """Settings of the random orders.

    Parameters
    ----------
    turn
        Whether Split chooses directions.
    first
        Which order comes first.
    repeats
        Number of equal orders.
    weight
        Number without any use.
    """

    turn: bool = True
    first: Literal["sorted", "random"] = "random"
    repeats: int | None = None
    weight: float = 1.0


def random_orders(network: Network, context: RunContext) -> Result:
    """Random orders of the services, cut by Split."""
    generator = np.random.default_rng(context.seed)
    # One arc of each task; the depot, arc 0, has edge -1.
    forward = np.flatnonzero(network.arc_edge % 2 == 0).astype(np.int32)
    settings = context.params or OrderSettings()
    with Incumbent(network, context) as best:
        while best.stopped_by is None:
            order = generator.permutation(forward)
            best.offer(split(network, order, choose_directions=settings.turn))
    return best.result()


def after_five(progress: Progress) -> bool:
    """Return whether five iterations were made."""
    return progress.iterations >= 5
