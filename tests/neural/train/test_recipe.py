import json
import shutil
from copy import deepcopy
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from arcfleet.datasets.store import read_records
from arcfleet.errors import FileError, OptionError
from arcfleet.neural.checkpoint import SHIPPED_MODEL, load_model, read_model_info
from arcfleet.neural.train import recipe as recipe_module
from arcfleet.neural.train.config import (
    FinetuneConfig,
    PretrainConfig,
    config_from,
    settings_of,
)
from arcfleet.neural.train.loop import TrainingProgress
from arcfleet.neural.train.recipe import (
    SHIPPED_RECIPE,
    RecipeConfig,
    RecipeOutcome,
    load_recipe,
    recipe_from,
    run_recipe,
    train_recipe,
)
from arcfleet.neural.train.run import checksum
from arcfleet.streets.tasks import VARIED_SETS
from tests.neural.train.quick import assert_same, stop_at
from tests.neural.train.test_loop import killed_everywhere

#: Steps that take milliseconds; from data sets that are made, and from the user's own.
CONTENT: dict[str, Any] = {
    "model": {
        **{"type": "daam-paper", "width": 16, "layers": 1, "heads": 2},
        **{"feed_forward": 16, "mds_dimensions": 4, "inputs": "mds", "norm": "rms"},
    },
    "settings": {
        **{"steps": 2, "tokens": 400, "decision_steps": 2, "log_steps": 1},
        **{"validations": 1, "checkpoint_minutes": 0.0, "seed": 4},
    },
    "pretrain": {"learning_rate": 5e-3, "warm_up_steps": 1},
    "finetune": {"samples": 2, "rollout_tokens": 400},
    "stage": [
        {"name": "first", "phase": "pretrain", "data": ["small.npz"]},
        {
            **{"name": "more", "phase": "pretrain", "validation": ["test.npz"]},
            **{"data": {"small.npz": 1, "mixed.npz": 2}, "learning_rate": 1e-3},
        },
        {
            **{"name": "rloo", "phase": "finetune", "data": ["unlabelled.npz"]},
            **{"validation": ["test.npz"], "steps": 3},
        },
    ],
}
STAGES = ["1-first", "2-more", "3-rloo"]


def run(folder: Path, out: Path, content: Any = CONTENT, **options: Any) -> RecipeOutcome:
    progress = options.pop("progress", None)
    config = RecipeConfig(out=out, device="cpu", **options)
    return run_recipe(recipe_from(content, folder), config, progress)


def altered(**changes: Any) -> dict[str, Any]:
    return {**deepcopy(CONTENT), **changes}


