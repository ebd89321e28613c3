from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from arcfleet import Instance, Link
from arcfleet.datasets import Dataset
from arcfleet.errors import FileError, OptionError
from arcfleet.network import Network
from arcfleet.neural.checkpoint import SHIPPED_MODEL, load_model
from arcfleet.neural.decoding import Rollout
from arcfleet.neural.device import OutOfMemoryError
from arcfleet.neural.train import finetune as finetune_module
from arcfleet.neural.train.config import FinetuneConfig, RunConfig, changed
from arcfleet.neural.train.finetune import RlooTrainer, rollout_costs
from arcfleet.neural.train.steps import leave_one_out
from tests.helpers import solved
from tests.neural.batches import network_batch, ring
from tests.neural.train.quick import (
    TINY,
    TINY_PUBLISHED,
    TUNING,
    assert_resumes,
    expected_cost,
    metrics,
    out_of_memory,
    tune,
)

#: Large steps, in which a weak model soon gets better.
LEARNING = changed(
    TUNING,
    steps=6,
    validations=1,
    learning_rate=8e-3,
    samples=8,
    rollout_tokens=41 * 64,
    tokens=41 * 128,
    flip_axes=False,
    ema_decay=0.5,
)


@pytest.mark.parametrize("sizes", [TINY, TINY_PUBLISHED], ids=["daam", "published"])
def test_a_resumed_run_comes_to_the_same_weights(
    folder: Path, tmp_path: Path, sizes: Any
) -> None:
    config = changed(TUNING, model=sizes, giant_tour_fraction=0.5)
    train = partial(tune, folder, config=config)
    whole, lines = assert_resumes(train, tmp_path, 4, "sampled kl")
    assert [line["step"] for line in lines if "gaps" in line] == [0, 2, 4]
    assert [line["step"] for line in lines if "loss" in line] == [1, 2, 3, 4]
    model, facts = load_model(whole.model_file)
    assert model.config == sizes
    assert facts["phase"] == "finetune"
    start = "weak-daam" if sizes == TINY else "weak"
    first = load_file(folder / f"{start}.safetensors")
    last = load_file(whole.model_file)
    assert any(not torch.equal(first[name], last[name]) for name in first)


def test_instances_of_a_set_may_differ_in_size(folder: Path, tmp_path: Path) -> None:
    # One instance at a time: most are not among the largest.
    config = changed(TUNING, rollout_tokens=1, steps=6, giant_tour_fraction=0.5)
    assert tune(folder, tmp_path / "run", config, data=[folder / "unequal.npz"]).finished


@pytest.mark.parametrize(
    ("settings", "factor"),
    [
        ({"best_of_k": 1}, 0.75),
        ({"best_of_k": 4}, 0.8),
        # What is not learned, serving, is most of the cost of a giant tour.
        ({"giant_tour_fraction": 1.0}, 0.93),
    ],
)
def test_a_weak_model_gets_better(
    folder: Path, tmp_path: Path, settings: dict[str, Any], factor: float
) -> None:
    """By much less than it does, since chance has a part in it."""
    out, config = tmp_path / "run", changed(LEARNING, **settings)
    result = tune(folder, out, config, data=[folder / "small.npz"])
    bound = "giant_tour_fraction" not in settings
    first = expected_cost(folder, folder / "weak.safetensors", capacity_mask=bound)
    assert expected_cost(folder, result.model_file, capacity_mask=bound) < factor * first
    if bound:
        gaps = [line["gaps"]["small"]["greedy"] for line in metrics(out) if "gaps" in line]
        assert gaps[-1] < 0.9 * gaps[0]


