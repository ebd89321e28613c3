"""The model against its literal inverse, and what must not change its logits."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

import pytest
import torch
from torch.nn import functional

from arcfleet.errors import OptionError
from arcfleet.neural import env as process
from arcfleet.neural.env import State
from arcfleet.neural.model import (
    INPUTS,
    NORMS,
    SERVED,
    Daam,
    DaamConfig,
    Features,
    Inputs,
    NormName,
    Served,
)
from arcfleet.neural.train.run import can_grow, grown
from tests.neural.batches import MDS, join, random_batch, random_rollout
from tests.neural.literal_daam import literal_logits

if TYPE_CHECKING:
    from arcfleet.neural.batch import ArcBatch

SMALL = DaamConfig(width=8, layers=2, heads=2, feed_forward=12, mds_dimensions=MDS)


def make_model(config: DaamConfig = SMALL, seed: int = 1) -> Daam:
    """A model whose every parameter matters: none is zero or one."""
    torch.manual_seed(seed)
    model = Daam(config).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    for name, buffer in model.named_buffers():
        torch.nn.init.uniform_(buffer, 0.5 if name.endswith("variance") else -0.5, 1.5)
    return model


def midway(batch: ArcBatch, copies: int = 2, steps: int = 2, seed: int = 3) -> State:
    """Random plans after some steps, each copy another one."""
    generator = torch.Generator().manual_seed(seed)
    states, _ = random_rollout(
        batch, capacity_mask=True, generator=generator, samples=copies
    )
    return states[min(steps, len(states) - 1)]


def exact(batch: ArcBatch) -> ArcBatch:
    """The same batch in float64, so that no rounding hides or feigns a difference."""
    return replace(batch, features=batch.features.double(), scale=batch.scale.double())


def logits_of(model: Daam, batch: ArcBatch, state: State) -> torch.Tensor:
    allowed = process.action_mask(batch, state)
    logits: torch.Tensor = model(model.prepare(batch), state, allowed)
    return logits


@pytest.mark.parametrize(("norm", "inputs"), list(product(NORMS, INPUTS)))
@pytest.mark.parametrize("tasks", [[2, 4], [3, 3]], ids=["padded", "full"])
def test_equals_the_literal_model(norm: NormName, inputs: Inputs, tasks: list[int]) -> None:
    config = replace(SMALL, norm=norm, inputs=inputs)
    model = make_model(config).double()
    batch = random_batch(tasks, mixed=len(set(tasks)) > 1)
    _assert_literal(model, exact(batch), midway(batch))


@pytest.mark.parametrize(("norm", "inputs"), list(product(NORMS, INPUTS)))
@pytest.mark.parametrize("served", SERVED)
@pytest.mark.parametrize("features", ["more", "more+spare"])
def test_equals_the_literal_model_with_more_features(
    norm: NormName, inputs: Inputs, served: Served, features: Features
) -> None:
    config = replace(SMALL, norm=norm, inputs=inputs, features=features, served=served)
    model = make_model(config).double()
    batch = random_batch([2, 4], mixed=True)
    for steps in (0, 2, 5):
        _assert_literal(model, exact(batch), midway(batch, steps=steps))


GROWN = list(product(NORMS, ["paper", "more", "more+spare"], [0, 1, 3]))


@pytest.mark.parametrize(("norm", "features", "more_layers"), GROWN)
def test_a_grown_model_decides_as_before(
    norm: NormName, features: Features, more_layers: int
) -> None:
    model = make_model(replace(SMALL, norm=norm, features=features)).double()
    wanted = replace(
        model.config, features="more+spare", layers=model.config.layers + more_layers
    )
    if wanted == model.config:
        assert not can_grow(model.config, wanted)
        return
    assert can_grow(model.config, wanted)
    assert not can_grow(wanted, model.config)
    assert not can_grow(model.config, replace(wanted, width=2 * wanted.width))
    larger = grown(model, wanted, seed=3).double().eval()
    assert larger.config == wanted
    batch = exact(random_batch([3, 4], mixed=True))
    state = midway(batch)
    torch.testing.assert_close(
        logits_of(larger, batch, state),
        logits_of(model, batch, state),
        rtol=0,
        # Norms of new layers divide by what is 1 but for a small number they add; beside
        # channels that hardly vary, that number is not small.
        atol=1e-12 if not more_layers else 1e-4 if norm in ("rms", "layer") else 1e-2,
    )
    if norm == "batch":  # by the statistics of the batch
        torch.testing.assert_close(
            logits_of(larger.train(), batch, state),
            logits_of(model.train(), batch, state),
            rtol=0,
            atol=1e-2,
        )


def test_a_model_grows_either_more_or_not_at_all() -> None:
    deeper = replace(SMALL, layers=SMALL.layers + 1)
    assert not can_grow(replace(SMALL, features="more"), deeper)
    assert not can_grow(deeper, replace(SMALL, features="more"))


def test_new_layers_learn_and_follow_the_seed() -> None:
    model = make_model(SMALL).double()
    wanted = replace(SMALL, layers=SMALL.layers + 2)
    larger = grown(model, wanted, seed=3).double()
    batch = exact(random_batch([3, 4]))
    logits = logits_of(larger, batch, midway(batch))
    logits[logits.isfinite()].square().sum().backward()  # type: ignore[no-untyped-call]
    learns = {
        name
        for name, parameter in larger.named_parameters()
        if parameter.grad is not None and parameter.grad.abs().max() > 0
    }
    for layer in (SMALL.layers, SMALL.layers + 1):
        assert f"encoder.{layer}.out.weight" in learns
        assert f"encoder.{layer}.narrow.weight" in learns
    key = f"encoder.{SMALL.layers}.query_key_value.weight"
    again, other = (grown(model, wanted, seed).state_dict()[key] for seed in (3, 4))
    assert torch.equal(larger.state_dict()[key], again.double())
    assert not torch.equal(again, other)


@pytest.mark.parametrize("gat_heads", [2, 4])
@pytest.mark.parametrize("padding", [0, 2])
def test_equals_the_literal_model_with_several_gat_heads(
    gat_heads: int, padding: int
) -> None:
    model = make_model(replace(SMALL, gat_heads=gat_heads)).double()
    batch = random_batch([3, 4], mixed=True, padding=padding)
    _assert_literal(model, exact(batch), midway(batch, copies=3, steps=3))


def test_equals_the_literal_model_in_training_with_batch_norm() -> None:
    model = make_model(replace(SMALL, norm="batch")).double().train()
    batch = random_batch([2, 4], padding=1)
    _assert_literal(model, exact(batch), midway(batch))


def _assert_literal(model: Daam, batch: ArcBatch, state: State) -> None:
    allowed = process.action_mask(batch, state)
    expected = literal_logits(model, batch, state, allowed)
    # With and without gradients, which may take different ways.
    with_gradients = model(model.prepare(batch), state, allowed)
    with torch.no_grad():
        without = model(model.prepare(batch), state, allowed)
    for found in (with_gradients, without):
        assert torch.equal(found.isinf(), ~allowed)
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)
    assert expected[allowed].std() > 0.01  # not all the same


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("train", [False, True])
def test_padding_changes_nothing(norm: NormName, train: bool) -> None:
    model = make_model(replace(SMALL, norm=norm)).double().train(train)
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
def test_neighbours_in_the_batch_change_nothing(norm: NormName) -> None:
    model = make_model(replace(SMALL, norm=norm)).double()
    first, second = random_batch([2], seed=1), random_batch([5], seed=2, mixed=True)
    first, second = exact(first), exact(second)
    both = join([first, second])
    state = process.reset(both)
    alone = logits_of(model, first, process.reset(first))
    together = logits_of(model, both, state)
    torch.testing.assert_close(together[:1, :, :5], alone, rtol=0, atol=1e-4)


def test_permuted_arcs_permute_the_logits() -> None:
    model = make_model()
    batch = random_batch([4], mixed=True)
    order = torch.cat([torch.zeros(1).long(), 1 + torch.randperm(batch.num_arcs - 1)])
    place = order.argsort()
    moved = replace(
        batch,
        features=batch.features[:, order],
        start=batch.start[:, order],
        end=batch.end[:, order],
        service_cost=batch.service_cost[:, order],
        demand=batch.demand[:, order],
        inverse=place[batch.inverse[:, order]],
    )
    state = midway(batch)
    moved_state = State(state.unserved[..., order], place[state.previous], state.remaining)
    torch.testing.assert_close(
        logits_of(model, moved, moved_state),
        logits_of(model, batch, state)[..., order],
        rtol=0,
        atol=1e-4,
    )


def test_sees_neither_the_unit_of_costs_nor_that_of_demands() -> None:
    model = make_model()
    batch = random_batch([4])
    state = midway(batch)
    other = replace(
        batch,
        distance=batch.distance * 10,
        service_cost=batch.service_cost * 10,
        scale=batch.scale * 10,
        demand=batch.demand * 7,
        capacity=batch.capacity * 7,
    )
    other_state = state._replace(remaining=state.remaining * 7)
    torch.testing.assert_close(
        logits_of(model, other, other_state),
        logits_of(model, batch, state),
        rtol=0,
        atol=1e-4,
    )


@pytest.mark.parametrize(("norm", "inputs"), list(product(NORMS, INPUTS)))
@pytest.mark.parametrize("padding", [0, 1])
def test_gradients_flow_to_every_parameter(
    norm: NormName, inputs: Inputs, padding: int
) -> None:
    config = replace(SMALL, norm=norm, inputs=inputs, gat_heads=2)
    torch.manual_seed(0)
    model = Daam(config).train()
    batch = random_batch([5, 5], padding=padding)
    logits = logits_of(model, batch, midway(batch, copies=3))
    logits.log_softmax(-1)[..., 1:].exp().square().sum().backward()  # type: ignore[no-untyped-call]
    for name, parameter in model.named_parameters():
        gradient = parameter.grad
        assert gradient is not None, name
        assert gradient.isfinite().all(), name
        if name == "static.weight" and inputs == "gat":
            assert not gradient[:, 3:].any()
        assert gradient.abs().max() > 0, name


def test_batch_norm_learns_its_statistics_in_training_only() -> None:
    model = make_model(replace(SMALL, norm="batch"))
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
    model = make_model(replace(SMALL, norm="batch"))
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
def test_runs_in_bfloat16_and_answers_in_float32(norm: NormName, padding: int) -> None:
    torch.manual_seed(2)
    config = DaamConfig(
        width=32, layers=2, heads=4, feed_forward=64, mds_dimensions=MDS, norm=norm
    )
    model = Daam(config).eval()
    batch = random_batch([5, 5], padding=padding)
    state = midway(batch)
    fine = logits_of(model, batch, state)
    rough = logits_of(model.to(torch.bfloat16), batch, state)
    assert rough.dtype == torch.float32
    assert torch.equal(rough.isfinite(), fine.isfinite())
    if norm != "instance":  # few arcs differ little in a channel, which it blows up
        torch.testing.assert_close(rough, fine, rtol=0, atol=0.15)


def test_without_tasks_only_the_depot_can_be_chosen() -> None:
    model = make_model()
    for batch in (random_batch([0]), random_batch([0, 3])):
        logits = logits_of(model, batch, process.reset(batch))
        assert logits[0, 0, 0].isfinite()
        assert (logits[0, 0, 1:] == -math.inf).all()


def test_many_rows_are_the_same_as_few() -> None:
    # Without gradients the CPU takes rows in portions that stay in its cache.
    model = make_model()
    batch = random_batch([30] * 150, mixed=True)
    state = process.reset(batch, 2)
    with torch.no_grad():
        together = logits_of(model, batch, state)
        for rows in (torch.tensor([0]), torch.tensor([149])):
            few = batch.select(rows)
            torch.testing.assert_close(
                logits_of(model, few, process.reset(few, 2)),
                together[rows],
                rtol=0,
                atol=1e-4,
            )
        one = batch.select(torch.tensor([7]))
        many = logits_of(model, one, process.reset(one, 300))
        torch.testing.assert_close(
            many, together[7:8, :1].expand_as(many), rtol=0, atol=1e-4
        )


def test_one_graph_holds_the_whole_step() -> None:
    # What would break the graph would also make the GPU wait for the CPU.
    model = make_model()
    batch = random_batch([3, 4])
    state = midway(batch)
    allowed = process.action_mask(batch, state)
    with torch.no_grad():
        prepared = model.prepare(batch)
        compiled = torch.compile(model, backend="eager", fullgraph=True)
        torch.testing.assert_close(
            compiled(prepared, state, allowed), model(prepared, state, allowed)
        )


@pytest.mark.parametrize(
    "changes",
    [
        {"width": 0},
        {"heads": 3},
        {"gat_heads": 5},
        {"norm": "none"},
        {"inputs": "mds-gat"},
        {"mds_dimensions": -1},
        {"clip": 0.0},
        {"clip": math.nan},
        {"clip": "high"},
        {"clip": True},
        {"clip": 10**400},
        {"width": 8.0},
        {"layers": True},
        {"mds_dimensions": "2"},
        {"norm": []},
    ],
)
def test_sizes_that_cannot_be_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises(OptionError, match=next(iter(changes))):
        replace(SMALL, **changes)  # type: ignore[arg-type]
