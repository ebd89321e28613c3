import math
from itertools import combinations, product
from statistics import mean

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from arcfleet.errors import OptionError
from arcfleet.instance.instance import Instance
from arcfleet.network import Network
from arcfleet.neural.batch import ArcBatch, Bucket
from arcfleet.neural.decoding import greedy, sample
from arcfleet.neural.env import State, finished, remaining_capacity, reset, step
from arcfleet.neural.train.steps import (
    LearningForm,
    draw_choices,
    kl_divergence,
    leave_one_out,
    log_probabilities,
    num_choices,
    reinforce_loss,
    states_at,
)
from tests.neural.batches import network_batch, ring, toy_model
from tests.strategies import connected_instances

BATCHES = st.lists(connected_instances(max_extra_links=4), min_size=1, max_size=3)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def walked(batch: ArcBatch, arcs: torch.Tensor, capacity_mask: bool) -> list[State]:
    """The states before each decision, stepped through."""
    states = [reset(batch, arcs.shape[1])]
    for chosen in arcs.unbind(-1):
        states.append(step(batch, states[-1], chosen, capacity_mask=capacity_mask))
    return states


@settings(max_examples=25)
@given(BATCHES, st.booleans())
def test_states_are_those_of_the_walk(
    instances: list[Instance], capacity_mask: bool
) -> None:
    batch = network_batch([Network(instance) for instance in instances])
    arcs = sample(
        toy_model(), batch, 3, generator=seeded(0), capacity_mask=capacity_mask
    ).arcs
    states = walked(batch, arcs, capacity_mask)
    every = torch.arange(arcs.shape[-1]).expand(*arcs.shape)
    room = None if capacity_mask else remaining_capacity(batch, arcs)
    state, choice = states_at(batch, arcs, every, room)
    assert torch.equal(choice, arcs.flatten(1))
    for got, expected in zip(state, zip(*states[:-1], strict=True), strict=True):
        assert torch.equal(got, torch.stack(expected, dim=2).flatten(1, 2))
    count = num_choices(arcs)
    for (row, copy), number in zip(
        product(*map(range, arcs.shape[:2])),
        count.flatten().tolist(),
        strict=True,
    ):
        assert not arcs[row, copy, number:].any()
        assert number == 0 or arcs[row, copy, number - 1] != 0


@settings(max_examples=25)
@given(BATCHES, st.booleans(), st.integers(0, 5))
def test_rollouts_go_on_from_any_state(
    instances: list[Instance], capacity_mask: bool, before: int
) -> None:
    """A greedy plan taken up in the middle ends as it would have."""
    batch = network_batch([Network(instance) for instance in instances])
    model = toy_model()
    whole = greedy(model, batch, capacity_mask=capacity_mask)
    state = reset(batch)
    taken = whole.arcs[..., :before]
    for chosen in taken.unbind(-1):
        state = step(batch, state, chosen, capacity_mask=capacity_mask)
    rest = greedy(model, batch, capacity_mask=capacity_mask, initial=state)
    again = torch.cat([taken, rest.arcs], dim=-1)
    longest = max(again.shape[-1], whole.arcs.shape[-1])
    padded = [
        torch.nn.functional.pad(arcs, (0, longest - arcs.shape[-1]))
        for arcs in (again, whole.arcs)
    ]
    assert torch.equal(*padded)
    driven = batch.deadheads(taken) + batch.deadheads(rest.arcs, before=state.previous)
    assert torch.equal(driven, batch.deadheads(whole.arcs))


def test_samples_from_states_finish_every_plan() -> None:
    batch = network_batch([Network(ring([2, 3, 1, 1])), Network(ring([1, 1]))])
    model = toy_model()
    arcs = sample(model, batch, 2, generator=seeded(1)).arcs
    state, _ = states_at(batch, arcs, torch.tensor([0, 1, 3]).expand(2, 2, 3))
    whole = sample(model, batch, 6, generator=seeded(2), initial=state)
    parts = sample(model, batch, 6, generator=seeded(2), initial=state, chunk=1)
    assert torch.equal(whole.arcs, parts.arcs)
    for chosen in whole.arcs.unbind(-1):
        state = step(batch, state, chosen)
    assert bool(finished(state).all())
    with pytest.raises(OptionError, match="expected 6 samples, one for each plan"):
        sample(model, batch, 3, generator=seeded(2), initial=state)


def test_drawn_decision_steps_stand_for_all() -> None:
    """A sum over some decision steps, scaled, is in the mean the sum over all decisions."""
    arcs = torch.tensor([[[1, 3, 0, 5, 7, 0, 0], [1, 3, 5, 0, 0, 0, 0]]])
    assert num_choices(arcs).tolist() == [[5, 3]]
    worth = torch.tensor([3.0, -1.0, 4.0, 1.0, 5.0, 1e9, 1e9])
    for steps in (1, 2, 4):
        plans = arcs.expand(40_000, -1, -1)
        drawn, count = draw_choices(plans, steps, seeded(steps))
        assert torch.equal(count, num_choices(plans))
        share = worth[drawn].sum(-1) * num_choices(arcs) / steps
        torch.testing.assert_close(
            share.mean(0), torch.tensor([12.0, 6.0]), atol=0.15, rtol=0
        )


