"""The decoding loop: greedy, sampling and beam search."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from arcfleet.errors import OptionError
from arcfleet.instance.instance import Instance
from arcfleet.network import Network
from arcfleet.neural import decoding
from arcfleet.neural.batch import ArcBatch, pad_arcs
from arcfleet.neural.decoding import (
    Advance,
    Carry,
    FastPolicy,
    Policy,
    Rollout,
    View,
    beam,
    decoding_model,
    default_chunk,
    greedy,
    gumbel_noise,
    sample,
)
from arcfleet.neural.env import State, action_mask, finished, reset, step
from arcfleet.neural.model import Daam, DaamConfig, Prepared
from arcfleet.neural.plans import as_decoded
from tests.neural.batches import MDS, network_batch, random_batch, ring, toy_model, verify
from tests.neural.model_checks import exact
from tests.neural.nearest_policy import Nearest
from tests.neural.test_daam import SMALL, make_model
from tests.strategies import connected_instances

Sequence = tuple[int, ...]
Decode = Callable[[Policy, ArcBatch], Rollout]


def all_plans(
    policy: Policy, batch: ArcBatch, *, capacity_mask: bool
) -> dict[Sequence, float]:
    """Every plan of the only instance, with its log-probability."""
    prepared = policy.prepare(batch)
    plans = {}

    def grow(state: State, arcs: Sequence, log_probability: float) -> None:
        if arcs and bool(finished(state)):
            plans[arcs] = log_probability
            return
        allowed = action_mask(batch, state, capacity_mask=capacity_mask)
        chances = policy(prepared, state, allowed).log_softmax(-1)[0, 0].tolist()
        for arc in allowed[0, 0].nonzero().flatten().tolist():
            chosen = step(batch, state, torch.tensor([[arc]]), capacity_mask=capacity_mask)
            grow(chosen, (*arcs, arc), log_probability + chances[arc])

    with torch.no_grad():
        grow(reset(batch), (), 0.0)
    return plans


def sequences(rollout: Rollout, row: int = 0) -> list[Sequence]:
    """The samples of one instance, each up to its last way home."""
    plans = []
    for arcs in rollout.arcs[row].tolist():
        last = max((i for i, arc in enumerate(arcs) if arc), default=-1)
        assert not any(arcs[last + 1 :])
        plans.append((*arcs[: last + 1], 0))
    return plans


def draw(
    policy: Policy, batch: ArcBatch, samples: int, seed: int = 1, **options: Any
) -> Rollout:
    generator = torch.Generator().manual_seed(seed)
    return sample(policy, batch, samples, generator=generator, **options)


def networks_of(*sizes: int) -> list[Network]:
    return [Network(ring([1 + i % 3 for i in range(size)])) for size in sizes]


@pytest.mark.parametrize("capacity_mask", [True, False])
def test_a_wide_beam_finds_all_plans_in_order(capacity_mask: bool) -> None:
    batch = network_batch([Network(ring([2, 3, 1]))])
    model = toy_model()
    expected = all_plans(model, batch, capacity_mask=capacity_mask)
    rollout = beam(model, batch, 400, capacity_mask=capacity_mask)
    found = rollout.log_probability[0]
    legal = found > -math.inf
    assert int(legal.sum()) == len(expected)
    plans = [plan for plan, kept in zip(sequences(rollout), legal, strict=True) if kept]
    assert set(plans) == set(expected)
    for plan, value in zip(plans, found[legal].tolist(), strict=True):
        assert value == pytest.approx(expected[plan], abs=1e-5)
    assert found[legal].tolist() == sorted(found[legal].tolist(), reverse=True)
    assert not rollout.arcs[0, ~legal].any()


@pytest.mark.parametrize("capacity_mask", [True, False])
@pytest.mark.parametrize("width", [2, 5])
def test_beams_differ_and_carry_their_probability(capacity_mask: bool, width: int) -> None:
    batch = network_batch(networks_of(6, 4, 9))
    model = toy_model(2)
    rollout = beam(model, batch, width, capacity_mask=capacity_mask)
    prepared = model.prepare(batch)
    state = reset(batch, width)
    total = torch.zeros(len(batch), width, dtype=torch.float64)
    for arcs in rollout.arcs.unbind(-1):
        allowed = action_mask(batch, state, capacity_mask=capacity_mask)
        assert bool(allowed.gather(-1, arcs[..., None]).all())
        chances = model(prepared, state, allowed).log_softmax(-1)
        total += chances.gather(-1, arcs[..., None])[..., 0].detach()
        state = step(batch, state, arcs, capacity_mask=capacity_mask)
    assert bool(finished(state).all())
    torch.testing.assert_close(total, rollout.log_probability, atol=1e-5, rtol=0)
    for row in range(len(batch)):
        assert len(set(sequences(rollout, row))) == width


@settings(max_examples=25)
@given(
    st.lists(connected_instances(max_extra_links=4), min_size=1, max_size=3), st.booleans()
)
def test_a_beam_of_one_is_greedy(instances: list[Instance], capacity_mask: bool) -> None:
    batch = network_batch([Network(instance) for instance in instances])
    model = Watched(toy_model(), 1.0)
    first, second = (
        greedy(model, batch, capacity_mask=capacity_mask),
        beam(model, batch, 1, capacity_mask=capacity_mask),
    )
    # Of arcs that are equally good, such as both ways round a loop, either may be taken.
    assume(model.least_margin > 1e-9)
    assert torch.equal(first.arcs, second.arcs)
    assert torch.equal(first.log_probability, second.log_probability)


class Tempered:
    """A policy that is no module: a model's logits, divided."""

    def __init__(self, model: Daam, temperature: float) -> None:
        self.model = model
        self.temperature = temperature

    def prepare(self, batch: ArcBatch) -> Prepared:
        return self.model.prepare(batch)

    def __call__(
        self, prepared: Prepared, state: State, allowed: torch.Tensor
    ) -> torch.Tensor:
        logits: torch.Tensor = self.model(prepared, state, allowed)
        return logits / self.temperature


