from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from arcfleet.errors import InstanceError
from arcfleet.instance import Instance, Link
from arcfleet.network import distances_around, node_distances
from arcfleet.network.network import UNREACHABLE
from arcfleet.neural import geometry as module
from arcfleet.neural.geometry import FAR, MOST_DISTANCE, shortest_paths


@st.composite
def one_cost_instances(draw: st.DrawFn) -> Instance:
    """Mixed graphs, connected or not; a link costs the same in both directions."""
    nodes = draw(st.integers(1, 9))
    ends = st.integers(0, nodes - 1)
    links = st.builds(
        Link,
        tail=ends,
        head=ends,
        cost=st.integers(0, 40),
        one_way=st.booleans(),
    )
    return Instance(
        name="random",
        nodes=tuple(range(nodes)),
        links=tuple(draw(st.lists(links, max_size=16))),
        depot=0,
        capacity=1,
    )


def padded_distances(instances: list[Instance], nodes: int, links: int) -> Tensor:
    def table(field: str) -> Tensor:
        rows = [[int(getattr(x, field)) for x in i.links] for i in instances]
        return torch.tensor([row + [0] * (links - len(row)) for row in rows]).int()

    counts = torch.tensor([[len(i.links)] for i in instances])
    return shortest_paths(
        nodes,
        tail=table("tail"),
        head=table("head"),
        cost=table("cost"),
        one_way=table("one_way").bool(),
        real=torch.arange(links) < counts,
    )


@settings(max_examples=60)
@given(st.lists(one_cost_instances(), min_size=1, max_size=4), st.integers(0, 3))
def test_batches_equal_dijkstra_whatever_the_padding(
    instances: list[Instance], extra: int
) -> None:
    nodes = max(len(i.nodes) for i in instances) + extra
    links = max(len(i.links) for i in instances) + extra
    found = padded_distances(instances, nodes, links)
    for row, instance in zip(found.numpy(), instances, strict=True):
        count = len(instance.nodes)
        expected = node_distances(instance)
        expected = np.where(expected == UNREACHABLE, FAR, expected)
        assert (row[:count, :count] == expected).all()
        lonely = row + np.where(np.eye(nodes, dtype=bool), FAR, 0)
        assert (lonely[count:] == FAR).all()
        assert (lonely[:, count:] == FAR).all()


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(1)
    shape = (7, 30)
    values = [
        torch.from_numpy(generator.integers(0, most, shape)) for most in (12, 12, 90, 2)
    ]
    tail, head, cost, one_way = values
    arguments = (tail, head, cost, one_way.bool(), torch.ones(shape, dtype=torch.bool))
    whole = shortest_paths(12, *arguments)
    monkeypatch.setattr(module, "_ENTRIES_CPU", 2 * 12 * 12)
    assert torch.equal(shortest_paths(12, *arguments), whole)


@pytest.mark.parametrize("second", [1, 2**31 - 1, MOST_DISTANCE])
def test_a_path_beyond_the_limit_is_refused(second: int) -> None:
    costs = [MOST_DISTANCE, second]
    chain = [Link(tail=i, head=i + 1, cost=c) for i, c in enumerate(costs)]
    good = Instance(name="", nodes=(0,), links=(), depot=0, capacity=1)
    long = Instance(name="", nodes=(0, 1, 2), links=tuple(chain), depot=0, capacity=1)
    with pytest.raises(InstanceError, match="instance 1 of the batch"):
        padded_distances([good, long], 3, 2)


def test_a_long_link_that_nobody_needs_does_no_harm() -> None:
    links = (Link(tail=0, head=1, cost=2**31 - 1), Link(tail=0, head=1, cost=3))
    instance = Instance(name="", nodes=(0, 1), links=links, depot=0, capacity=1)
    assert padded_distances([instance], 2, 2).tolist() == [[[0, 3], [3, 0]]]


@settings(max_examples=40)
@given(one_cost_instances(), st.data())
def test_distances_around_some_nodes_are_rows_and_columns(
    instance: Instance, data: st.DataObject
) -> None:
    chosen = data.draw(st.lists(st.sampled_from(instance.nodes), min_size=1, max_size=4))
    nodes = np.array(chosen, dtype=np.int32)
    leaving, arriving = distances_around(instance, nodes)
    expected = node_distances(instance)
    assert (leaving == expected[nodes]).all()
    assert (arriving == expected[:, nodes].T).all()
