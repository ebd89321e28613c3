"""`arcfleet paper train`: the paper's recipe and its baselines, at tiny sizes."""

from pathlib import Path
from typing import Any

import pytest

from arcfleet.datasets import Dataset, open_labels
from arcfleet.datasets.labels import labels_path
from arcfleet.datasets.store import read_records
from arcfleet.errors import OptionError
from arcfleet.neural.checkpoint import load_model, read_model_info
from arcfleet.neural.train.config import RENAMED, settings_of
from arcfleet.neural.train.recipe import STAGES, RecipeConfig, load_recipe
from arcfleet.paper.baselines.train import ON_CPU, S2vDqnTraining, VrpDlTraining
from arcfleet.paper.model import PublishedDaamConfig
from arcfleet.paper.train import PAPER_PHASES, RECIPES, Config, PaperModel, run
from tests.neural.train.quick import assert_same, die_at

SCALES = (20, 30, 40, 50, 60, 80, 100)


def quick(out: Path, model: PaperModel = "daam", **options: Any) -> Config:
    recipe = RecipeConfig(out=out, quick=True, device="cpu", **options)
    return Config(model=model, recipe=recipe)


def test_the_papers_recipe() -> None:
    stages = load_recipe(RECIPES["daam"], phases=PAPER_PHASES).stages
    names = [stage.name for stage in stages]
    assert [x for x in names if x.endswith("-rl")] == [f"task{n}-rl" for n in SCALES]
    assert [x for x in names if x.endswith("-sl")] == [f"task{n}-sl" for n in SCALES[:3]]
    for stage in stages:
        assert stage.config.model == PublishedDaamConfig()  # 3 layers, batch norm
        assert stage.config.optimiser.learning_rate == 1e-4
        (data,) = stage.data
        assert data.make["count"] == 20_000
        if stage.name.endswith("-sl"):
            assert data.label == {"method": "maens", "iterations": 90_000, "seed": 0}
            arcs = 2 * data.tasks + 1
            assert stage.config.tokens == 128 * stage.config.decision_steps * arcs
        else:
            assert (stage.config.ratio_clip, stage.config.temperature) == (0.1, 1.0)


def test_the_whole_of_it_in_one_command(tmp_path: Path) -> None:
    outcome = run(quick(tmp_path))
    assert outcome.text().endswith("all 10 stages are finished")
    model, facts = load_model(outcome.model_file)
    assert type(model.config) is PublishedDaamConfig
    assert (facts["phase"], facts["finished"]) == ("ppo", True)
    data = tmp_path / "data"
    labels = open_labels(
        labels_path(data / "task40-train.npz"), Dataset.open(data / "task40-train.npz")
    )
    assert labels.facts["method"] == "maens"
    assert not labels_path(data / "task50-train.npz").exists()


def test_killed_and_resumed(tmp_path: Path) -> None:
    """While it labels and while PPO runs, it ends as if it had not been killed."""
    file = tmp_path / "short.toml"
    head, *stages = RECIPES["daam"].read_text().split("[[stage]]")
    file.write_text("[[stage]]".join([head, *stages[:2]]))
    whole = run(quick(tmp_path / "whole", config=file))
    assert whole.stopped_in is None

    out = tmp_path / "part"
    with pytest.raises(SystemError):
        run(quick(out, config=file), progress=die_at(0, "labelling task20-validation"))
    again = quick(out, config=file, resume=True)
    with pytest.raises(SystemError):
        run(again, progress=die_at(1, "task20-rl (2 of 2): training"))
    outcome = run(quick(out, config=file, resume=True))
    assert outcome.stopped_in is None
    assert_same(whole.model_file, outcome.model_file)
    assert len(read_records(out / "recipe.jsonl", STAGES)) == 2


@pytest.mark.parametrize("model", ["s2v-dqn", "vrp-dl"])
def test_baselines_by_their_recipes(tmp_path: Path, model: PaperModel) -> None:
    outcome = run(quick(tmp_path / "out", model))
    assert outcome.text().endswith("model.safetensors: the stage is finished")
    assert read_model_info(outcome.model_file).model_type == model
    # The recipe is what the shipped model was made by.
    info = read_model_info(RECIPES[model].parents[1] / "weights" / f"{model}.safetensors")
    recorded: Any = info.facts
    (stage,) = load_recipe(RECIPES[model], phases=PAPER_PHASES).stages
    assert isinstance(stage.config, S2vDqnTraining | VrpDlTraining)
    settings = settings_of(stage.config)
    for name, value in recorded["config"].items():
        if name not in ("model", "unbound", "pictures"):
            assert settings[RENAMED.get(name, name)] == value, name
    assert [x.path.name for x in stage.data] == [x["file"] for x in recorded["data"]]
    assert [x.path.name for x in stage.validation] == [
        each["file"] for each in recorded["validation"]
    ]
    # A CPU gets steps of its own size, unless the recipe states it, as that of vrp-dl does.
    (small,) = load_recipe(RECIPES[model], phases=PAPER_PHASES, on_cpu=True).stages
    changed = settings_of(small.config)
    differing = {name: changed[name] for name in changed if changed[name] != settings[name]}
    assert differing == ({} if model == "vrp-dl" else ON_CPU[model])


def test_wrong_model(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="model to be one of daam, s2v-dqn, vrp-dl"):
        quick(tmp_path, "other")  # type: ignore[arg-type]
