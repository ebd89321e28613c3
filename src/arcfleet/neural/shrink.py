"""States without their served arcs: each becomes a small instance of its own.

A model with `served="hidden"` gives the same logits either way; on half-built plans it is
spared half of the arcs. In training there are few lengths, to have few shapes to compile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch

from arcfleet.neural.arc_batch import ArcBatch
from arcfleet.neural.state import State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

# Lengths are 48, 88, 128 and so on: multiples of 8 suit the GPU, and a state wastes some
# twenty places on average.
_FIRST = 48
_NEXT = 40

# Numbers that kernels load at once.
_VECTOR = 8


class Rung(NamedTuple):
    """States of about the same number of arcs.

    Parameters
    ----------
    length
        Arcs that each of them has at most, the depot and the previous arc included.
    above, most
        Tasks left in them: more than the first, at most the second.
    """

    length: int
    above: int
    most: int


def rungs(batch: ArcBatch) -> list[Rung]:
    """Divide the states of plans by the tasks that are left. Waits for the device."""
    tasks = int(batch.num_tasks.amax())
    found: list[Rung] = []
    above = 0
    while above < tasks:
        length = _FIRST + _NEXT * len(found)
        # Two arcs of each task, the depot and the previous arc.
        most = min(tasks, (length - 2) // 2)
        found.append(Rung(length, above, most))
        above = most
    return found


def rung_sizes(batch: ArcBatch, known: Sequence[Rung]) -> Tensor:
    """Count the services of all instances on each rung, float64, on the host."""
    tasks = batch.num_tasks.cpu().double()
    counts = [
        (tasks.clamp(max=rung.most) - rung.above).clamp(min=0).sum() for rung in known
    ]
    return torch.stack(counts) if counts else torch.zeros(0, dtype=torch.float64)


class Shrunk(NamedTuple):
    """Instances without their served arcs.

    Parameters
    ----------
    batch, state
        As before, with fewer arcs; the places of the instances are their arcs.
    kept
        Which arcs they were, (rows, length).
    slot
        Where each arc went, (rows, arcs); `length` for those left out.
    """

    batch: ArcBatch
    state: State
    kept: Tensor
    slot: Tensor


def present_arcs(state: State) -> Tensor:
    """Say which arcs any of the plans of an instance may still see, (batch, arcs)."""
    number = torch.arange(state.unserved.shape[-1], device=state.unserved.device)
    present = state.unserved | (number == state.previous[..., None]) | (number == 0)
    return present.any(1)


def whole_vectors(length: int) -> int:
    """Give the next length that kernels like: of whole vectors."""
    return -(-length // _VECTOR) * _VECTOR


def shrink(
    batch: ArcBatch, state: State, length: int, rows: Tensor | None = None
) -> Shrunk:
    """Leave out the arcs that all plans of an instance have served, but previous ones.

    Parameters
    ----------
    batch
        The instances.
    state
        Where plans of them stand, (rows, copies, ...).
    length
        Arcs of the new instances, enough for what is left of each.
    rows
        Which instance each row of the state is of, (rows,); None for one row of each.
    """
    device = state.unserved.device
    present = present_arcs(state)  # (rows, arcs)
    number = torch.arange(present.shape[1], device=device)
    # What is left out goes to a slot that is cut off.
    slot = torch.where(present, present.cumsum(1) - 1, length)
    kept = torch.zeros((len(slot), length + 1), dtype=torch.int64, device=device)
    kept = kept.scatter(1, slot, number.expand_as(slot))[:, :length]  # (rows, length)
    place = torch.arange(length, device=device)
    real = place < present.sum(1, keepdim=True)  # (rows, length)
    row = torch.arange(len(batch), device=device) if rows is None else rows

    def of_kept(values: Tensor) -> Tensor:
        return values[row[:, None], kept]

    # One index into all distances: three side by side take a GPU many times as long.
    places = batch.distance.shape[1]
    ends, starts = of_kept(batch.end).long(), of_kept(batch.start).long()
    ends = (row[:, None] * places + ends) * places
    ways = batch.distance.flatten()[ends[:, :, None] + starts[:, None]]
    numbers = place.expand_as(kept).to(batch.start.dtype)
    # The other direction of a previous arc is gone.
    twins = slot.gather(1, of_kept(batch.twin))
    small = ArcBatch(
        features=of_kept(batch.features),
        distance=ways,
        start=numbers,
        end=numbers,
        service_cost=of_kept(batch.service_cost),
        demand=of_kept(batch.demand),
        twin=torch.where(real & (twins < length), twins, place),
        real=real,
        capacity=batch.capacity[row],
        route_cost=batch.route_cost[row],
        fleet_limit=batch.fleet_limit[row],
        scale=batch.scale[row],
    )
    copies = state.unserved.shape[1]
    columns = kept[:, None].expand(-1, copies, -1)
    return Shrunk(
        batch=small,
        state=State(
            unserved=state.unserved.gather(2, columns) & real[:, None],
            previous=slot.gather(1, state.previous),
            remaining=state.remaining,
        ),
        kept=kept,
        slot=slot,
    )


def as_instances(state: State) -> tuple[State, Tensor]:
    """Give every plan a row of its own, (batch times copies, 1, ...), and whose it is."""
    batch, copies = state.previous.shape
    rows = torch.arange(batch, device=state.previous.device).repeat_interleave(copies)
    return State(*(tensor.flatten(0, 1)[:, None] for tensor in state)), rows
