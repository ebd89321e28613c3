"""What each decision of a greedy plan costs."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs the extra neural")

import torch

from arcfleet.datasets import Dataset, make_dataset
from arcfleet.errors import OptionError
from arcfleet.neural.model import Daam, DaamConfig
from arcfleet.neural.solver import LoadedModel, decode_dataset
from benchmarks.decision_regret import main, regrets, report


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    path = tmp_path_factory.mktemp("regret") / "few.npz"
    return make_dataset(path, "task20", count=3, seed=3)


@pytest.fixture(scope="module")
def untrained() -> LoadedModel:
    torch.manual_seed(0)
    model = Daam(DaamConfig(width=16, layers=1, heads=2, feed_forward=16)).eval()
    return LoadedModel(model=model, device=torch.device("cpu"))


def test_regrets_add_up_to_the_gap(
    dataset: Dataset, untrained: LoadedModel, capsys: pytest.CaptureFixture[str]
) -> None:
    costs = decode_dataset(untrained, dataset, 3, "as-decoded").costs
    found = []
    for index, cost in enumerate(costs.tolist()):
        each = regrets(dataset[index], untrained, 3000)
        assert (each.percent >= 0).all()
        assert len(each.percent) == len(each.chance)
        assert ((each.chance > 0) & (each.chance <= 1)).all()
        # The best cost is what the gap leaves of the plan's cost: a whole number.
        best = cost / (1 + each.percent.sum() / 100)
        assert best == pytest.approx(round(best), abs=1e-6)
        assert best < cost  # an untrained model is far off
        found.append(each)
    report(Path("few.npz"), found)
    printed = capsys.readouterr().out
    mean = sum(each.percent.sum() for each in found) / 3
    assert f"gap {mean:.2f} %" in printed
    rows = [x.split() for x in printed.splitlines() if " to " in x]
    assert sum(float(row[3]) for row in rows) == pytest.approx(
        sum(len(each.percent) for each in found) / 3, abs=0.5
    )
    assert sum(float(row[4]) for row in rows) == pytest.approx(mean, abs=0.01)


def test_turn_rules_are_refused(dataset: Dataset, untrained: LoadedModel) -> None:
    ruled = replace(dataset[0], u_turns="dead-ends")
    with pytest.raises(OptionError, match="expected an instance with free turns"):
        regrets(ruled, untrained, 10)


def test_no_instances_are_refused(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["decision_regret", str(dataset.path), "--count", "0"]
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(OptionError, match="expected a count of at least 1, got 0"):
        main()