class Watched(Tempered):
    """One that remembers how close its closest decision was."""

    least_margin = math.inf

    def __call__(
        self, prepared: Prepared, state: State, allowed: torch.Tensor
    ) -> torch.Tensor:
        logits = super().__call__(prepared, state, allowed)
        if logits.shape[-1] > 1:
            best, second = logits.topk(2, dim=-1).values.unbind(-1)
            self.least_margin = min(self.least_margin, float((best - second).min()))
        return logits


@pytest.mark.parametrize("temperature", [1.0, 2.5])
def test_samples_come_as_often_as_the_policy_says(temperature: float) -> None:
    batch = network_batch([Network(ring([2, 3]))])
    model = toy_model(3)

    expected = all_plans(Tempered(model, temperature), batch, capacity_mask=True)
    count = 8_000
    rollout = draw(model, batch, count, temperature=temperature)
    found: dict[Sequence, int] = {}
    plans = sequences(rollout)
    for plan in plans:
        found[plan] = found.get(plan, 0) + 1
    assert set(found) <= set(expected)
    for plan, log_probability in expected.items():
        chance = math.exp(log_probability)
        spread = math.sqrt(count * chance * (1 - chance))
        assert abs(found.get(plan, 0) - count * chance) < 4.5 * spread + 1
    values = rollout.log_probability[0].tolist()
    for plan, value in zip(plans[:50], values[:50], strict=True):
        assert value == pytest.approx(expected[plan], abs=1e-5)


def test_distinct_starts_are_drawn_without_replacement() -> None:
    batch = network_batch(networks_of(8, 5))
    model = toy_model(3)
    first = reset(batch)
    chance = model(model.prepare(batch), first, action_mask(batch, first))[:, 0].softmax(-1)
    draws = 600
    many = batch.select(torch.arange(2).repeat(draws))
    drawn = draw(model, many, 4, distinct_starts=True)
    starts = drawn.arcs[:, :, 0]
    assert all(len(set(row)) == 4 for row in starts.tolist())
    times, second = (
        functional.one_hot(starts[:, place], batch.num_arcs).view(draws, 2, -1).sum(0)
        for place in (0, 1)
    )
    # The first as the policy says; the second so among the others.
    after = (chance[:, :, None] * chance[:, None] / (1 - chance[:, :, None])).masked_fill(
        torch.eye(batch.num_arcs, dtype=torch.bool), 0
    )
    for found, expected in ((times, chance), (second, after.sum(1))):
        spread = (draws * expected * (1 - expected)).sqrt()
        assert ((found - draws * expected).abs() < 4.5 * spread + 1).all()


