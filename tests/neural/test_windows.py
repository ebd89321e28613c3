"""Plans made through windows."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import arcfleet
from arcfleet.errors import OptionError
from arcfleet.network import Network
from arcfleet.neural import env as process
from arcfleet.neural import windows
from arcfleet.neural.batch import NUM_PLAIN, ArcBatch
from arcfleet.neural.model import Daam
from arcfleet.neural.plans import NO_PLAN, Plans
from arcfleet.neural.windows import (
    MOST_TASKS_AT_ONCE,
    has_short_routes,
    look,
    window_scale,
    windowed_rollout,
    with_scale,
)
from tests.neural.batches import (
    MDS,
    network_batch,
    random_batch,
    random_rollout,
    solution_of,
)
from tests.shared_data import shared_dir
from tests.strategies import connected_instances
from tests.tiny_model import tiny_config, tiny_model_file

CONFIG = tiny_config(MDS)


@pytest.fixture(scope="module")
def model() -> Daam:
    torch.manual_seed(3)
    return Daam(CONFIG).eval()


def greedy(logits: Tensor) -> Tensor:
    return logits.argmax(-1)


def sample(logits: Tensor) -> Tensor:
    return torch.multinomial(logits[0].softmax(-1), 1).T


@settings(deadline=None, max_examples=30)
@given(
    town=connected_instances(max_extra_links=9),
    tasks=st.integers(1, 4),
    capacity_mask=st.booleans(),
)
def test_the_checker_takes_every_plan(
    town: arcfleet.Instance, tasks: int, capacity_mask: bool
) -> None:
    network = Network(town)
    arcs = windowed_rollout(
        Daam(CONFIG).eval(),
        network_batch([network]),
        choose=sample,
        tasks=tasks,
        samples=3,
        capacity_mask=capacity_mask,
    )
    assert arcs.shape[:2] == (1, 3)
    for plan in arcs[0].tolist():
        served = network.arc_task[[arc for arc in plan if arc]].tolist()
        assert sorted(served) == list(range(network.num_tasks))
        if capacity_mask:
            report = arcfleet.check(town, solution_of(network, plan))
            assert report.ok, report.faults
        else:
            assert not any(plan[network.num_tasks :])


def test_a_window_of_all_tasks_shows_the_instance_itself() -> None:
    batch = random_batch([6], mixed=True, seed=2)
    generator = torch.Generator().manual_seed(1)
    states, _ = random_rollout(batch, capacity_mask=True, generator=generator, samples=2)
    state = states[2]
    window = look(batch, state, 6)
    allowed = process.action_mask(batch, state)
    local = process.action_mask(window.batch, window.state)
    for place in range(2):
        arcs = window.arcs[place]
        seen = arcs[local[place, 0]].sort().values
        assert torch.equal(seen, allowed[0, place].nonzero().flatten())
        real = window.batch.real[place].nonzero().flatten()
        assert arcs[window.state.previous[place, 0]] == state.previous[0, place]
        inverses = batch.inverse[0, arcs[real]]
        unserved = window.state.unserved[place, 0, real]
        found = arcs[window.batch.inverse[place, real]]
        assert torch.equal(found[unserved], inverses[unserved])
        incoming, whole = window.batch.incoming()[place], batch.incoming()[0]
        torch.testing.assert_close(
            incoming[real][:, real], whole[arcs[real]][:, arcs[real]]
        )
        assert torch.equal(
            window.batch.features[place, real, :NUM_PLAIN],
            batch.features[0, arcs[real], :NUM_PLAIN],
        )


def test_a_window_holds_the_nearest_tasks() -> None:
    batch = random_batch([30], seed=6)
    window = look(batch, process.reset(batch), 7)
    to = batch.distance[0, batch.end[0, 0].long()][batch.start[0].long()]
    nearest = torch.minimum(to[1::2], to[2::2])  # of each task
    shown = set(((window.arcs[0, 2:] - 1) // 2).tolist())
    assert len(shown) == 7
    hidden = [task for task in range(30) if task not in shown]
    assert nearest[sorted(shown)].max() <= nearest[hidden].min()


def test_coordinates_of_a_window_are_centred_and_keep_their_distances() -> None:
    batch = random_batch([12], seed=6)
    window = look(batch, process.reset(batch), 5)
    real = window.batch.real[0].clone()
    real[0] = False
    points = window.batch.features[0, real, NUM_PLAIN:].view(-1, MDS)
    before = batch.features[0, window.arcs[0, real], NUM_PLAIN:].view(-1, MDS)
    torch.testing.assert_close(torch.cdist(points, points), torch.cdist(before, before))
    torch.testing.assert_close(points.mean(0), torch.zeros(MDS), rtol=0, atol=1e-5)
    spread = points.T.cov(correction=0)
    assert spread[0, 0] > spread[1, 1]
    assert abs(float(spread[0, 1])) < 1e-4


def test_another_unit_of_costs_gives_the_same_windows() -> None:
    batch = random_batch([12], seed=6)
    scaled = with_scale(batch, window_scale(batch, 5))
    other = with_scale(batch, batch.scale * 10)
    again = with_scale(other, window_scale(other, 5))
    torch.testing.assert_close(again.features, scaled.features)
    assert torch.equal(again.scale, scaled.scale)


def test_another_unit_gives_the_same_windows_where_all_driving_is_free() -> None:
    batch = random_batch([12], seed=6)
    batch = replace(batch, distance=torch.zeros_like(batch.distance))
    other = replace(batch, service_cost=10 * batch.service_cost)
    scales = [window_scale(x, 5).item() for x in (batch, other)]
    assert scales[1] == pytest.approx(10 * scales[0])
    assert scales[0] == pytest.approx(batch.service_cost[0, 1:].float().mean().item())


def test_memory_does_not_grow_with_the_square_of_the_arcs(model: Daam) -> None:
    batch = random_batch([400], seed=1)
    meter = _Meter(batch)
    with meter, pytest.raises(_Enough):
        windowed_rollout(model, batch, choose=_some(30), tasks=10)
    assert 0 < meter.most < batch.num_arcs**2 // 10


class _Enough(Exception):  # noqa: N818
    pass


def _some(steps: int) -> Callable[[Tensor], Tensor]:
    """Choose so many times, then end the plan as solvers do: by raising."""
    left = iter(range(steps))

    def choose(logits: Tensor) -> Tensor:
        if next(left, None) is None:
            raise _Enough
        return greedy(logits)

    return choose


class _Meter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Size of the largest tensor that is made."""

    def __init__(self, batch: ArcBatch) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.known = batch.distance.untyped_storage().data_ptr()
        self.most = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, (tuple, list)) else [result]:
            if not isinstance(tensor, torch.Tensor):
                continue
            if tensor.untyped_storage().data_ptr() != self.known:
                self.most = max(self.most, tensor.numel())
        return result


