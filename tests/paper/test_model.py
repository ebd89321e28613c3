"""The published model against its literal copy, and what must not change its logits."""

import copy
from dataclasses import replace
from itertools import product

import pytest
import torch

from arcfleet.errors import OptionError
from arcfleet.neural.decoding import greedy
from arcfleet.paper.model import (
    INPUTS,
    NORMS,
    Inputs,
    Norm,
    PublishedDaam,
    PublishedDaamConfig,
)
from tests.neural.batches import MDS, random_batch
from tests.neural.model_checks import (
    assert_gradients_flow,
    assert_literal,
    assert_neighbours_change_nothing,
    assert_padding_changes_nothing,
    assert_runs_in_bfloat16,
    exact,
    logits_of,
    midway,
)
from tests.paper.literal_model import literal_logits

SMALL = PublishedDaamConfig(width=8, layers=2, heads=2, feed_forward=12, mds_dimensions=MDS)
VARIANTS = list(product(NORMS, INPUTS))


def make_model(norm: Norm = "batch", inputs: Inputs = "mds+gat") -> PublishedDaam:
    """A model whose every parameter and statistic matters: none is zero or one."""
    torch.manual_seed(3)
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
        assert_literal(literal_logits, model, exact(batch), midway(batch, steps=steps))


@pytest.mark.parametrize("inputs", INPUTS)
def test_equals_the_literal_model_in_training_with_batch_norm(inputs: Inputs) -> None:
    model = make_model("batch", inputs).double().train()
    batch = random_batch([2, 4], padding=1)
    assert_literal(literal_logits, model, exact(batch), midway(batch))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("train", [False, True])
def test_padding_changes_nothing(norm: Norm, train: bool) -> None:
    assert_padding_changes_nothing(make_model(norm).double().train(train))


@pytest.mark.parametrize("norm", NORMS)
def test_neighbours_in_the_batch_change_nothing(norm: Norm) -> None:
    assert_neighbours_change_nothing(make_model(norm).double())


@pytest.mark.parametrize(("norm", "inputs"), VARIANTS)
@pytest.mark.parametrize("padding", [0, 1])
def test_gradients_flow_to_every_parameter(
    norm: Norm, inputs: Inputs, padding: int
) -> None:
    torch.manual_seed(0)
    model = PublishedDaam(replace(SMALL, norm=norm, inputs=inputs)).train()
    assert_gradients_flow(model, padding)
    if inputs == "gat":
        gradient = model.static.weight.grad
        assert gradient is not None
        assert not gradient[:, 3:].any()


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
    assert_runs_in_bfloat16(model, padding)


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