def test_starts_are_drawn_with_replacement_unless_told() -> None:
    batch = network_batch(networks_of(8, 5))
    # So cold that every sample takes the likeliest arc.
    cold = draw(toy_model(3), batch, 4, temperature=1e-4).arcs[:, :, 0]
    assert (cold == cold[:, :1]).all()
    distinct = draw(toy_model(3), batch, 4, temperature=1e-4, distinct_starts=True)
    assert all(len(set(row)) == 4 for row in distinct.arcs[:, :, 0].tolist())


class Remembered(NamedTuple):
    ways: Tensor
    memory: Tensor  # how many steps were taken


class Counting(Nearest):
    """The nearest arc, by a policy that remembers how many steps it took."""

    def prepare(self, batch: ArcBatch) -> Any:
        return Remembered(super().prepare(batch), torch.zeros(len(batch), 1, 1))

    def remember(self, prepared: Remembered, state: State) -> Remembered:
        return prepared._replace(memory=prepared.memory + 1)

    def __call__(self, prepared: Any, state: State, allowed: Tensor) -> Tensor:
        assert prepared.memory.shape == (*state.previous.shape, 1)
        return super().__call__(prepared.ways, state, allowed)


def test_a_policy_that_remembers_completes_no_partial_plans() -> None:
    batch = network_batch(networks_of(4, 3))
    for decode in (greedy, partial(beam, width=3)):
        with_memory, without = (decode(p, batch) for p in (Counting(), Nearest()))
        assert with_memory.arcs.tolist() == without.arcs.tolist()
    assert greedy(Nearest(), batch, initial=reset(batch)).arcs.tolist() == (
        greedy(Nearest(), batch).arcs.tolist()
    )
    with pytest.raises(OptionError, match="expected a policy without memory"):
        greedy(Counting(), batch, initial=reset(batch))


def test_where_starts_are_too_few_some_are_drawn_twice() -> None:
    networks = [Network(ring([2])), *networks_of(4)]
    batch = network_batch(networks)
    drawn = draw(toy_model(3), batch, 11, distinct_starts=True)
    starts = drawn.arcs[:, :, 0].tolist()
    assert len(set(starts[0])) == int((batch.demand[0] > 0).sum())
    assert len(set(starts[1])) == 8
    verify(networks, as_decoded(batch, drawn))


def test_distinct_starts_want_empty_plans() -> None:
    batch = network_batch(networks_of(3))
    with pytest.raises(OptionError, match="expected empty plans for distinct starts"):
        draw(toy_model(), batch, 1, initial=reset(batch), distinct_starts=True)


def test_a_seed_gives_the_same_plans_and_another_gives_others() -> None:
    batch = network_batch(networks_of(5, 8))
    model = toy_model()

    one, same, other = (draw(model, batch, 4, seed).arcs for seed in (7, 7, 8))
    assert torch.equal(one, same)
    assert other.shape != one.shape or not torch.equal(other, one)
    assert len({tuple(plan) for plan in one[1].tolist()}) > 1


def decoded(
    policy: Policy, batch: ArcBatch, capacity_mask: bool, chunk: int | None
) -> list[Rollout]:
    options: dict[str, Any] = {"capacity_mask": capacity_mask, "chunk": chunk}
    heat = 0.5 + batch.num_tasks / 5
    return [
        greedy(policy, batch, **options),
        draw(policy, batch, 3, 5, temperature=heat, **options),
        beam(policy, batch, 3, **options),
        draw(policy, batch, 3, 5, distinct_starts=True, **options),
    ]


