from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from arcfleet.errors import UnsolvableError
from arcfleet.instance.instance import Instance
from arcfleet.network import Network
from arcfleet.neural import plans as plans_module
from arcfleet.neural.batch import with_signs
from arcfleet.neural.decoding import Rollout, beam, greedy, sample
from arcfleet.neural.plans import (
    NO_PLAN,
    Plans,
    as_decoded,
    best,
    best_so_far,
    flat_plan,
    merge,
    split_plans,
)
from arcfleet.paper.strategies import paper_beams
from arcfleet.search.split import split
from tests.neural.batches import network_batch, ring, toy_model, verify
from tests.strategies import connected_instances


def instance_lists() -> st.SearchStrategy[list[Instance]]:
    return st.lists(connected_instances(max_extra_links=4), min_size=1, max_size=3)


@settings(max_examples=40)
@given(instance_lists(), st.integers(0, 9), st.booleans(), st.none() | st.integers(1, 3))
def test_plans_of_samples_are_legal_and_optimised_ones_cheaper(
    instances: list[Instance], seed: int, choose: bool, fleet_limit: int | None
) -> None:
    networks = [Network(replace(i, fleet_limit=fleet_limit)) for i in instances]
    batch = network_batch(networks)
    generator = torch.Generator().manual_seed(seed)
    rollout = sample(toy_model(seed), batch, 3, generator=generator)
    plain = as_decoded(batch, rollout)
    optimised = split_plans(batch, rollout, choose_directions=choose, threads=2)
    verify(networks, plain)
    verify(networks, optimised)
    legal = plain.costs != NO_PLAN
    assert (optimised.costs[legal] != NO_PLAN).all()
    assert (optimised.costs[legal] <= plain.costs[legal]).all()
    if fleet_limit is None:
        assert legal.all()
    for row, network in enumerate(networks):
        if legal[row].any():
            order, _ = flat_plan(plain, row)
            better = split(network, order, choose_directions=choose)
            place = np.where(legal[row], plain.costs[row], np.iinfo(np.int64).max).argmin()
            assert optimised.costs[row, place] == better.cost


@settings(max_examples=30)
@given(instance_lists(), st.booleans())
def test_unbound_beams_serve_all_and_become_legal(
    instances: list[Instance], choose: bool
) -> None:
    networks = [Network(instance) for instance in instances]
    batch = network_batch(networks)
    rollout = beam(toy_model(), batch, 2, capacity_mask=False)
    plans = split_plans(batch, rollout, choose_directions=choose)
    verify(networks, plans)
    assert (plans.costs[:, 0] != NO_PLAN).all()
    no_plan = rollout.log_probability.isinf().numpy()
    assert ((plans.costs == NO_PLAN) == no_plan).all()


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("choose", [False, True])
def test_the_recipe_is_never_worse_than_its_parts(choose: bool, mirrored: bool) -> None:
    networks = [Network(ring([1 + (i * k) % 4 for i in range(k + 3)])) for k in range(1, 9)]
    batch = network_batch(networks)
    model = toy_model()
    beams = paper_beams(model, batch, choose_directions=choose, mirrored=mirrored)
    sign = -1 if mirrored else 1
    flipped = with_signs(batch, torch.full((len(batch), batch.num_axes), sign))
    verify(networks, beams)
    assert beams.costs.shape == (len(networks), 1)
    parts = [
        split_plans(
            batch,
            beam(model, view, 2, capacity_mask=capacity_mask),
            choose_directions=choose,
        )
        for view, capacity_mask in ((batch, True), (flipped, False))
    ]
    decoded = as_decoded(batch, beam(model, batch, 2))
    for plans in (*parts, decoded):
        assert (beams.costs <= plans.costs).all()
    cheapest = np.minimum(parts[0].costs.min(1), parts[1].costs.min(1))
    assert beams.costs[:, 0].tolist() == cheapest.tolist()


def test_directions_are_turned_where_it_pays() -> None:
    # Served against the ring, each street costs a drive round its two ends.
    network = Network(ring([1, 1, 1, 1]))
    batch = network_batch([network])
    against = [int(network.arc_inverse[arc]) for arc in (1, 3, 5, 7)]
    rollout = Rollout(torch.tensor([[[*against, 0]]]), torch.zeros(1, 1))
    kept = split_plans(batch, rollout, choose_directions=False)
    turned = split_plans(batch, rollout, choose_directions=True)
    assert kept.arcs[0, 0].tolist() == against
    assert turned.arcs[0, 0].tolist() == [1, 3, 5, 7]
    assert turned.costs[0, 0] == 5 + 6 + 7 + 8
    assert kept.costs[0, 0] > turned.costs[0, 0]


