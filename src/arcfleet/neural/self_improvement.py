"""Self-improvement: sample plans, optimise them, imitate the best found so far."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from arcfleet.neural.best_plans import BestPlans
from arcfleet.neural.finetuning import Finetuning
from arcfleet.neural.imitation import draw_lesson
from arcfleet.neural.plans import Plans, best, merge, optimise, padded
from arcfleet.neural.pretrain import imitation_loss, plans_of_step

if TYPE_CHECKING:
    from torch import Tensor

    from arcfleet.neural.arc_batch import ArcBatch
    from arcfleet.neural.labelled_set import InstanceSet
    from arcfleet.neural.rollout import Rollout


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
        return optimise(batch, rollout, choose_directions=True, threads=self.threads)

    def _imitate(self, number: int, plans: BestPlans, rate: float) -> None:
        config = self.config
        data, rung = self.sets[number], self.draw_rung(number)
        each = plans_of_step(config, self.arcs_of_state(number, rung))
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
            rung=rung,
            flip=config.flip_axes,
            generator=self.generator,
            bound=self.draw_bound(),
        )
        mine = self.team.my_lesson(lesson)
        loss = imitation_loss(self.form, mine, rung is not None or not data.full)
        self.learner.update(loss, rate)
        self.window.add(mine.choice.numel(), loss=loss.detach())
