"""The published model against its literal copy, and what must not change its logits."""

import copy
from dataclasses import replace
from itertools import product

import pytest
import torch
from torch.nn import functional

from arcfleet.errors import OptionError
from arcfleet.neural.batch import ArcBatch
from arcfleet.neural.decoding import greedy
from arcfleet.neural.env import State, action_mask, reset
from arcfleet.paper.model import (
    INPUTS,
    NORMS,
    Inputs,
    Norm,
    PublishedDaam,
    PublishedDaamConfig,
)
from tests.neural.batches import MDS, join, random_batch
from tests.neural.test_daam import exact, logits_of, midway
from tests.paper.literal_model import literal_logits

SMALL = PublishedDaamConfig(width=8, layers=2, heads=2, feed_forward=12, mds_dimensions=MDS)
VARIANTS = list(product(NORMS, INPUTS))


def make_model(norm: Norm = "batch", inputs: Inputs = "mds+gat") -> PublishedDaam:
    """A model whose every parameter and statistic matters: none is zero or one."""
    torch.manual_seed(1)
    model = PublishedDaam(replace(SMALL, norm=norm, inputs=inputs)).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    for name, buffer in model.named_buffers():
        torch.nn.init.uniform_(buffer, 0.5 if name.endswith("variance") else -0.5, 1.5)
    return model


def test_the_defaults_are_the_papers() -> None:
    config = PublishedDaamConfig()
    sizes = (config.width, config.layers, config.heads, config.feed_forward)
    assert sizes == (128, 3, 8, 512)
    assert (config.mds_dimensions, config.norm, config.inputs) == (8, "batch", "mds+gat")


@pytest.mark.parametrize(("norm", "inputs"), VARIANTS)
@pytest.mark.parametrize("tasks", [[2, 4], [3, 3]], ids=["padded", "full"])
def test_equals_the_literal_model(norm: Norm, inputs: Inputs, tasks: list[int]) -> None:
    model = make_model(norm, inputs).double()
    batch = random_batch(tasks, mixed=len(set(tasks)) > 1)
    for steps in (0, 2, 5):
        _assert_literal(model, exact(batch), midway(batch, steps=steps))


@pytest.mark.parametrize("inputs", INPUTS)
def test_equals_the_literal_model_in_training_with_batch_norm(inputs: Inputs) -> None:
    model = make_model("batch", inputs).double().train()
    batch = random_batch([2, 4], padding=1)
    _assert_literal(model, exact(batch), midway(batch))


def _assert_literal(model: PublishedDaam, batch: ArcBatch, state: State) -> None:
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


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("train", [False, True])
def test_padding_changes_nothing(norm: Norm, train: bool) -> None:
    model = make_model(norm).double().train(train)
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


@pytest.mark.parametrize("norm", NORMS)
def test_neighbours_in_the_batch_change_nothing(norm: Norm) -> None:
    model = make_model(norm).double()
    first, second = random_batch([2], seed=1), random_batch([5], seed=2, mixed=True)
    both = join([exact(first), exact(second)])
    alone = logits_of(model, exact(first), reset(first))
    together = logits_of(model, both, reset(both))
    torch.testing.assert_close(together[:1, :, :5], alone, rtol=0, atol=1e-4)


@pytest.mark.parametrize(("norm", "inputs"), VARIANTS)
@pytest.mark.parametrize("padding", [0, 1])
def test_gradients_flow_to_every_parameter(
    norm: Norm, inputs: Inputs, padding: int
) -> None:
    torch.manual_seed(0)
    model = PublishedDaam(replace(SMALL, norm=norm, inputs=inputs)).train()
    batch = random_batch([5, 5], padding=padding)
    logits = logits_of(model, batch, midway(batch, samples=3))
    logits.log_softmax(-1)[..., 1:].exp().square().sum().backward()  # type: ignore[no-untyped-call]
    for name, parameter in model.named_parameters():
        gradient = parameter.grad
        assert gradient is not None, name
        assert gradient.isfinite().all(), name
        if name == "static.weight" and inputs == "gat":
            assert not gradient[:, 3:].any()
        assert gradient.abs().max() > 0, name


def test_batch_norm_learns_its_statistics_in_training_only() -> None:
    model = make_model()
    batch = random_batch([4, 2])
    state = midway(batch)
    before = {name: buffer.clone() for name, buffer in model.named_buffers()}
    still = logits_of(model.eval(), batch, state)
    assert all(torch.equal(before[name], b) for name, b in model.named_buffers())
    trained = logits_of(model.train(), batch, state)
    assert not any(torch.equal(before[name], b) for name, b in model.named_buffers())
    assert not torch.allclose(still, trained)
    for _ in range(200):
        logits_of(model, batch, state)
    torch.testing.assert_close(
        logits_of(model.eval(), batch, state), trained, rtol=0, atol=1e-3
    )


def test_statistics_of_batch_norm_stay_in_single_precision() -> None:
    model = make_model()
    half = copy.deepcopy(model).to(torch.bfloat16)
    assert {weights.dtype for weights in half.parameters()} == {torch.bfloat16}
    before = dict(model.named_buffers())
    for name, buffer in half.named_buffers():
        assert torch.equal(buffer, before[name])  # not rounded either
        assert buffer.data_ptr() != before[name].data_ptr()
    batch = random_batch([4, 2])
    logits_of(half.train(), batch, midway(batch))
    assert {buffer.dtype for buffer in half.buffers()} == {torch.float32}
    assert {buffer.dtype for buffer in half.double().buffers()} == {torch.float64}


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("padding", [0, 3])
def test_runs_in_bfloat16_and_answers_in_float32(norm: Norm, padding: int) -> None:
    torch.manual_seed(2)
    config = replace(SMALL, width=32, heads=4, feed_forward=64, norm=norm)
    model = PublishedDaam(config).eval()
    batch = random_batch([5, 5], padding=padding)
    state = midway(batch)
    fine = logits_of(model, batch, state)
    rough = logits_of(model.to(torch.bfloat16), batch, state)
    assert rough.dtype == torch.float32
    assert torch.equal(rough.isfinite(), fine.isfinite())
    torch.testing.assert_close(rough, fine, rtol=0, atol=0.15)


@pytest.mark.parametrize("inputs", INPUTS)
def test_decoding_serves_all_tasks(inputs: Inputs) -> None:
    model, batch = make_model(inputs=inputs), random_batch([5, 3], mixed=True)
    assert not model.hides_served
    rollout = greedy(model, batch)
    for row, arcs in enumerate(rollout.arcs[:, 0]):
        tasks = {min(int(a), int(batch.inverse[row, a])) for a in arcs if a}
        assert len(tasks) == int(batch.num_tasks[row])


@pytest.mark.parametrize(
    "changes", [{"norm": "layer"}, {"inputs": "mds-gat"}, {"norm": []}, {"heads": 3}]
)
def test_words_and_sizes_that_cannot_be_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises(OptionError, match=next(iter(changes))):
        replace(SMALL, **changes)  # type: ignore[arg-type]
