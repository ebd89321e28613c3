"""The shipped model against its literal definition, and what must not change its logits."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from arcfleet.errors import OptionError
from arcfleet.neural import env as process
from arcfleet.neural.batch import NUM_PLAIN
from arcfleet.neural.checkpoint import SHIPPED_MODEL, read_model_info
from arcfleet.neural.env import State
from arcfleet.neural.kernels.biased_attention import biased_attention, pairs_of
from arcfleet.neural.model import (
    CHANGING_FEATURES,
    STATIC_FEATURES,
    Daam,
    DaamConfig,
    EncoderLayer,
    initial_slopes,
)
from tests.neural.batches import MDS, random_batch
from tests.neural.literal_daam import literal_logits
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

BIASED = DaamConfig(width=8, layers=2, heads=2, feed_forward=12, mds_dimensions=MDS)
SMALL = replace(BIASED, cost_bias=False)
both = pytest.mark.parametrize("config", [SMALL, BIASED], ids=["graph", "biased"])


def make_model(config: DaamConfig = SMALL, seed: int = 1) -> Daam:
    """A model whose every parameter matters: none is zero or one."""
    torch.manual_seed(seed)
    model = Daam(config).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return model


@pytest.mark.parametrize("tasks", [[2, 4], [3, 3]], ids=["padded", "full"])
@pytest.mark.parametrize("steps", [0, 2, 5])
@both
def test_equals_the_literal_model(tasks: list[int], steps: int, config: DaamConfig) -> None:
    model = make_model(config).double()
    batch = random_batch(tasks, mixed=len(set(tasks)) > 1)
    assert_literal(literal_logits, model, exact(batch), midway(batch, steps=steps))


def test_the_defaults_are_the_shipped_model() -> None:
    assert read_model_info(SHIPPED_MODEL).config == DaamConfig()


def test_every_feature_has_a_column_of_weights() -> None:
    model, columns = make_model(), NUM_PLAIN + 2 * MDS + len(STATIC_FEATURES)
    assert model.static.weight.shape == (SMALL.width, columns)
    assert model.changing.weight.shape == (SMALL.width, len(CHANGING_FEATURES))


def test_slopes_of_zero_are_no_bias() -> None:
    torch.manual_seed(0)
    biased = EncoderLayer(8, 2, 12, cost_bias=True).double()
    plain = EncoderLayer(8, 2, 12).double()
    torch.nn.init.zeros_(biased.slopes)
    plain.load_state_dict({x: y for x, y in biased.state_dict().items() if x != "slopes"})
    hidden = torch.randn(3, 7, 8, dtype=torch.float64)
    visible = torch.rand(3, 7) < 0.6
    visible[:, 0] = True
    pairs = pairs_of(torch.rand(3, 7, 7, dtype=torch.float64))
    for seen in (visible, None):
        torch.testing.assert_close(
            biased(hidden, seen, pairs), plain(hidden, seen), rtol=0, atol=1e-12
        )


def test_the_bias_has_the_gradient_of_its_differences() -> None:
    generator = torch.Generator().manual_seed(1)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    # Two plans of each of two instances.
    parts, slopes, incoming = drawn(4, 5, 12), drawn(2, 2), drawn(2, 5, 5).abs()
    visible = torch.tensor([[True] * 5, [True, False, True, True, False]] * 2)

    def attended(parts: Tensor, slopes: Tensor) -> Tensor:
        result: Tensor = biased_attention(parts, visible, 2, pairs_of(incoming), slopes)
        return result

    inputs = parts.requires_grad_(), slopes.requires_grad_()
    assert torch.autograd.gradcheck(attended, inputs, atol=1e-8)


def test_half_of_the_heads_look_there_and_half_back() -> None:
    for heads, steepest in ((1, -0.7), (4, -3.0), (8, -4.0), (12, -4.0)):
        slopes = initial_slopes(heads)
        assert ((slopes != 0).sum(1) == 1).all()
        assert slopes.min() == pytest.approx(steepest)
        assert abs(int((slopes[:, 0] != 0).sum()) - heads / 2) < 1


@both
@pytest.mark.parametrize("train", [False, True])
def test_padding_changes_nothing(train: bool, config: DaamConfig) -> None:
    assert_padding_changes_nothing(make_model(config).double().train(train))


@both
def test_neighbours_in_the_batch_change_nothing(config: DaamConfig) -> None:
    assert_neighbours_change_nothing(make_model(config).double())


@both
def test_permuted_arcs_permute_the_logits(config: DaamConfig) -> None:
    model = make_model(config)
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


@both
def test_sees_neither_the_unit_of_costs_nor_that_of_demands(config: DaamConfig) -> None:
    model = make_model(config)
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


@both
@pytest.mark.parametrize("padding", [0, 1])
def test_gradients_flow_to_every_parameter(padding: int, config: DaamConfig) -> None:
    torch.manual_seed(0)
    assert_gradients_flow(Daam(config).train(), padding)


@both
@pytest.mark.parametrize("padding", [0, 3])
def test_runs_in_bfloat16_and_answers_in_float32(padding: int, config: DaamConfig) -> None:
    torch.manual_seed(2)
    model = Daam(replace(config, width=32, heads=4, feed_forward=64)).eval()
    assert_runs_in_bfloat16(model, padding)


def test_without_tasks_only_the_depot_can_be_chosen() -> None:
    model = make_model()
    for batch in (random_batch([0]), random_batch([0, 3])):
        logits = logits_of(model, batch, process.reset(batch))
        assert logits[0, 0, 0].isfinite()
        assert (logits[0, 0, 1:] == -math.inf).all()


@both
def test_many_rows_are_the_same_as_few(config: DaamConfig) -> None:
    # Without gradients the CPU takes rows in portions that stay in its cache.
    model = make_model(config)
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


@both
def test_one_graph_holds_the_whole_step(config: DaamConfig) -> None:
    # What would break the graph would also make the GPU wait for the CPU.
    model = make_model(config)
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
        {"mds_dimensions": -1},
        {"clip": 0.0},
        {"clip": math.nan},
        {"clip": "high"},
        {"clip": True},
        {"clip": 10**400},
        {"width": 8.0},
        {"layers": True},
        {"mds_dimensions": "2"},
        {"cost_bias": 1},
    ],
)
def test_sizes_that_cannot_be_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises(OptionError, match=next(iter(changes))):
        replace(SMALL, **changes)  # type: ignore[arg-type]