@pytest.mark.parametrize("capacity_mask", [True, False])
@pytest.mark.parametrize("chunk", [1, 2])
def test_chunks_change_nothing(capacity_mask: bool, chunk: int) -> None:
    batch = network_batch(networks_of(5, 3, 7, 6, 7))
    model = toy_model()
    whole = decoded(model, batch, capacity_mask, None)
    parts = decoded(model, batch, capacity_mask, chunk)
    for one, other in zip(whole, parts, strict=True):
        assert torch.equal(one.arcs, other.arcs)
        torch.testing.assert_close(one.log_probability, other.log_probability)


@pytest.mark.parametrize("capacity_mask", [True, False])
def test_padding_changes_nothing(capacity_mask: bool) -> None:
    networks = networks_of(3, 8, 5)
    model = toy_model()
    together = decoded(model, network_batch(networks), capacity_mask, None)
    for row, network in enumerate(networks):
        alone = network_batch([network])
        assert sequences(greedy(model, alone, capacity_mask=capacity_mask)) == sequences(
            together[0], row
        )
        beams = beam(model, alone, 3, capacity_mask=capacity_mask)
        assert sequences(beams) == sequences(together[2], row)
        torch.testing.assert_close(
            beams.log_probability[0], together[2].log_probability[row], atol=1e-5, rtol=0
        )


@pytest.mark.parametrize("capacity_mask", [True, False])
@pytest.mark.parametrize("more", [0, 1, 7])
def test_arcs_padded_towhole_vectors_change_nothing(capacity_mask: bool, more: int) -> None:
    batch = network_batch(networks_of(3, 8, 5))
    wider = pad_arcs(batch, batch.num_arcs + more)
    assert wider.num_arcs == batch.num_arcs + more
    model = toy_model()
    plain = decoded(model, batch, capacity_mask, None)
    for one, other in zip(plain, decoded(model, wider, capacity_mask, None), strict=True):
        assert torch.equal(one.arcs, other.arcs)
        torch.testing.assert_close(one.log_probability, other.log_probability)


