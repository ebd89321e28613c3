import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from arcfleet.errors import FileError, OptionError
from arcfleet.neural.checkpoint import load_model, save_model
from arcfleet.neural.decoding import greedy
from arcfleet.neural.model import Daam
from arcfleet.neural.plans import as_decoded
from arcfleet.neural.train import pretrain as pretrain_module
from arcfleet.neural.train.config import changed
from arcfleet.neural.train.data import open_labelled
from arcfleet.neural.train.loop import TrainingProgress, validate
from arcfleet.neural.train.steps import (
    LearningForm,
    Minibatch,
)
from tests.neural.train.quick import QUICK, TINY, TINY_PUBLISHED, metrics, run


def test_a_run_leaves_a_model_with_its_history(folder: Path, tmp_path: Path) -> None:
    told: list[TrainingProgress] = []
    result = run(folder, tmp_path / "run", progress=told.append)
    assert result.finished
    assert result.steps == 6
    model, facts = load_model(result.model_file)
    assert model.config == TINY
    assert facts["steps"] == 6
    assert facts["finished"] is True
    assert facts["device"] == "cpu"
    assert facts["config"]["seed"] == 0  # type: ignore[index]
    assert [each["file"] for each in facts["data"]] == [  # type: ignore[attr-defined]
        "small.npz",
        "mixed.npz",
    ]
    lines = metrics(tmp_path / "run")
    losses = [line for line in lines if "loss" in line]
    assert [line["step"] for line in losses] == [2, 4, 6]
    assert all(math.isfinite(line["loss"]) and line["loss"] > 0 for line in losses)
    assert all(line["states_per_second"] > 0 for line in losses)
    gaps = [line for line in lines if "gaps" in line]
    assert [line["step"] for line in gaps] == [3, 6]
    last = gaps[-1]["gaps"]["test"]
    assert result.gaps["test"]._asdict() == last
    assert -1 < last["optimised"] <= last["greedy"]
    assert (tmp_path / "run" / "config.json").exists()
    assert told[0].activity == "preparing small.npz"
    assert told[-1].gaps.keys() == {"test"}


def test_a_label_that_costs_nothing(folder: Path) -> None:
    labelled = open_labelled(folder / "test.npz", "cpu", mds_dimensions=4)
    plans = replace(labelled.plans, cost=torch.zeros_like(labelled.plans.cost))
    free = replace(labelled, plans=plans)
    torch.manual_seed(0)
    model = Daam(TINY).eval()
    costs = as_decoded(free.batch, greedy(model, free.batch)).costs
    assert validate(model, free).greedy == pytest.approx(100 * costs.mean())


def test_the_gap_is_that_of_the_models_plans(folder: Path, tmp_path: Path) -> None:
    result = run(folder, tmp_path / "run")
    model, _ = load_model(result.model_file)
    test = open_labelled(folder / "test.npz", "cpu", mds_dimensions=4)
    costs = as_decoded(test.batch, greedy(model, test.batch)).costs[:, 0]
    ratios = [c / label for c, label in zip(costs, test.plans.cost.tolist(), strict=True)]
    expected = 100 * (sum(ratios) / len(ratios) - 1)
    assert result.gaps["test"].greedy == pytest.approx(expected)


def test_overfitting_a_few_plans(folder: Path, tmp_path: Path) -> None:
    """The loss falls, and greedy plans come near to the cost of the labels."""
    # Without the graph attention, which takes many more steps to tell arcs apart.
    sizes = replace(TINY_PUBLISHED, width=32, layers=2, heads=4, feed_forward=64)
    config = changed(
        QUICK,
        model=replace(sizes, mds_dimensions=8),
        steps=300,
        tokens=41 * 24,
        decision_steps=8,
        label_order="as-labelled",
        flip_axes=False,
        learning_rate=5e-3,
        warm_up_steps=20,
        ema_decay=0.9,
        log_steps=20,
        validations=1,
    )
    files = {"data": [folder / "few.npz"], "validation": [folder / "few.npz"]}
    result = run(folder, tmp_path / "run", config, **files)
    losses = [line["loss"] for line in metrics(tmp_path / "run") if "loss" in line]
    assert losses[-1] < 0.2 * losses[0]
    untrained = run(folder, tmp_path / "none", changed(config, steps=1), **files)
    assert result.gaps["few"].optimised < 5
    assert result.gaps["few"].greedy < 0.5 * untrained.gaps["few"].greedy