def test_route_cost_and_fleet_limit_count() -> None:
    free = Network(ring([2, 2, 2, 2], capacity=8, route_cost=0))
    dear = Network(ring([2, 2, 2, 2], capacity=8, route_cost=1000))
    tight = Network(ring([2, 2, 2, 2], capacity=4, fleet_limit=2))
    impossible = Network(ring([3, 3, 3, 3], capacity=4, fleet_limit=2))
    networks = [free, dear, tight, impossible]
    batch = network_batch(networks)
    # Each street on a route of its own: right for none but the first.
    single = torch.tensor([1, 0, 3, 0, 5, 0, 7, 0]).expand(4, 1, -1)
    rollout = Rollout(single, torch.zeros(4, 1))
    plain = as_decoded(batch, rollout)
    verify(networks, plain)
    assert plain.starts_route[:2].all()
    assert plain.costs[1, 0] == plain.costs[0, 0] + 4 * 1000
    assert plain.costs[2:, 0].tolist() == [NO_PLAN, NO_PLAN]
    plans = split_plans(batch, rollout, choose_directions=False)
    verify(networks, plans)
    assert plans.starts_route[1, 0].sum() == 1
    assert plans.starts_route[2, 0].sum() == 2
    assert plans.costs[3, 0] == NO_PLAN
    with pytest.raises(UnsolvableError, match="fleet limit"):
        flat_plan(plans, 3)


def test_unbound_plans_are_not_taken_as_decoded() -> None:
    batch = network_batch([Network(ring([3, 3, 3]))])
    plans = as_decoded(batch, greedy(toy_model(), batch, capacity_mask=False))
    assert plans.costs.tolist() == [[NO_PLAN]]


def test_a_plan_that_leaves_a_task_is_none() -> None:
    batch = network_batch([Network(ring([1, 1, 1]))])
    rollout = Rollout(torch.tensor([[[1, 3, 0], [0, 0, 0]]]), torch.zeros(1, 2))
    assert as_decoded(batch, rollout).costs.tolist() == [[NO_PLAN, NO_PLAN]]
    optimised = split_plans(batch, rollout, choose_directions=True)
    assert optimised.costs.tolist() == [[NO_PLAN, NO_PLAN]]


def test_best_and_merge() -> None:
    arcs = np.arange(1, 13, dtype=np.int32).reshape(2, 2, 3)
    starts = np.zeros((2, 2, 3), dtype=np.bool_)
    starts[..., 0] = True
    first = Plans(arcs, starts, np.array([[9, 7], [NO_PLAN, NO_PLAN]]))
    second = Plans(arcs + 12, starts, np.array([[NO_PLAN, 8], [NO_PLAN, 6]]))
    cheapest = best(merge(first, second))
    assert cheapest.costs.tolist() == [[7], [6]]
    assert cheapest.arcs[:, 0].tolist() == [arcs[0, 1].tolist(), (arcs[1, 1] + 12).tolist()]
    assert best(first).costs.tolist() == [[7], [NO_PLAN]]


@pytest.mark.parametrize("choose", [False, True])
def test_gathering_in_parts_changes_nothing(
    choose: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    networks = [Network(ring([1] * size)) for size in (3, 6, 4, 5)]
    batch = network_batch(networks)
    rollout = beam(toy_model(), batch, 3, capacity_mask=False)
    whole = split_plans(batch, rollout, choose_directions=choose)
    monkeypatch.setattr(plans_module, "_MOST_POSITIONS", 40)
    parts = split_plans(batch, rollout, choose_directions=choose)
    verify(networks, parts)
    assert np.array_equal(whole.arcs, parts.arcs)
    assert np.array_equal(whole.starts_route, parts.starts_route)
    assert np.array_equal(whole.costs, parts.costs)


@given(st.lists(st.lists(st.integers(-1, 5), min_size=4, max_size=4), min_size=1))
def test_best_so_far(costs: list[list[int]]) -> None:
    numbers = np.array(costs, dtype=np.int64)
    arcs = np.tile(np.arange(4, dtype=np.int32)[:, None], (len(costs), 1, 2))
    found = best_so_far(Plans(arcs, arcs > 1, numbers))
    for row, given_costs in enumerate(costs):
        for place in range(4):
            until = [x if x != NO_PLAN else 99 for x in given_costs[: place + 1]]
            first = until.index(min(until))
            assert found.costs[row, place] == given_costs[first]
            assert found.arcs[row, place].tolist() == [first, first]
            assert found.starts_route[row, place].tolist() == [first > 1] * 2
