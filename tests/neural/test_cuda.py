"""What only a GPU can show: recordings, the Triton kernels, whole solvers, several GPUs."""

import importlib
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from arcfleet import Instance, Result, Stop, read, solve, solve_many
from arcfleet.neural import decoding, windows
from arcfleet.neural.batch import ArcBatch
from arcfleet.neural.checkpoint import find_model_type
from arcfleet.neural.decoding import (
    Policy,
    Rollout,
    Wrap,
    beam,
    decoding_model,
    greedy,
    sample,
)
from arcfleet.neural.device import has_bfloat16
from arcfleet.neural.env import reset
from arcfleet.neural.kernels.cuda_graph import graphed
from arcfleet.neural.model import AttentionModel, Daam, DaamConfig, EncoderLayer, Model
from arcfleet.neural.strategies import method_strategies
from arcfleet.neural.train.config import config_from
from arcfleet.neural.train.recorded import RecordedGradients
from arcfleet.neural.train.run import run_training
from arcfleet.neural.train.steps import LearningForm, Minibatch, imitation_loss
from arcfleet.paper.train import PAPER_PHASES
from tests.helpers import MIXED, SMALL
from tests.neural.batches import MDS, random_batch
from tests.neural.labelled_towns import labelled_file
from tests.neural.test_decoding import LooksAtAll
from tests.neural.test_solver import require_sound

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")

DECODINGS = ["greedy", "beam", "sample", "distinct"]
STOPS = {
    "daam": Stop(iterations=1),
    "daam-greedy": Stop(iterations=1),
    "daam-sample": Stop(iterations=30),  # more than are sampled whole
}


def kernels(name: str, device: str = "cuda") -> Any:
    """The module of a Triton kernel; the test is skipped where it cannot run."""
    pytest.importorskip("triton", reason="this torch brings no Triton")
    if not has_bfloat16(torch.device(device)):
        pytest.skip("needs a GPU of compute capability 8.0 or more")
    return importlib.import_module(f"arcfleet.neural.kernels.{name}")


def make_model(device: str, feed_forward: int = 32, *, cost_bias: bool = False) -> Daam:
    """A model that tells arcs apart, so that rounding does not choose among them."""
    torch.manual_seed(4)
    config = DaamConfig(
        **{"width": 32, "layers": 2, "heads": 2, "feed_forward": feed_forward},
        mds_dimensions=MDS,
        cost_bias=cost_bias,
    )
    return Daam(config).to(device).eval()


def make_other(model_type: str, device: str) -> Model:
    """A model of the paper."""
    torch.manual_seed(4)
    known = find_model_type(model_type)
    build: Any = known.model_class
    model: Model = build(known.config_class(width=32, mds_dimensions=MDS))
    return model.to(device).eval()


def decoded(
    model: Policy,
    device: str,
    kind: str,
    capacity_mask: bool,
    wrap: Wrap | None,
    batch: ArcBatch | None = None,
) -> Rollout:
    batch = batch or random_batch([9, 6, 9], mixed=True, seed=8).to(device)
    options: dict[str, Any] = {"capacity_mask": capacity_mask, "wrap": wrap}
    if kind == "greedy":
        return greedy(model, batch, **options)
    if kind == "beam":
        return beam(model, batch, 3, **options)
    generator = torch.Generator().manual_seed(5)
    heat = 0.5 + batch.num_tasks / 10
    options["distinct_starts"] = kind == "distinct"
    return sample(model, batch, 4, generator=generator, temperature=heat, **options)


def assert_recorded_equals_eager(
    device: str, kind: str, capacity_mask: bool, model: Model | None = None
) -> None:
    model = model or make_model(device)
    expected = decoded(model, device, kind, capacity_mask, None)
    found = decoded(model, device, kind, capacity_mask, graphed)
    assert found.arcs.device == expected.arcs.device
    assert torch.equal(found.arcs, expected.arcs)
    torch.testing.assert_close(found.log_probability, expected.log_probability)


@pytest.mark.parametrize("kind", DECODINGS)
@pytest.mark.parametrize("capacity_mask", [True, False])
def test_recorded_steps_equal_eager_ones(kind: str, capacity_mask: bool) -> None:
    assert_recorded_equals_eager("cuda", kind, capacity_mask)


