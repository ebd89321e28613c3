"""Batches of instances: both builders, augmentations, dropped arcs, buckets."""

from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor

from arcfleet.datasets import Dataset, make_dataset
from arcfleet.errors import UnsolvableError
from arcfleet.instance import Instance
from arcfleet.instance.instance import U_TURNS
from arcfleet.network import Network, node_distances
from arcfleet.neural import batch as module
from arcfleet.neural.batch import (
    NUM_PLAIN,
    ArcBatch,
    as_instances,
    batch_from_arrays,
    batch_from_networks,
    bucket_sizes,
    buckets,
    flip_axes,
    present_arcs,
    shrink,
    with_signs,
)
from arcfleet.neural.env import State, action_mask
from arcfleet.neural.geometry import MOST_LANDMARKS, classical_mds, landmark_nodes
from arcfleet.streets.area import Circle
from arcfleet.streets.files import read_map
from arcfleet.streets.scene import SceneRules, cut_scene
from arcfleet.streets.turns import FREE_TURNS
from tests.helpers import make_instance, street
from tests.neural.batches import random_batch, random_rollout
from tests.neural.model_checks import exact
from tests.neural.test_daam import SMALL, make_model
from tests.shared_data import maps_dir
from tests.strategies import connected_instances

#: What is the same however an instance was prepared.
PLACELESS = (
    *("features", "service_cost", "demand", "inverse", "real", "capacity"),
    *("route_cost", "fleet_limit", "scale"),
)


