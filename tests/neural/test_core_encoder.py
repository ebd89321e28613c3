"""The encoder in the core: what torch computes, but for rounding."""

import copy
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from arcfleet import _core
from arcfleet.network import Network
from arcfleet.neural.decoding import decoding_model, greedy, sample
from arcfleet.neural.device import torch_threads
from arcfleet.neural.kernels.core_encoder import CoreEncoder, core_has
from arcfleet.neural.model import Daam, DaamConfig, through_layers
from arcfleet.neural.plans import as_decoded
from arcfleet.neural.solver import load_for_solving
from tests.neural.batches import MDS, network_batch, random_batch, verify
from tests.neural.model_checks import midway
from tests.strategies import connected_instances
from tests.tiny_model import SIZES

fast_here = pytest.mark.skipif(
    not (hasattr(_core, "Encoder") and _core.Encoder.is_fast_here()),
    reason="the core has no vectors of this processor (it needs AVX2): torch decodes",
)

CONFIG = DaamConfig(width=32, layers=2, heads=2, feed_forward=48, mds_dimensions=MDS)


def make_model(config: DaamConfig = CONFIG, seed: int = 1) -> Daam:
    torch.manual_seed(seed)
    model = Daam(config).eval()
    with torch.no_grad():
        for name, weights in model.named_parameters():
            if not name.endswith("norm.weight"):
                weights.normal_(std=0.3)
    return model


@settings(max_examples=40)
@given(
    tasks=st.lists(st.integers(1, 12), min_size=1, max_size=3),
    samples=st.integers(1, 3),
    heads=st.sampled_from([1, 2, 4]),
    dim=st.sampled_from([16, 32]),
    hidden=st.sampled_from([16, 80]),
    steps=st.integers(0, 9),
    seed=st.integers(0, 99),
)
@torch.no_grad()
def test_embeddings_are_those_of_torch(
    tasks: list[int],
    samples: int,
    heads: int,
    dim: int,
    hidden: int,
    steps: int,
    seed: int,
) -> None:
    sizes: Any = {"width": heads * dim, "heads": heads, "feed_forward": hidden}
    model = make_model(DaamConfig(**sizes, layers=2, mds_dimensions=MDS), seed)
    batch = random_batch(tasks, mixed=seed % 2 == 1, seed=seed, padding=seed % 3)
    state = midway(batch, samples=samples, steps=steps, seed=seed)
    prepared, start, visible = model.begin(batch, state, True)
    assert visible is not None
    expected = through_layers(model.encoder, start, visible, prepared)
    found = through_layers([CoreEncoder(list(model.encoder))], start, visible, prepared)
    seen = visible.expand(found.shape[:3])
    assert torch.allclose(found[seen], expected[seen], atol=2e-4, rtol=2e-4)
    assert (found[~seen] == 0).all()


@settings(max_examples=15)
@given(instance=connected_instances(), seed=st.integers(0, 99))
def test_plans_are_valid(instance: Any, seed: int) -> None:
    networks = [Network(instance)]
    if networks[0].num_tasks:
        batch = network_batch(networks)
        core = decoding_model(make_model(seed=seed))
        verify(networks, as_decoded(batch, greedy(core, batch)))


@pytest.mark.parametrize("capacity_mask", [True, False])
def test_plans_are_those_of_torch(capacity_mask: bool) -> None:
    # Of random instances, where rounding decides nothing.
    batch, model = random_batch([7, 12, 4, 12], seed=5), make_model()
    core = decoding_model(model)
    options: dict[str, Any] = {"capacity_mask": capacity_mask}
    found, expected = (greedy(each, batch, **options) for each in (core, model))
    assert torch.equal(found.arcs, expected.arcs)
    assert torch.allclose(found.log_probability, expected.log_probability, atol=1e-3)


def test_threads_and_rows_beside_make_no_difference() -> None:
    core: Any = decoding_model(make_model())
    batch = random_batch([5, 9, 9, 3], seed=2)
    threads = []
    for count in (1, 2):
        with torch_threads(count):
            generator = torch.Generator().manual_seed(3)
            threads.append(sample(core, batch, 4, generator=generator).arcs)
    assert torch.equal(*threads)
    whole = greedy(core, batch).arcs[:, 0]
    for row in range(len(batch)):
        alone = greedy(core, batch.select(torch.tensor([row]))).arcs[0, 0]
        assert torch.equal(alone, whole[row, : len(alone)])


@fast_here
def test_the_shipped_model_decodes_in_the_core() -> None:
    model: Any = load_for_solving(None, "cpu").model
    assert [type(layer) for layer in model.encoder] == [CoreEncoder]
    again = copy.deepcopy(model)
    assert again.encoder[0] is model.encoder[0]


@pytest.mark.parametrize(
    "config",
    [
        DaamConfig(**SIZES, mds_dimensions=MDS),  # heads of 8
        DaamConfig(**{**SIZES, "width": 32, "feed_forward": 24}, mds_dimensions=MDS),
        DaamConfig(**{**SIZES, "width": 32}, mds_dimensions=MDS, cost_bias=False),
    ],
    ids=["narrow heads", "narrow net", "no bias"],
)
def test_what_the_core_has_not_stays_in_torch(config: DaamConfig) -> None:
    model = make_model(config)
    assert not core_has(model.encoder[0])
    assert decoding_model(model) is model


@fast_here
def test_double_precision_and_a_missing_core_stay_in_torch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert core_has(make_model().encoder[0])
    assert not core_has(make_model().double().encoder[0])
    monkeypatch.delattr(_core, "Encoder")
    assert not core_has(make_model().encoder[0])


def test_the_model_that_was_given_still_learns() -> None:
    model = make_model()
    before = {name: x.clone() for name, x in model.state_dict().items()}
    decoding_model(model)
    assert model.state_dict().keys() == before.keys()
    batch = random_batch([4], seed=1)
    state = midway(batch)
    prepared, start, visible = model.begin(batch, state, True)
    loss: Any = through_layers(model.encoder, start, visible, prepared).sum()
    loss.backward()
    first: Any = model.encoder[0]
    assert first.out.weight.grad is not None


def test_arrays_that_do_not_fit_are_refused() -> None:
    for sizes in ((16, 0, 16), (16, 2, 16), (32, 2, 24), (32, 3, 16)):
        with pytest.raises(ValueError, match="multiples of 16"):
            _core.Encoder(*sizes)
    encoder: Any = _core.Encoder(16, 1, 16)
    numbers = [np.zeros(n, np.float32) for n in (768, 256, 16, 256, 16, 256, 16, 16, 2)]
    encoder.add_layer(*numbers)
    with pytest.raises(ValueError, match="weights that fit"):
        encoder.add_layer(*numbers[:-1], np.zeros(4, np.float32))
    start, incoming = np.zeros((2, 3, 16), np.float32), np.zeros((1, 3, 3), np.float32)
    visible, found = np.ones((2, 3), np.bool_), np.zeros((2, 3, 16), np.float32)
    encoder.run(start, incoming, visible, found, 1)
    for wrong in (
        (start[:, :, :8].copy(), incoming, visible, found, 1),
        (start, np.zeros((1, 3, 4), np.float32), visible, found, 1),
        (start, np.zeros((3, 3, 3), np.float32), visible, found, 1),
        (start, incoming, visible[:1].copy(), found, 1),
        (start, incoming, visible, found[:1].copy(), 1),
        (start, incoming, visible, found, 0),
    ):
        with pytest.raises(ValueError, match="expected"):
            encoder.run(*wrong)
