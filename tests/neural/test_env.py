"""The decision process: what may be chosen, and that every plan ends."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from arcfleet import Instance, check
from arcfleet.network import Network
from arcfleet.neural import env as process
from tests.helpers import make_instance, street
from tests.neural.batches import network_batch, random_batch, random_rollout, solution_of
from tests.strategies import connected_instances


@settings(deadline=None, max_examples=40)
@given(
    towns=st.lists(connected_instances(), min_size=1, max_size=3),
    capacity_mask=st.booleans(),
    padding=st.integers(0, 2),
    seed=st.integers(0, 1000),
)
def test_random_plans_are_legal_at_every_step_and_the_checker_takes_them(
    towns: list[Instance], capacity_mask: bool, padding: int, seed: int
) -> None:
    networks = [Network(town) for town in towns]
    batch = network_batch(networks, padding)
    generator = torch.Generator().manual_seed(seed)
    states, arcs = random_rollout(
        batch, capacity_mask=capacity_mask, generator=generator, samples=2
    )
    for number, state in enumerate(states):
        allowed = process.action_mask(batch, state, capacity_mask=capacity_mask)
        _assert_legal(
            networks, arcs[..., :number].tolist(), allowed, capacity_mask=capacity_mask
        )
    deadheads = batch.deadheads(arcs)
    for b, network in enumerate(networks):
        for place in range(2):
            plan = arcs[b, place].tolist()
            tasks = network.arc_task[[arc for arc in plan if arc]].tolist()
            assert sorted(tasks) == list(range(network.num_tasks))
            solution = solution_of(network, plan)
            assert deadheads[b, place] == solution.deadhead
            if capacity_mask:
                report = check(network.instance, solution)
                assert report.ok, report.faults
                assert report.deadhead == deadheads[b, place]
            else:
                assert 0 not in plan[: network.num_tasks]
                before = [state.remaining[b, place].item() for state in states]
                recomputed = process.remaining_capacity(batch, arcs)[b, place].tolist()
                assert recomputed == before[: len(plan)]
                remaining = capacity = network.instance.capacity
                for number, arc in enumerate(plan):
                    assert states[number].remaining[b, place] == remaining
                    demand = int(network.arc_demand[arc])
                    if arc == 0 or demand > remaining:
                        remaining = capacity
                    remaining -= demand


def _assert_legal(
    networks: list[Network],
    before: list[list[list[int]]],
    allowed: torch.Tensor,
    *,
    capacity_mask: bool,
) -> None:
    """Compare the mask with what may follow the arcs chosen so far, worked out anew."""
    for b, network in enumerate(networks):
        for place, plan in enumerate(before[b]):
            served = {int(network.arc_task[arc]) for arc in plan if arc}
            remaining = network.instance.capacity
            for arc in plan:
                remaining -= int(network.arc_demand[arc])
                if arc == 0:
                    remaining = network.instance.capacity
            last = plan[-1] if plan else 0
            done = len(served) == network.num_tasks
            expected = {
                arc
                for arc in range(1, network.num_arcs)
                if int(network.arc_task[arc]) not in served
                and (not capacity_mask or network.arc_demand[arc] <= remaining)
            }
            if done or (capacity_mask and last != 0):
                expected.add(0)
            assert expected
            assert set(allowed[b, place].nonzero().flatten().tolist()) == expected


@pytest.mark.parametrize("capacity_mask", [True, False])
@pytest.mark.parametrize("mixed", [True, False])
def test_full_loads_make_a_route_of_every_task(mixed: bool, capacity_mask: bool) -> None:
    batch = random_batch([4, 1, 6], mixed=mixed, padding=1)
    full = torch.where(batch.real, batch.capacity[:, None], 0)
    full[:, 0] = 0
    batch = replace(batch, demand=full.int())
    generator = torch.Generator().manual_seed(1)
    states, arcs = random_rollout(
        batch, capacity_mask=capacity_mask, generator=generator, samples=3
    )
    assert process.finished(states[-1]).all()
    for b, tasks in enumerate([4, 1, 6]):
        plan = arcs[b]
        if capacity_mask:
            assert (plan[:, 1 : 2 * tasks : 2] == 0).all()
            assert (plan[:, : 2 * tasks : 2] != 0).all()
            assert (plan[:, 2 * tasks :] == 0).all()
        else:
            assert (plan[:, :tasks] != 0).all()
            assert (plan[:, tasks:] == 0).all()


def test_without_tasks_the_plan_is_finished_at_once() -> None:
    batch = random_batch([0, 2])
    state = process.reset(batch)
    assert process.finished(state).tolist() == [[True], [False]]
    assert process.action_mask(batch, state)[0, 0].tolist() == [True] + [False] * 4
    assert batch.num_tasks.tolist() == [0, 2]
    alone = random_batch([0])
    states, arcs = random_rollout(alone, capacity_mask=True, generator=torch.Generator())
    assert len(states) == 1
    assert batch.deadheads(torch.zeros(2, 1, 0, dtype=torch.int64)).tolist() == [[0], [0]]
    assert arcs.shape == (1, 1, 0)


def test_the_capacity_counts_unless_told_otherwise() -> None:
    town = make_instance(street(1, 2, demand=6), street(2, 3, demand=6), capacity=10)
    batch = network_batch([Network(town)])
    state = process.step(batch, process.reset(batch), torch.tensor([[1]]))
    assert process.action_mask(batch, state)[0, 0].tolist() == [True] + [False] * 4
    tour = process.action_mask(batch, state, capacity_mask=False)[0, 0].tolist()
    assert tour == [False, False, False, True, True]
    # In a giant tour the vehicle is emptied first.
    arcs = torch.tensor([[3]])
    assert process.step(batch, state, arcs).remaining.item() == 10 - 6 - 6
    emptied = process.step(batch, state, arcs, capacity_mask=False)
    assert emptied.remaining.item() == 10 - 6


def test_a_finished_plan_stays_finished() -> None:
    batch = random_batch([1])
    state = process.step(batch, process.reset(batch), torch.tensor([[2]]))
    home = torch.tensor([[0]])
    for _ in range(3):
        assert process.action_mask(batch, state)[0, 0].tolist() == [True, False, False]
        state = process.step(batch, state, home)
        assert process.finished(state).all()
    assert state.remaining.tolist() == [[10]]


def test_one_step_is_counted_from_the_depot() -> None:
    batch = random_batch([3], seed=4)
    expected = batch.distance[0, batch.end[0, 0], batch.start[0, 5]]
    assert batch.deadheads(torch.tensor([[[5]]])).item() == expected.item() > 0


def test_the_largest_capacity_does_not_overflow() -> None:
    most = 2**31 - 1
    town = make_instance(street(1, 2, demand=most), capacity=most)
    batch = network_batch([Network(town)])
    state = process.reset(batch)
    assert process.action_mask(batch, state)[0, 0].tolist() == [False, True, True]
    assert process.step(batch, state, torch.tensor([[1]])).remaining.item() == 0
