from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from arcfleet import check
from arcfleet.datasets import Dataset, label_dataset, open_labels
from arcfleet.datasets.labels import labels_path, write_labels
from arcfleet.errors import FileError
from arcfleet.instance import Instance, Link
from arcfleet.network import Network
from arcfleet.neural.batch import Bucket, batch_from_networks, buckets
from arcfleet.neural.env import State, action_mask, reset, step
from arcfleet.neural.train.config import LABEL_ORDERS, LabelOrder
from arcfleet.neural.train.data import (
    LabelledSet,
    backwards,
    open_labelled,
    plan_costs,
    plans_from_labels,
    reversible_routes,
    route_costs,
)
from arcfleet.neural.train.steps import (
    Minibatch,
    Sequences,
    draw_decision_steps,
    draw_minibatch,
    giant_tours,
    sequences,
    states_at,
    steps_in_bucket,
)
from arcfleet.solution import Solution
from arcfleet.solution.plan import from_plan
from tests.datasets.test_own_instances import held
from tests.neural.labelled_towns import labelled_file
from tests.strategies import connected_instances


@pytest.fixture(scope="module", params=[0.0, 0.4], ids=["two-way", "mixed"])
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("labelled")
    return labelled_file(folder, "a", "task30", count=16, one_way=request.param)


@pytest.fixture(scope="module")
def labelled(path: Path) -> LabelledSet:
    return open_labelled(path, "cpu")


def draw(
    labelled: LabelledSet, label_order: LabelOrder = "farthest", seed: int = 0
) -> Sequences:
    generator = torch.Generator().manual_seed(seed)
    return sequences(labelled.batch, labelled.plans, label_order, generator)


def states_of(
    labelled: LabelledSet, drawn: Sequences, steps: torch.Tensor
) -> tuple[State, torch.Tensor]:
    remaining = drawn.remaining[:, None]
    return states_at(labelled.batch, drawn.arcs[:, None], steps[:, None], remaining)


def solution_of(instance: Instance, routes: list[list[int]]) -> Solution:
    """Return the plan whose routes serve these arcs; empty routes are left out."""
    arcs = np.array([arc for route in routes for arc in route], dtype=np.int32)
    lengths = [len(route) for route in routes if route]
    starts = np.cumsum([0, *lengths]).astype(np.int32)
    return from_plan(Network(instance), arcs, starts)


def draw_some(labelled: LabelledSet, seed: int = 0, **options: Any) -> Minibatch:
    generator = torch.Generator().manual_seed(seed)
    options = {"label_order": "farthest", "generator": generator, **options}
    return draw_minibatch(labelled.batch, labelled.plans, **options)


def routes_of(drawn: Sequences, row: int) -> list[list[int]]:
    """Cut a sequence at its returns to the depot."""
    routes: list[list[int]] = [[]]
    for arc in drawn.arcs[row, : int(drawn.steps[row])].tolist():
        if arc:
            routes[-1].append(arc)
        else:
            routes.append([])
    assert routes.pop() == []  # it ends at the depot
    return routes


def test_plans_are_those_of_the_labels(path: Path, labelled: LabelledSet) -> None:
    dataset = Dataset.open(path)
    labels = open_labels(labels_path(path), dataset)
    for index in range(len(dataset)):
        routes = [[arc for arc in r if arc] for r in labelled.plans.arcs[index].tolist()]
        assert solution_of(dataset[index], routes) == labels[index]
    assert plan_costs(labelled.batch, labelled.plans.arcs).tolist() == labels.cost.tolist()