def test_same_seed_same_weights(folder: Path, tmp_path: Path) -> None:
    one, same, other = (
        load_file(run(folder, tmp_path / name, changed(QUICK, seed=seed)).model_file)
        for name, seed in (("a", 0), ("b", 0), ("c", 1))
    )
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert any(not torch.equal(one[name], other[name]) for name in one)


def test_starting_from_a_model(folder: Path, tmp_path: Path) -> None:
    start = tmp_path / "start.safetensors"
    torch.manual_seed(5)
    save_model(Daam(TINY), start, {})
    still = changed(QUICK, learning_rate=0.0, weight_decay=0.0)
    result = run(folder, tmp_path / "run", still, init=start)
    kept, first = load_file(result.model_file), load_file(start)
    assert all(torch.allclose(kept[name], first[name]) for name in first)
    wide = changed(QUICK, model=replace(TINY, mds_dimensions=8))
    with pytest.raises(OptionError, match=r"mds_dimensions=8.*mds_dimensions=4"):
        run(folder, tmp_path / "other", wide, init=start)


@pytest.mark.parametrize(("fraction", "least", "most"), [(0.0, 0, 0), (0.5, 10, 30)])
def test_some_steps_train_on_giant_tours(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fraction: float,
    least: int,
    most: int,
) -> None:
    seen: list[bool] = []

    def note(_: LearningForm, minibatch: Minibatch, padded: bool) -> torch.Tensor:
        seen.append(minibatch.capacity_mask)
        return torch.zeros((), requires_grad=True)

    monkeypatch.setattr(pretrain_module, "imitation_loss", note)
    config = changed(QUICK, steps=40, giant_tour_fraction=fraction, validations=0)
    run(folder, tmp_path / "run", config)
    assert len(seen) == 40
    assert least <= seen.count(False) <= most


@pytest.mark.parametrize(
    ("data", "options", "error", "message"),
    [
        ("", {}, OptionError, "at least one data set to train on, got none"),
        ("small small", {}, OptionError, r"small\.npz twice"),
        ("small ../small", {}, OptionError, r"names, got small\.npz from two"),
        ("few small", {"weights": (1,)}, OptionError, "for each of 2 data sets, got 1"),
        ("none", {}, FileError, r"none\.npz"),
    ],
)
def test_wrong_arguments(
    folder: Path,
    tmp_path: Path,
    data: str,
    options: dict[str, Any],
    error: type[Exception],
    message: str,
) -> None:
    files = [folder / f"{name}.npz" for name in data.split()]
    with pytest.raises(error, match=message):
        run(folder, tmp_path / "a", changed(QUICK, **options), data=files)
    assert not (tmp_path / "a").exists()


def test_a_folder_with_another_run(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(FileError, match="expected a run to resume, found none"):
        run(folder, tmp_path / "a", resume=True)
    run(folder, tmp_path / "a")
    with pytest.raises(FileError, match=r"expected a folder without a run.*--resume"):
        run(folder, tmp_path / "a")
    with pytest.raises(FileError, match="resumed with the same seed"):
        run(folder, tmp_path / "a", changed(QUICK, seed=1), resume=True)
    with pytest.raises(FileError, match="resumed with the same data"):
        run(folder, tmp_path / "a", data=[folder / "small.npz"], resume=True)


# torch looks at gradients of what passes from part to part, and warns itself.
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")
@pytest.mark.parametrize("sizes", [TINY, TINY_PUBLISHED], ids=["daam", "published"])
def test_compiled_run_makes_few_graphs(
    folder: Path, tmp_path: Path, graph_counters: Any, sizes: Any
) -> None:
    """Every further graph, or break in one, would cost a GPU much of its speed."""
    config = changed(QUICK, steps=20, validations=0, model=replace(sizes, layers=2))
    plain = run(folder, tmp_path / "plain", config)
    graphs = run(folder, tmp_path / "graphs", changed(config, compile=True))
    # Of each scale, or length of states: up to the encoder, its layers, and the pointer.
    assert graph_counters["stats"]["unique_graphs"] == 6
    assert not graph_counters["graph_break"]
    one, other = (load_file(result.model_file) for result in (plain, graphs))
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_a_set_with_turn_rules_is_learned_from(folder: Path, tmp_path: Path) -> None:
    files: Any = {"data": [folder / "ruled.npz"], "validation": [folder / "ruled.npz"]}
    result = run(folder, tmp_path / "run", **files)
    assert result.finished
    assert result.gaps["ruled"].greedy > -1
