"""The best plan found so far of every instance of a set, as labels to imitate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.nn import functional

from arcfleet.neural.labelled_plans import LabelledPlans, reversible_routes
from arcfleet.neural.plans import NO_PLAN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray
    from torch import Tensor

    from arcfleet.neural.arc_batch import ArcBatch
    from arcfleet.neural.plans import Plans

_NONE_YET = np.iinfo(np.int64).max


class BestPlans:
    """Plans that get better: on the host as they came, on the device as labels.

    Parameters
    ----------
    batch
        The instances.
    """

    def __init__(self, batch: ArcBatch) -> None:
        self._batch = batch
        #: Of any instance, at least 1.
        self.most_tasks = max(1, int(batch.num_tasks.amax()))
        size = len(batch)
        self._arcs = np.zeros((size, self.most_tasks), dtype=np.int32)
        self._starts_route = np.zeros((size, self.most_tasks), dtype=np.bool_)
        self.costs = np.full(size, _NONE_YET, dtype=np.int64)
        device = batch.real.device
        self._routes = torch.zeros((size, 1, 1), dtype=torch.int32, device=device)
        self._reversible = torch.zeros((size, 1), dtype=torch.bool, device=device)
        #: Instances with a plan, on the device.
        self.known = torch.zeros(0, dtype=torch.int64, device=device)

    def improve(self, rows: Tensor, plans: Plans) -> int:
        """Keep the plans that are better than those before; give their number.

        Parameters
        ----------
        rows
            The instances, each once.
        plans
            One copy for each of them, with room for `most_tasks`.
        """
        where = rows.cpu().numpy()
        costs = plans.costs[:, 0]
        better = (costs != NO_PLAN) & (costs < self.costs[where])
        where = where[better]
        self._arcs[where] = plans.arcs[better, 0]
        self._starts_route[where] = plans.starts_route[better, 0]
        self.costs[where] = costs[better]
        self._send(where)
        return len(where)

    def labels(self, rows: Tensor) -> LabelledPlans:
        """Give the plans of some of the `known` instances."""
        return LabelledPlans(
            arcs=self._routes[rows],
            reversible=self._reversible[rows],
            # Imitation asks for no costs.
            cost=torch.zeros_like(rows),
            most_steps=2 * self.most_tasks,
        )

    def tensors(self) -> dict[str, Tensor]:
        """Give all that is needed to go on, on the CPU."""
        # In few bytes, since there may be very many: below 0 where a route starts.
        signed = np.where(self._starts_route, -self._arcs, self._arcs)
        small = self._batch.num_arcs < 2**15
        return {
            "arcs": torch.from_numpy(signed.astype(np.int16 if small else np.int32)),
            "costs": torch.from_numpy(self.costs.copy()),
            # Random numbers are drawn for every place, so there must be as many again.
            "sizes": torch.tensor(self._routes.shape[1:]),
        }

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Take over what `tensors` gave."""
        signed = tensors["arcs"].numpy()
        self._arcs[:] = abs(signed)
        self._starts_route[:] = signed < 0
        self.costs[:] = tensors["costs"].numpy()
        self._grow(*tensors["sizes"].tolist())
        self._send(np.flatnonzero(self.costs != _NONE_YET))

    def _send(self, where: NDArray[np.int64]) -> None:
        """Bring the plans of some instances to the device."""
        if len(where) == 0:
            return
        padded = _as_routes(self._arcs[where], self._starts_route[where])
        self._grow(*padded.shape[1:])
        routes, longest = self._routes.shape[1:]
        device = self._routes.device
        rows = torch.from_numpy(where).to(device)
        arcs = torch.from_numpy(padded).to(device)
        missing = (0, longest - arcs.shape[2], 0, routes - arcs.shape[1])
        arcs = functional.pad(arcs, missing)  # (rows, routes, longest)
        self._routes[rows] = arcs
        self._reversible[rows] = reversible_routes(self._batch.select(rows), arcs)
        self.known = torch.from_numpy(np.flatnonzero(self.costs != _NONE_YET)).to(device)

    def _grow(self, routes: int, longest: int) -> None:
        more = max(0, routes - self._routes.shape[1])
        longer = max(0, longest - self._routes.shape[2])
        self._routes = functional.pad(self._routes, (0, longer, 0, more))
        self._reversible = functional.pad(self._reversible, (0, more))


def _as_routes(
    arcs: NDArray[np.int32], starts_route: NDArray[np.bool_]
) -> NDArray[np.int32]:
    """Cut orders (plans, tasks) into routes, (plans, routes, longest)."""
    row, position = np.nonzero(arcs)
    starts = starts_route & (arcs != 0)
    route = starts.cumsum(1) - 1  # (plans, tasks)
    everywhere = np.broadcast_to(np.arange(arcs.shape[1]), arcs.shape)
    first = np.maximum.accumulate(np.where(starts, everywhere, 0), axis=1)
    place = everywhere - first
    number, offset = route[row, position], place[row, position]
    shape = (len(arcs), number.max(initial=0) + 1, offset.max(initial=0) + 1)
    padded = np.zeros(shape, dtype=np.int32)
    padded[row, number, offset] = arcs[row, position]
    return padded