@pytest.mark.parametrize("label_order", LABEL_ORDERS)
def test_no_augmentation_changes_the_cost(
    path: Path, labelled: LabelledSet, label_order: LabelOrder
) -> None:
    """Driving and service cost what the label says, and the checker agrees."""
    drawn = draw(labelled, label_order)
    deadheads = labelled.batch.deadheads(drawn.arcs[:, None])[:, 0]
    services = labelled.batch.service_cost.gather(1, drawn.arcs).sum(1)
    assert (deadheads + services).tolist() == labelled.plans.cost.tolist()
    dataset = Dataset.open(path)
    for index in (0, 7):
        routes = routes_of(drawn, index)
        assert all(routes)
        instance = dataset[index]
        report = check(instance, solution_of(instance, routes))
        assert report.ok, report.faults
        assert report.cost == int(labelled.plans.cost[index])


def test_states_are_those_of_stepping_through(labelled: LabelledSet) -> None:
    """Every moment of every plan: the state, the choice, and that it is allowed."""
    drawn = draw(labelled)
    batch = labelled.batch
    steps = drawn.arcs.shape[1]
    moments = torch.arange(steps).expand(len(batch), -1).minimum(drawn.steps[:, None] - 1)
    state, choice = states_of(labelled, drawn, moments)
    allowed = action_mask(batch, state)
    assert allowed.gather(2, choice[..., None]).all()
    assert not state.unserved[..., 0].any()
    walked = reset(batch)
    for now in range(steps):
        there = now < drawn.steps  # (batch,)
        for drawn_part, walked_part in zip(state, walked, strict=True):
            assert drawn_part.dtype == walked_part.dtype
            assert torch.equal(drawn_part[there, now], walked_part[there, 0])
        assert torch.equal(choice[there, now], drawn.arcs[there, now])
        walked = step(batch, walked, drawn.arcs[:, now : now + 1])
    assert not walked.unserved.any()


def test_giant_tours_have_the_states_of_routes_without_their_returns(
    labelled: LabelledSet,
) -> None:
    drawn = draw(labelled)
    batch = labelled.batch
    tour = giant_tours(drawn)
    for row in range(len(batch)):
        capacity = int(batch.capacity[row])
        routes = routes_of(drawn, row)
        left, room = capacity, []
        for route in routes:
            for place, arc in enumerate(route):
                room.append(left)  # at the start of a route what the last one left
                full = capacity if place == 0 else left
                left = full - int(batch.demand[row, arc])
        services = [arc for route in routes for arc in route]
        count = int(tour.steps[row])
        assert tour.arcs[row, :count].tolist() == [*services, 0]
        assert tour.remaining[row, : count - 1].tolist() == room
    most = int(tour.steps.max())
    # Not the last return, in which there is no choice.
    moments = torch.arange(most).expand(len(batch), -1).minimum(tour.steps[:, None] - 2)
    state, choice = states_of(labelled, tour, moments)
    assert action_mask(batch, state, capacity_mask=False).gather(2, choice[..., None]).all()
    walked = reset(batch)
    for now in range(most):
        there = now < tour.steps - 1
        for name in ("unserved", "previous"):
            ours, theirs = getattr(state, name), getattr(walked, name)
            assert ours.dtype == theirs.dtype
            assert torch.equal(ours[there, now], theirs[there, 0])
        walked = step(batch, walked, tour.arcs[:, now : now + 1], capacity_mask=False)
    assert not walked.unserved.any()


@pytest.mark.parametrize("shrunk", [False, True])
def test_minibatches_of_giant_tours(labelled: LabelledSet, shrunk: bool) -> None:
    bucket = buckets(labelled.batch)[0] if shrunk else None
    options = {"decision_steps": 6, "bucket": bucket, "flip": False}
    minibatch = draw_some(labelled, 3, **options, capacity_mask=False)
    assert not minibatch.capacity_mask
    assert (minibatch.choice > 0).all()  # no returns
    assert (minibatch.state.remaining < minibatch.batch.capacity[:, None]).any()
    allowed = action_mask(minibatch.batch, minibatch.state, capacity_mask=False)
    assert allowed.gather(2, minibatch.choice[..., None]).all()


