"""Pictures of plans, drawn while a model is trained."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from arcfleet import check
from arcfleet.datasets import Dataset
from arcfleet.errors import (
    WithoutPicturesWarning,
)
from arcfleet.neural.checkpoint import load_model
from arcfleet.neural.decoding import greedy
from arcfleet.neural.model import Daam
from arcfleet.neural.plans import as_decoded
from arcfleet.neural.train import pictures as plan_pictures
from arcfleet.neural.train.data import open_labelled
from arcfleet.neural.train.pictures import draw_examples
from arcfleet.report.layout import layout
from arcfleet.report.plot import draw_scenes
from tests.neural.quick_pretraining import QUICK, TINY, data_folder, run

if TYPE_CHECKING:
    from pathlib import Path

    from arcfleet.report.plot import ScenePlans


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return data_folder(tmp_path_factory.mktemp("data"))


def test_plans_are_drawn_at_every_validation(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[ScenePlans] = []

    def note(rows: Any, path: Path) -> None:
        drawn.extend(rows)
        draw_scenes(rows, path)

    monkeypatch.setattr(plan_pictures, "draw_scenes", note)
    files = {"validation": [folder / "test.npz", folder / "mixed.npz"]}
    result = run(folder, tmp_path / "run", replace(QUICK, pictures=2), **files)
    pictures = sorted((tmp_path / "run" / "plans").iterdir())
    assert [picture.name for picture in pictures] == ["step-3.png", "step-6.png"]
    assert all(picture.read_bytes().startswith(b"\x89PNG") for picture in pictures)
    assert len(drawn) == 4  # one of each set, twice
    model, _ = load_model(result.model_file)
    for scene, name in zip(drawn[2:], ("test", "mixed"), strict=True):
        labelled = open_labelled(folder / f"{name}.npz", "cpu", mds_dimensions=4)
        costs = as_decoded(labelled.batch, greedy(model, labelled.batch)).costs
        instance = Dataset.open(folder / f"{name}.npz")[0]
        expected = (labelled.plans.cost[0], costs[0, 0])
        for (title, plan), cost in zip(scene.plans, expected, strict=True):
            verdict = check(instance, plan)
            assert verdict.ok
            assert verdict.cost == cost
            assert f"cost {cost}" in title


def test_pictures_without_coordinates(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    example = open_labelled(folder / "test.npz", "cpu", mds_dimensions=4, examples=1)
    instance = example.examples[0].instance
    nowhere = replace(instance, coordinates=((0.0, 0.0),) * len(instance.nodes))
    bare = replace(example, examples=(example.examples[0]._replace(instance=nowhere),))
    plans = as_decoded(bare.batch, greedy(Daam(TINY), bare.batch))
    drawn: list[ScenePlans] = []
    monkeypatch.setattr(plan_pictures, "draw_scenes", lambda rows, _: drawn.extend(rows))
    draw_examples(tmp_path / "plans" / "a.png", [(bare, plans)])
    (scene,) = drawn
    places = layout(scene.instance)
    assert len({tuple(place) for place in places.round(6).tolist()}) > 10


def test_without_matplotlib_training_says_so_once(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.warns(WithoutPicturesWarning, match="install arcfleet.plot") as told:
        result = run(folder, tmp_path / "run", replace(QUICK, pictures=1))
    assert len(told) == 1
    assert result.finished
    assert not list((tmp_path / "run").glob("plans/*"))
