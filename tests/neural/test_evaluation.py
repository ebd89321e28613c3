from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
import torch

from arcfleet import check
from arcfleet.datasets import Dataset
from arcfleet.errors import OptionError
from arcfleet.network import Network
from arcfleet.neural import strategies as evaluation
from arcfleet.neural.batch import batch_from_dataset
from arcfleet.neural.decoding import greedy
from arcfleet.neural.plans import as_decoded, paper_recipe, split_plans
from arcfleet.neural.solver import LoadedModel, load_for_solving
from arcfleet.neural.strategies import (
    Decoding,
    augmented_greedy,
    decode_dataset,
    device_name,
)
from arcfleet.solution.plan import from_plan
from tests.neural.labelled_towns import labelled_file
from tests.tiny_model import tiny_model_file

COUNT = 7


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    return load_for_solving(tiny_model_file(tmp_path_factory.mktemp("model")), "cpu")


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    # Of one-way streets, so that instances differ in their number of arcs.
    folder = tmp_path_factory.mktemp("data")
    path = labelled_file(folder, "test", count=COUNT, one_way=0.3, iterations=20)
    return Dataset.open(path)


@pytest.mark.parametrize("decoding", get_args(Decoding))
def test_plans_are_valid_and_cost_what_is_said(
    loaded: LoadedModel, dataset: Dataset, decoding: Decoding
) -> None:
    told: list[int] = []
    decoded = decode_dataset(
        loaded,
        dataset,
        COUNT,
        decoding,
        samples=20,
        keep=range(COUNT),
        batch_size=3,
        progress=told.append,
    )
    assert told == [3, 6, 7]
    assert decoded.costs.dtype == np.int64
    assert sorted(decoded.plans) == list(range(COUNT))
    for position, plan in decoded.plans.items():
        instance = dataset[position]
        report = check(instance, from_plan(Network(instance), *plan))
        assert report.ok
        assert report.cost == decoded.costs[position]


def test_each_decoding_is_what_it_is_called(loaded: LoadedModel, dataset: Dataset) -> None:
    batch = batch_from_dataset(dataset, range(COUNT), device="cpu")
    with torch.inference_mode():
        rollout = greedy(loaded.model, batch)
        recipe = paper_recipe(loaded.model, batch)
        views = augmented_greedy(loaded.model, batch)
    expected = {
        "greedy": as_decoded(batch, rollout),
        "greedy-optimised": split_plans(batch, rollout, choose_directions=True),
        "recipe": recipe,
        "views": views,
    }
    for decoding, plans in expected.items():
        found = decode_dataset(loaded, dataset, COUNT, decoding)  # type: ignore[arg-type]
        assert found.costs.tolist() == plans.costs[:, 0].tolist()
        assert found.plans == {}
    assert expected["greedy"].costs.sum() > expected["greedy-optimised"].costs.sum()


def test_samples_depend_on_seed_and_temperature_but_not_on_batches(
    loaded: LoadedModel, dataset: Dataset
) -> None:
    def costs(**changes: float) -> list[int]:
        options = {"samples": 2, "seed": 5, **changes}
        found = decode_dataset(loaded, dataset, COUNT, "sample", **options)  # type: ignore[arg-type]
        return [int(cost) for cost in found.costs]

    first = costs()
    assert costs() == first
    assert costs(batch_size=2) == first
    assert costs(seed=6) != first
    assert costs(temperature=30.0) != first
    assert costs(temperature=0.7) == first  # the usual one, for few tasks
    assert costs(temperature=0.5) != first
    # More samples hold the same first ones, as long as each is of another view.
    assert all(x <= y for x, y in zip(costs(samples=6), first, strict=True))
    # Next to no chance: the first sample, of the instance as it is, is the greedy plan.
    cold = costs(temperature=1e-4, samples=1)
    assert cold == decode_dataset(loaded, dataset, COUNT, "greedy-optimised").costs.tolist()


def test_a_part_is_decoded_as_in_the_whole(loaded: LoadedModel, dataset: Dataset) -> None:
    whole = decode_dataset(loaded, dataset, COUNT, "recipe", keep=[4])
    told: list[int] = []
    part = decode_dataset(
        loaded, dataset, 3, "recipe", first=3, keep=[4], batch_size=2, progress=told.append
    )
    assert part.costs.tolist() == whole.costs[3:6].tolist()
    assert part.plans[4][0].tolist() == whole.plans[4][0].tolist()
    assert told == [2, 3]


def test_batches_too_large_for_the_memory(
    loaded: LoadedModel, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    def large(*_: object, **__: object) -> None:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory")

    monkeypatch.setattr(evaluation, "batch_from_dataset", large)
    with pytest.raises(OptionError, match=r"batches of 3 instances .* smaller batches"):
        decode_dataset(loaded, dataset, COUNT, "greedy", batch_size=3)


def test_wrong_arguments(loaded: LoadedModel, dataset: Dataset) -> None:
    with pytest.raises(OptionError, match="got 'magic'"):
        decode_dataset(loaded, dataset, 1, "magic")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="from 1 to the 7 instances"):
        decode_dataset(loaded, dataset, COUNT + 1, "greedy")
    with pytest.raises(OptionError, match="got 2 from number 6 on"):
        decode_dataset(loaded, dataset, 2, "greedy", first=COUNT - 1)
    with pytest.raises(OptionError, match="at least 1 instance"):
        decode_dataset(loaded, dataset, 1, "greedy", batch_size=0)
    assert device_name(loaded.device) == device_name("cpu") == "cpu"