@pytest.fixture(scope="module", params=[False, True], ids=["two-way", "mixed"])
def dataset(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Dataset:
    path: Path = tmp_path_factory.mktemp("sets") / "set.npz"
    return make_dataset(path, "task30", count=12, mixed=request.param)


def from_instances(instances: list[Instance], dimensions: int = 8) -> ArcBatch:
    networks = [Network(instance) for instance in instances]
    return batch_from_networks(networks, device="cpu", mds_dimensions=dimensions)


def assert_same(found: ArcBatch, expected: ArcBatch) -> None:
    for name in PLACELESS:
        one, other = getattr(found, name), getattr(expected, name)
        assert one.dtype == other.dtype, name
        if one.is_floating_point():
            assert torch.allclose(one, other, atol=1e-5, rtol=1e-6), name
        else:
            assert torch.equal(one, other), name
    real = expected.real[:, :, None] & expected.real[:, None]
    assert torch.equal(found.incoming()[real], expected.incoming()[real])


def test_arrays_and_networks_give_the_same(dataset: Dataset) -> None:
    indices = [7, 0, 11, 3]
    found = batch_from_arrays(dataset.padded(indices), device="cpu")
    expected = from_instances([dataset[index] for index in indices])
    assert_same(found, expected)
    assert found.num_tasks.tolist() == [30] * 4
    assert found.features.shape == (4, found.num_arcs, NUM_PLAIN + 16)
    assert found.features.dtype == torch.float32


@pytest.fixture(scope="module", params=[False, True], ids=["two-way", "mixed"])
def ruled(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Dataset:
    path: Path = tmp_path_factory.mktemp("ruled") / "set.npz"
    return make_dataset(path, "varied30", count=24, mixed=request.param, turn_rules=True)


def test_turn_rules_count_in_arrays_and_networks_alike(ruled: Dataset) -> None:
    indices = [*range(20, 3, -1)]
    found = batch_from_arrays(ruled.padded(indices), device="cpu", chunk=5)
    expected = from_instances([ruled[index] for index in indices])
    assert_same(found, expected)
    free = replace(ruled.padded(indices), turns=None)
    without = batch_from_arrays(free, device="cpu")
    assert (without.scale < found.scale).any(), "rules make ways longer"


def test_a_gpu_would_measure_the_same_ways(
    ruled: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Take the way of a GPU: all instances at once, by Floyd-Warshall over the edges."""
    padded = ruled.padded(range(24))
    expected = batch_from_arrays(padded, device="cpu")
    monkeypatch.setattr(module, "_measures_each", lambda device: False)
    assert_same(batch_from_arrays(padded, device="cpu", chunk=9), expected)


def test_a_way_that_turn_rules_close_is_refused(ruled: Dataset) -> None:
    padded = ruled.padded(range(3))
    assert padded.turns is not None
    never = np.full(3, U_TURNS.index("forbidden"), dtype=np.int32)
    dead_ends = replace(padded, turns=replace(padded.turns, u_turns=never))
    with pytest.raises(UnsolvableError, match="a way between every two required links"):
        batch_from_arrays(dead_ends, device="cpu")


def test_chunks_change_nothing(dataset: Dataset) -> None:
    whole = batch_from_arrays(dataset.padded(range(12)), device="cpu")
    parts = batch_from_arrays(dataset.padded(range(12)), device="cpu", chunk=5)
    for field in fields(ArcBatch):
        assert torch.equal(getattr(whole, field.name), getattr(parts, field.name))


def test_read_only_arrays_are_taken(dataset: Dataset) -> None:
    padded = dataset.padded(range(2))
    expected = batch_from_arrays(padded, device="cpu")
    for field in fields(padded):
        if (values := getattr(padded, field.name)) is not None:
            values.flags.writeable = False
    found = batch_from_arrays(padded, device="cpu")
    assert torch.equal(found.features, expected.features)


def test_sets_beyond_the_landmarks_give_the_same_either_way(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_LANDMARKS", 20)
    monkeypatch.setattr(module, "landmark_nodes", partial(landmark_nodes, most=20))
    found = batch_from_arrays(dataset.padded(range(3)), device="cpu")
    expected = from_instances([dataset[index] for index in range(3)])
    assert_same(found, expected)
    monkeypatch.undo()
    exact = batch_from_arrays(dataset.padded(range(3)), device="cpu")
    assert not torch.allclose(found.features, exact.features, atol=1e-3)


@settings(max_examples=60)
@given(st.lists(connected_instances(), min_size=1, max_size=4))
def test_arcs_are_those_of_the_network(instances: list[Instance]) -> None:
    batch = from_instances(instances)
    for row, instance in enumerate(instances):
        network = Network(instance)
        count = network.num_arcs
        assert batch.real[row].tolist() == [i < count for i in range(batch.num_arcs)]
        for name in ("service_cost", "demand"):
            values = getattr(batch, name)[row]
            assert values[:count].tolist() == getattr(network, f"arc_{name}").tolist()
            assert not values[count:].any()
        inverses = [i if t < 0 else t for i, t in enumerate(network.arc_inverse.tolist())]
        assert batch.inverse[row].tolist() == [*inverses, *range(count, batch.num_arcs)]
        assert int(batch.num_tasks[row]) == network.num_tasks
        ends, starts = network.arc_end[:, None], network.arc_start
        costs = torch.from_numpy(network.distances[ends, starts]).double()
        serving = network.arc_service_cost[1:]
        scale = costs.mean().item() or (serving.mean() if serving.any() else 1.0)
        assert batch.scale[row].item() == pytest.approx(scale)
        found = batch.incoming()[row, :count, :count].double()
        assert torch.allclose(found, costs.T / scale, rtol=1e-6)
        features = batch.features[row].double()
        assert features[:, 0].tolist() == [1.0] + [0.0] * (batch.num_arcs - 1)
        service = torch.from_numpy(network.arc_service_cost).double() / scale
        assert torch.allclose(features[:count, 1], service, rtol=1e-6)
        demand = torch.from_numpy(network.arc_demand).double() / instance.capacity
        assert torch.allclose(features[:count, 2], demand, rtol=1e-6)
        assert not features[count:].any()
        assert int(batch.capacity[row]) == instance.capacity
        assert int(batch.route_cost[row]) == instance.route_cost


@settings(max_examples=40)
@given(st.lists(connected_instances(), min_size=2, max_size=4))
def test_padding_changes_nothing(instances: list[Instance]) -> None:
    batch = from_instances(instances)
    for row, instance in enumerate(instances):
        alone = from_instances([instance])
        arcs = alone.num_arcs
        # Sums over padding round differently.
        assert torch.allclose(batch.features[row, :arcs], alone.features[0], atol=1e-5)
        assert torch.equal(batch.incoming()[row, :arcs, :arcs], alone.incoming()[0])


@pytest.mark.parametrize("entries", [None, 1000, 1])
def test_networks_are_placed_together(
    dataset: Dataset, entries: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    threads_used: set[int] = set()

    def place(distance: Tensor, *rest: Any) -> Tensor:
        calls.append(len(distance))
        return classical_mds(distance, *rest)

    def measure(instance: Instance, threads: int) -> Any:
        threads_used.add(threads)
        return node_distances(instance, threads)

    monkeypatch.setattr(module, "classical_mds", place)
    monkeypatch.setattr(module, "node_distances", measure)
    if entries is not None:
        monkeypatch.setattr(module, "CPU_ENTRIES", entries)
    instances = [dataset[index] for index in range(5)]
    networks = [Network(instance) for instance in instances]
    batch = batch_from_networks(networks, device="cpu", threads=2)
    assert calls == ([5] if entries is None else [1] * 5)
    assert threads_used == {2}
    assert_same(batch, batch_from_arrays(dataset.padded(range(5)), device="cpu"))


def test_small_and_large_networks_share_a_batch(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = [len(dataset[index].nodes) for index in range(4)]
    most = sorted(nodes)[1]
    monkeypatch.setattr(module, "MOST_LANDMARKS", most)
    monkeypatch.setattr(module, "landmark_nodes", partial(landmark_nodes, most=most))
    instances = [dataset[index] for index in range(4)]
    together = from_instances(instances)
    for row, instance in enumerate(instances):
        alone = from_instances([instance])
        found = together.features[row, : alone.num_arcs]
        assert torch.allclose(found, alone.features[0], atol=1e-5)


def scaled(instance: Instance, length: int, load: int) -> Instance:
    def times(value: int | None) -> int | None:
        return None if value is None else length * value

    links = [
        replace(
            link,
            cost=length * link.cost,
            reverse_cost=times(link.reverse_cost),
            service_cost=times(link.service_cost),
            reverse_service_cost=times(link.reverse_service_cost),
            demand=load * link.demand,
        )
        for link in instance.links
    ]
    return replace(instance, links=tuple(links), capacity=load * instance.capacity)


@settings(max_examples=40)
@given(connected_instances())
def test_units_do_not_matter(instance: Instance) -> None:
    network = Network(instance)
    # Where neither driving nor serving costs anything there is no unit, nor a choice.
    assume(network.distances.any() or network.arc_service_cost.any())
    one, other = from_instances([instance]), from_instances([scaled(instance, 10, 7)])
    assert torch.allclose(one.features, other.features, atol=1e-5)
    assert torch.allclose(one.incoming(), other.incoming(), atol=1e-5)


def loops_at_the_depot(*costs: int) -> Instance:
    return make_instance(*(street(1, 1, cost, 1) for cost in costs), capacity=2)


def test_units_do_not_matter_where_all_driving_is_free() -> None:
    loops = loops_at_the_depot(100, 200, 300)
    one, other = from_instances([loops]), from_instances([scaled(loops, 10, 1)])
    assert torch.equal(one.features, other.features)
    # The mean service cost is the unit then; where that is free, too, there is none.
    assert (one.scale.item(), other.scale.item()) == (200, 2000)
    assert from_instances([loops_at_the_depot(0, 0)]).scale.item() == 1
    together = from_instances([loops, loops_at_the_depot(0, 0), scaled(loops, 10, 1)])
    assert together.scale.tolist() == [200, 1, 2000]


def test_units_do_not_matter_for_a_set(dataset: Dataset) -> None:
    padded = dataset.padded(range(6))
    loads: Any = {"demand": 7 * padded.demand, "capacity": 7 * padded.capacity}
    larger = replace(padded, cost=10 * padded.cost, **loads)
    one, other = (batch_from_arrays(p, device="cpu") for p in (padded, larger))
    assert torch.allclose(one.features, other.features, atol=1e-5)
    assert torch.allclose(other.scale, 10 * one.scale)


@pytest.mark.parametrize("dimensions", [0, 2, 40])
def test_any_number_of_coordinates(dataset: Dataset, dimensions: int) -> None:
    found = batch_from_arrays(
        dataset.padded([2, 5]), device="cpu", mds_dimensions=dimensions
    )
    expected = from_instances([dataset[2], dataset[5]], dimensions)
    assert found.features.shape[2] == NUM_PLAIN + 2 * dimensions
    assert torch.allclose(found.features, expected.features, atol=1e-5)
    eight = batch_from_arrays(dataset.padded([2, 5]), device="cpu").features
    both = min(dimensions, 8)
    assert torch.allclose(
        found.features[..., NUM_PLAIN : NUM_PLAIN + both],
        eight[..., NUM_PLAIN : NUM_PLAIN + both],
    )


def test_arc_ends_at_one_node_share_its_coordinates(dataset: Dataset) -> None:
    batch = batch_from_arrays(dataset.padded(range(4)), device="cpu")
    start, end = batch.features[..., NUM_PLAIN:].chunk(2, dim=-1)
    rows = torch.arange(4)[:, None]
    two_way = batch.inverse != torch.arange(batch.num_arcs)
    assert torch.equal(start[two_way], end[rows, batch.inverse][two_way])
    assert start[:, 1:].std() > 0.1


def flips(before: Tensor, after: Tensor) -> Tensor:
    """Return the sign of each axis, (batch, axes)."""
    return torch.where(
        (before == after).all(1), 1, torch.where((before == -after).all(1), -1, 0)
    )


def test_axes_flip_alike_at_both_ends(dataset: Dataset) -> None:
    batch = batch_from_arrays(dataset.padded(range(12)), device="cpu")
    flipped = flip_axes(batch, torch.Generator().manual_seed(1))
    assert torch.equal(flipped.features[..., :NUM_PLAIN], batch.features[..., :NUM_PLAIN])
    before, after = (x.features[..., NUM_PLAIN:].chunk(2, dim=-1) for x in (batch, flipped))
    start, end = flips(before[0], after[0]), flips(before[1], after[1])
    assert torch.equal(start, end)
    assert set(start.flatten().tolist()) == {-1, 1}
    assert len({tuple(row) for row in start.tolist()}) > 6  # each instance for itself
    again = flip_axes(batch, torch.Generator().manual_seed(1))
    assert torch.equal(again.features, flipped.features)


def test_signs_flip_their_axis_and_nothing_else(dataset: Dataset) -> None:
    batch = batch_from_arrays(dataset.padded(range(3)), device="cpu")
    signs = -torch.ones(3, batch.num_axes)
    flipped = with_signs(batch, signs)
    assert torch.equal(flipped.features[..., :NUM_PLAIN], batch.features[..., :NUM_PLAIN])
    assert torch.equal(flipped.features[..., NUM_PLAIN:], -batch.features[..., NUM_PLAIN:])
    assert torch.equal(with_signs(flipped, signs).features, batch.features)
    assert flipped.distance is batch.distance


def test_no_instances_make_an_empty_batch(dataset: Dataset) -> None:
    assert len(batch_from_arrays(dataset.padded([]), device="cpu")) == 0
    assert len(batch_from_networks([], device="cpu")) == 0


def test_an_instance_without_a_way_is_refused(dataset: Dataset) -> None:
    links = street(1, 2, demand=1, one_way=True), street(1, 3, demand=1)
    trap = make_instance(*links, name="trap")
    with pytest.raises(UnsolvableError, match="instance 'trap'"):
        from_instances([trap])
    padded = dataset.padded(range(2))
    one_way = padded.one_way.copy()
    one_way[1] = True
    with pytest.raises(UnsolvableError, match="instance 1 of the batch"):
        batch_from_arrays(replace(padded, one_way=one_way), device="cpu")


def test_a_real_map_with_more_nodes_than_landmarks() -> None:
    rules = SceneRules(capacity=50, demand=1, serve_kinds=("primary",), turns=FREE_TURNS)
    instance = cut_scene(read_map(maps_dir() / "monaco"), rules).instance
    assert len(instance.nodes) > MOST_LANDMARKS
    batch = from_instances([instance])
    assert batch.features.isfinite().all()
    # Points are about as far apart as the way between them in both directions.
    start, end = batch.features[0, :, NUM_PLAIN:].chunk(2, dim=-1)
    apart = (start[:, None] - end).norm(dim=-1)
    ways = batch.incoming()[0]
    corr = np.corrcoef(np.stack([apart.flatten().numpy(), ways.flatten().numpy()]))
    assert corr[0, 1] > 0.8


def test_a_scene_is_not_lost_in_the_map_around_it() -> None:
    """Of a map of many nodes those alone are placed where arcs start and end."""
    area = Circle(longitude=7.418, latitude=43.732, metres=200)
    rules = SceneRules(capacity=50, demand=1, area=area, one_way=False, turns=FREE_TURNS)
    instance = cut_scene(read_map(maps_dir() / "monaco"), rules).instance
    assert len(instance.nodes) > MOST_LANDMARKS
    network = Network(instance)
    nodes = np.unique(network.terminal_nodes)
    assert len(nodes) < 150
    batch = from_instances([instance])
    own = torch.from_numpy(node_distances(instance)[np.ix_(nodes, nodes)])[None]
    points = classical_mds(own, torch.tensor([len(nodes)]), 8)[0]
    starts = np.searchsorted(nodes, network.terminal_nodes[network.arc_start])
    expected = points[torch.from_numpy(starts)] / batch.scale[0]
    found = batch.features[0, :, NUM_PLAIN : NUM_PLAIN + 8]
    torch.testing.assert_close(found, expected.float(), atol=1e-4, rtol=0)


@given(
    tasks=st.lists(st.integers(1, 6), min_size=1, max_size=3),
    mixed=st.booleans(),
    seed=st.integers(0, 99),
)
def test_gives_the_same_logits(tasks: list[int], mixed: bool, seed: int) -> None:
    model = make_model(SMALL).double()
    batch = exact(random_batch(tasks, mixed=mixed, seed=seed))
    generator = torch.Generator().manual_seed(seed)
    states, chosen = random_rollout(
        batch, capacity_mask=True, generator=generator, samples=2
    )
    for number, state in enumerate(states[:-1]):
        length = batch.num_arcs + 1
        choice = chosen[..., number]
        alone, rows = as_instances(state)
        shrunk = shrink(batch, alone, length, rows)
        small, small_state = shrunk.batch, shrunk.state
        small_choice = shrunk.slot.gather(1, choice.reshape(-1, 1))
        with torch.no_grad():
            usual = model(model.prepare(batch), state, action_mask(batch, state))
            found = model(
                model.prepare(small), small_state, action_mask(small, small_state)
            )
        assert small.real.sum() <= batch.real.sum() * 2
        usual, found = usual.flatten(0, 1), found[:, 0]
        for row in range(len(usual)):
            # Arcs keep their order, so those that are allowed come one after the other.
            torch.testing.assert_close(
                found[row][found[row].isfinite()],
                usual[row][usual[row].isfinite()],
                rtol=0,
                atol=1e-10,
            )
        torch.testing.assert_close(
            found.gather(1, small_choice)[:, 0],
            usual.gather(1, choice.reshape(-1, 1))[:, 0],
            rtol=0,
            atol=1e-10,
        )


@pytest.mark.parametrize("mixed", [False, True])
def test_every_state_has_one_bucket_that_holds_it(mixed: bool) -> None:
    batch = random_batch([90, 30], mixed=mixed, seed=3)
    found = buckets(batch)
    assert [bucket.length for bucket in found] == [48, 88, 128, 168, 208]
    assert list(range(1, 91)) == sorted(
        left for bucket in found for left in range(bucket.above + 1, bucket.most + 1)
    )
    assert bucket_sizes(batch, found).tolist() == [46, 27, 20, 20, 7]
    states, _ = random_rollout(
        batch, capacity_mask=True, generator=torch.Generator().manual_seed(1), samples=3
    )
    once = (batch.inverse >= torch.arange(batch.num_arcs))[:, None]
    lengths: set[int] = set()
    for state in states:
        alone, rows = as_instances(state)
        left = (state.unserved & once).sum(-1).flatten()  # tasks of each plan
        arcs = present_arcs(alone).sum(1)
        for bucket in found:
            here = (left > bucket.above) & (left <= bucket.most)
            if not here.any():
                continue
            assert int(arcs[here].max()) <= bucket.length
            lengths.add(bucket.length)
            small = shrink(
                batch, State(*(part[here] for part in alone)), bucket.length, rows[here]
            )
            assert small.batch.num_arcs == bucket.length
            assert torch.equal(small.batch.real.sum(1), arcs[here])  # nothing was cut off
    assert len(lengths) == 5
