from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from arcfleet.network import Network
from arcfleet.neural import sampling
from arcfleet.neural.batch import NUM_PLAIN, with_signs
from arcfleet.neural.decoding import draw_seeds, greedy, sample
from arcfleet.neural.plans import NO_PLAN, Plans, merge, split_plans
from arcfleet.neural.sampling import (
    augmentations,
    augmented_greedy,
    default_temperature,
    sample_plans,
)
from tests.neural.batches import network_batch, ring, toy_model
from tests.neural.verify import verify
from tests.strategies import connected_instances

if TYPE_CHECKING:
    import pytest

    from arcfleet.instance.instance import Instance
    from arcfleet.neural.batch import ArcBatch
    from arcfleet.neural.decoding import Rollout
    from arcfleet.neural.model import Daam


def draw_plans(*arguments: Any, **options: Any) -> Plans:
    return merge(*sample_plans(*arguments, **options))


def seeds_of(count: int, seed: int = 0) -> torch.Tensor:
    return draw_seeds(count, torch.Generator().manual_seed(seed))


@settings(max_examples=25)
@given(
    st.lists(connected_instances(max_extra_links=4), min_size=1, max_size=3),
    st.integers(1, 11),
    st.integers(1, 5),
    st.sampled_from([0.0, 0.25, 0.5, 1.0]),
)
def test_every_draw_is_a_plan(
    instances: list[Instance], samples: int, count: int, giant_tour_share: float
) -> None:
    networks = [Network(instance) for instance in instances]
    batch = network_batch(networks)
    plans = draw_plans(
        toy_model(1),
        batch,
        samples,
        seeds_of(len(batch)),
        num_augmentations=count,
        giant_tour_share=giant_tour_share,
    )
    assert plans.costs.shape == (len(batch), samples)
    assert (plans.costs != NO_PLAN).all()
    verify(networks, plans)


def test_one_augmentation_with_the_mask_is_sampling_from_distinct_starts() -> None:
    batch = network_batch([Network(ring([2] * 9)), Network(ring([2] * 5))])
    model, seeds = toy_model(2), seeds_of(2)
    plans = draw_plans(
        model, batch, 6, seeds, temperature=0.7, num_augmentations=1, giant_tour_share=0
    )
    rollout = sample(
        model,
        batch,
        6,
        generator=torch.Generator(),
        temperature=0.7,
        seeds=seeds,
        distinct_starts=True,
    )
    same = split_plans(batch, rollout, choose_directions=True)
    assert np.array_equal(plans.costs, same.costs)


@settings(max_examples=25)
@given(st.lists(connected_instances(max_extra_links=4), min_size=1, max_size=3))
def test_the_best_of_four_augmentations(instances: list[Instance]) -> None:
    networks = [Network(instance) for instance in instances]
    batch, model = network_batch(networks), toy_model(1)
    found = augmented_greedy(model, batch)
    verify(networks, found)
    plain = torch.ones(len(batch), batch.num_axes)
    odd = plain.clone()
    odd[:, 1::2] = -1
    four = [
        split_plans(
            batch,
            greedy(model, with_signs(batch, signs), capacity_mask=capacity_mask),
            choose_directions=True,
        ).costs
        for signs, capacity_mask in (
            (plain, True),
            (-plain, True),
            (odd, False),
            (-odd, False),
        )
    ]
    assert found.costs.tolist() == np.hstack(four).min(1, keepdims=True).tolist()


def test_which_four_augmentations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[tuple[ArcBatch, bool]] = []

    def noting(
        policy: Daam, batch: ArcBatch, *, capacity_mask: bool, **options: Any
    ) -> Rollout:
        seen.append((batch, capacity_mask))
        return greedy(policy, batch, capacity_mask=capacity_mask, **options)

    monkeypatch.setattr(sampling, "greedy", noting)
    batch = network_batch([Network(ring([2] * 9)), Network(ring([2] * 5))])
    augmented_greedy(toy_model(1), batch)
    assert [capacity_mask for _, capacity_mask in seen] == [True, False]
    # Two MDS axes, for starts and ends of arcs; two augmentations of each instance.
    for (augmented, _), signs in zip(
        seen, ([[1, 1], [-1, -1]], [[1, -1], [-1, 1]]), strict=True
    ):
        features = augmented.features.view(2, 2, *batch.features.shape[1:])
        for place, sign in enumerate(signs):
            expected = batch.features.clone()
            expected[..., NUM_PLAIN:] *= torch.tensor(sign * 2)
            assert torch.equal(features[:, place], expected)


