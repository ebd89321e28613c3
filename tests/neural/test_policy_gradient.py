from __future__ import annotations

import math
from itertools import combinations, product
from statistics import mean

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from arcfleet.network import Network
from arcfleet.neural.decoding import sample
from arcfleet.neural.train.steps import (
    LearningForm,
    clipped_loss,
    divergence,
    leave_one_out,
    log_probabilities,
    logits_of,
    num_choices,
    reinforce_loss,
    states_at,
)
from arcfleet.paper.ppo import LEAST_PAIRS, compare_costs, t_quantile
from tests.neural.batches import network_batch, ring, toy_model


@pytest.mark.parametrize("temperature", [1.0, 0.3])
def test_log_probabilities_add_up_to_the_plans(temperature: float) -> None:
    batch = network_batch([Network(ring([2, 3, 1, 1])), Network(ring([1, 1]))])
    model = toy_model()
    generator = torch.Generator().manual_seed(0)
    plans = sample(model, batch, 3, generator=generator, temperature=temperature)
    every = torch.arange(plans.arcs.shape[-1]).expand(*plans.arcs.shape)
    state, choice = states_at(batch, plans.arcs, every)
    logits = logits_of(LearningForm(model), batch, state, padded=True)
    chosen = log_probabilities(logits, choice, temperature)
    total = chosen.double().view(plans.arcs.shape).sum(-1)
    torch.testing.assert_close(total, plans.log_probability, atol=1e-5, rtol=0)
    # After the last service nothing is left to choose.
    late = every >= num_choices(plans.arcs)[..., None]
    assert chosen.view(plans.arcs.shape)[late].abs().max() == 0


def test_divergence_by_hand() -> None:
    now = torch.tensor([[[0.0, math.log(3.0), -math.inf], [1.0, -math.inf, -math.inf]]])
    first = torch.tensor([[[0.0, 0.0, -math.inf], [7.0, -math.inf, -math.inf]]])
    now.requires_grad_()
    found = divergence(now, first)  # of 1/4, 3/4 from 1/2, 1/2; and of what is no choice
    expected = 0.25 * math.log(0.5) + 0.75 * math.log(1.5)
    torch.testing.assert_close(found, torch.tensor([[expected, 0.0]]))
    assert divergence(first, first).abs().max() == 0
    found.sum().backward()  # type: ignore[no-untyped-call]
    assert now.grad is not None
    assert now.grad.isfinite().all()


def test_clipping_by_hand() -> None:
    """Better choices gain up to a ratio of 1.1, worse ones lose down to 0.9."""
    ratio = torch.tensor([1.0, 1.05, 1.3, 0.5, 1.3, 0.95, 0.5])
    advantage = torch.tensor([2.0, 2.0, 2.0, 2.0, -2.0, -2.0, -2.0])
    expected = torch.tensor([2.0, 2.1, 2.2, 1.0, -2.6, -1.9, -1.8])
    slope = torch.tensor([1.0, 1.05, 0.0, 0.5, -1.3, -0.95, 0.0]) * 2
    old = torch.full_like(ratio, -0.7)
    for each in range(len(ratio)):
        log_probability = (ratio.log() + old)[each : each + 1].requires_grad_()
        loss = clipped_loss(
            log_probability,
            old[each : each + 1],
            advantage[each : each + 1],
            torch.tensor([3.0]),
            0.1,
        )
        loss.backward()  # type: ignore[no-untyped-call]
        assert loss.item() == pytest.approx(-3 * expected[each].item(), rel=1e-5)
        assert log_probability.grad is not None
        found = log_probability.grad.item()
        assert found == pytest.approx(-3 * slope[each].item(), rel=1e-5, abs=1e-9)


def test_samples_are_compared_with_the_others() -> None:
    costs = torch.tensor([[1.0, 4.0, 7.0], [2.0, 2.0, 2.0]])
    assert leave_one_out(costs).tolist() == [[4.5, 0.0, -4.5], [0.0, 0.0, 0.0]]


@settings(max_examples=50, deadline=None)
@given(costs=st.lists(st.integers(0, 9), min_size=3, max_size=7), best_of=st.integers(1, 6))
def test_what_a_sample_adds_to_the_best_of_some(costs: list[int], best_of: int) -> None:
    """Against all choices of so many samples, with and without each."""
    assume(best_of < len(costs))
    expected = []
    for copy, cost in enumerate(costs):
        others = costs[:copy] + costs[copy + 1 :]
        within = [min((cost, *some)) for some in combinations(others, best_of - 1)]
        without = [min(some) for some in combinations(others, best_of)]
        expected.append(best_of * (mean(without) - mean(within)))
    found = leave_one_out(torch.tensor([costs], dtype=torch.float64), best_of)
    assert found[0].tolist() == pytest.approx(expected, abs=1e-9)


def test_the_best_of_many() -> None:
    """Of so many that counts of choices are no floats any more."""
    copies, best_of = 1500, 750
    worth = leave_one_out(torch.arange(copies, dtype=torch.float64)[None], best_of)[0]
    # The least of K of the numbers from 1 to N is (N + 1) / (K + 1) in the mean.
    assert worth[0].item() == pytest.approx(best_of * copies / (best_of + 1))
    assert (worth[:-1] > worth[1:] - 1e-9).all()


def test_samples_raise_the_expected_best_of_some() -> None:
    """Summed over all draws of a toy policy, by their probability."""
    logits = torch.tensor([0.3, -0.2, 0.9], dtype=torch.float64, requires_grad=True)
    costs = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    copies, best_of = 4, 3

    chances = logits.softmax(0)
    goal = torch.zeros((), dtype=torch.float64)
    for draw in product(range(3), repeat=best_of):
        goal = goal + chances[list(draw)].prod() * costs[list(draw)].min()
    (expected,) = torch.autograd.grad(goal, logits)

    found = torch.zeros_like(expected)
    for draw in product(range(3), repeat=copies):
        chosen = logits.log_softmax(0)[list(draw)]
        worth = leave_one_out(costs[list(draw)][None], best_of)[0]
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


def test_quantiles_of_students_t() -> None:
    for freedom in (*range(LEAST_PAIRS - 1, 40), 100, 1000, 10**6):
        exact = stats.t.ppf(0.95, freedom)
        assert t_quantile(freedom) == pytest.approx(exact, rel=6e-4)


@pytest.mark.parametrize("shift", [-0.2, 0.0, 0.02, 0.05, 0.2])
def test_paired_test_decides_as_scipy_does(shift: float) -> None:
    for seed in range(10):
        generator = torch.Generator().manual_seed(seed)
        old = 5 + torch.rand(50, generator=generator)
        new = old - shift + 0.2 * torch.randn(50, generator=generator)
        result = compare_costs(old, new)
        expected = stats.ttest_rel(old.double(), new.double(), alternative="greater")
        assert result.better == (expected.pvalue < 0.05)
        assert result.gain == pytest.approx((old - new).mean().item(), abs=1e-5)


def test_equal_costs_are_not_better() -> None:
    costs = torch.tensor([3.0, 4.0, 5.0, 6.0])
    assert compare_costs(costs, costs) == (False, 0.0)
    assert compare_costs(costs, costs - 1).better
    assert not compare_costs(costs, costs + 1).better
    assert math.isfinite(compare_costs(costs, costs + 1).gain)
