"""Losses of reinforcement: from states, choices and what they were worth to gradients."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from arcfleet.neural.state import allowed_arcs

if TYPE_CHECKING:
    from torch import Tensor

    from arcfleet.neural.arc_batch import ArcBatch
    from arcfleet.neural.learning_form import LearningForm
    from arcfleet.neural.state import State


def logits_of(
    model: LearningForm, batch: ArcBatch, state: State, *, padded: bool, bound: bool = True
) -> Tensor:
    """Give the logits of all arcs, (batch, copies, arcs), -inf where not allowed.

    Parameters
    ----------
    model
        What decides.
    batch, state
        The instances, and where plans of them stand, (batch, copies, ...).
    padded
        Whether there may be padding.
    bound
        Whether the capacity counts.
    """
    allowed = allowed_arcs(batch, state, bound=bound)
    return model.logits(batch, state, allowed, padded=padded)


def log_probabilities(logits: Tensor, choice: Tensor, temperature: float = 1.0) -> Tensor:
    """Give the log-probability of each choice, (batch, copies).

    Parameters
    ----------
    logits
        As `logits_of` gives them.
    choice
        Arcs, (batch, copies).
    temperature
        By which logits are divided, as where the choices were sampled.
    """
    chosen = (logits / temperature).log_softmax(-1).gather(-1, choice[..., None])
    return chosen[..., 0]


def divergence(logits: Tensor, first: Tensor) -> Tensor:
    """Say how far a policy has left another, in nats, (batch, copies).

    The Kullback-Leibler divergence of each decision, from the logits of both.
    """
    now = logits.log_softmax(-1)
    # Where neither may choose, both have -inf: no difference.
    apart = (now - first.log_softmax(-1)).masked_fill(now == -math.inf, 0)
    return (now.exp() * apart).sum(-1)


def reinforce_loss(log_probability: Tensor, worth: Tensor) -> Tensor:
    """Give the loss of REINFORCE (Williams 1992): its gradient raises what was worth it.

    Parameters
    ----------
    log_probability
        Of the choices, with a gradient.
    worth
        Advantage of each, times what it counts.
    """
    return -(log_probability * worth).mean()


def clipped_loss(
    log_probability: Tensor, old: Tensor, advantage: Tensor, weight: Tensor, clip: float
) -> Tensor:
    """Give the loss of PPO-clip (Schulman et al. 2017).

    Parameters
    ----------
    log_probability
        Of the choices, with a gradient.
    old
        Their log-probability under the policy that made them.
    advantage, weight
        What each was worth, and how much it counts.
    clip
        How far the ratio of probabilities may pay to leave 1.
    """
    ratio = (log_probability - old).exp()
    bounded = ratio.clamp(1 - clip, 1 + clip)
    return -(weight * torch.minimum(ratio * advantage, bounded * advantage)).mean()


def leave_one_out(costs: Tensor, best_of: int = 1) -> Tensor:
    """Say what each copy is worth beside the others, (batch, copies).

    Times `best_of`, how much cheaper the best of so many copies is in the mean, if the copy
    is one of them, than if it is not. For one this is how much cheaper it is than the mean
    of the others; with more of them, what counts is to be better than most. It makes
    REINFORCE follow the gradient of the expected cost of the best of so many samples.

    Parameters
    ----------
    costs
        Of the copies, (batch, copies), more than `best_of`.
    best_of
        Copies of which only the best counts.
    """
    copies = costs.shape[1]
    if best_of == 1:
        return (costs.mean(1, keepdim=True) - costs) * (copies / (copies - 1))
    # The others of each copy, cheapest first, (batch, copies, copies - 1).
    is_other = ~torch.eye(copies, dtype=torch.bool, device=costs.device)
    others = costs[:, None].expand(-1, copies, -1)[:, is_other]
    others = others.view(-1, copies, copies - 1).sort(-1).values
    without = (others * _chances_to_lead(copies - 1, best_of).to(others)).sum(-1)
    best = torch.minimum(others, costs[..., None])
    within = (best * _chances_to_lead(copies - 1, best_of - 1).to(others)).sum(-1)
    return best_of * (without - within)


def _chances_to_lead(count: int, drawn: int) -> Tensor:
    """Give the chance of each of `count` ranks to be the first of so many drawn ones."""
    choices = math.comb(count, drawn)
    # Whole numbers of any length: only their quotients are sure to be floats.
    chances = [math.comb(count - 1 - rank, drawn - 1) / choices for rank in range(count)]
    return torch.tensor(chances, dtype=torch.float64)
