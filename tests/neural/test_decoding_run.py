"""Rollouts over augmentations, and neural LNS."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from arcfleet.errors import OptionError
from arcfleet.instance.instance import Instance, Link
from arcfleet.network import Network
from arcfleet.neural import decoding_run
from arcfleet.neural.batch import NUM_PLAIN, ArcBatch, with_signs
from arcfleet.neural.decoding import Rollout, draw_seeds, greedy, sample
from arcfleet.neural.decoding_run import (
    augmentations,
    augmented_greedy,
    default_temperature,
    destroy_and_repair,
    group_routes,
    sample_plans,
)
from arcfleet.neural.model import Daam
from arcfleet.neural.plans import NO_PLAN, Plans, as_decoded, merge, split_plans
from tests.neural.batches import MDS, network_batch, ring, toy_model, verify
from tests.strategies import connected_instances


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
    options = {"num_augmentations": count, "giant_tour_share": giant_tour_share}
    plans = draw_plans(toy_model(1), batch, samples, seeds_of(len(batch)), **options)
    assert plans.costs.shape == (len(batch), samples)
    assert (plans.costs != NO_PLAN).all()
    verify(networks, plans)


def test_one_augmentation_with_the_mask_is_sampling_from_distinct_starts() -> None:
    batch = network_batch([Network(ring([2] * 9)), Network(ring([2] * 5))])
    model, seeds = toy_model(2), seeds_of(2)
    plans = draw_plans(
        model, batch, 6, seeds, temperature=0.7, num_augmentations=1, giant_tour_share=0
    )
    rollout = sample(model, batch, 6, temperature=0.7, seeds=seeds, distinct_starts=True)
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
    four = []
    for signs, mask in ((plain, True), (-plain, True), (odd, False), (-odd, False)):
        rollout = greedy(model, with_signs(batch, signs), capacity_mask=mask)
        four.append(split_plans(batch, rollout, choose_directions=True).costs)
    assert found.costs.tolist() == np.hstack(four).min(1, keepdims=True).tolist()


def test_which_four_augmentations(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[ArcBatch, bool]] = []

    def noting(
        policy: Daam, batch: ArcBatch, *, capacity_mask: bool, **options: Any
    ) -> Rollout:
        seen.append((batch, capacity_mask))
        return greedy(policy, batch, capacity_mask=capacity_mask, **options)

    monkeypatch.setattr(decoding_run, "greedy", noting)
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

    monkeypatch.setattr(decoding_run, "sample", noting)
    batch = network_batch([Network(ring([2] * 7))])
    for samples, expected in (
        (1, [(True, 1, 1)]),
        (4, [(True, 3, 1), (False, 1, 1)]),
        (32, [(True, 8, 3), (False, 8, 1)]),
        (40, [(True, 8, 4), (False, 5, 2)]),
    ):
        asked.clear()
        options = {"num_augmentations": 8, "giant_tour_share": 0.25}
        plans = draw_plans(toy_model(3), batch, samples, seeds_of(1), **options)
        assert plans.costs.shape == (1, samples)
        assert asked == expected
    asked.clear()
    draw_plans(toy_model(3), batch, 32, seeds_of(1))
    assert asked == [(True, 8, 2), (False, 8, 2)]  # half of them, usually


def test_small_instances_are_drawn_with_more_heat() -> None:
    tasks = torch.tensor([1, 20, 60, 64, 80, 90, 300])
    expected = torch.tensor([1.0, 1.0, 1.0, 0.96, 0.8, 0.7, 0.7])
    torch.testing.assert_close(default_temperature(tasks), expected)
    # The draws take it, for each instance its own.
    model, seeds = toy_model(1), seeds_of(2)
    batch = network_batch([Network(ring([2] * 80)), Network(ring([2] * 5))])
    usual = draw_plans(model, batch, 6, seeds)
    for row, temperature in ((0, 0.8), (1, 1.0)):
        given = draw_plans(model, batch, 6, seeds, temperature=temperature)
        assert np.array_equal(usual.costs[row], given.costs[row])
        assert not np.array_equal(usual.costs[1 - row], given.costs[1 - row])


def test_an_instance_draws_the_same_alone_and_beside_others() -> None:
    networks = [Network(ring([2] * 9)), Network(ring([2] * 5)), Network(ring([2] * 7))]
    model, seeds = toy_model(4), seeds_of(3)
    options = {"num_augmentations": 3, "giant_tour_share": 0.5}
    together = draw_plans(model, network_batch(networks), 8, seeds, **options)
    for row, network in enumerate(networks):
        one = seeds[row : row + 1]
        alone = draw_plans(model, network_batch([network]), 8, one, **options)
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


def decoded(batch: ArcBatch, seed: int = 1) -> Plans:
    return as_decoded(batch, greedy(toy_model(seed), batch))


def repaired(*arguments: Any, **options: Any) -> Plans:
    return merge(*destroy_and_repair(*arguments, **options))


def routes_of(plans: Plans) -> tuple[torch.Tensor, torch.Tensor]:
    """Arcs and starts of routes of one plan of each instance."""
    arcs, starts = plans.arcs[:, 0], plans.starts_route[:, 0]
    return torch.as_tensor(arcs).long(), torch.as_tensor(starts)


def in_order(batch: ArcBatch) -> Plans:
    """Plans that serve the streets of rings in their order, cut where it costs least."""
    arcs = torch.arange(1, batch.num_arcs, 2).expand(len(batch), 1, -1)
    rollout = Rollout(arcs, torch.zeros(len(batch), 1))
    return split_plans(batch, rollout, choose_directions=False)


@settings(max_examples=40)
@given(
    st.lists(connected_instances(max_extra_links=5), min_size=1, max_size=3),
    st.integers(1, 5),
    st.integers(1, 8),
    st.booleans(),
    st.integers(0, 2**62),
)
def test_repaired_plans_are_valid_and_never_cost_more(
    instances: list[Instance], samples: int, group_tasks: int, own_unit: bool, seed: int
) -> None:
    networks = [Network(instance) for instance in instances]
    batch = network_batch(networks)
    before = decoded(batch)
    seeds = seeds_of(len(batch), seed)
    options: dict[str, Any] = {"group_tasks": group_tasks, "own_unit": own_unit}
    after = repaired(toy_model(2), batch, before, samples, seeds, **options)
    assert after.costs.shape == (len(batch), samples)
    verify(networks, after)
    along = np.concatenate([before.costs, after.costs], axis=1)
    assert (along != NO_PLAN).all()
    assert (np.diff(along, axis=1) <= 0).all()
    # Whose they are does not matter: each alone gets the same.
    for row in range(len(batch)):
        one = [row]
        single = batch.select(torch.tensor(one)), before.at(one)
        alone = repaired(toy_model(2), *single, samples, seeds[one], **options)
        assert alone.costs.tolist() == after.costs[one].tolist()


def test_groups_get_better_side_by_side() -> None:
    # Routes of three streets of a ring. The model is random, so that each draw of a group
    # has a chance to be as bad as any; the sum of the best of all is what counts.
    networks = [Network(ring([2] * 12, capacity=6))]
    batch = network_batch(networks)
    # The streets far from each other: 1, 5, 9, 2, 6, ...
    arcs = torch.arange(1, 25, 2).view(3, 4).T.reshape(1, 1, -1)
    rollout = Rollout(arcs, torch.zeros(1, 1))
    before = split_plans(batch, rollout, choose_directions=False)
    after = repaired(toy_model(3), batch, before, 64, seeds_of(1), group_tasks=6)
    verify(networks, after)
    assert after.costs[0, -1] < before.costs[0, 0]
    # More than one group has changed: no single one explains all services that moved.
    groups = group_routes(batch, *routes_of(before), seeds_of(1), 6)
    assert len(groups.rows) == 2
    for member in groups.member:
        old = before.arcs[0, 0][member.numpy()]
        tasks = set(((old - 1) // 2).tolist())
        new = [arc for arc in after.arcs[0, -1].tolist() if (arc - 1) // 2 in tasks]
        assert new != old.tolist()


class Asked(NamedTuple):
    """What was asked to be sampled."""

    parts: ArcBatch
    samples: int
    seeds: torch.Tensor


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Asked]:
    noted: list[Asked] = []

    def noting(
        policy: Daam, batch: ArcBatch, samples: int, seeds: torch.Tensor, **options: Any
    ) -> Iterator[Plans]:
        noted.append(Asked(batch, samples, seeds))
        return sample_plans(policy, batch, samples, seeds, **options)

    monkeypatch.setattr(decoding_run, "sample_plans", noting)
    return noted


def test_a_group_may_not_have_more_routes_than_it_had(asked: list[Asked]) -> None:
    # Seven streets need three vehicles; the first may have four, the second any number.
    rings = [ring([1] * 7, capacity=3, fleet_limit=limit) for limit in (4, None)]
    networks = [Network(instance) for instance in rings]
    batch = network_batch(networks)
    before = in_order(batch)
    assert before.starts_route.sum(2).tolist() == [[3], [3]]
    verify(networks, repaired(toy_model(1), batch, before, 20, seeds_of(2), group_tasks=4))
    # Two routes and one.
    assert asked[0].parts.fleet_limit.tolist() == [2, 1, 0, 0]


def test_what_breaks_the_fleet_limit_is_sampled_as_a_whole(asked: list[Asked]) -> None:
    # Three vehicles of 5 for demands of 3 and 2: in turns they fit, 3 3 3 2 2 2 does not.
    networks = [Network(ring([3, 2, 3, 2, 3, 2], capacity=5, fleet_limit=3))] * 2
    batch = network_batch(networks)
    arcs = torch.tensor([[[1, 3, 5, 7, 9, 11]], [[1, 5, 9, 3, 7, 11]]])
    before = split_plans(batch, Rollout(arcs, torch.zeros(2, 1)), choose_directions=True)
    assert before.costs[0, 0] != NO_PLAN == before.costs[1, 0]
    before.starts_route[1] = True  # routes that do not count
    after = repaired(toy_model(5), batch, before, 200, seeds_of(2), group_tasks=2)
    verify(networks, after)
    assert (after.costs[:, -1] != NO_PLAN).all()
    assert after.costs[1, 0] == NO_PLAN  # until a draw had it
    # Of the first three routes in two groups, of the second all tasks with all vehicles.
    assert asked[0].parts.num_tasks.tolist() == [4, 2, 6]
    assert asked[0].parts.fleet_limit.tolist() == [2, 1, 3]


def test_an_instance_without_tasks_stays_as_it_is() -> None:
    some = ring([2] * 6)
    links = tuple(Link(tail=x.tail, head=x.head, cost=x.cost) for x in some.links)
    networks = [Network(some), Network(replace(some, links=links)), Network(some)]
    batch = network_batch(networks)
    after = repaired(toy_model(1), batch, decoded(batch), 2, seeds_of(3), group_tasks=3)
    verify(networks, after)
    assert after.costs[1].tolist() == [0, 0]
    assert (after.arcs[1] == 0).all()


def test_parts_are_seen_in_the_unit_of_the_instance_or_in_their_own(
    asked: list[Asked],
) -> None:
    batch = network_batch([Network(ring([2] * 9)), Network(ring([2] * 6))])
    before = decoded(batch)
    for own_unit in (False, True):
        options = {"group_tasks": 4, "own_unit": own_unit}
        repaired(toy_model(1), batch, before, 2, seeds_of(2), **options)
    theirs, own = (each.parts for each in asked)
    assert set(theirs.scale.tolist()) == set(batch.scale.tolist())
    for row in range(len(own)):
        real = own.real[row]
        mean = own.distance[row][real][:, real].float().mean()
        assert own.scale[row] == pytest.approx(mean.item())
        # Service costs in that unit, coordinates around their middle; demands stay.
        costs = own.service_cost[row] / own.scale[row]
        assert own.features[row, :, 1].tolist() == pytest.approx(costs.tolist())
        ends = own.features[row, :, NUM_PLAIN:].view(-1, 2, MDS)
        middle = ends[1:][real[1:]].mean((0, 1))
        assert middle.tolist() == pytest.approx([0] * MDS, abs=1e-5)
        assert (own.features[row][~real] == 0).all()
    assert own.features[..., 2].tolist() == theirs.features[..., 2].tolist()


def test_what_cannot_be_repaired() -> None:
    batch = network_batch([Network(ring([2] * 6))])
    plans = decoded(batch)
    with pytest.raises(OptionError, match="expected one plan of each instance"):
        repaired(toy_model(1), batch, merge(plans, plans), 1, seeds_of(1))
    with pytest.raises(OptionError, match="groups of at least 1 task"):
        repaired(toy_model(1), batch, plans, 1, seeds_of(1), group_tasks=0)


@settings(max_examples=60)
@given(
    st.lists(connected_instances(max_extra_links=8), min_size=1, max_size=3),
    st.integers(1, 8),
    st.integers(0, 2**62),
)
def test_every_route_is_in_one_group(
    instances: list[Instance], most: int, seed: int
) -> None:
    batch = network_batch([Network(instance) for instance in instances])
    plans = decoded(batch)
    arcs, starts = routes_of(plans)
    groups = group_routes(batch, arcs, starts, seeds_of(len(batch), seed), most)
    times = torch.zeros(arcs.shape, dtype=torch.int64)
    times.index_add_(0, groups.rows, groups.member.long())
    assert times.tolist() == (arcs != 0).long().tolist()
    assert groups.rows.tolist() == sorted(groups.rows.tolist())
    route = starts.cumsum(1)
    for row, member, count in zip(groups.rows, groups.member, groups.routes, strict=True):
        routes = set(route[row][member].tolist())
        assert len(routes) == count
        # Whole routes, and no more than wanted unless they are two.
        whole = sum((route[row] == one) & (arcs[row] != 0) for one in routes)
        assert member.tolist() == whole.bool().tolist()
        assert count <= 2 or member.sum() <= most


def test_groups_are_of_neighbours() -> None:
    # Six routes of one street each, at 0, 1, 10, 11, 20 and 21 on the first axis.
    batch = network_batch([Network(ring([4] * 6))])
    places = torch.tensor([0.0, 1.0, 10.0, 11.0, 20.0, 21.0])
    features = torch.zeros_like(batch.features)
    features[0, 1:, NUM_PLAIN] = places.repeat_interleave(2)
    features[0, 1:, NUM_PLAIN + 2] = places.repeat_interleave(2)
    batch = replace(batch, features=features)
    arcs = torch.tensor([[1, 5, 9, 3, 7, 11]])  # at 0, 10, 20, 1, 11, 21
    starts = torch.ones_like(arcs, dtype=torch.bool)
    orders = set()
    for seed in range(20):
        groups = group_routes(batch, arcs, starts, seeds_of(1, seed), 2)
        pairs = [tuple(arcs[0][member].tolist()) for member in groups.member]
        assert sorted(pairs) == [(1, 3), (5, 7), (9, 11)]
        orders.add(tuple(pairs))
        all_of_them = group_routes(batch, arcs, starts, seeds_of(1, seed), 6)
        assert all_of_them.routes.tolist() == [6]
    assert len(orders) > 1  # which route comes first is drawn by chance
