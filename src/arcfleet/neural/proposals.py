"""Plans of some instances by the model and the path optimiser.

Instances of more tasks than models are trained on go through windows of the nearest tasks,
one instance at a time. They have one view only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from arcfleet.neural.cuda_graph import fastest_wrap
from arcfleet.neural.decode import greedy
from arcfleet.neural.draws import draw_parts, likeliest_of_views, usual_temperature
from arcfleet.neural.features import batch_from_networks
from arcfleet.neural.gumbel import draw_seeds, gumbel_noise
from arcfleet.neural.plans import (
    Plans,
    as_decoded,
    best,
    flat_plan,
    merge,
    optimise,
)
from arcfleet.neural.rollout import Rollout
from arcfleet.neural.window import windowed_rollout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torch import Tensor

    from arcfleet.network import Network
    from arcfleet.neural.kinds import Model
    from arcfleet.neural.rollout import OnStep
    from arcfleet.solution.plan import IntArray

    Choose = Callable[[Tensor], Tensor]

#: Beyond so many tasks the model sees a window of the nearest ones.
MOST_TASKS_AT_ONCE = 300


def stands_alone(network: Network) -> bool:
    """Say whether an instance shares no batch: it is large, or has nothing to serve."""
    return network.num_tasks > MOST_TASKS_AT_ONCE or network.num_tasks == 0


def one_plan(plans: Plans, instance: int, copy: int) -> tuple[IntArray, IntArray]:
    """Give one plan of one instance as arcs and route starts."""
    here = slice(instance, instance + 1), slice(copy, copy + 1)
    alone = Plans(plans.arcs[here], plans.starts_route[here], plans.costs[here])
    return flat_plan(alone, 0)


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

    def greedy(self, on_step: OnStep) -> Plans:
        """Give one plan of each instance: the likeliest arc at each step."""
        rollout = self._greedily(on_step)
        return optimise(self.batch, rollout, choose_directions=True, threads=self.threads)

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
        """Draw some plans of each of some instances; give them as they are ready."""
        batch = self.batch
        if self.windowed:
            rollout = self._windows(copies, self._drawing(), on_step)
            yield optimise(batch, rollout, choose_directions=True, threads=self.threads)
            return
        if len(rows) < len(batch):
            batch = batch.select(torch.tensor(rows, device=batch.real.device))
        yield from draw_parts(
            self.model,
            batch,
            copies,
            draw_seeds(len(batch), self.generator),
            threads=self.threads,
            on_step=on_step,
            wrap=self.wrap,
        )

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
