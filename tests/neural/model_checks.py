"""What must hold for the logits of every attention model, and states to check it on."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from arcfleet.neural.batch import ArcBatch
from arcfleet.neural.env import State, action_mask, reset
from arcfleet.neural.model import AttentionModel
from tests.neural.batches import join, random_batch, random_rollout


def midway(batch: ArcBatch, samples: int = 2, steps: int = 2, seed: int = 3) -> State:
    """Random plans after some steps, each sample another one."""
    generator = torch.Generator().manual_seed(seed)
    states, _ = random_rollout(
        batch, capacity_mask=True, generator=generator, samples=samples
    )
    return states[min(steps, len(states) - 1)]


def exact(batch: ArcBatch) -> ArcBatch:
    """The same batch in float64, so that no rounding hides or feigns a difference."""
    return replace(batch, features=batch.features.double(), scale=batch.scale.double())


def logits_of(model: AttentionModel, batch: ArcBatch, state: State) -> Tensor:
    """Logits of every arc in a state, with its action mask."""
    mask = action_mask(batch, state)
    logits: Tensor = model(model.prepare(batch), state, mask)
    return logits


def assert_literal(
    literal_logits: Callable[[Any, ArcBatch, State, Tensor], Tensor],
    model: AttentionModel,
    batch: ArcBatch,
    state: State,
) -> None:
    """The model has the logits of its literal definition."""
    mask = action_mask(batch, state)
    expected = literal_logits(model, batch, state, mask)
    # With and without gradients, which may take different ways.
    with_gradients = model(model.prepare(batch), state, mask)
    with torch.no_grad():
        without = model(model.prepare(batch), state, mask)
    for found in (with_gradients, without):
        assert torch.equal(found.isinf(), ~mask)
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)
    assert expected[mask].std() > 0.01  # not all the same


def assert_padding_changes_nothing(model: AttentionModel) -> None:
    """Padded batches have the logits of unpadded ones."""
    plain = exact(random_batch([4, 4], seed=5))
    padded = exact(random_batch([4, 4], seed=5, padding=3))
    for seed in range(3):
        narrow = midway(plain, seed=seed)
        wide = narrow._replace(unserved=functional.pad(narrow.unserved, (0, 3)))
        torch.testing.assert_close(
            logits_of(model, padded, wide)[..., :9],
            logits_of(model, plain, narrow),
            rtol=0,
            atol=1e-4,
        )


def assert_neighbours_change_nothing(model: AttentionModel) -> None:
    """An instance has the same logits alone and beside another one."""
    first = exact(random_batch([2], seed=1))
    both = join([first, exact(random_batch([5], seed=2, mixed=True))])
    alone = logits_of(model, first, reset(first))
    together = logits_of(model, both, reset(both))
    torch.testing.assert_close(together[:1, :, :5], alone, rtol=0, atol=1e-4)


def assert_gradients_flow(model: AttentionModel, padding: int) -> None:
    """Every parameter has a finite gradient that is not zero."""
    batch = random_batch([5, 5], padding=padding)
    logits = logits_of(model, batch, midway(batch, samples=3))
    logits.log_softmax(-1)[..., 1:].exp().square().sum().backward()  # type: ignore[no-untyped-call]
    for name, parameter in model.named_parameters():
        gradient = parameter.grad
        assert gradient is not None, name
        assert gradient.isfinite().all(), name
        assert gradient.abs().max() > 0, name


def assert_runs_in_bfloat16(model: AttentionModel, padding: int) -> None:
    """In bfloat16 the logits are nearly the same, and in float32."""
    batch = random_batch([5, 5], padding=padding)
    state = midway(batch)
    fine = logits_of(model, batch, state)
    rough = logits_of(model.to(torch.bfloat16), batch, state)
    assert rough.dtype == torch.float32
    assert torch.equal(rough.isfinite(), fine.isfinite())
    torch.testing.assert_close(rough, fine, rtol=0, atol=0.15)
