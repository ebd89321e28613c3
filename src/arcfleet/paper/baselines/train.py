"""Training of the baselines on rollouts of their own: n-step Q-learning, actor-critic."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import torch
from torch.nn import functional

from arcfleet.errors import OptionError
from arcfleet.neural.batch import flip_axes
from arcfleet.neural.decoding import sample
from arcfleet.neural.env import State, action_mask, reset
from arcfleet.neural.train.config import (
    OptimiserConfig,
    RunConfig,
    check_training,
    setting,
)
from arcfleet.neural.train.loop import Trainer, below
from arcfleet.neural.train.steps import (
    compiled_by_scale,
    draw_choices,
    log_probabilities,
    num_choices,
    reinforce_loss,
    states_at,
)
from arcfleet.paper.baselines.s2v_dqn import S2vDqnConfig
from arcfleet.paper.baselines.vrp_dl import VrpDlConfig

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Generator, Tensor

    from arcfleet.neural.batch import ArcBatch
    from arcfleet.neural.decoding import Policy
    from arcfleet.neural.train.data import InstanceSet
    from arcfleet.paper.baselines.s2v_dqn import PreparedGraph, S2vDqn
    from arcfleet.paper.baselines.vrp_dl import PreparedElements


def _run() -> RunConfig:
    return RunConfig(validations=4, log_steps=10, precision="float32")


def _optimiser() -> OptimiserConfig:
    return OptimiserConfig(
        learning_rate=1e-3, warm_up_steps=20, weight_decay=0.0, ema_decay=0.99
    )


def _check(config: S2vDqnTraining | VrpDlTraining) -> None:
    check_training(config)
    precision = config.run.precision
    if precision != "float32":
        raise OptionError(f"expected precision float32 for a baseline, got {precision}")


@dataclass(frozen=True, slots=True, kw_only=True)
class S2vDqnTraining:
    """Settings of the training of S2V-DQN.

    A step makes rollouts, adds them to the replay buffer, and makes some updates with
    choices sampled from the buffer.

    Parameters
    ----------
    model
        Sizes of the model.
    run
        Settings of the run.
    optimiser
        Settings of the optimiser.
    flip_axes
        Random signs of the MDS axes as an augmentation.
    rollout_tokens
        Arcs of all rollouts of a step. Larger instances have fewer rollouts.
    updates
        Updates of the weights in a step.
    decision_steps
        Decision steps sampled of each rollout.
    tokens
        Arcs of all states of an update. Larger instances have fewer states.
    n_steps
        Decision steps whose costs are summed before the target network estimates the rest.
    replay_plans
        Rollouts in the replay buffer of each data set.
    target_updates
        Updates between two replacements of the target network.
    epsilon_start
        Probability of a random choice at the start.
    epsilon_end
        Probability of a random choice at the end.
    epsilon_share
        Fraction of the run over which that probability falls.
    """

    model: S2vDqnConfig = field(default_factory=S2vDqnConfig)
    run: RunConfig = field(default_factory=_run)
    optimiser: OptimiserConfig = field(default_factory=_optimiser)
    flip_axes: bool = setting(True)
    rollout_tokens: int = setting(400_000, 1, 10**9)
    updates: int = setting(32, 1, 10**6)
    decision_steps: int = setting(4, 1, 10**4)
    tokens: int = setting(200_000, 1, 10**9)
    n_steps: int = setting(5, 1, 10**6)
    replay_plans: int = setting(20_000, 1, 10**8)
    target_updates: int = setting(100, 1, 10**9)
    epsilon_start: float = setting(1.0, 0.0, 1)
    epsilon_end: float = setting(0.05, 0.0, 1)
    epsilon_share: float = setting(0.5, 0.0, 1)

    def __post_init__(self) -> None:
        """Check every setting."""
        _check(self)

    def epsilon(self, fraction: float) -> float:
        """Return the probability of a random choice at a fraction of the run."""
        fallen = min(1.0, fraction / self.epsilon_share) if self.epsilon_share else 1.0
        return self.epsilon_start + (self.epsilon_end - self.epsilon_start) * fallen


@dataclass(frozen=True, slots=True, kw_only=True)
class VrpDlTraining:
    """Settings of the training of VRP-DL.

    A step makes one rollout of each of some instances, and one update.

    Parameters
    ----------
    model
        Sizes of the model.
    run
        Settings of the run.
    optimiser
        Settings of the optimiser.
    flip_axes
        Random signs of the MDS axes as an augmentation.
    decision_steps
        Decision steps sampled of each rollout for the gradient.
    tokens
        Arcs of all states of a step. Larger instances have fewer rollouts.
    critic_weight
        Weight of the critic's loss beside the actor's.
    """

    model: VrpDlConfig = field(default_factory=VrpDlConfig)
    run: RunConfig = field(default_factory=_run)
    optimiser: OptimiserConfig = field(default_factory=_optimiser)
    flip_axes: bool = setting(True)
    decision_steps: int = setting(16, 1, 10**4)
    tokens: int = setting(4_000_000, 1, 10**9)
    critic_weight: float = setting(1.0, 0.0, 10**6)

    def __post_init__(self) -> None:
        """Check every setting."""
        _check(self)


#: Defaults on a CPU. As many steps' worth of rollouts as on a GPU are replayed: older ones
#: are those of another policy.
ON_CPU: dict[str, dict[str, int]] = {
    "s2v-dqn": {
        **{"rollout_tokens": 4_000, "tokens": 4_000, "updates": 16, "replay_plans": 2_000}
    },
    "vrp-dl": {"tokens": 40_000},
}


# Settings of a baseline.
Training = TypeVar("Training", S2vDqnTraining, VrpDlTraining)


class _RolloutTrainer(Trainer[Training]):
    """A run that samples one rollout of each of some instances in a step."""

    # S2V-DQN gets worse again when it learns on: research/log/run-12.md.
    keeps_best = True

    def instances(self, data: InstanceSet, rows: Tensor) -> ArcBatch:
        """Return some instances, their MDS axes flipped at random if wanted."""
        batch = data.batch.select(rows)
        return flip_axes(batch, self.generator) if self.config.flip_axes else batch

    def draw_rows(self, data: InstanceSet, count: int) -> Tensor:
        """Sample instances, each at most once."""
        order = torch.randperm(len(data), device=self.device, generator=self.generator)
        return order[:count]

    def rollouts(self, policy: Policy, batch: ArcBatch) -> Tensor:
        """Sample one rollout of each instance, (batch, 1, steps)."""
        options = self.rollout_options(batch)
        return sample(policy, batch, 1, generator=self.generator, **options).arcs


class Replay:
    """Replay buffer: the last rollouts of the instances of one data set, on its device.

    A rollout contains all its states, so a choice needs no state of its own.
    """

    def __init__(self, capacity: int, steps: int, device: torch.device) -> None:
        self.rows = torch.zeros(capacity, dtype=torch.int32, device=device)
        self.arcs = torch.zeros((capacity, steps), dtype=torch.int32, device=device)
        self.added = 0  # rollouts that were ever added

    def add(self, rows: Tensor, arcs: Tensor) -> None:
        """Add rollouts (plans, steps) of the instances `rows`, (plans,)."""
        capacity, steps = self.arcs.shape
        rows, arcs = rows[-capacity:], arcs[-capacity:]
        first = self.added % capacity
        places = (torch.arange(len(rows), device=rows.device) + first) % capacity
        self.rows[places] = rows.to(self.rows.dtype)
        wide = functional.pad(arcs, (0, steps - arcs.shape[1]))
        self.arcs[places] = wide.to(self.arcs.dtype)
        self.added += len(rows)

    def draw(self, count: int, generator: Generator) -> tuple[Tensor, Tensor]:
        """Sample rollouts: rows of their instances, (count,), and arcs, (count, steps)."""
        filled = min(self.added, len(self.rows))
        places = torch.randint(
            filled, (count,), device=self.rows.device, generator=generator
        )
        return self.rows[places].long(), self.arcs[places].long()


class Returns(NamedTuple):
    """What followed some choices."""

    # Minus the driving costs of the next decision steps, in the instance's scale.
    reward: Tensor  # (batch, samples * decision steps)
    # Decision steps at which the estimate takes over.
    later: Tensor  # (batch, samples, decision steps)
    # True where no choice is left: the way home is among the costs.
    over: Tensor  # (batch, samples * decision steps)


def n_step_returns(
    batch: ArcBatch, arcs: Tensor, decision_steps: Tensor, n_steps: int
) -> Returns:
    """Sum the rewards of the next decision steps."""
    choices = num_choices(arcs)[..., None]  # (batch, samples, 1)
    later = decision_steps + n_steps
    over = later >= choices
    driven = functional.pad(_step_costs(batch, arcs).cumsum(-1), (1, 0))
    last = driven.shape[-1] - 1
    reached = torch.where(over, last, later)  # after the last step: the way home is made
    reward = driven.gather(-1, decision_steps) - driven.gather(-1, reached)
    # Where it is over the step means nothing; any that there is will do.
    later = torch.minimum(later, choices - 1)
    return Returns(reward.flatten(1), later, over.flatten(1))


def _step_costs(batch: ArcBatch, arcs: Tensor) -> Tensor:
    """Compute the driving cost of each step in the instance's scale."""
    rows = torch.arange(len(batch), device=arcs.device)[:, None, None]
    before = functional.pad(arcs, (1, 0))[..., :-1]
    ends, starts = batch.end[rows, before], batch.start[rows, arcs]
    costs = batch.distance[rows, ends.long(), starts.long()]
    return costs / batch.scale[:, None, None]


