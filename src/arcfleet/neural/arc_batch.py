"""What a learned solver sees of some instances: tensors of one shape, padded and masked."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ArcBatch:
    """The arcs of some instances, arc 0 being the depot.

    Instances of different size are padded: arcs that are not `real` stand at place 0, cost
    and demand nothing, and are their own twin.

    Parameters
    ----------
    features
        What does not change while a plan is built, (batch, arcs, 3 + 2 d): whether it is
        the depot, cost and demand, the MDS coordinates of start and of end. Lengths are
        divided by `scale`, demands by the capacity.
    distance
        Driving costs between places, (batch, places, places), in the instance's unit.
    start, end
        Place where service of an arc starts and ends, (batch, arcs).
    service_cost, demand
        Of each arc, (batch, arcs), in the instance's units.
    twin
        The same task in the other direction, the arc itself if there is none,
        (batch, arcs).
    real
        Which arcs are no padding, (batch, arcs).
    capacity, route_cost, fleet_limit
        Of each instance, (batch,); a fleet limit of 0 is none.
    scale
        Mean driving cost between the real arcs of each instance, (batch,): the unit of
        all lengths that the model sees. Where all driving is free, the mean cost of
        serving; 1 where that is 0, too.
    """

    features: Tensor
    distance: Tensor
    start: Tensor
    end: Tensor
    service_cost: Tensor
    demand: Tensor
    twin: Tensor
    real: Tensor
    capacity: Tensor
    route_cost: Tensor
    fleet_limit: Tensor
    scale: Tensor

    def __len__(self) -> int:
        """Give the number of instances."""
        return len(self.capacity)

    @property
    def num_arcs(self) -> int:
        """Number of arcs with the padding, the depot included."""
        return self.real.shape[1]

    @property
    def num_tasks(self) -> Tensor:
        """Tasks of each instance, (batch,)."""
        arc = torch.arange(self.num_arcs, device=self.twin.device)
        return (self.real & (self.twin >= arc) & (arc > 0)).sum(1, dtype=torch.int32)

    @property
    def demand_once(self) -> Tensor:
        """Demand of each task, at one of its arcs only, (batch, arcs)."""
        arc = torch.arange(self.num_arcs, device=self.twin.device)
        return self.demand.masked_fill(~self.real | (self.twin < arc), 0)

    @property
    def is_full(self) -> bool:
        """Whether no arc is padding, which saves the masks. Waits for the device."""
        return bool(self.real.all())

    def select(self, rows: Tensor) -> ArcBatch:
        """Give some of the instances, in the order of `rows`."""
        return self._each(lambda tensor: tensor[rows])

    def to(self, device: torch.device | str) -> ArcBatch:
        """Give the same batch on another device."""
        return self._each(lambda tensor: tensor.to(device, non_blocking=True))

    def incoming(self) -> Tensor:
        """Give the driving costs into each arc, (batch, arcs, arcs), scaled.

        Entry [b, i, j] is from the end of arc j to the start of arc i.
        """
        rows = torch.arange(len(self), device=self.distance.device)[:, None, None]
        ends, starts = self.end.long()[:, None, :], self.start.long()[:, :, None]
        costs = self.distance[rows, ends, starts]  # (batch, arcs i, arcs j)
        return costs / self.scale[:, None, None]

    def deadheads(self, arcs: Tensor, before: Tensor | None = None) -> Tensor:
        """Sum the driving costs along sequences of arcs, in the instance's unit.

        Parameters
        ----------
        arcs
            Of shape (batch, copies, steps).
        before
            What stands before the first, (batch, copies); None for the depot.

        Returns
        -------
        deadheads
            Of shape (batch, copies), integers.
        """
        rows = torch.arange(len(self), device=arcs.device)[:, None, None]
        last = functional.pad(arcs, (1, 0))[..., :-1]  # the depot, then all but the last
        if before is not None:
            last[..., 0] = before
        ends, starts = self.end[rows, last], self.start[rows, arcs]
        return self.distance[rows, ends.long(), starts.long()].sum(-1, dtype=torch.int64)

    def _each(self, change: Callable[[Tensor], Tensor]) -> ArcBatch:
        return ArcBatch(**{f.name: change(getattr(self, f.name)) for f in fields(self)})


def take_rows(values: Tensor, index: Tensor) -> Tensor:
    """Gather rows of (batch, rows, width) by (batch, count): (batch, count, width)."""
    wide = index.long()[..., None].expand(-1, -1, values.shape[2])
    return values.gather(1, wide)