def test_decision_steps_are_uniform_and_leave_out_the_forced_return() -> None:
    steps = torch.tensor([2, 6]).repeat_interleave(20_000)
    generator = torch.Generator().manual_seed(0)
    moments = draw_decision_steps(steps - 1, 3, generator)
    assert moments.shape == (40_000, 3)
    assert (moments[:20_000] == 0).all()
    counts = torch.bincount(moments[20_000:].flatten(), minlength=6)
    assert counts[5] == 0
    shares = counts[:5] / counts.sum()
    assert (shares - 0.2).abs().max() < 0.01


def test_farthest_first(path: Path, labelled: LabelledSet) -> None:
    dataset = Dataset.open(path)
    farthest = draw(labelled)
    for index in range(len(dataset)):
        network = Network(dataset[index])

        def reach(route: list[int], network: Network = network) -> int:
            ways = []
            for arc in route:
                inverse = int(network.arc_inverse[arc])
                both = [arc] if inverse < 0 else [arc, inverse]
                ways.append(
                    min(int(network.distances[0, network.arc_start[a]]) for a in both)
                )
            return max(ways)

        reaches = [reach(route) for route in routes_of(farthest, index)]
        assert reaches == sorted(reaches, reverse=True)


def test_routes_are_reversed_at_random(labelled: LabelledSet) -> None:
    """Half of the reversible ones, and none as labelled."""
    kept = {
        (row, tuple(arc for arc in route if arc))
        for row, routes in enumerate(labelled.plans.arcs.tolist())
        for route in routes
    }
    for label_order in LABEL_ORDERS:
        turned = 0
        for seed in range(10):
            drawn = draw(labelled, label_order, seed)
            for row in range(len(labelled)):
                routes = routes_of(drawn, row)
                turned += sum((row, tuple(route)) not in kept for route in routes)
        share = turned / (10 * int(labelled.plans.reversible.sum()))
        assert abs(share - (0.5 if label_order == "farthest" else 0)) < 0.1


def test_two_way_routes_are_all_reversible(labelled: LabelledSet) -> None:
    """With one-way streets some are not, and some arcs are padding."""
    assert labelled.batch.num_arcs <= 61
    used = (labelled.plans.arcs > 0).any(2)
    two_way = bool(
        (labelled.batch.inverse != torch.arange(labelled.batch.num_arcs))[:, 1:].all()
    )
    assert labelled.plans.reversible[used].all() == two_way
    assert labelled.full == two_way
    assert labelled.plans.reversible[used].any()


@pytest.mark.parametrize("one_way", [False, True])
def test_a_way_back_that_is_longer(one_way: bool) -> None:
    """Both streets to serve are two-way, but the streets round them may not be."""
    ends = [(0, 1), (1, 2), (2, 3), (3, 0)]
    instance = Instance(
        name="ring",
        nodes=(0, 1, 2, 3),
        links=tuple(
            Link(
                tail=tail,
                head=head,
                cost=5,
                one_way=one_way and 0 in (tail, head),
                required=0 not in (tail, head),
                demand=int(0 not in (tail, head)),
            )
            for tail, head in ends
        ),
        depot=0,
        capacity=2,
    )
    batch = batch_from_networks([Network(instance)], device="cpu", mds_dimensions=2)
    arcs = torch.tensor([[[1, 3], [1, 0], [0, 0]]])
    assert route_costs(batch, arcs).tolist() == [[20, 20, 0]]
    assert backwards(batch, arcs).tolist() == [[[4, 2], [2, 0], [0, 0]]]
    assert reversible_routes(batch, arcs).tolist() == [[not one_way, not one_way, True]]


def test_same_seed_same_draw(labelled: LabelledSet) -> None:
    one, other = draw(labelled, seed=4), draw(labelled, seed=4)
    assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))
    assert not torch.equal(one.arcs, draw(labelled, seed=5).arcs)


