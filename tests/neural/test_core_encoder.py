"""The encoder in the core: what torch computes, but for rounding."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from arcfleet import _core
from arcfleet.network import Network
from arcfleet.neural import decoding
from arcfleet.neural.checkpoint import SHIPPED_MODEL, load_model
from arcfleet.neural.decoding import decoding_model, greedy, sample
from arcfleet.neural.device import torch_threads
from arcfleet.neural.env import visible_arcs
from arcfleet.neural.kernels.core_encoder import CoreEncoder, core_has, is_fast_here
from arcfleet.neural.model import Daam, DaamConfig, EncoderLayer, through_layers
from arcfleet.neural.plans import as_decoded
from arcfleet.neural.solver import load_for_solving
from tests.neural.batches import MDS, network_batch, random_batch, verify
from tests.neural.model_checks import exact, midway
from tests.strategies import connected_instances
from tests.tiny_model import SIZES

pytestmark = pytest.mark.skipif(
    not hasattr(_core, "Encoder"), reason="the core was built without vectors"
)
fast_here = pytest.mark.skipif(
    not is_fast_here(), reason="needs a processor with AVX-512: else torch decodes"
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


def in_core(model: Daam) -> Daam:
    """Return a copy whose layers the core computes, fast or not."""
    model = copy.deepcopy(model)
    model.put_in_core()
    assert model.core is not None
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
    core = CoreEncoder.of(list(model.encoder))
    found = through_layers([core], start, visible, prepared)
    seen = visible.expand(found.shape[:3])
    assert torch.allclose(found[seen], expected[seen], atol=2e-4, rtol=2e-4)
    assert (found[~seen] == 0).all()


@settings(max_examples=15)
@given(instance=connected_instances(), seed=st.integers(0, 99))
def test_plans_are_valid(instance: Any, seed: int) -> None:
    networks = [Network(instance)]
    if networks[0].num_tasks:
        batch = network_batch(networks)
        core = in_core(make_model(seed=seed))
        verify(networks, as_decoded(batch, greedy(core, batch)))


@pytest.mark.parametrize("capacity_mask", [True, False])
def test_plans_are_those_of_torch(capacity_mask: bool) -> None:
    # Of random instances, where rounding decides nothing.
    batch, model = random_batch([7, 12, 4, 12], seed=5), make_model()
    core = in_core(model)
    options: dict[str, Any] = {"capacity_mask": capacity_mask}
    found, expected = (greedy(each, batch, **options) for each in (core, model))
    assert torch.equal(found.arcs, expected.arcs)
    assert torch.allclose(found.log_probability, expected.log_probability, atol=1e-3)


def test_threads_and_rows_beside_make_no_difference() -> None:
    core = in_core(make_model())
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
    assert model.core is not None
    # Nothing of it is lost, and a copy of it may learn.
    assert model.state_dict().keys() == load_model(SHIPPED_MODEL)[0].state_dict().keys()
    assert copy.deepcopy(model).core is None


def test_a_pickled_model_decodes_the_same() -> None:
    batch, core = random_batch([8, 5], seed=6), in_core(make_model())
    again: Any = pickle.loads(pickle.dumps(core))
    assert again.core is not None
    found, expected = greedy(again, batch), greedy(core, batch)
    assert torch.equal(found.arcs, expected.arcs)
    assert torch.equal(found.log_probability, expected.log_probability)


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
    assert not core_has(list(model.encoder))
    model.put_in_core()
    assert model.core is None


def test_layers_of_other_kinds_stay_in_torch() -> None:
    assert not core_has([])
    assert not core_has(list(make_model().double().encoder))
    unlike = make_model()
    unlike.encoder[1] = EncoderLayer(32, 2, 64, cost_bias=True)

    class Mine(EncoderLayer):
        """A class that may compute something else."""

    mine = make_model()
    mine.encoder[1] = Mine(32, 2, 48, cost_bias=True)
    other: Any = make_model()
    del other.encoder
    other.encoder = torch.nn.Identity()  # no list
    for model in (unlike, mine, other):
        model.put_in_core()
        assert model.core is None


@pytest.mark.parametrize("is_fast", [False, True])
def test_only_where_it_is_fast(is_fast: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "is_fast_here", lambda: is_fast)
    model = make_model()
    found = decoding_model(model)
    assert (found.core is not None) == is_fast
    assert model.core is None
    monkeypatch.delattr(_core, "Encoder")
    assert not is_fast_here()


def test_gradients_and_other_dtypes_take_the_layers_of_torch() -> None:
    model = in_core(make_model())
    batch = random_batch([4], seed=1)
    state = midway(batch)
    loss: Any = model.encode(model.prepare(batch), state).sum()
    loss.backward()
    first: Any = model.encoder[0]
    assert first.out.weight.grad is not None
    with torch.no_grad():
        core = model.encode(model.prepare(batch), state)
        double = model.double()
        exactly = double.encode(double.prepare(exact(batch)), state)
    assert exactly.dtype == torch.float64
    seen = visible_arcs(state)
    assert torch.allclose(core[seen].double(), exactly[seen], atol=1e-4)


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
    # What it writes to is never a copy.
    places: Any = (np.zeros((2, 3, 16)), np.zeros((2, 3, 32), np.float32)[..., ::2])
    for place in places:
        with pytest.raises(TypeError):
            encoder.run(start, incoming, visible, place, 1)