def test_how_many_are_giant_tours_and_of_how_many_augmentations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[bool, int, int]] = []

    def noting(policy: Daam, batch: ArcBatch, samples: int, **options: Any) -> Rollout:
        asked.append((options["capacity_mask"], len(batch), samples))
        return sample(policy, batch, samples, **options)

    monkeypatch.setattr(sampling, "sample", noting)
    batch = network_batch([Network(ring([2] * 7))])
    for samples, expected in (
        (1, [(True, 1, 1)]),
        (4, [(True, 3, 1), (False, 1, 1)]),
        (32, [(True, 8, 3), (False, 8, 1)]),
        (40, [(True, 8, 4), (False, 5, 2)]),
    ):
        asked.clear()
        plans = draw_plans(
            toy_model(3),
            batch,
            samples,
            seeds_of(1),
            num_augmentations=8,
            giant_tour_share=0.25,
        )
        assert plans.costs.shape == (1, samples)
        assert asked == expected
    asked.clear()
    draw_plans(toy_model(3), batch, 32, seeds_of(1))
    assert asked == [(True, 8, 2), (False, 8, 2)]  # half of them, usually


def test_small_instances_are_drawn_with_more_heat() -> None:
    tasks = torch.tensor([1, 20, 50, 55, 60, 70, 300])
    expected = torch.tensor([0.7, 0.7, 0.7, 0.65, 0.6, 0.5, 0.5])
    torch.testing.assert_close(default_temperature(tasks), expected)
    # The draws take it, for each instance its own.
    model, seeds = toy_model(2), seeds_of(2)
    batch = network_batch([Network(ring([2] * 64)), Network(ring([2] * 5))])
    usual = draw_plans(model, batch, 6, seeds)
    for row, temperature in ((0, 0.56), (1, 0.7)):
        given = draw_plans(model, batch, 6, seeds, temperature=temperature)
        assert np.array_equal(usual.costs[row], given.costs[row])
        assert not np.array_equal(usual.costs[1 - row], given.costs[1 - row])


def test_an_instance_draws_the_same_alone_and_beside_others() -> None:
    networks = [Network(ring([2] * 9)), Network(ring([2] * 5)), Network(ring([2] * 7))]
    model, seeds = toy_model(4), seeds_of(3)
    together = draw_plans(
        model, network_batch(networks), 8, seeds, num_augmentations=3, giant_tour_share=0.5
    )
    for row, network in enumerate(networks):
        one = seeds[row : row + 1]
        alone = draw_plans(
            model,
            network_batch([network]),
            8,
            one,
            num_augmentations=3,
            giant_tour_share=0.5,
        )
        assert np.array_equal(alone.costs[0], together.costs[row])


def test_augmentations_flip_axes_and_nothing_else() -> None:
    batch = network_batch([Network(ring([2] * 9)), Network(ring([2] * 5))])
    seeds = seeds_of(2)
    augmented = augmentations(batch, seeds, 16)
    features = augmented.features.view(2, 16, *batch.features.shape[1:])
    assert torch.equal(features[:, 0], batch.features)
    assert torch.equal(features.abs(), batch.features[:, None].abs().expand_as(features))
    plain = features[..., :NUM_PLAIN]
    assert torch.equal(plain, plain[:, :1].expand_as(plain))
    assert torch.equal(augmented.distance.view(2, 16, -1)[:, 5], batch.distance.view(2, -1))
    # An axis is flipped for starts and ends of all arcs alike, and in half of them.
    axes = (features.shape[-1] - NUM_PLAIN) // 2
    here = slice(NUM_PLAIN, NUM_PLAIN + axes)
    sign = features[:, :, 0, here] / batch.features[:, None, 0, here]  # (2, 16, axes)
    both = torch.cat([sign, sign], dim=-1)[:, :, None]
    coordinates = batch.features[:, None, :, NUM_PLAIN:]
    assert torch.equal(features[..., NUM_PLAIN:], coordinates * both)
    assert 0.3 < float((sign[:, 1:] < 0).double().mean()) < 0.7