@pytest.fixture(scope="module")
def whole(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a recipe that was never stopped."""
    out = tmp_path_factory.mktemp("whole") / "out"
    outcome = run(folder, out)
    assert outcome.stopped_in is None
    assert outcome.text().splitlines()[-1] == (
        f"{out / 'model.safetensors'}: all 3 stages are finished"
    )
    return out


def assert_same_weights(one: Path, other: Path) -> None:
    for name in ("model.safetensors", *(f"{x}/checkpoint.safetensors" for x in STAGES)):
        assert_same(one / name, other / name)


def test_each_stage_starts_from_the_last(whole: Path) -> None:
    record = read_records(whole / "recipe.jsonl", recipe_module.STAGES)
    assert [json.loads(each.stage)["folder"] for each in record] == STAGES
    assert [each.steps for each in record] == [2, 2, 3]
    assert record[2].gaps.keys() == {"test"}
    last = whole / STAGES[-1] / "model.safetensors"
    assert (whole / "model.safetensors").read_bytes() == last.read_bytes()
    for before, after in pairwise(STAGES):
        config = json.loads((whole / after / "config.json").read_text())
        assert config["init"] == checksum(whole / before / "model.safetensors")
    facts: Any = load_model(whole / STAGES[1] / "model.safetensors")[1]
    assert (facts["phase"], facts["config"]["seed"]) == ("pretrain", 4)
    assert facts["config"]["learning_rate"] == 1e-3
    assert facts["config"]["weights"] == [1, 2]


@pytest.mark.parametrize("after", [False, True])
def test_killed_at_any_write(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    content = altered(stage=CONTENT["stage"][:2])
    content["settings"] |= {"steps": 1}
    content["stage"][1]["validation"] = []
    train = partial(run, folder, content=content)
    for out in killed_everywhere(train, tmp_path, monkeypatch, after=after):
        outcome = train(out, resume=True)
        assert outcome.stopped_in is None
        assert_same(tmp_path / "whole" / "model.safetensors", outcome.model_file)


def test_stopped_by_a_signal_and_by_time(
    folder: Path, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    part = run(folder, out, minutes=1e-9)
    assert (part.over_time, part.last) == (True, None)
    assert "stopped in stage first: the time is over; --resume" in part.text()

    clock = SimpleNamespace(now=0.0)
    clock.perf_counter = lambda: clock.now

    def jump(told: TrainingProgress) -> None:
        if told.activity == "more (2 of 3): training" and told.step == 1:
            clock.now = 61.0

    with monkeypatch.context() as patch:
        patch.setattr(recipe_module, "time", clock)
        part = run(folder, out, resume=True, minutes=1.0, progress=jump)
    facts = part.facts()
    assert part.over_time
    assert (facts["stopped_in"], facts["last"]["steps"]) == ("more", 1)
    # The model of what is finished can be used.
    kept = (out / STAGES[0] / "model.safetensors").read_bytes()
    assert part.model_file.read_bytes() == kept

    stop = stop_at(2, activity="rloo (3 of 3): training")
    part = run(folder, out, resume=True, progress=stop)
    assert part.interrupted
    assert run(folder, out, resume=True).stopped_in is None
    assert_same_weights(whole, out)
    # A finished recipe has nothing left to do.
    assert run(folder, out, resume=True).last is None


def test_another_end_and_more_stages(folder: Path, whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    content = altered(stage=CONTENT["stage"][:2])
    run(folder, out, content)
    with pytest.raises(FileError, match=r"folder without a recipe.*--resume"):
        run(folder, out, content)
    assert run(folder, out, resume=True).stopped_in is None
    assert_same_weights(whole, out)
    other = altered(settings={**CONTENT["settings"], "seed": 5})
    with pytest.raises(FileError, match=r"1-first, which is finished, .* seed"):
        run(folder, out, other, resume=True)
    with pytest.raises(FileError, match="at least the 3 finished stages in the config"):
        run(folder, out, content, resume=True)
    (out / "recipe.jsonl").write_text("[]\n")
    with pytest.raises(FileError, match="expected a stage of a recipe, found something"):
        run(folder, out, resume=True)
    with pytest.raises(FileError, match="expected a recipe to resume, found none"):
        run(folder, tmp_path / "none", resume=True)


def test_starting_from_a_model(folder: Path, whole: Path, tmp_path: Path) -> None:
    content = altered(init=str(whole / "model.safetensors"), stage=CONTENT["stage"][2:])
    run(folder, tmp_path / "out", content)
    config = json.loads((tmp_path / "out" / "1-rloo" / "config.json").read_text())
    assert config["init"] == checksum(whole / "model.safetensors")
    content["init"] = str(whole / STAGES[0] / "model.safetensors")
    with pytest.raises(FileError, match="with the same init, found another run"):
        run(folder, tmp_path / "out", content, resume=True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"stages": []}, "got stages: did you mean stage?"),
        ({"stage": []}, "at least one stage, written as"),
        ({"stage": [3]}, "stage 1 to be a table"),
        ({"stage": [{"name": "a/b"}]}, "stage 1 to have a name of letters"),
        ({"stage": [{"name": "a"}]}, "stage a: expected phase to be one of pretrain, fin"),
        ({"stage": [{"name": "a", "phase": "pretrain"}]}, "stage a: .* in data, got none"),
        ({"pretrain": {"stepz": 3}}, "stage first: .* did you mean steps?"),
        ({"pretrain": {"moments": 3}}, "stage first: .* decision_steps, got moments"),
        ({"finetune": 3}, "expected finetune to be a table"),
        ({"settings": {}}, "stage first: expected steps or minutes"),
        ({"init": 3}, "init to be the name of a model file"),
        (
            {"data": {"a": {"task": [20]}}},
            r"got data\.a\.task: did you mean data\.a\.tasks",
        ),
        ({"data": {"a": {"tasks": 20}}}, r"data\.a\.tasks to be a list, got 20"),
        (
            {"data": {"a": {"tasks": [20], "seeds": {"30": [1]}}}},
            r"expected data\.a\.seeds for scale 20, got none",
        ),
        (
            {"data": {"a": {"tasks": [20]}}},
            r"expected data\.a\.count for scale 20, got none",
        ),
        (
            {"data": {"a": {"tasks": [20], "set": "varied", "count": 3}}},
            "expected the name of a Task set, got 'varied20'",
        ),
    ],
)
def test_wrong_recipes(folder: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        recipe_from(altered(**changes), folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"phase": "finetune"}, "stage a: expected a model to start from, got none"),
        ({"data": ["other"]}, r"expected the name of a group in \[data\] or of a file"),
        ({"data": {"few.npz": 0}}, "data to be a list, or a table of shares above 0"),
        ({"weights": [1, 2]}, "stage a: expected a weight"),
        ({"model": {}}, r"stage a: expected the sizes of the model in \[model\]"),
        ({"data": ["made"], "tasks": [30]}, "stage a: expected data sets of scale 30"),
    ],
)
def test_wrong_stages(folder: Path, changes: dict[str, Any], message: str) -> None:
    stage = {"name": "a", "phase": "pretrain", "data": ["few.npz"], **changes}
    data = {"made": {"tasks": [20], "count": 3}}
    with pytest.raises(OptionError, match=message):
        recipe_from(altered(stage=[stage], data=data), folder)


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        ("none.npz", FileError, r"none\.npz: expected a data set for stage b"),
        ("unlabelled.npz", FileError, r"its labels in .*`arcfleet dataset label"),
        ("made", OptionError, r"expected labels in data\.made for stage b"),
    ],
)
def test_missing_files_are_found_at_once(
    folder: Path, tmp_path: Path, data: str, error: type[Exception], message: str
) -> None:
    later = {"name": "b", "phase": "pretrain", "data": [data]}
    made = {"made": {"tasks": [20], "count": 3}}
    content = altered(stage=[*CONTENT["stage"], later], data=made)
    with pytest.raises(error, match=message):
        run(folder, tmp_path / "out", content)
    with pytest.raises(FileError, match=r"none\.safetensors: expected a model file"):
        run(folder, tmp_path / "out", altered(init="none.safetensors"))
    assert not (tmp_path / "out").exists()


def test_what_failed_at_its_start_can_be_started_again(
    folder: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for name in ("small.npz", "small.labels.npz"):
        (data / name).write_bytes((folder / name).read_bytes())
    (data / "small.npz").write_bytes(b"damaged")
    content = altered(stage=CONTENT["stage"][:1])
    with pytest.raises(FileError, match=r"small\.npz"):
        run(data, tmp_path / "out", content)
    (data / "small.npz").write_bytes((folder / "small.npz").read_bytes())
    assert run(data, tmp_path / "out", content).stopped_in is None


def test_the_shipped_recipe_ends_as_the_model_file_says() -> None:
    """Settings, data sets and weights of the last stage are those that are recorded."""
    recorded: Any = read_model_info(SHIPPED_MODEL).facts
    stages = load_recipe(SHIPPED_RECIPE).stages
    last = stages[-1]
    settings = settings_of(last.config)
    assert dict(
        zip([x.path.name for x in last.data], settings["weights"], strict=True)
    ) == {
        each["file"]: weight
        for each, weight in zip(
            recorded["data"], recorded["config"]["weights"], strict=True
        )
    }
    assert {x.path.name: x.make["count"] for x in last.data} == {
        each["file"]: each["instances"] for each in recorded["data"]
    }
    assert {x.path.name for x in last.validation} == {
        each["file"] for each in recorded["validation"]
    }
    for name, value in recorded["config"].items():
        assert settings[name] == value or name == "model", name
    assert last.config.model == load_model(SHIPPED_MODEL)[0].config
    twice = ["pretrain", "finetune", "finetune", "pretrain"]
    assert [x.phase.trainer.phase for x in stages] == [*twice, *twice[:3]]
    assert [x.config.run.minutes for x in stages] == [21, 8.6, 7.9, 8.2, 4.2, 5.2, 9.03]


def test_the_defaults_are_the_shipped_recipes() -> None:
    """But for where and how long, and what the last stage changes."""
    stages = load_recipe(SHIPPED_RECIPE).stages
    free = {"minutes", "weights", "seed", "validations", "validation_instances"}
    free |= {"checkpoint_minutes", "compile", "steps"}
    for stage, config_class in ((stages[0], PretrainConfig), (stages[1], FinetuneConfig)):
        default: Any = settings_of(config_from(config_class, {"minutes": 1}))
        for name, value in settings_of(stage.config).items():
            assert name in free or value == default[name], name


def test_the_shipped_recipe_learns_from_streets_of_both_kinds() -> None:
    """Two-way and one-way in equal parts, up to 300 tasks; later with turn rules, too."""
    stages = load_recipe(SHIPPED_RECIPE).stages
    for number, stage in enumerate(stages):
        shares = {"two-way": 0.0, "one-way": 0.0, "turns": 0.0}
        weights = stage.config.run.weights
        for file, weight in zip(stage.data, weights, strict=True):
            kind = "one-way" if file.make.get("mixed") else "two-way"
            shares["turns" if file.make.get("turn_rules") else kind] += weight
        whole = sum(weights)
        if number < 3:
            assert shares["one-way"] == pytest.approx(shares["two-way"])
            assert {file.make["task_set"] for file in stage.data} >= set(VARIED_SETS)
        else:
            assert all(share > 0.1 * whole for share in shares.values())
        assert (shares["turns"] > 0) == (number >= 3)
    made = {file.make["task_set"]: file for file in stages[0].data}
    assert (made["varied300"].make["count"], made["varied300"].label) == (
        2000,
        {"seed": 6, "iterations": 30000},
    )
    # Neither the cities of the tests nor those that trials are compared on.
    left_out = "boston chengdu portland sao_paulo denver monaco paris andorra reisters"
    files = [file for stage in stages for file in stage.data]
    maps = " ".join(name for file in files for name in file.make["maps"])
    assert not any(name in maps for name in [*left_out.split(), "maisons", "west_strip"])


def test_a_quick_recipe_makes_its_data(tmp_path: Path) -> None:
    config = RecipeConfig(out=tmp_path / "whole", quick=True, device="cpu")
    told: list[str] = []
    outcome = train_recipe(config, progress=lambda x: told.append(x.activity))
    assert outcome.stopped_in is None
    assert (tmp_path / "whole" / "data" / "two-way-30-5.labels.npz").exists()
    assert (tmp_path / "whole" / "data" / "beijing-20-1.npz").exists()
    assert not (tmp_path / "whole" / "data" / "beijing-20-1.labels.npz").exists()
    assert "making val-20.npz" in told
    assert "labelling val-20.npz" in told
    assert {x.partition(" (")[0] for x in told if " of 7)" in x} == {
        *("pretrain", "rloo", "rloo-2", "pretrain-2", "pretrain-3", "rloo-3", "rloo-4")
    }
    assert load_model(outcome.model_file)[1]["finished"] is True
    with pytest.raises(OptionError, match="expected minutes above 0, got 0"):
        RecipeConfig(out=tmp_path, minutes=0)


def test_finished_stages_need_no_data(folder: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    made = {"tasks": [20], "count": 3, "labels": {"iterations": {"20": 5}}}
    first = {"name": "first", "phase": "pretrain", "data": ["made"]}
    content = altered(stage=[first], data={"made": made})
    run(data, tmp_path / "out", content)
    (data / "made-20-0.npz").unlink()
    for name in ("small.npz", "small.labels.npz"):
        (data / name).write_bytes((folder / name).read_bytes())
    content["stage"] = [first, {**first, "name": "second", "data": ["small.npz"]}]
    assert run(data, tmp_path / "out", content, resume=True).stopped_in is None
    assert not (data / "made-20-0.npz").exists()


def test_a_file_that_is_no_recipe(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    for text, message in (
        ("stage = ", "expected a TOML file"),
        ("stagee = 3", "did you mean stage?"),
    ):
        file.write_text(text)
        with pytest.raises(FileError, match=rf"x\.toml.*{message}"):
            load_recipe(file)
    with pytest.raises(FileError, match=r"none\.toml.*found nothing of that name"):
        load_recipe(tmp_path / "none.toml")


def test_the_recipe_goes_on_from_the_checkpoints_of_the_repository(tmp_path: Path) -> None:
    kept = Path(__file__).parents[3] / "research" / "checkpoints" / "daam"
    shutil.copytree(kept, tmp_path / "daam")
    config = RecipeConfig(out=tmp_path / "daam", device="cpu", resume=True)
    outcome = run_recipe(load_recipe(SHIPPED_RECIPE, tmp_path), config)
    assert outcome.stages == 7
    assert outcome.stopped_in is None
    model = tmp_path / "daam" / "model.safetensors"
    assert checksum(model) == checksum(SHIPPED_MODEL)