def test_choices_of_all_buckets_together_stand_for_all() -> None:
    arcs = torch.tensor([[[3, 0, 4, 2, 7, 0, 0], [5, 1, 0, 0, 0, 0, 0]]])
    worth = torch.tensor([3.0, -1.0, 4.0, 1.0, 5.0, 1e9, 1e9])
    plans = arcs.expand(40_000, -1, -1)
    parts = [Bucket(9, 3, 5), Bucket(9, 1, 3), Bucket(9, 0, 1)]  # of tasks left
    total = torch.zeros(2)
    for number, bucket in enumerate(parts):
        drawn, count = draw_choices(plans, 2, seeded(number), bucket)
        assert (drawn < num_choices(plans)[..., None]).all()
        total += (worth[drawn].clamp(max=9).mean(-1) * count).mean(0)
        left = (plans != 0).flip(-1).cumsum(-1).flip(-1)
        inside = left.gather(2, drawn)[count > 0]
        assert ((inside > bucket.above) & (inside <= bucket.most)).all()
    torch.testing.assert_close(total, torch.tensor([12.0, 2.0]), atol=0.15, rtol=0)


@pytest.mark.parametrize("temperature", [1.0, 0.3])
def test_log_probabilities_add_up_to_the_plans(temperature: float) -> None:
    batch = network_batch([Network(ring([2, 3, 1, 1])), Network(ring([1, 1]))])
    model = toy_model()
    generator = torch.Generator().manual_seed(0)
    plans = sample(model, batch, 3, generator=generator, temperature=temperature)
    every = torch.arange(plans.arcs.shape[-1]).expand(*plans.arcs.shape)
    state, choice = states_at(batch, plans.arcs, every)
    logits = LearningForm(model).logits(batch, state, padded=True)
    chosen = log_probabilities(logits, choice, temperature)
    total = chosen.double().view(plans.arcs.shape).sum(-1)
    torch.testing.assert_close(total, plans.log_probability, atol=1e-5, rtol=0)
    # After the last service nothing is left to choose.
    late = every >= num_choices(plans.arcs)[..., None]
    assert chosen.view(plans.arcs.shape)[late].abs().max() == 0


def test_kl_divergence_by_hand() -> None:
    now = torch.tensor([[[0.0, math.log(3.0), -math.inf], [1.0, -math.inf, -math.inf]]])
    first = torch.tensor([[[0.0, 0.0, -math.inf], [7.0, -math.inf, -math.inf]]])
    now.requires_grad_()
    found = kl_divergence(now, first)  # of 1/4, 3/4 from 1/2, 1/2; and of what is no choice
    expected = 0.25 * math.log(0.5) + 0.75 * math.log(1.5)
    torch.testing.assert_close(found, torch.tensor([[expected, 0.0]]))
    assert kl_divergence(first, first).abs().max() == 0
    found.sum().backward()  # type: ignore[no-untyped-call]
    assert now.grad is not None
    assert now.grad.isfinite().all()


def test_samples_are_compared_with_the_others() -> None:
    costs = torch.tensor([[1.0, 4.0, 7.0], [2.0, 2.0, 2.0]])
    assert leave_one_out(costs).tolist() == [[4.5, 0.0, -4.5], [0.0, 0.0, 0.0]]


@settings(max_examples=50, deadline=None)
@given(costs=st.lists(st.integers(0, 9), min_size=3, max_size=7), k=st.integers(1, 6))
def test_what_a_sample_adds_to_the_k_some(costs: list[int], k: int) -> None:
    """Against all choices of so many samples, with and without each."""
    assume(k < len(costs))
    expected = []
    for copy, cost in enumerate(costs):
        others = costs[:copy] + costs[copy + 1 :]
        within = [min((cost, *some)) for some in combinations(others, k - 1)]
        without = [min(some) for some in combinations(others, k)]
        expected.append(k * (mean(without) - mean(within)))
    found = leave_one_out(torch.tensor([costs], dtype=torch.float64), k)
    assert found[0].tolist() == pytest.approx(expected, abs=1e-9)


def test_the_k_many() -> None:
    """Of so many that counts of choices are no floats any more."""
    copies, k = 1500, 750
    worth = leave_one_out(torch.arange(copies, dtype=torch.float64)[None], k)[0]
    # The least of K of the numbers from 1 to N is (N + 1) / (K + 1) in the mean.
    assert worth[0].item() == pytest.approx(k * copies / (k + 1))
    assert (worth[:-1] > worth[1:] - 1e-9).all()


def test_samples_raise_the_expected_k_some() -> None:
    """Summed over all draws of a toy policy, by their probability."""
    logits = torch.tensor([0.3, -0.2, 0.9], dtype=torch.float64, requires_grad=True)
    costs = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    copies, k = 4, 3

    chances = logits.softmax(0)
    goal = torch.zeros((), dtype=torch.float64)
    for draw in product(range(3), repeat=k):
        goal = goal + chances[list(draw)].prod() * costs[list(draw)].min()
    (expected,) = torch.autograd.grad(goal, logits)

    found = torch.zeros_like(expected)
    for draw in product(range(3), repeat=copies):
        chosen = logits.log_softmax(0)[list(draw)]
        worth = leave_one_out(costs[list(draw)][None], k)[0]
        (slope,) = torch.autograd.grad(reinforce_loss(chosen, worth), logits)
        found = found + chosen.sum().exp().detach() * slope
    torch.testing.assert_close(found, expected)


def test_reinforce_is_the_gradient_of_the_expected_return() -> None:
    """Summed over all choices of a toy policy, by their probability."""
    logits = torch.tensor([0.3, -0.2, 0.9], dtype=torch.float64, requires_grad=True)
    worth = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    (logits.softmax(0) * worth).sum().backward()  # type: ignore[no-untyped-call]
    expected, logits.grad = logits.grad, None
    chances = logits.softmax(0).tolist()
    for choice, chance in enumerate(chances):
        log_probability = logits.log_softmax(0)[choice][None]
        loss = reinforce_loss(log_probability, worth[choice][None])
        (chance * loss).backward()
    assert expected is not None
    assert logits.grad is not None
    torch.testing.assert_close(-logits.grad, expected)
