"""Losses of reinforcement: from states, choices and what they were worth to gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from arcfleet.neural.state import allowed_arcs

if TYPE_CHECKING:
    from torch import Tensor

    from arcfleet.neural.arc_batch import ArcBatch
    from arcfleet.neural.learning_form import LearningForm
    from arcfleet.neural.state import State


def log_probabilities(
    model: LearningForm,
    batch: ArcBatch,
    state: State,
    choice: Tensor,
    *,
    padded: bool,
    temperature: float = 1.0,
) -> Tensor:
    """Give the log-probability of each choice, (batch, copies).

    Parameters
    ----------
    model
        What decides.
    batch, state
        The instances, and where plans of them stand, (batch, copies, ...).
    choice
        Arcs, (batch, copies).
    padded
        Whether there may be padding.
    temperature
        By which logits are divided, as where the choices were sampled.
    """
    logits = model.logits(batch, state, allowed_arcs(batch, state), padded=padded)
    # logits: (batch, copies, arcs)
    chosen: Tensor = (logits / temperature).log_softmax(-1).gather(-1, choice[..., None])
    return chosen[..., 0]


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


def leave_one_out(costs: Tensor) -> Tensor:
    """Say how much cheaper each copy is than the mean of the others, (batch, copies)."""
    copies = costs.shape[1]
    return (costs.mean(1, keepdim=True) - costs) * (copies / (copies - 1))