def test_samples_are_worth_what_they_add_to_the_best_of_some(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def noted(costs: torch.Tensor, k: int) -> torch.Tensor:
        asked.append(k)
        return leave_one_out(costs, k)

    monkeypatch.setattr(finetune_module, "leave_one_out", noted)
    config = changed(TUNING, steps=1, best_of_k=2, validations=0)
    tune(folder, tmp_path / "run", config, validation=[])
    assert asked == [2]


def test_a_kl_penalty_holds_the_policy(folder: Path, tmp_path: Path) -> None:
    costs, divergences = [], []
    for coefficient in (1e-9, 3.0):
        out = tmp_path / f"run{coefficient}"
        config = changed(LEARNING, kl_coefficient=coefficient, validations=0)
        files: dict[str, Any] = {"data": [folder / "small.npz"], "validation": []}
        result = tune(folder, out, config, **files)
        costs.append(expected_cost(folder, result.model_file))
        divergences.append([line["kl"] for line in metrics(out)])
    for nats in divergences:
        assert len(nats) == 6
        assert min(nats) >= 0
    assert sum(divergences[1]) < 0.5 * sum(divergences[0])
    assert costs[0] < costs[1] < expected_cost(folder, folder / "weak.safetensors")


def test_without_a_kl_penalty_there_is_no_reference(folder: Path, tmp_path: Path) -> None:
    config = changed(TUNING, steps=1, kl_coefficient=0)
    tune(folder, tmp_path / "run", config)
    assert not any("kl" in line for line in metrics(tmp_path / "run"))


def test_wrong_arguments(folder: Path, tmp_path: Path) -> None:
    wide = changed(TUNING, model=replace(TINY_PUBLISHED, width=32))
    with pytest.raises(OptionError, match="expected the model to start from to have"):
        tune(folder, tmp_path / "a", wide)
    with pytest.raises(FileError, match="arcfleet dataset label"):
        tune(folder, tmp_path / "a", validation=[folder / "unlabelled.npz"])
    with pytest.raises(OptionError, match="a weight for each of 2 data sets, got 1"):
        tune(folder, tmp_path / "a", changed(TUNING, weights=(1.0,)))
    assert not (tmp_path / "a").exists()


def test_too_little_memory_for_a_step(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RlooTrainer, "train_step", out_of_memory)
    with pytest.raises(OutOfMemoryError, match="for tokens 2000 and rollout_tokens 1000: "):
        tune(folder, tmp_path / "run", validation=[])


# torch looks at gradients of what passes from part to part, and warns itself.
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")
def test_a_compiled_run_learns_the_same(
    folder: Path, tmp_path: Path, graph_counters: Any
) -> None:
    """Every break in a graph would cost a GPU much of its speed."""
    files: dict[str, Any] = {"data": [folder / "small.npz"], "validation": []}
    config = changed(TUNING, steps=2)
    plain = tune(folder, tmp_path / "plain", config, **files)
    graphs = tune(folder, tmp_path / "graphs", changed(config, compile=True), **files)
    assert graph_counters["stats"]["unique_graphs"]
    assert not graph_counters["graph_break"]
    one, other = (load_file(result.model_file) for result in (plain, graphs))
    for name in one:
        torch.testing.assert_close(one[name], other[name], atol=1e-5, rtol=1e-4)


def test_giant_tours_cost_what_the_same_routes_do() -> None:
    """One that is best cut where a plan returns costs the same, whatever a route costs."""
    for route_cost in (0, 1000):
        # Two streets fill a vehicle: with dear routes it is never sent home earlier.
        network = Network(ring([2] * 6, capacity=4, route_cost=route_cost))
        batch = network_batch([network])
        first = [a for a in range(1, batch.num_arcs) if int(batch.inverse[0, a]) > a]
        returning = [first[0], first[1], 0, first[2], first[3], 0, first[4], first[5], 0]
        costs = [
            rollout_costs(
                batch,
                Rollout(torch.tensor([[arcs]]), torch.zeros((1, 1))),
                capacity_mask=mask,
            )
            for arcs, mask in ((returning, True), ([*first, 0], False))
        ]
        assert float(costs[1]) <= float(costs[0])
        if route_cost:
            assert float(costs[1]) == pytest.approx(float(costs[0]))


def test_the_shipped_model_is_tuned_on_own_streets(tmp_path: Path) -> None:
    towns = [Instance(**_square(cost), depot=1, capacity=5 + cost) for cost in (3, 4)]
    Dataset.from_instances(towns, tmp_path / "own.npz")
    config = FinetuneConfig(
        run=RunConfig(steps=1, validations=0),
        samples=2,
        decision_steps=1,
        tokens=50,
        rollout_tokens=50,
    )
    trained = finetune_module.finetune(
        tmp_path / "run", config, data=[tmp_path / "own.npz"], init="daam", device="cpu"
    )
    model, facts = load_model(trained.model_file)
    shipped, _ = load_model(SHIPPED_MODEL)
    assert facts["phase"] == "finetune"
    assert any(
        not torch.equal(one, other)
        for one, other in zip(model.parameters(), shipped.parameters(), strict=True)
    )
    solved(towns[0], "daam-greedy", model=model)


def _square(cost: int) -> dict[str, Any]:
    return {
        "links": [
            Link(tail=1, head=2, cost=cost, service_cost=9, required=True, demand=2),
            Link(tail=2, head=3, cost=cost, required=True, demand=3, one_way=True),
            Link(tail=3, head=1, cost=cost, reverse_cost=7, required=True, demand=1),
        ]
    }