class EpsilonGreedy:
    """A policy that mostly chooses the arc of the largest value, else any."""

    def __init__(self, model: S2vDqn, epsilon: float) -> None:
        self.model = model
        self.step_numbers = model.step_numbers
        self.epsilon = epsilon

    def prepare(self, batch: ArcBatch) -> PreparedGraph:
        """Compute what stays the same at every step."""
        return self.model.prepare(batch)

    def __call__(self, prepared: PreparedGraph, state: State, allowed: Tensor) -> Tensor:
        """Compute the log-probabilities, (batch, samples, arcs)."""
        best = self.model(prepared, state, allowed).argmax(-1, keepdim=True)
        chances = self.epsilon * allowed / allowed.sum(-1, keepdim=True)
        largest = torch.zeros_like(chances).scatter(-1, best, 1 - self.epsilon)
        return (chances + largest).log()


class QLearningTrainer(_RolloutTrainer[S2vDqnTraining]):
    """A run of S2V-DQN: n-step Q-learning with replay (Khalil et al. 2017)."""

    phase = "s2v-dqn"

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        config, model = self.config, self.learner.master
        self.target = copy.deepcopy(model).requires_grad_(False).eval()
        self.replays = [
            # At worst every task is a route of its own.
            Replay(config.replay_plans, 2 * int(each.batch.num_tasks.amax()), self.device)
            for each in self.data
        ]
        target = self.target

        def loss_of(
            batch: ArcBatch,
            state: State,
            choice: Tensor,
            reward: Tensor,
            later: State,
            over: Tensor,
            padded: bool,
        ) -> Tensor:
            with torch.no_grad():
                known = target.prepare(batch, padded=padded)
                rest = target(known, later, action_mask(batch, later)).amax(-1)
                wanted = reward + rest.masked_fill(over, 0.0)
            prepared = model.prepare(batch, padded=padded)
            values = model(prepared, state, action_mask(batch, state))
            chosen = values.gather(-1, choice[..., None])[..., 0]
            return functional.smooth_l1_loss(chosen, wanted)

        self._loss_of: Callable[..., Tensor] = loss_of
        if config.run.compile:
            self._loss_of = compiled_by_scale(loss_of, len(self.data))

    def train_step(self, rate: float) -> None:
        """Sample rollouts, then learn from choices of these and of earlier ones."""
        config = self.config
        number = self.draw_set()
        data, replay = self.data[number], self.replays[number]
        epsilon = config.epsilon(config.run.fraction(self.step, self.seconds))
        count = min(len(data), max(1, config.rollout_tokens // data.batch.num_arcs))
        rows = self.draw_rows(data, count)
        batch = self.instances(data, rows)
        # (batch, 1, steps)
        arcs = self.rollouts(EpsilonGreedy(self.learner.working, epsilon), batch)
        costs = batch.deadheads(arcs) / batch.scale[:, None]
        self.metrics.add(0, sampled=costs.mean(), epsilon=epsilon)
        replay.add(rows, arcs[:, 0])
        for _ in range(config.updates):
            self._update(data, replay, rate)

    def _update(self, data: InstanceSet, replay: Replay, rate: float) -> None:
        config = self.config
        count = max(1, config.tokens // (data.batch.num_arcs * config.decision_steps))
        rows, plans = replay.draw(count, self.generator)
        batch = self.instances(data, rows)
        arcs = plans[:, None]  # (plans, 1, steps)
        drawn, _ = draw_choices(arcs, config.decision_steps, self.generator)
        state, choice = states_at(batch, arcs, drawn)
        reward, later, over = n_step_returns(batch, arcs, drawn, config.n_steps)
        after, _ = states_at(batch, arcs, later)
        loss = self._loss_of(batch, state, choice, reward, after, over, not data.full)
        self.learner.update(loss, rate)
        self.metrics.add(choice.numel(), loss=loss.detach())
        if self.learner.updates % config.target_updates == 0:
            self.target.load_state_dict(self.learner.master.state_dict())

    def extra_tensors(self) -> dict[str, Tensor]:
        """Return the target network and the replay buffers."""
        target = self.target.state_dict()
        extra = {f"target.{name}": t.cpu().clone() for name, t in target.items()}
        for number, replay in enumerate(self.replays):
            extra |= {
                f"replay.{number}.rows": replay.rows.cpu().clone(),
                f"replay.{number}.arcs": replay.arcs.cpu().clone(),
                f"replay.{number}.added": torch.tensor(replay.added),
            }
        return extra

    def restore_extra(self, tensors: dict[str, Tensor]) -> None:
        """Restore the target network and the replay buffers."""
        self.target.load_state_dict(below(tensors, "target."))
        for number, replay in enumerate(self.replays):
            replay.rows.copy_(tensors[f"replay.{number}.rows"])
            replay.arcs.copy_(tensors[f"replay.{number}.arcs"])
            replay.added = int(tensors[f"replay.{number}.added"])


class ActorCriticTrainer(_RolloutTrainer[VrpDlTraining]):
    """A run of VRP-DL: REINFORCE with a critic (Nazari et al. 2018).

    The decoder runs along whole rollouts; gradients of the two attentions come from some
    decision steps of each, which bounds the memory.
    """

    phase = "vrp-dl"

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.model = self.learner.master
        self._point: Callable[..., Tensor] = self.model
        if self.config.run.compile:
            # Not the decoder: an LSTM over whole plans is one fast kernel already.
            self._point = compiled_by_scale(self.model, 2 * len(self.data))

    def train_step(self, rate: float) -> None:
        """Sample rollouts and make those likelier that are better than estimated."""
        config, model = self.config, self.model
        data = self.data[self.draw_set()]
        arcs_of_plan = data.batch.num_arcs * config.decision_steps
        count = min(len(data), max(1, config.tokens // arcs_of_plan))
        rows = self.draw_rows(data, count)
        batch = self.instances(data, rows)
        arcs = self.rollouts(model, batch)  # (batch, 1, steps)
        costs = batch.deadheads(arcs) / batch.scale[:, None]  # (batch, 1)

        prepared = model.prepare(batch, padded=not data.full)
        estimate = model.critic(batch, self._first_chances(prepared, batch))  # (batch, 1)
        # By tasks, so that large instances count no more than small ones.
        error = (estimate - costs) / batch.num_tasks[:, None]
        critic_loss = error.square().mean()
        advantage = (estimate.detach() - costs) * num_choices(arcs)
        actor_loss = reinforce_loss(self._chosen(prepared, batch, arcs), advantage)
        loss = actor_loss + config.critic_weight * critic_loss
        self.learner.update(loss, rate)
        self.metrics.add(
            count * config.decision_steps,
            loss=loss.detach(),
            critic_loss=critic_loss.detach(),
            sampled=costs.mean(),
        )

    def _chosen(self, prepared: PreparedElements, batch: ArcBatch, arcs: Tensor) -> Tensor:
        """Compute the log-probabilities of some choices, (batch, decision steps)."""
        drawn, _ = draw_choices(arcs, self.config.decision_steps, self.generator)
        state, choice = states_at(batch, arcs, drawn)
        outputs = self.model.remember_all(prepared, arcs[:, 0])  # (batch, steps, width)
        wide = drawn[:, 0, :, None].expand(-1, -1, outputs.shape[-1])
        remembered = prepared._replace(memory=outputs.gather(1, wide))
        logits = self._point(remembered, state, action_mask(batch, state))
        return log_probabilities(logits, choice)

    @torch.no_grad()
    def _first_chances(self, prepared: PreparedElements, batch: ArcBatch) -> Tensor:
        """Compute the probability of each arc to be the first, (batch, arcs)."""
        state = reset(batch)
        remembered = self.model.remember(prepared, state)
        logits = self._point(remembered, state, action_mask(batch, state))
        return logits.softmax(-1)[:, 0]
