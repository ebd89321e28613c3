"""Self-improvement: sample plans, optimise them, imitate the best found so far."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn import functional

from arcfleet.neural.plans import NO_PLAN, Plans, best, merge, padded, split_plans
from arcfleet.neural.train.data import LabelledPlans, reversible_routes
from arcfleet.neural.train.finetune import Finetuning
from arcfleet.neural.train.pretrain import imitation_loss, plans_of_step
from arcfleet.neural.train.steps import draw_lesson

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray
    from torch import Tensor

    from arcfleet.neural.batch import ArcBatch
    from arcfleet.neural.decoding import Rollout
    from arcfleet.neural.train.data import InstanceSet


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


class SelfImprovement(Finetuning):
    """The objective "imitate-best".

    Instances are drawn, sampled and decoded greedily. The path optimiser finds what the
    model missed: where to return, and which way to serve. The best plans are labels that
    get better as the model does.
    """

    works_in_team = True

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.best = [BestPlans(data.batch) for data in self.sets]

    def learn(self, rate: float) -> None:
        """Look for better plans of some instances, then imitate the best of any."""
        number = self.draw_set()
        data, plans = self.sets[number], self.best[number]
        self._search(data, plans)
        if len(plans.known) == 0:
            return  # a fleet limit that no sample has met yet
        for _ in range(self.config.lessons):
            self._imitate(number, plans, rate)

    def extra_tensors(self) -> dict[str, Tensor]:
        """Give the best plans so far."""
        return {
            f"best.{number}.{name}": tensor
            for number, plans in enumerate(self.best)
            for name, tensor in plans.tensors().items()
        }

    def restore_extra(self, tensors: dict[str, Tensor]) -> None:
        """Take over the best plans so far."""
        for number, plans in enumerate(self.best):
            prefix = f"best.{number}."
            names = [name for name in tensors if name.startswith(prefix)]
            plans.restore({name.removeprefix(prefix): tensors[name] for name in names})

    def _search(self, data: InstanceSet, plans: BestPlans) -> None:
        config = self.config
        arcs = data.batch.num_arcs
        count = max(1, config.rollout_tokens // (arcs * config.copies))
        rows, batch = self.draw_instances(data, min(count, self.available(data)))
        # With the greedy plan: on large instances it may be better than any sample.
        found = best(
            merge(
                self._optimised(batch, self.sampled(self.policy, batch, config.copies)),
                self._optimised(batch, self.greedily(self.policy, batch)),
            )
        )
        # Those drawn may have fewer tasks than others, of this process or another.
        found = padded(found, plans.most_tasks)
        improved = plans.improve(rows, self._of_all(found))
        self.window.add(0, improved=improved / len(rows))

    def _of_all(self, mine: Plans) -> Plans:
        """Give the plans that all processes found, one of each instance."""
        if self.team.size == 1:
            return mine
        return Plans(*(self.team.all_rows(torch.from_numpy(x)).numpy() for x in mine))

    def _optimised(self, batch: ArcBatch, rollout: Rollout) -> Plans:
        return split_plans(batch, rollout, choose_directions=True, threads=self.threads)

    def _imitate(self, number: int, plans: BestPlans, rate: float) -> None:
        config = self.config
        data, bucket = self.sets[number], self.draw_bucket(number)
        each = plans_of_step(config, self.arcs_of_state(number, bucket))
        count = self.team.size * each
        drawn = torch.randint(
            len(plans.known), (count,), device=self.device, generator=self.generator
        )
        rows = plans.known[drawn]
        lesson = draw_lesson(
            data.batch.select(rows),
            plans.labels(rows),
            route_order=config.route_order,
            directions=config.directions,
            moments=config.moments,
            bucket=bucket,
            flip=config.flip_axes,
            generator=self.generator,
            capacity_mask=self.draw_bound(),
        )
        mine = self.team.my_lesson(lesson)
        loss = imitation_loss(self.form, mine, bucket is not None or not data.full)
        self.learner.update(loss, rate)
        self.window.add(mine.choice.numel(), loss=loss.detach())
