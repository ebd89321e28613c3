"""Shortest paths and multi-dimensional scaling on the device."""

from functools import cache

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
from arcfleet.neural.geometry import (
    FAR,
    MOST_DISTANCE,
    Eigenpairs,
    classical_mds,
    iterate_eigenpairs,
    landmark_mds,
    landmark_nodes,
    shortest_paths,
    top_eigenpairs,
)
from arcfleet.streets.files import read_map
from arcfleet.streets.scene import SceneRules, cut_scene
from arcfleet.streets.street_arrays import StreetArrays, to_arrays
from arcfleet.streets.tasks import TASK_SETS, PieceCutter
from arcfleet.streets.turns import FREE_TURNS
from tests.helpers import make_instance, street
from tests.shared_data import maps_dir
from tests.strategies import connected_instances, instances
from tests.towns import town


@st.composite
def one_cost_instances(draw: st.DrawFn) -> Instance:
    """Mixed graphs, connected or not; a link costs the same in both directions."""
    nodes = draw(st.integers(1, 9))
    ends = st.integers(0, nodes - 1)
    links = st.builds(
        Link, tail=ends, head=ends, cost=st.integers(0, 40), one_way=st.booleans()
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
    good = make_instance(depot=0)
    long = make_instance(street(0, 1, MOST_DISTANCE), street(1, 2, second), depot=0)
    with pytest.raises(InstanceError, match="instance 1 of the batch"):
        padded_distances([good, long], 3, 2)


def test_a_long_link_that_nobody_needs_does_no_harm() -> None:
    instance = make_instance(street(0, 1, 2**31 - 1), street(0, 1, 3), depot=0)
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


def node_matrix(instance: Instance) -> Tensor:
    return torch.from_numpy(node_distances(instance))


def place(distance: Tensor, dimensions: int = 8) -> Tensor:
    """Return the coordinates of one instance."""
    return classical_mds(distance[None], torch.tensor([len(distance)]), dimensions)[0]


def between(points: Tensor) -> Tensor:
    # Not torch.cdist, which goes by inner products and loses digits.
    apart = points[..., :, None, :] - points[..., None, :, :]
    length: Tensor = torch.linalg.vector_norm(apart, dim=-1)
    return length


def pieces(streets: StreetArrays, name: str, count: int) -> list[Instance]:
    cutter = PieceCutter(streets, TASK_SETS[name])
    generator = np.random.default_rng(4)
    return [cutter.cut(generator).instance("piece") for _ in range(count)]


@cache
def town_pieces(one_way: float) -> tuple[Instance, ...]:
    streets = to_arrays(town(5, one_way=one_way, blocks=30), mixed=one_way > 0)
    return tuple(pieces(streets, "task100", 6))


def padded(matrices: list[Tensor], extra: int = 0) -> tuple[Tensor, Tensor]:
    counts = torch.tensor([len(m) for m in matrices])
    size = int(counts.max()) + extra
    table = torch.full((len(matrices), size, size), FAR, dtype=torch.int32)
    for row, matrix in zip(table, matrices, strict=True):
        row[: len(matrix), : len(matrix)] = matrix
    return table, counts


def test_points_of_a_plane_are_found_again() -> None:
    generator = torch.Generator().manual_seed(3)
    points = torch.rand((40, 2), generator=generator, dtype=torch.float64) * 1e5
    distance = between(points).round().int()
    found = place(distance, 5)
    assert found.shape == (40, 5)
    assert (between(found[:, :2]) - distance).abs().max() < 20
    assert found[:, 2:].abs().max() < 400  # what rounding leaves
    middle = points - points.mean(0)
    assert found.square().sum().item() == pytest.approx(
        middle.square().sum().item(), rel=1e-4
    )
    axes = found.square().sum(0)
    assert (axes.sort(descending=True).values == axes).all()


def test_a_path_needs_one_axis_and_the_others_are_exactly_zero() -> None:
    place_of = torch.tensor([0, 7, 8, 20, 50])
    found = place((place_of[:, None] - place_of).abs().int())
    assert found[:, 0].tolist() == pytest.approx((place_of - 17.0).tolist(), abs=1e-5)
    assert (found[:, 1:] == 0).all()


def test_one_node_and_nodes_at_one_place() -> None:
    for count in (1, 3):
        found = place(torch.zeros((count, count), dtype=torch.int32))
        assert (found == torch.zeros((count, 8))).all()


def test_ways_that_lack_take_the_largest_distance() -> None:
    trapped = torch.tensor([[0, 3, 5], [3, 0, 9], [FAR, 2**31 - 1, 0]], dtype=torch.int32)
    filled = torch.tensor([[0, 3, 5], [3, 0, 9], [9, 9, 0]], dtype=torch.int32)
    mean = (filled + filled.T) / 2  # 7 and 9
    expected = place((2 * mean).int()) / 2
    assert torch.allclose(place(trapped), expected, atol=1e-6)


def assert_same_places(found: Tensor, wanted: Tensor, tolerance: float) -> None:
    """Compare axis by axis; of axes equally long, which may be turned, inner products."""
    length = wanted.norm(dim=0)  # (axes,), falling
    first = 0
    for last in range(1, len(length) + 1):
        if last < len(length) and length[last] > (1 - 1e-6) * length[first]:
            continue
        ours, theirs = found[:, first:last], wanted[:, first:last]
        if last - first > 1:
            ours, theirs = ours @ ours.T, theirs @ theirs.T
        assert torch.allclose(ours, theirs, atol=tolerance)
        first = last


def test_axes_equally_long_may_be_turned_by_padding() -> None:
    """Two pairs of nodes that no distance tells apart, 0 and 5, 2 and 3."""
    table = torch.full((6, 6), FAR, dtype=torch.int32).fill_diagonal_(0)
    for tail, head, cost in ((0, 1, 1), (1, 0, 1), (2, 3, 0), (5, 0, 0), (5, 1, 1)):
        table[tail, head] = cost
    both, counts = padded([torch.zeros((1, 1), dtype=torch.int32), table], 1)
    assert_same_places(classical_mds(both, counts, 8)[1, :6], place(table), 1e-4)


@settings(max_examples=60)
@given(
    st.lists(
        connected_instances()
        | instances(decorated=False, max_nodes=7).filter(
            lambda i: all(max(x.cost, x.reverse_cost or 0) < 10**6 for x in i.links)
        ),
        min_size=1,
        max_size=4,
    ),
    st.integers(0, 12),
)
def test_padding_changes_nothing(made: list[Instance], extra: int) -> None:
    matrices = [node_matrix(instance) for instance in made]
    table, counts = padded(matrices, extra)
    found = classical_mds(table, counts, 8)
    for row, matrix in zip(found, matrices, strict=True):
        alone = place(matrix)
        size = max(1, int(matrix[matrix < FAR].max()))
        assert_same_places(row[: len(matrix)], alone, 1e-4 * size)
        assert (row[len(matrix) :] == 0).all()


def test_equal_axes_come_out_the_same_with_any_padding() -> None:
    corner = torch.cartesian_prod(torch.arange(4), torch.arange(4))
    grid = (corner[:, None] - corner).abs().sum(-1).int()  # a square of blocks
    table, counts = padded([grid], 9)
    assert torch.allclose(classical_mds(table, counts, 8)[0, :16], place(grid), atol=1e-5)


@pytest.mark.parametrize("one_way", [0.0, 0.4])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_the_iteration_agrees_with_eigh(
    one_way: float, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, counts = padded([node_matrix(i) for i in town_pieces(one_way)])
    exact = classical_mds(table, counts, 8)
    used = []

    def iterate(matrix: Tensor, count: int) -> Eigenpairs:
        used.append(matrix.dtype)
        return iterate_eigenpairs(matrix, count)

    monkeypatch.setattr("arcfleet.neural.geometry.top_eigenpairs", iterate)
    found = classical_mds(table, counts, 8, dtype=dtype)
    assert used == [dtype]
    _assert_same_distances(found.double(), exact)
    # Axes may turn only where two are about equal; the first three are far apart here.
    size = exact.abs().amax((1, 2), keepdim=True)
    assert ((found - exact)[..., :3].abs() < 1e-3 * size).all()


def test_the_iteration_agrees_with_eigh_on_a_real_map(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    streets = to_arrays(read_map(maps_dir() / "herrenberg"), mixed=True)
    table, counts = padded([node_matrix(i) for i in pieces(streets, "task60", 8)])
    exact = classical_mds(table, counts, 8)
    monkeypatch.setattr("arcfleet.neural.geometry.top_eigenpairs", iterate_eigenpairs)
    _assert_same_distances(classical_mds(table, counts, 8), exact)


def _assert_same_distances(found: Tensor, exact: Tensor) -> None:
    expected = between(exact)
    error = (between(found) - expected).abs()
    far = expected > 0.05 * expected.amax((1, 2), keepdim=True)
    assert (error[far] < 0.01 * expected[far]).all()
    assert error.max() < 0.002 * expected.max()


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_the_iteration_bears_matrices_of_low_rank(rank: int) -> None:
    generator = torch.Generator().manual_seed(rank)
    factor = torch.randn((5, 60, rank), generator=generator, dtype=torch.float64)
    matrix = factor @ factor.mT
    exact, found = top_eigenpairs(matrix, 8), iterate_eigenpairs(matrix, 8)
    assert torch.allclose(found.values, exact.values, atol=1e-6)
    again = found.vectors * found.values[:, None] @ found.vectors.mT
    assert torch.allclose(again, matrix, atol=1e-5)


def test_the_iteration_finds_the_largest_not_the_largest_in_size() -> None:
    noise = torch.randn((4, 50, 50), generator=torch.Generator()).double()
    turn = torch.linalg.qr(noise).Q
    values = torch.linspace(1, -6, 50, dtype=torch.float64)
    found = iterate_eigenpairs(turn * values @ turn.mT, 4)
    assert torch.allclose(found.values, values[:4].expand(4, -1), atol=1e-3)


def test_landmarks_are_spread_and_never_twice() -> None:
    assert landmark_nodes(5, 512).tolist() == [0, 1, 2, 3, 4]
    assert landmark_nodes(10, 4).tolist() == [0, 2, 5, 7]
    assert len(set(landmark_nodes(100_000).tolist())) == 512


@pytest.mark.parametrize("one_way", [0.0, 0.4])
def test_landmarks_that_are_all_nodes_give_classical_mds(one_way: float) -> None:
    distance = node_matrix(town_pieces(one_way)[0])
    everywhere = landmark_nodes(len(distance))
    found = landmark_mds(distance, distance.T, everywhere, 8)
    assert torch.allclose(found, place(distance), atol=1e-3)


def test_landmarks_come_close_to_all_nodes_of_a_real_map() -> None:
    rules = SceneRules(capacity=9, demand=1, turns=FREE_TURNS)
    instance = cut_scene(read_map(maps_dir() / "monaco"), rules).instance
    landmarks = landmark_nodes(len(instance.nodes))
    assert len(landmarks) < len(instance.nodes)
    nodes = landmarks.numpy().astype(np.int32)
    leaving, arriving = map(torch.from_numpy, distances_around(instance, nodes))
    found = between(landmark_mds(leaving, arriving, landmarks, 8))
    exact = between(place(node_matrix(instance)))
    assert (found - exact).abs().mean() < 0.02 * exact.mean()