def testwhole_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the kernels of a GPU want; partial plans have as many arcs."""
    batch = network_batch(networks_of(3, 8, 5))
    model = toy_model()
    start = reset(batch, 2)
    state = step(batch, start, action_mask(batch, start).int().argmax(-1))
    assert decoding.whole_vectors(model, batch, state) == (batch, state)  # on a CPU
    # A batch that says that it is elsewhere, and is padded as the one that it stands for.
    place: Any = SimpleNamespace(is_cpu=False)
    there: Any = SimpleNamespace(real=place, num_arcs=batch.num_arcs)
    monkeypatch.setattr(decoding, "pad_arcs", lambda _, length: pad_arcs(batch, length))
    wider, padded = decoding.whole_vectors(model, there, state)
    assert wider.num_arcs == 24
    assert batch.num_arcs == 17
    assert padded is not None
    expected = greedy(model, batch, initial=state)
    assert torch.equal(greedy(model, wider, initial=padded).arcs, expected.arcs)
    seeing: Any = SimpleNamespace(hides_served=False)  # padding would change its logits
    assert decoding.whole_vectors(seeing, there, state) == (there, state)


@pytest.mark.parametrize("samples", [3, 12])
def test_padding_does_not_change_distinct_starts(samples: int) -> None:
    networks = networks_of(3, 8, 5)
    model, seeds = toy_model(), torch.tensor([3, 14, 15])

    def by_seeds(networks: list[Network], seeds: torch.Tensor) -> Rollout:
        batch = network_batch(networks)
        return sample(model, batch, samples, seeds=seeds, distinct_starts=True)

    together = by_seeds(networks, seeds)
    for row, network in enumerate(networks):
        alone = by_seeds([network], seeds[row : row + 1])
        assert sequences(alone) == sequences(together, row)


def test_steps_are_told_and_may_be_ended() -> None:
    batch = network_batch(networks_of(12, 12))
    told: list[tuple[int, int]] = []
    greedy(toy_model(), batch, chunk=1, on_step=lambda *steps: told.append(steps))
    assert told == sorted(told)
    assert len(told) > 24
    assert told[-1] == (48, 48)

    def enough(done: int, total: int) -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        greedy(toy_model(), batch, on_step=enough)


def test_a_step_can_be_wrapped() -> None:
    batch = network_batch(networks_of(4))
    calls = 0

    def wrap(advance: Advance) -> Advance:
        def counted(carry: Carry) -> Carry:
            nonlocal calls
            calls += 1
            return advance(carry)

        return counted

    rollout = greedy(toy_model(), batch, wrap=wrap)
    assert calls >= rollout.arcs.shape[-1]


def test_a_step_is_one_graph_of_tensors() -> None:
    # With fullgraph, whatever asks the device for a value is an error.
    batch = network_batch(networks_of(4, 3))
    model = toy_model()

    def wrap(advance: Advance) -> Advance:
        compiled: Advance = torch.compile(advance, backend="eager", fullgraph=True)
        return compiled

    for one, other in (
        (greedy(model, batch), greedy(model, batch, wrap=wrap)),
        (draw(model, batch, 2), draw(model, batch, 2, wrap=wrap)),
        (beam(model, batch, 2), beam(model, batch, 2, wrap=wrap)),
    ):
        assert torch.equal(one.arcs, other.arcs)
    torch.compiler.reset()


def test_nothing_to_serve_is_a_plan_without_steps() -> None:
    full = networks_of(3)[0]
    batch = network_batch([full, full])
    batch.real[1, 1:] = False
    for rollout in decoded(toy_model(), batch, True, None)[:2]:
        assert not rollout.arcs[1].any()
        assert not rollout.log_probability[1].any()


def test_wrong_numbers_are_refused() -> None:
    batch, model = network_batch(networks_of(3)), toy_model()
    none = batch.select(torch.zeros(0, dtype=torch.int64))
    wrong: dict[str, Callable[[], Rollout]] = {
        "width": lambda: beam(model, batch, 0),
        "samples": lambda: draw(model, batch, 0),
        "temperature": lambda: draw(model, batch, 1, temperature=0),
        "a generator or seeds": lambda: sample(model, batch, 1),
        "chunk": lambda: greedy(model, batch, chunk=0),
        "instance": lambda: greedy(model, none),
    }
    for message, call in wrong.items():
        with pytest.raises(OptionError, match=message):
            call()


def test_noise_is_gumbel_and_independent() -> None:
    noise = gumbel_noise(torch.arange(40), 50, torch.tensor(3), 50).double()
    assert bool(noise.isfinite().all())
    # Mean and variance of the Gumbel distribution.
    assert float(noise.mean()) == pytest.approx(0.57722, abs=0.015)
    assert float(noise.var()) == pytest.approx(math.pi**2 / 6, rel=0.03)
    later = gumbel_noise(torch.arange(40), 50, torch.tensor(4), 50).double()
    for one, other in [
        (noise, later),
        (noise[1:], noise[:-1]),
        (noise[:, 1:], noise[:, :-1]),
        (noise[..., 1:], noise[..., :-1]),
    ]:
        pair = torch.stack([one.flatten(), other.flatten()])
        assert abs(float(torch.corrcoef(pair)[0, 1])) < 0.02


CONFIG = DaamConfig(layers=1, mds_dimensions=MDS)


class Indifferent:
    """A policy that says nothing of its memory."""

    def prepare(self, batch: ArcBatch) -> Any:
        return batch

    def __call__(self, prepared: Any, state: State, allowed: Tensor) -> Tensor:
        return torch.where(allowed, 0.0, -torch.inf)


def test_chunks_are_powers_of_two_that_fit() -> None:
    batch = random_batch([30])
    for samples in (1, 3, 1000):
        chunk = default_chunk(Indifferent(), batch, samples)
        assert chunk.bit_count() == 1
        bytes_each = 4 * samples * batch.num_arcs * (6 * batch.num_arcs + 2048)
        assert chunk == 1 or chunk * bytes_each <= decoding.CPU_BYTES
        assert 2 * chunk * bytes_each > decoding.CPU_BYTES


def test_larger_models_take_smaller_chunks() -> None:
    batch = random_batch([30])
    usual = default_chunk(Daam(CONFIG), batch, 1)
    fast = FastPolicy(decoding_model(Daam(CONFIG)), compiled=False)
    assert usual == default_chunk(Indifferent(), batch, 1)
    assert usual == default_chunk(fast, batch, 1)
    wide = Daam(replace(CONFIG, width=512, feed_forward=2048))
    assert default_chunk(wide, batch, 1) <= usual // 2


def test_memory_that_torch_keeps_for_later_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    # So that a second call, which finds it kept, gets the same chunks as the first.
    numbers = {"mem_get_info": (600, 1000), "memory_reserved": 300, "memory_allocated": 100}
    for name, answer in numbers.items():
        monkeypatch.setattr(torch.cuda, name, lambda device, answer=answer: answer)
    assert decoding.free_bytes(torch.device("cuda:0")) == 800


class LooksAtAll:
    """The same policy, which does not say that it hides served arcs."""

    def __init__(self, policy: Policy) -> None:
        self.prepare = policy.prepare
        self.policy = policy

    def __call__(self, prepared: Any, state: State, allowed: Tensor) -> Tensor:
        return self.policy(prepared, state, allowed)


def _sampled(policy: Policy, batch: ArcBatch) -> Rollout:
    heat = torch.linspace(0.5, 2.0, len(batch))
    return draw(policy, batch, 3, 5, temperature=heat)


DECODINGS: dict[str, Decode] = {
    "greedy": greedy,
    "giant tour": partial(greedy, capacity_mask=False),
    "sample": _sampled,
    "distinct starts": partial(draw, samples=3, seed=5, distinct_starts=True),
    "beam": partial(beam, width=3),
    "beam, giant tours": partial(beam, width=2, capacity_mask=False),
}


@pytest.mark.parametrize("how", DECODINGS)
@pytest.mark.parametrize("mixed", [False, True])
def test_dropping_served_arcs_changes_nothing(
    how: str, mixed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make_model(SMALL).double()
    batch = exact(random_batch([30, 22, 5], mixed=mixed, seed=4))
    lengths: list[int] = []
    drop = decoding.drop_served

    def noted(*arguments: Any, **options: Any) -> tuple[View, Carry] | None:
        smaller = drop(*arguments, **options)
        if smaller is not None:
            lengths.append(smaller[0].batch.num_arcs)
        return smaller

    monkeypatch.setattr(decoding, "drop_served", noted)
    narrowed = DECODINGS[how](model, batch)
    dropped = len(lengths)
    assert dropped >= 3
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] < batch.num_arcs
    whole = DECODINGS[how](LooksAtAll(model), batch)
    assert torch.equal(narrowed.arcs, whole.arcs)
    torch.testing.assert_close(
        narrowed.log_probability, whole.log_probability, rtol=0, atol=1e-8
    )
    assert len(lengths) == dropped  # the second drops none


@pytest.mark.parametrize("beams", [False, True])
def test_where_there_is_no_choice_the_policy_is_not_asked(beams: bool) -> None:
    batch, model = random_batch([6], seed=3), toy_model()
    # Every task fills the vehicle, so that it comes home after each.
    batch = replace(batch, demand=(batch.demand > 0) * batch.capacity[:, None])
    asked: list[Tensor] = []

    class Counting:
        prepare = staticmethod(model.prepare)

        def __call__(self, prepared: Prepared, state: State, allowed: Tensor) -> Tensor:
            asked.append(allowed)
            logits: Tensor = model(prepared, state, allowed)
            return logits

    found = beam(Counting(), batch, 2) if beams else greedy(Counting(), batch)
    assert all((mask.sum(-1) > 1).any() for mask in asked)
    steps = found.arcs.shape[-1]
    assert len(asked) < steps
    # Wrapped steps ask it every time.
    before = len(asked)
    options: dict[str, Any] = {"wrap": lambda advance: advance}
    every = (
        beam(Counting(), batch, 2, **options)
        if beams
        else greedy(Counting(), batch, **options)
    )
    assert len(asked) - before >= steps
    assert torch.equal(found.arcs, every.arcs)
    assert torch.allclose(found.log_probability, every.log_probability)