def test_without_tasks_there_is_nothing_to_choose(model: Daam) -> None:
    arcs = windowed_rollout(model, random_batch([0]), choose=greedy)
    assert arcs.shape == (1, 1, 0)


@pytest.mark.parametrize("options", [{"tasks": 0}, {"samples": 0}])
def test_numbers_that_cannot_be_are_refused(model: Daam, options: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match="expected"):
        windowed_rollout(model, random_batch([2]), choose=greedy, **options)
    with pytest.raises(OptionError, match="one instance"):
        windowed_rollout(model, random_batch([2, 2]), choose=greedy)


def test_plans_a_city(tmp_path: Path) -> None:
    city = arcfleet.read(shared_dir() / "carplib" / "hefei" / "Hefei-10.txt")
    assert sum(link.required for link in city.links) > MOST_TASKS_AT_ONCE
    model = tiny_model_file(tmp_path)
    result = arcfleet.solve(city, "daam-greedy", model=model, device="cpu")
    assert result.iterations == 1
    report = arcfleet.check(city, result.solution)
    assert report.ok, report.faults
    assert report.cost == result.cost


def test_short_routes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "MOST_TASKS_AT_ONCE", 5)
    arcs = np.arange(1, 8, dtype=np.int32)[None, None]
    starts = np.zeros((1, 1, 7), dtype=np.bool_)
    costs = np.ones((1, 1), dtype=np.int64)
    for places, are_short in (([0, 2, 4], True), ([0, 1, 4], False), ([0, 3], False)):
        some = starts.copy()
        some[0, 0, places] = True
        assert has_short_routes(Plans(arcs, some, costs)) == are_short
        assert not has_short_routes(Plans(arcs, some, np.full_like(costs, NO_PLAN)))