@pytest.mark.parametrize("kind", DECODINGS)
def test_ever_fewer_arcs_change_nothing(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each narrower view is recorded again."""
    monkeypatch.setattr(decoding, "_LEAST_ON_GPU", 0)
    model = make_model("cpu").double().to("cuda")
    batch = random_batch([60, 45], mixed=True, seed=8).to("cuda")
    narrowed = decoded(model, "cuda", kind, True, graphed, batch)
    whole = decoded(LooksAtAll(model), "cuda", kind, True, graphed, batch)
    assert torch.equal(narrowed.arcs, whole.arcs)


@pytest.mark.parametrize("model_type", ["daam-paper", "s2v-dqn", "vrp-dl"])
@pytest.mark.parametrize("kind", DECODINGS)
def test_recorded_steps_of_the_papers_models_equal_eager_ones(
    kind: str, model_type: str
) -> None:
    model = make_other(model_type, "cuda")
    assert_recorded_equals_eager("cuda", kind, capacity_mask=True, model=model)


@pytest.mark.parametrize("baseline", ["s2v-dqn", "vrp-dl"])
def test_baselines_learn_and_solve(
    baseline: str, village: Instance, tmp_path: Path
) -> None:
    data = labelled_file(tmp_path / "data", "few", count=8, iterations=20)
    phase = PAPER_PHASES[baseline]
    config = config_from(phase.config, {"steps": 3, "tokens": 8_000, "log_steps": 1})
    trained = run_training(
        phase.trainer,
        tmp_path / "run",
        config,
        data=[data],
        validation=[data],
        device="cuda",
    )
    assert trained.finished
    model = trained.model_file
    require_sound(village, solve(village, baseline, model=model, device="cuda"))
    (one, other) = solve_many([village] * 2, baseline, model=model, device="cuda")
    assert isinstance(one, Result)
    assert isinstance(other, Result)
    assert one.solution == other.solution


@pytest.mark.parametrize("kind", DECODINGS)
def test_the_gpu_decodes_as_the_cpu(kind: str) -> None:
    batch = random_batch([9, 6, 9], mixed=True, seed=8)
    model = make_model("cpu")
    on_cpu = decoded(model, "cpu", kind, True, None, batch)
    on_gpu = decoded(model.to("cuda"), "cuda", kind, True, graphed, batch.to("cuda"))
    if kind != "beam":
        assert torch.equal(on_gpu.arcs.cpu(), on_cpu.arcs)
    # A street served alone costs the same both ways: such plans are equally probable, and
    # rounding orders them in a beam.
    tasks = torch.minimum(batch.inverse, torch.arange(batch.num_arcs))  # (batch, arcs)
    for row, task in enumerate(tasks):
        of_gpu, of_cpu = (task[x.arcs[row].cpu()].tolist() for x in (on_gpu, on_cpu))
        assert sorted(of_gpu) == sorted(of_cpu)
    torch.testing.assert_close(
        on_gpu.log_probability.cpu(), on_cpu.log_probability, rtol=0, atol=1e-3
    )


def assert_kernel_equals_general(
    device: str, arcs: int, heads: int, dim: int, masked: bool
) -> None:
    short = kernels("attention", device)
    generator = torch.Generator().manual_seed(arcs)
    rows = 3
    shape = (rows, arcs, 3 * heads * dim)
    joined = torch.randn(shape, generator=generator).to(device, torch.bfloat16)
    joined.requires_grad_()
    assert short.fits(joined, heads)
    real = None
    if masked:
        real = (torch.rand(rows, arcs, generator=generator) < 0.6).to(device)
        real[:, 0] = True
    parts = joined.float().view(rows, arcs, 3, heads, dim)
    query, key, value = parts.permute(2, 0, 3, 1, 4)
    mask = None if real is None else real[:, None, None]
    wanted = scaled_dot_product_attention(query, key, value, attn_mask=mask)
    wanted = wanted.transpose(1, 2).flatten(2)  # (rows, arcs, width)
    found = short.short_attention(joined, real, heads)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.float(), wanted, rtol=2e-2, atol=2e-2)
    pull = torch.randn(wanted.shape, generator=generator).to(device, torch.bfloat16)
    (ours,) = torch.autograd.grad(found, joined, pull)
    (theirs,) = torch.autograd.grad(wanted, joined, pull.float())
    torch.testing.assert_close(ours.float(), theirs.float(), rtol=5e-2, atol=5e-2)


@pytest.mark.parametrize(
    ("arcs", "heads", "dim", "masked"),
    [
        *((5, 2, 16, False), (70, 8, 16, True), (100, 2, 16, True), (140, 8, 16, True)),
        *((201, 8, 16, False), (256, 2, 32, True)),
    ],
)
def test_kernel_equals_the_general_attention(
    arcs: int, heads: int, dim: int, masked: bool
) -> None:
    assert_kernel_equals_general("cuda", arcs, heads, dim, masked)


@pytest.mark.parametrize(
    ("arcs", "heads", "dim", "masked"),
    [
        *((5, 2, 16, False), (48, 8, 16, True), (88, 4, 32, True), (201, 8, 16, False)),
        *((248, 4, 32, True), (264, 4, 32, True), (437, 8, 16, False), (608, 4, 32, True)),
    ],
)
def test_biased_kernels_equal_float64(
    arcs: int, heads: int, dim: int, masked: bool
) -> None:
    biased = kernels("biased_attention")
    generator = torch.Generator("cuda").manual_seed(arcs)
    rows, plans = 6, 2
    shape = (rows, arcs, 3 * heads * dim)
    options: dict[str, Any] = {"generator": generator, "device": "cuda"}
    parts = torch.randn(shape, **options).bfloat16().requires_grad_()
    slopes = torch.randn(heads, 2, **options).requires_grad_()
    incoming = (2 * torch.rand(rows // plans, arcs, arcs, **options)).bfloat16()
    visible = None
    if masked:
        visible = torch.rand(rows, arcs, **options) < 0.7
        visible[:, 0] = True
    pairs = biased.pairs_of(incoming)
    assert pairs.packed is not None
    found = biased.biased_attention(parts, visible, heads, pairs, slopes)
    exact = parts.detach().double().requires_grad_()
    sharp = slopes.detach().double().requires_grad_()
    wide = biased.pairs_of(incoming.double())
    assert wide.packed is None
    wanted = biased.biased_attention(exact, visible, heads, wide, sharp)
    pull = torch.randn(wanted.shape, **options).bfloat16()
    ours = torch.autograd.grad(found, [parts, slopes], pull)
    theirs = torch.autograd.grad(wanted, [exact, sharp], pull.double())
    for one, other, most in (
        (found, wanted, 0.005),
        (ours[0], theirs[0], 0.006),
        (ours[1], theirs[1], 0.02),
    ):
        assert (one.double() - other).norm() < most * other.norm()


def test_recorded_gradients_equal_eager_ones() -> None:
    model = make_model("cuda", feed_forward=64, cost_bias=True).bfloat16().train()
    form, weights = LearningForm(model), list(model.parameters())

    def loss(minibatch: Minibatch) -> Tensor:
        return imitation_loss(form, minibatch, padded=True)

    recorded = RecordedGradients(loss, list(weights))
    for seed, samples in ((1, 2), (2, 2), (3, 4)):  # the last of another shape
        batch = random_batch([7, 5, 6], seed=seed).to("cuda")
        state = reset(batch, samples)
        choice = torch.ones((3, samples), dtype=torch.int64, device="cuda")
        minibatch = Minibatch(batch, state, choice, torch.ones_like(choice).float())
        found = loss(minibatch)
        theirs = torch.autograd.grad(found, weights)
        # Its graph must be gone: what adds up gradients would stay on the stream on which
        # it was made, which a recording cannot wait for.
        expected = found.detach()
        del found
        torch.testing.assert_close(recorded(minibatch), expected)
        for weight, gradient in zip(weights, theirs, strict=True):
            assert weight.grad is not None
            torch.testing.assert_close(weight.grad, gradient, rtol=2e-2, atol=1e-4)


@pytest.mark.parametrize(
    ("rows", "arcs", "width", "spread"), [(3, 7, 128, 512), (60, 201, 64, 192)]
)
def test_a_layer_in_one_pass_equals_the_layer(
    rows: int, arcs: int, width: int, spread: int
) -> None:
    assert_layer_equals_exact("cuda", rows, arcs, width, spread)


def assert_layer_equals_exact(
    device: str, rows: int, arcs: int, width: int, spread: int
) -> None:
    layer_kernels = kernels("layer", device)
    torch.manual_seed(arcs)
    layer = EncoderLayer(width, 4, spread)
    for name in ("attention_norm", "feed_forward_norm"):
        torch.nn.init.uniform_(layer.get_parameter(f"{name}.weight"), 0.5, 1.5)
    layer = layer.to(device, torch.bfloat16)
    exact = EncoderLayer(width, 4, spread).to(device)
    exact.load_state_dict(layer.state_dict())
    hidden = torch.randn(rows, arcs, width, device=device, dtype=torch.bfloat16)
    assert layer_kernels.fits(hidden, spread)
    real = torch.rand(rows, arcs, device=device) < 0.6
    real[:, 0] = True
    hidden.requires_grad_()
    wide = hidden.detach().float().requires_grad_()
    wanted = exact(wide, real)
    with torch.no_grad():
        torch.testing.assert_close(
            layer(hidden, real).float(), wanted, rtol=5e-2, atol=5e-2
        )
    learning = layer(hidden, real)
    torch.testing.assert_close(learning.float(), wanted, rtol=5e-2, atol=5e-2)
    pull = torch.randn_like(learning)
    ours = torch.autograd.grad(learning, [hidden, *layer.parameters()], pull)
    theirs = torch.autograd.grad(wanted, [wide, *exact.parameters()], pull.float())
    names = ["hidden", *(name for name, _ in layer.named_parameters())]
    for name, found, expected in zip(names, ours, theirs, strict=True):
        away = (found.float() - expected).norm() / expected.norm()
        # Rounding opens and shuts the numbers of `widen` near zero.
        assert away < (0.1 if "widen" in name else 0.03), name


def gradient(model: AttentionModel, batch: ArcBatch, *, compiled: bool = False) -> Tensor:
    """Of the sum of some log-probabilities, all of it in one row, on the CPU."""
    batch = batch.to(next(model.parameters()).device)
    where = reset(batch, samples=2)
    form = LearningForm(model, data_sets=1 if compiled else None)
    logits = form.logits(batch, where, padded=True)
    parts = torch.autograd.grad(
        logits.log_softmax(-1)[..., 1].sum(), list(model.parameters())
    )
    return torch.cat([part.float().cpu().flatten() for part in parts])


def test_the_gpu_learns_as_the_cpu() -> None:
    batch = random_batch([7, 5, 6])
    assert batch.num_arcs % 8
    wanted = gradient(make_model("cpu"), batch)
    found = gradient(make_model("cuda"), batch)
    assert (found - wanted).norm() < 1e-3 * wanted.norm()


# What torch imports to compile says of itself that it is old.
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("cost_bias", [False, True])
def test_kernels_learn_as_torch_does(compiled: bool, cost_bias: bool) -> None:
    hidden = torch.zeros(1, 1, 32, device="cuda", dtype=torch.bfloat16)
    assert kernels("layer").fits(hidden, 64)
    batch = random_batch([7, 5, 6])
    model = make_model("cuda", feed_forward=64, cost_bias=cost_bias)
    wanted = gradient(model, batch)
    found = gradient(model.bfloat16(), batch, compiled=compiled)
    assert (found - wanted).norm() < 0.15 * wanted.norm()


@pytest.mark.parametrize("kind", DECODINGS)
@pytest.mark.parametrize("cost_bias", [False, True])
def test_layers_in_one_pass_are_recorded(kind: str, cost_bias: bool) -> None:
    hidden = torch.zeros(1, 1, 32, device="cuda", dtype=torch.bfloat16)
    assert kernels("layer").fits(hidden, 64)
    model = decoding_model(make_model("cuda", feed_forward=64, cost_bias=cost_bias))
    assert_recorded_equals_eager("cuda", kind, capacity_mask=True, model=model)


def test_models_are_decoded_in_what_the_gpu_is_made_for() -> None:
    model = decoding_model(make_model("cuda"))
    weights = next(model.parameters())
    recent = has_bfloat16(weights.device)
    assert weights.dtype == (torch.bfloat16 if recent else torch.float32)
    batch = random_batch([5, 3]).to("cuda")
    assert greedy(model, batch, wrap=graphed).log_probability.isfinite().all()


@pytest.mark.parametrize("method", method_strategies())
def test_learned_methods_make_sound_plans(
    method: str, village: Instance, model: Path
) -> None:
    options: dict[str, Any] = {"stop": STOPS[method], "model": model, "device": "cuda"}
    for instance in (read(SMALL), read(MIXED)):
        require_sound(instance, solve(instance, method, **options))
    first = solve(village, method, seed=2, **options)
    require_sound(village, first)
    assert solve(village, method, seed=2, **options).solution == first.solution


@pytest.mark.parametrize("method", ["daam", "daam-sample"])
def test_windows_make_sound_plans(
    method: str, village: Instance, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "MOST_TASKS_AT_ONCE", 10)
    stop = Stop(iterations=3)
    result = solve(village, method, stop=stop, model=model, device="cuda")
    require_sound(village, result)


@pytest.mark.parametrize("method", method_strategies())
def test_many_instances_get_sound_plans(
    method: str, village: Instance, model: Path
) -> None:
    instances = [village, *[read(SMALL)] * 3]
    outcomes = solve_many(instances, method, stop=STOPS[method], model=model, device="cuda")
    for instance, outcome in zip(instances, outcomes, strict=True):
        assert isinstance(outcome, Result), outcome
        require_sound(instance, outcome)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs a second CUDA GPU")
def test_the_second_gpu_works_alone(village: Instance, model: Path) -> None:
    for device in ("cuda:0", "cuda:1"):  # in one process, one after the other
        for kind in DECODINGS:
            assert_recorded_equals_eager(device, kind, capacity_mask=True)
        assert_kernel_equals_general(device, 70, 8, 16, masked=True)
        assert_layer_equals_exact(device, 3, 7, 128, 512)
        for method in method_strategies():
            stop = STOPS[method]
            result = solve(village, method, stop=stop, model=model, device=device)
            require_sound(village, result)
    assert torch.cuda.current_device() == 0
