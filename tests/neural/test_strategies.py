"""The table of strategies, on data sets and on decoding runs."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from arcfleet import check, solve
from arcfleet.datasets import Dataset
from arcfleet.errors import OptionError
from arcfleet.methods import METHODS
from arcfleet.network import Network
from arcfleet.neural import decoding_run, solver
from arcfleet.neural.batch import batch_from_arrays, batch_from_networks
from arcfleet.neural.decoding import draw_seeds, greedy
from arcfleet.neural.decoding_run import (
    WHOLE_SAMPLES,
    DecodingRun,
    augmented_greedy,
    destroy_and_repair,
    generator_seeds,
    hashed_seeds,
    sample_plans,
)
from arcfleet.neural.plans import NO_PLAN, Plans, as_decoded, merge, split_plans
from arcfleet.neural.solver import (
    LoadedModel,
    decode_dataset,
    device_name,
    load_for_solving,
)
from arcfleet.neural.strategies import (
    STRATEGIES,
    Strategy,
    method_strategies,
    register_strategy,
    round_size,
)
from arcfleet.paper.strategies import BEAMS, PUBLISHED_BEAMS, paper_beams
from arcfleet.solution.plan import from_plan
from tests.neural.batches import network_batch, ring, toy_model, verify
from tests.neural.labelled_towns import labelled_file
from tests.tiny_model import tiny_model_file

COUNT = 7
NEURAL_LNS = STRATEGIES["neural-lns"]


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    return load_for_solving(tiny_model_file(tmp_path_factory.mktemp("model")), "cpu")


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    # Of one-way streets, so that instances differ in their number of arcs.
    folder = tmp_path_factory.mktemp("data")
    path = labelled_file(folder, "test", count=COUNT, one_way=0.3, iterations=20)
    return Dataset.open(path)


def test_the_table_can_be_read_without_torch() -> None:
    code = (
        "import sys, arcfleet.neural.strategies, arcfleet.paper.strategies\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_strategy_with_a_method_has_it() -> None:
    methods = method_strategies()
    assert set(methods) == {"daam", "daam-greedy", "daam-sample"}
    for name, strategy in methods.items():
        assert METHODS[name].default_stop.iterations == strategy.default_iterations


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_plans_are_valid_and_cost_what_is_said(
    loaded: LoadedModel, dataset: Dataset, strategy: str
) -> None:
    reported: list[int] = []
    options: dict[str, Any] = {"batch_size": 3, "progress": reported.append}
    options |= {"samples": 20, "keep": range(COUNT)}
    decoded = decode_dataset(loaded, dataset, COUNT, strategy, **options)
    assert reported == [3, 6, 7]
    assert decoded.costs.dtype == np.int64
    assert sorted(decoded.plans) == list(range(COUNT))
    for position, plan in decoded.plans.items():
        instance = dataset[position]
        report = check(instance, from_plan(Network(instance), *plan))
        assert report.ok
        assert report.cost == decoded.costs[position]


def test_each_strategy_is_what_it_is_called(loaded: LoadedModel, dataset: Dataset) -> None:
    batch = batch_from_arrays(dataset.padded(range(COUNT)), device="cpu")
    with torch.inference_mode():
        rollout = greedy(loaded.model, batch)
        beams = paper_beams(loaded.model, batch)
        published = paper_beams(loaded.model, batch, mirrored=False)
        augmented = augmented_greedy(loaded.model, batch)
    expected = {
        "as-decoded": as_decoded(batch, rollout),
        "greedy": split_plans(batch, rollout, choose_directions=True),
        BEAMS.name: beams,
        PUBLISHED_BEAMS.name: published,
        "augmented": augmented,
    }
    for strategy, plans in expected.items():
        found = decode_dataset(loaded, dataset, COUNT, strategy)
        assert found.costs.tolist() == plans.costs[:, 0].tolist()
        assert found.plans == {}
    assert expected["as-decoded"].costs.sum() > expected["greedy"].costs.sum()


@pytest.mark.parametrize("method", ["daam", "daam-greedy"])
def test_results_measure_what_solve_runs(
    dataset: Dataset, method: str, tmp_path: Path
) -> None:
    model = tiny_model_file(tmp_path)
    strategy = method_strategies()[method].name
    decoded = decode_dataset(load_for_solving(model, "cpu"), dataset, COUNT, strategy)
    given: dict[str, Any] = {"method": method, "model": model, "device": "cpu"}
    costs = [solve(dataset[position], **given).cost for position in range(COUNT)]
    assert decoded.costs.tolist() == costs


def test_a_registered_strategy_is_found(loaded: LoadedModel, dataset: Dataset) -> None:
    def decode(run: DecodingRun) -> Plans:
        return merge(run.as_decoded(run.greedy()), run.split(run.greedy()))

    try:
        register_strategy(Strategy(name="either", summary="the better", decode=decode))
        found = decode_dataset(loaded, dataset, COUNT, "either")
    finally:
        del STRATEGIES["either"]
    split = decode_dataset(loaded, dataset, COUNT, "greedy")
    assert found.costs.tolist() == split.costs.tolist()


def test_samples_depend_on_seed_and_temperature_but_not_on_batches(
    loaded: LoadedModel, dataset: Dataset
) -> None:
    def costs(**changes: float) -> list[int]:
        options = {"samples": 2, "seed": 5, **changes}
        found = decode_dataset(loaded, dataset, COUNT, "sampling", **options)  # type: ignore[arg-type]
        return [int(cost) for cost in found.costs]

    first = costs()
    assert costs() == first
    assert costs(batch_size=2) == first
    assert costs(seed=6) != first
    assert costs(temperature=30.0) != first
    assert costs(temperature=1.0) == first  # the default, for few tasks
    assert costs(temperature=0.5) != first
    # More samples hold the same first ones, as long as each is of another augmentation.
    assert all(x <= y for x, y in zip(costs(samples=6), first, strict=True))
    # Next to no chance: the first sample, of the instance as it is, is the greedy plan.
    cold = costs(temperature=1e-4, samples=1)
    assert cold == decode_dataset(loaded, dataset, COUNT, "greedy").costs.tolist()


def test_a_part_is_decoded_as_in_the_whole(loaded: LoadedModel, dataset: Dataset) -> None:
    whole = decode_dataset(loaded, dataset, COUNT, BEAMS.name, keep=[4])
    reported: list[int] = []
    options: dict[str, Any] = {"batch_size": 2, "progress": reported.append}
    part = decode_dataset(loaded, dataset, 3, BEAMS.name, first=3, keep=[4], **options)
    assert part.costs.tolist() == whole.costs[3:6].tolist()
    assert part.plans[4][0].tolist() == whole.plans[4][0].tolist()
    assert reported == [2, 3]


def test_batches_too_large_for_the_memory(
    loaded: LoadedModel, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    def large(*_: object, **__: object) -> None:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory")

    monkeypatch.setattr(solver, "batch_from_arrays", large)
    with pytest.raises(OptionError, match=r"batches of 3 instances .* smaller batches"):
        decode_dataset(loaded, dataset, COUNT, "as-decoded", batch_size=3)


def test_wrong_arguments(loaded: LoadedModel, dataset: Dataset) -> None:
    for count, strategy, options, message in (
        (1, "magic", {}, "got 'magic'"),
        (1, "augment", {}, "did you mean 'augmented'"),
        (COUNT + 1, "greedy", {}, "from 1 to the 7 instances"),
        (2, "greedy", {"first": COUNT - 1}, "got 2 from number 6 on"),
        (1, "greedy", {"batch_size": 0}, "at least 1 instance"),
    ):
        with pytest.raises(OptionError, match=message):
            decode_dataset(loaded, dataset, count, strategy, **options)  # type: ignore[arg-type]
    assert device_name(loaded.device) == device_name("cpu") == "cpu"


def run_on(networks: list[Network]) -> DecodingRun:
    generator = torch.Generator().manual_seed(0)
    batch = batch_from_networks(networks, device="cpu", mds_dimensions=2)
    return DecodingRun(toy_model(1), batch, next_seeds=generator_seeds(generator))


@pytest.mark.parametrize("rows", [[0], [1], [0, 1]])
def test_neural_lns_of_some_goes_on_from_their_own_best(
    rows: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The first has more tasks than the second, whose plans alone are thus shorter.
    networks = [Network(ring([2] * 50)), Network(ring([2] * 42))]
    run = run_on(networks)
    gone_on_with: list[Plans] = []

    def noting(
        policy: Any, batch: Any, plans: Plans, *rest: Any, **more: Any
    ) -> Iterator[Plans]:
        gone_on_with.append(plans)
        return destroy_and_repair(policy, batch, plans, *rest, **more)

    monkeypatch.setattr(decoding_run, "destroy_and_repair", noting)
    first = NEURAL_LNS.decode(run)
    run.offer(range(2), first)
    found = [first.at(rows)]
    for samples in (5, WHOLE_SAMPLES):
        parts = list(run.improve(NEURAL_LNS, rows, samples))
        assert sum(part.costs.shape[1] for part in parts) == samples
        for part in parts:
            verify([networks[row] for row in rows], part)
        found.extend(parts)
    # Of 21 the last five are repaired: four, in two parts, and one.
    assert [part.costs.shape[1] for part in found[-3:]] == [2, 2, 1]
    assert len(gone_on_with) == 2
    for before, place in zip(gone_on_with, (-3, -1), strict=True):
        earlier = [part.costs.min(1) for part in found[:place]]
        assert before.costs[:, 0].tolist() == np.min(earlier, axis=0).tolist()
        verify([networks[row] for row in rows], before)
        assert (found[place].costs <= before.costs).all()


def test_plans_that_break_the_fleet_limit_are_kept_as_orders(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # None is a plan until routes are repaired, which needs an order of all tasks.
    networks = [Network(ring([2] * 42))]
    run = run_on(networks)

    whole = DecodingRun.sample

    def break_all(run: DecodingRun, rows: Sequence[int], samples: int) -> Iterator[Plans]:
        for plans in whole(run, rows, samples):
            yield plans._replace(costs=np.full_like(plans.costs, NO_PLAN))

    monkeypatch.setattr(DecodingRun, "sample", break_all)
    *_, last = run.improve(NEURAL_LNS, [0], WHOLE_SAMPLES + 20)
    verify(networks, last)
    assert last.costs[0, -1] != NO_PLAN


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, list[int]]]:
    """The samples and seeds that are asked for, whole or of groups."""
    noted: list[tuple[int, list[int]]] = []

    def noting(
        policy: Any, batch: Any, samples: int, seeds: torch.Tensor, **options: Any
    ) -> Iterator[Plans]:
        noted.append((samples, seeds.tolist()))
        return sample_plans(policy, batch, samples, seeds, **options)

    monkeypatch.setattr(decoding_run, "sample_plans", noting)
    return noted


def sampled(networks: Sequence[Network], samples: int) -> Plans:
    """All plans of neural LNS, by seeds of each instance alone."""
    seeds = draw_seeds(len(networks), torch.Generator().manual_seed(0))
    batch = network_batch(networks)
    run = DecodingRun(toy_model(1), batch, next_seeds=hashed_seeds(seeds))
    return merge(*run.improve(NEURAL_LNS, range(len(networks)), samples))


def test_plans_are_sampled_whole_first_and_then_repaired(
    asked: list[tuple[int, list[int]]],
) -> None:
    networks = [Network(ring([2] * 45)), Network(ring([2] * 5))]
    few = sampled(networks, WHOLE_SAMPLES - 1)
    seeds = draw_seeds(2, torch.Generator().manual_seed(0))
    batch = network_batch(networks)
    whole = merge(*sample_plans(toy_model(1), batch, WHOLE_SAMPLES - 1, seeds))
    assert few.costs.tolist() == whole.costs.tolist()
    asked.clear()
    plans = sampled(networks, WHOLE_SAMPLES + 7)
    verify(networks, plans)
    assert plans.costs.shape == (2, WHOLE_SAMPLES + 7)
    assert [samples for samples, _ in asked] == [WHOLE_SAMPLES, 4, 3]
    # All that is sampled has a seed of its own.
    used = [seed for _, seeds in asked for seed in seeds]
    assert len(set(used)) == len(used) > 6
    # Repair goes on from the best: it never gets dearer.
    least = plans.costs[:, :WHOLE_SAMPLES].min(1)
    along = np.concatenate([least[:, None], plans.costs[:, WHOLE_SAMPLES:]], axis=1)
    assert (np.diff(along, axis=1) <= 0).all()


@pytest.mark.parametrize("tasks", [9, 40])
def test_small_instances_are_sampled_whole_alone(
    tasks: int, asked: list[tuple[int, list[int]]]
) -> None:
    plans = sampled([Network(ring([2] * tasks)), Network(ring([2] * 5))], 2 * WHOLE_SAMPLES)
    assert [samples for samples, _ in asked] == [2 * WHOLE_SAMPLES]
    assert plans.costs.shape == (2, 2 * WHOLE_SAMPLES)


def test_very_many_samples_have_few_groupings() -> None:
    assert [round_size(samples) for samples in (1, 16, 64, 1024)] == [4, 4, 4, 64]
