"""Plans of some instances by the model and the path optimiser.

Instances of more tasks than models are trained on go through windows of the nearest tasks,
one instance at a time. They have one view only, until their routes are drawn anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from arcfleet.neural.attempt import ANY_NUMBER
from arcfleet.neural.cuda_graph import fastest_wrap
from arcfleet.neural.decode import greedy
from arcfleet.neural.draws import draw_parts, likeliest_of_views, usual_temperature
from arcfleet.neural.features import batch_from_networks
from arcfleet.neural.gumbel import draw_seeds, gumbel_noise
from arcfleet.neural.plans import (
    NO_PLAN,
    Plans,
    as_decoded,
    best,
    flat_plan,
    merge,
    optimise,
    padded,
)
from arcfleet.neural.redraw import WHOLE, has_one_group, redraw, round_size
from arcfleet.neural.rollout import Rollout
from arcfleet.neural.window import windowed_rollout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torch import Tensor

    from arcfleet.network import Network
    from arcfleet.neural.arc_batch import ArcBatch
    from arcfleet.neural.kinds import Model
    from arcfleet.neural.rollout import OnStep
    from arcfleet.solution.plan import IntArray

    Choose = Callable[[Tensor], Tensor]

# Plans by windows before routes are drawn anew: few, since each takes long.
_WHOLE_BY_WINDOWS = 4

#: Beyond so many tasks the model sees a window of the nearest ones.
MOST_TASKS_AT_ONCE = 300


def stands_alone(network: Network) -> bool:
    """Say whether an instance shares no batch: it is large, or has nothing to serve."""
    return network.num_tasks > MOST_TASKS_AT_ONCE or network.num_tasks == 0


def has_short_routes(plans: Plans) -> bool:
    """Say whether any two routes of a plan have no more tasks than a model sees at once."""
    if (plans.costs == NO_PLAN).any():
        return False
    route = plans.starts_route[:, 0].cumsum(1) * (plans.arcs[:, 0] != 0)
    longest = (np.sort(np.bincount(one)[1:])[-2:].sum() for one in route)
    return all(tasks <= MOST_TASKS_AT_ONCE for tasks in longest)


def one_plan(plans: Plans, instance: int, copy: int) -> tuple[IntArray, IntArray]:
    """Give one plan of one instance as arcs and route starts."""
    return flat_plan(plans.at((slice(instance, instance + 1), slice(copy, copy + 1))), 0)


class Proposer:
    """Makes plans of some instances, as often as it is asked.

    Parameters
    ----------
    model
        Its weights are on `device`.
    networks
        The instances; one that `stands_alone` must be the only one.
    device
        Where to decode.
    threads
        For the path optimiser.
    generator
        Of the draws.
    """

    def __init__(
        self,
        model: Model,
        networks: Sequence[Network],
        device: torch.device,
        *,
        threads: int,
        generator: torch.Generator,
    ) -> None:
        self.model = model
        self.threads = threads
        self.generator = generator
        self.wrap = fastest_wrap(device)
        self.windowed = any(stands_alone(network) for network in networks)
        self.batch = batch_from_networks(
            networks,
            device=device,
            mds_dimensions=model.config.mds_dimensions,
            threads=threads,
        )
        # Plans of each instance that `sample` has drawn whole, and how many it may.
        self._whole = 0
        self._most_whole: int | None = None
        arcs = np.zeros((len(networks), 1, int(self.batch.num_tasks.amax())), np.int32)
        costs = np.full((len(networks), 1), NO_PLAN, dtype=np.int64)
        self._cheapest = Plans(arcs, arcs.astype(np.bool_), costs)

    def greedy(self, on_step: OnStep) -> Plans:
        """Give one plan of each instance: the likeliest arc at each step."""
        rollout = self._greedily(on_step)
        plans = optimise(self.batch, rollout, choose_directions=True, threads=self.threads)
        self._keep(range(len(self.batch)), plans)
        return plans

    def decoded(self, on_step: OnStep) -> Plans:
        """Give the plans of `greedy` without the path optimiser."""
        return as_decoded(self.batch, self._greedily(on_step))

    def of_views(self, on_step: OnStep) -> Plans:
        """Give one plan of each instance: the cheapest of four views, or of two orders."""
        if not self.windowed:
            return likeliest_of_views(
                self.model,
                self.batch,
                threads=self.threads,
                on_step=on_step,
                wrap=self.wrap,
            )
        both = [
            optimise(
                self.batch,
                self._windows(1, _likeliest, on_step, bound=bound),
                choose_directions=True,
                threads=self.threads,
            )
            for bound in (True, False)
        ]
        return best(merge(*both))

    def sample(self, rows: Sequence[int], copies: int, on_step: OnStep) -> Iterator[Plans]:
        """Draw some plans of each of some instances; give them as they are ready.

        The first are drawn whole; later ones have routes of the best so far drawn anew.
        """
        for plans in self._draws(rows, copies, on_step):
            self._keep(rows, plans)
            yield plans

    def _draws(self, rows: Sequence[int], copies: int, on_step: OnStep) -> Iterator[Plans]:
        if self._most_whole is None:
            self._most_whole = self._find_most_whole()
        whole = min(copies, self._most_whole - self._whole)
        if whole:
            yield from self._whole_draws(rows, whole, on_step)
            self._whole += whole
        size = round_size(copies)
        for first in range(whole, copies, size):
            yield from redraw(
                self.model,
                self._some(rows),
                self._cheapest.at(list(rows)),
                min(size, copies - first),
                draw_seeds(len(rows), self.generator),
                own_unit=self.windowed,
                threads=self.threads,
                on_step=on_step,
                wrap=self.wrap,
            )

    def _find_most_whole(self) -> int:
        if self.windowed:
            return _WHOLE_BY_WINDOWS if has_short_routes(self._cheapest) else ANY_NUMBER
        return ANY_NUMBER if has_one_group(self.batch) else WHOLE

    def _whole_draws(
        self, rows: Sequence[int], copies: int, on_step: OnStep
    ) -> Iterator[Plans]:
        if self.windowed:
            rollout = self._windows(copies, self._drawing(), on_step)
            yield optimise(
                self.batch, rollout, choose_directions=True, threads=self.threads
            )
            return
        yield from draw_parts(
            self.model,
            self._some(rows),
            copies,
            draw_seeds(len(rows), self.generator),
            threads=self.threads,
            on_step=on_step,
            wrap=self.wrap,
        )

    def _some(self, rows: Sequence[int]) -> ArcBatch:
        if len(rows) == len(self.batch):
            return self.batch
        return self.batch.select(torch.tensor(rows, device=self.batch.real.device))

    def _keep(self, rows: Sequence[int], plans: Plans) -> None:
        """Remember the cheapest plan of each instance, for its routes to be drawn anew."""
        # New ones first: of those that are no plans, any that serves all.
        here = list(rows)
        plans = padded(plans, self._cheapest.arcs.shape[2])
        better = best(merge(plans, self._cheapest.at(here)))
        self._cheapest.arcs[here] = better.arcs
        self._cheapest.starts_route[here] = better.starts_route
        self._cheapest.costs[here] = better.costs

    def _greedily(self, on_step: OnStep) -> Rollout:
        if self.windowed:
            return self._windows(1, _likeliest, on_step)
        return greedy(self.model, self.batch, on_step=on_step, wrap=self.wrap)

    def _windows(
        self, copies: int, choose: Choose, on_step: OnStep, *, bound: bool = True
    ) -> Rollout:
        def choose_and_tell(logits: Tensor) -> Tensor:
            on_step(0, 0)
            return choose(logits)

        arcs = windowed_rollout(
            self.model, self.batch, copies=copies, choose=choose_and_tell, bound=bound
        )
        return Rollout(arcs, torch.zeros(arcs.shape[:2], device=arcs.device))

    def _drawing(self) -> Choose:
        """Give what draws one plan after another, step by step, as `sample` does."""
        device = self.batch.real.device
        seeds = draw_seeds(1, self.generator).to(device)
        steps = torch.zeros((), dtype=torch.int64, device=device)
        temperature = usual_temperature(self.batch.num_tasks)[:, None, None]

        def choose(logits: Tensor) -> Tensor:
            _, copies, arcs = logits.shape
            noise = gumbel_noise(seeds, copies, steps, arcs)
            steps.add_(1)
            return (logits.float() / temperature + noise).argmax(-1)

        return choose


def _likeliest(logits: Tensor) -> Tensor:
    return logits.argmax(-1)