@pytest.mark.parametrize("fault", ["cost", "twice", "foreign"])
def test_labels_that_are_no_plans_are_refused(
    path: Path, labelled: LabelledSet, tmp_path: Path, fault: str
) -> None:
    dataset = Dataset.open(path)
    labels = open_labels(labels_path(path), dataset)
    names = ("cost", "num_routes", "route_length", "services")
    arrays = {name: labels.arrays[name].astype(np.int64) for name in names}
    if fault == "cost":
        arrays["cost"][3] += 1
    elif fault == "twice":
        arrays["services"][90] = arrays["services"][91]
    else:
        arrays["services"][90] = 60_000
    write_labels(tmp_path / "l.npz", labels.facts, arrays)
    broken = open_labels(tmp_path / "l.npz", dataset)
    with pytest.raises(FileError, match="for instance 3, found another: make it again"):
        plans_from_labels(broken, np.arange(16), labelled.batch)


@settings(max_examples=25)
@given(drawn=st.lists(connected_instances(), min_size=1, max_size=3))
def test_own_costs_by_direction_are_those_of_the_labels(
    drawn: list[Instance], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("own") / "own.npz"
    dataset = Dataset.from_instances([held(instance) for instance in drawn], path)
    labels = label_dataset(dataset, iterations=10)
    found = open_labelled(path, "cpu")  # every plan is checked
    assert found.plans.cost.tolist() == labels.cost.tolist()
    networks = batch_from_networks(
        [Network(instance) for instance in dataset], device="cpu"
    )
    for name in ("service_cost", "demand", "capacity", "inverse", "real"):
        assert torch.equal(getattr(found.batch, name), getattr(networks, name)), name


def test_some_of_the_instances(path: Path, labelled: LabelledSet) -> None:
    few = open_labelled(path, "cpu", most=5)
    assert len(few) == 5
    assert few.plans.cost.tolist() == labelled.plans.cost[:5].tolist()
    assert few.facts["instances"] == 5
    assert len(open_labelled(path, "cpu", most=500)) == 16


def test_missing_labels_are_named(path: Path, tmp_path: Path) -> None:
    lonely = tmp_path / "lonely.npz"
    lonely.write_bytes(path.read_bytes())
    with pytest.raises(FileError, match=r"lonely\.labels\.npz.*arcfleet dataset label"):
        open_labelled(lonely, "cpu")


def test_minibatches_of_a_length_bucket(labelled: LabelledSet) -> None:
    found = buckets(labelled.batch)
    assert len(found) == 2
    for seed, bucket in enumerate(found):
        minibatch = draw_some(labelled, seed, decision_steps=5, bucket=bucket, flip=True)
        small, state = minibatch.batch, minibatch.state
        assert small.num_arcs == bucket.length
        assert len(small) == 5 * len(labelled)
        once = small.inverse >= torch.arange(bucket.length)
        left = (state.unserved[:, 0] & once).sum(1)
        assert ((left > bucket.above) & (left <= bucket.most)).all()
        assert len(set(left.tolist())) > 5
        assert action_mask(small, state).gather(2, minibatch.choice[..., None]).all()
        assert minibatch.weight.shape == minibatch.choice.shape
        assert minibatch.weight.mean().item() == pytest.approx(1)


def test_small_instances_count_by_their_decisions() -> None:
    """Beside larger ones they have no moments with many tasks left."""
    arcs = torch.tensor([[1, 3, 0, 5, 7, 9, 0, 0], [1, 0, 3, 0, 0, 0, 0, 0]])
    choices = torch.tensor([6, 3])
    first, count = steps_in_bucket(arcs, choices, Bucket(9, 2, 5))
    assert first.tolist() == [0, 0]
    assert count.tolist() == [4, 0]
    first, count = steps_in_bucket(arcs, choices, Bucket(9, 0, 2))
    assert first.tolist() == [4, 0]
    assert count.tolist() == [2, 3]
