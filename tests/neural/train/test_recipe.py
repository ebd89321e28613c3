from __future__ import annotations

import json
import os
import signal
import tomllib
from copy import deepcopy
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from arcfleet.paper.curriculum import (
    CurriculumOutcome,
    curriculum_from,
    require_files,
    run_curriculum,
)
from safetensors.torch import load_file
from tests.neural.curriculum_file import TOML

from arcfleet.cli.main import main
from arcfleet.cli.training_bar import describe
from arcfleet.errors import FileError, OptionError
from arcfleet.neural.checkpoint import load_model
from arcfleet.neural.train.config import FinetuneConfig
from arcfleet.neural.train.loop import TrainingProgress
from arcfleet.neural.train.run import checksum
from arcfleet.paper import curriculum as curriculum_module
from tests.neural.labelled_towns import labelled_file

ROOT = Path(__file__).parents[2]

#: Steps that take milliseconds; pre-training and fine-tuning, then one of each alone.
CONTENT: dict[str, Any] = {
    "model": {
        **{"width": 16, "layers": 1, "heads": 2, "feed_forward": 16},
        **{"mds_dimensions": 4, "inputs": "mds"},
    },
    "settings": {
        **{"steps": 3, "tokens": 400, "moments": 2, "log_steps": 1, "validations": 1},
        **{"pictures": 0, "checkpoint_minutes": 0.0, "seed": 4},
    },
    "pretrain": {"learning_rate": 5e-3, "warm_up_steps": 1},
    "finetune": {"copies": 2, "rollout_tokens": 400, "lessons": 2},
    "stage": [
        {"name": "task20", "data": ["few.npz"], "validation": ["few.npz"]},
        {"name": "more", "data": ["few.npz", "mixed.npz"], "phases": ["pretrain"]},
        {
            **{"name": "task30", "data": ["mixed.npz"], "validation": ["mixed.npz"]},
            **{"phases": ["finetune"], "finetune": {"objective": "samples", "steps": 2}},
        },
    ],
}
PHASES = ["1-task20/pretrain", "1-task20/finetune", "2-more/pretrain", "3-task30/finetune"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    labelled_file(folder, "few", "task20", count=6)
    labelled_file(folder, "mixed", "task30", count=4, one_way=0.3)
    return folder


def run(folder: Path, out: Path, content: Any = CONTENT, **options: Any) -> Any:
    plan = curriculum_from(content, folder)
    return run_curriculum(out, plan, device="cpu", **options)


@pytest.fixture(scope="module")
def whole(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a curriculum that was never stopped."""
    out = tmp_path_factory.mktemp("whole") / "out"
    outcome: CurriculumOutcome = run(folder, out)
    assert outcome.stopped_in is None
    return out


def assert_same_weights(one: Path, other: Path) -> None:
    for name in ("model.safetensors", *(f"{x}/checkpoint.safetensors" for x in PHASES)):
        expected, found = load_file(one / name), load_file(other / name)
        assert expected.keys() == found.keys()
        assert all(torch.equal(expected[key], found[key]) for key in expected), name


def changed(**changes: Any) -> dict[str, Any]:
    return {**deepcopy(CONTENT), **changes}


def test_each_phase_starts_from_the_last(whole: Path) -> None:
    record = json.loads((whole / "curriculum.json").read_text())
    assert [phase["folder"] for phase in record["phases"]] == PHASES
    assert [phase["finished"]["steps"] for phase in record["phases"]] == [3, 3, 3, 2]
    assert record["phases"][3]["finished"]["gaps"].keys() == {"mixed"}
    last = whole / PHASES[-1] / "model.safetensors"
    assert (whole / "model.safetensors").read_bytes() == last.read_bytes()
    for before, after in pairwise(PHASES):
        config = json.loads((whole / after / "config.json").read_text())
        assert config["init"] == checksum(whole / before / "model.safetensors")
    _, facts = load_model(whole / "model.safetensors")
    assert facts["config"]["objective"] == "samples"  # type: ignore[index]
    assert facts["config"]["seed"] == 4  # type: ignore[index]
    _, facts = load_model(whole / PHASES[2] / "model.safetensors")
    assert facts["config"]["learning_rate"] == 5e-3  # type: ignore[index]


@pytest.mark.parametrize("patience", [7, 10])
def test_killed_again_and_again(
    folder: Path, whole: Path, tmp_path: Path, patience: int
) -> None:
    """Whatever is told last before the kill, the same weights come out."""
    kills = 0
    while True:
        told = 0

        def die(_: TrainingProgress) -> None:
            nonlocal told
            told += 1
            if told == patience:
                raise SystemError  # as good as a kill: nothing is saved any more

        try:
            run(folder, tmp_path / "out", resume=kills > 0, progress=die)
            break
        except SystemError:
            kills += 1
            assert kills < 40
    assert kills >= 3
    assert_same_weights(whole, tmp_path / "out")


def test_killed_between_two_phases(
    folder: Path, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"

    def die(*_: object) -> None:
        raise SystemError

    for method in ("finish", "keep_model"):
        with monkeypatch.context() as patch:
            patch.setattr(curriculum_module._Record, method, die)  # noqa: SLF001
            with pytest.raises(SystemError):
                run(folder, out, resume=method == "keep_model")
    run(folder, out, resume=True)
    assert_same_weights(whole, out)
    lines = (out / PHASES[0] / "metrics.jsonl").read_text().splitlines()
    steps = [json.loads(line)["step"] for line in lines if "gaps" in line]
    assert steps == [3]  # a finished phase is not validated once more


def test_stopped_by_a_signal(folder: Path, whole: Path, tmp_path: Path) -> None:
    def stop(told: TrainingProgress) -> None:
        if told.doing == "more pretrain (3 of 4): training" and told.step == 2:
            os.kill(os.getpid(), signal.SIGTERM)

    out = tmp_path / "out"
    part: CurriculumOutcome = run(folder, out, progress=stop)
    assert part.stopped_in is not None
    assert part.stopped_in.folder == PHASES[2]
    assert not part.over_time
    # The model of what is finished can be used.
    kept = (out / PHASES[1] / "model.safetensors").read_bytes()
    assert part.model_file.read_bytes() == kept
    assert run(folder, out, resume=True).stopped_in is None
    assert_same_weights(whole, out)
    # A finished curriculum has nothing left to do.
    assert run(folder, out, resume=True).last is None


def test_a_limit_of_time_over_all(
    folder: Path, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    part: CurriculumOutcome = run(folder, out, minutes=1e-9)
    assert part.over_time
    assert part.stopped_in is not None
    assert part.stopped_in.folder == PHASES[0]
    assert part.last is None

    class Clock:
        """Makes the time jump when the third phase is at work."""

        now = 0.0

        def perf_counter(self) -> float:
            return self.now

    clock = Clock()
    monkeypatch.setattr(curriculum_module, "time", clock)

    def jump(told: TrainingProgress) -> None:
        if told.doing.startswith("more pretrain") and told.step == 1:
            clock.now = 61.0

    part = run(folder, out, resume=True, minutes=1.0, progress=jump)
    assert part.over_time
    assert part.stopped_in is not None
    assert part.stopped_in.folder == PHASES[2]
    assert part.last is not None
    assert part.last.steps == 1
    assert run(folder, out, resume=True, minutes=1.0).stopped_in is None
    assert_same_weights(whole, out)


def test_another_end_and_more_stages(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    content = changed(stage=CONTENT["stage"][:1])
    run(folder, out, content)
    with pytest.raises(FileError, match=r"folder without a curriculum.*--resume"):
        run(folder, out, content)
    outcome: CurriculumOutcome = run(folder, out, changed(), resume=True)
    assert outcome.stopped_in is None
    assert outcome.last is not None
    other = changed(settings={**CONTENT["settings"], "seed": 5})
    with pytest.raises(FileError, match=r"1-task20/pretrain, which is finished, .* seed"):
        run(folder, out, other, resume=True)
    with pytest.raises(FileError, match="at least the 4 finished phases in the config"):
        run(folder, out, content, resume=True)
    (out / "curriculum.json").write_text("[]")
    with pytest.raises(FileError, match="expected the record of a curriculum"):
        run(folder, out, resume=True)
    with pytest.raises(FileError, match="expected a curriculum to resume, found none"):
        run(folder, tmp_path / "none", resume=True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"stages": []}, "got stages: did you mean stage?"),
        ({"stage": []}, "at least one stage, written as"),
        ({"stage": [3]}, "stage 1 to be a table"),
        ({"stage": [{"nam": "a"}]}, "got stage 1: nam: did you mean stage 1: name?"),
        ({"stage": [{"name": "a/b"}]}, "stage 1 to have a name of letters"),
        ({"stage": [{"name": "a"}]}, "data sets in data of stage a, got none"),
        ({"stage": [{"name": "a", "data": "few.npz"}]}, "data of stage a to be a list"),
        ({"pretrain": {"stepz": 3}}, "stage task20, pretrain: .* did you mean steps?"),
        ({"finetune": 3}, "expected finetune to be a table"),
        ({"settings": {}}, "stage task20, pretrain: expected steps or minutes"),
        ({"settings": {"steps": 1, "objective": "ppo"}}, "expected a known setting"),
        ({"settings": {"steps": 1, "model": {}}}, r"sizes of the model in \[model\]"),
        ({"init": 3}, "init to be the name of a model file"),
    ],
)
def test_wrong_configs(folder: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        curriculum_from(changed(**changes), folder)


def test_wrong_stages(folder: Path) -> None:
    good = {"name": "a", "data": ["few.npz"], "validation": ["few.npz"]}
    for changes, message in (
        ({"phases": ["finetune"]}, "stage a: expected a model to fine-tune, got none"),
        ({"phases": []}, "phases of stage a to list pretrain and finetune"),
        ({"phases": ["train"]}, "phases of stage a to list pretrain and finetune"),
        ({"phases": ["pretrain", "pretrain"]}, "phases of stage a to list"),
        ({"phases": ["pretrain"], "finetune": {}}, "no settings of finetune in stage a"),
        ({"data": ["few.npz", "few.npz"]}, "stage a, pretrain: .*twice"),
        (
            {"pretrain": {"weights": [1, 2]}},
            "stage a, pretrain: expected a weight",
        ),
        (
            {"validation": [], "finetune": {"objective": "ppo"}},
            "stage a, finetune: expected data sets to validate on",
        ),
    ):
        with pytest.raises(OptionError, match=message):
            curriculum_from(changed(stage=[{**good, **changes}]), folder)


def test_missing_files_are_found_at_once(folder: Path, tmp_path: Path) -> None:
    later = {"name": "b", "data": ["none.npz"]}
    content = changed(stage=[*CONTENT["stage"], later])
    with pytest.raises(FileError, match=r"none\.npz: expected a data set for stage b"):
        run(folder, tmp_path / "out", content)
    (tmp_path / "none.npz").write_bytes((folder / "few.npz").read_bytes())
    plan = curriculum_from(changed(stage=[later]), tmp_path)
    with pytest.raises(FileError, match=r"its labels in .*`arcfleet dataset label"):
        require_files(plan)
    content = changed(init="none.safetensors")
    with pytest.raises(FileError, match=r"none\.safetensors: cannot be read"):
        run(folder, tmp_path / "out", content)
    assert not (tmp_path / "out").exists()


def test_what_failed_at_its_start_can_be_started_again(
    folder: Path, tmp_path: Path
) -> None:
    out, data = tmp_path / "out", tmp_path / "data"
    data.mkdir()
    for name in ("few.npz", "few.labels.npz"):
        (data / name).write_bytes((folder / name).read_bytes())
    (data / "few.npz").write_bytes(b"damaged")
    content = changed(stage=CONTENT["stage"][:1])
    with pytest.raises(FileError, match=r"few\.npz"):
        run(data, out, content)
    (data / "few.npz").write_bytes((folder / "few.npz").read_bytes())
    assert run(data, out, content).stopped_in is None


def test_a_resumed_one_keeps_the_last_model(
    folder: Path, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    run(folder, out, changed(stage=CONTENT["stage"][:2]))
    kept: list[Path] = []
    keep = curriculum_module._Record.keep_model  # noqa: SLF001

    def note(record: Any, model: Path) -> None:
        kept.append(model)
        keep(record, model)

    monkeypatch.setattr(curriculum_module._Record, "keep_model", note)  # noqa: SLF001
    run(folder, out, resume=True)
    assert kept == [out / name / "model.safetensors" for name in PHASES[2:]]
    assert_same_weights(whole, out)


def test_starting_from_a_model(folder: Path, whole: Path, tmp_path: Path) -> None:
    content = changed(init=str(whole / "model.safetensors"))
    content["stage"] = content["stage"][2:]
    del content["model"]  # that of the file
    outcome: CurriculumOutcome = run(folder, tmp_path / "out", content)
    config = json.loads((tmp_path / "out" / "1-task30/finetune/config.json").read_text())
    assert config["init"] == checksum(whole / "model.safetensors")
    assert load_model(outcome.model_file)[0].config.width == 16
    content["init"] = str(whole / PHASES[0] / "model.safetensors")
    with pytest.raises(FileError, match=r"the curriculum, which .* same init"):
        run(folder, tmp_path / "out", content, resume=True)


def test_the_example_is_the_papers() -> None:
    content = tomllib.loads((ROOT / "benchmarks" / "curriculum.toml").read_text())
    phases = curriculum_from(content, Path("data")).phases
    scales = ["task20", "task30", "task40", "task50", "task60", "task80", "task100"]
    assert list(dict.fromkeys(phase.stage for phase in phases)) == scales
    pretrained = [phase.stage for phase in phases if phase.kind == "pretrain"]
    assert pretrained == scales[:3]
    assert [phase.stage for phase in phases if phase.kind == "finetune"] == scales
    config = phases[-1].config
    assert isinstance(config, FinetuneConfig)
    assert (config.minutes, config.objective) == (30, "ppo")
    assert (config.temperature, config.learning_rate) == (1.0, 1e-4)


def test_by_the_command(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "x.toml", tmp_path / "out"
    file.write_text(TOML)
    command = ["train", "curriculum", "--config", str(file), "--device", "cpu"]
    command += ["--out", str(out)]
    assert main([*command]) == 1
    assert "few.npz: expected a data set for stage task20" in capsys.readouterr().err
    command += ["--folder", str(folder)]
    assert main([*command, "--minutes", "1e-7"]) == 0
    text, _ = capsys.readouterr()
    assert text == (
        "stopped in stage task20, pretrain: the time is over; --resume goes on from there\n"
    )
    assert main([*command, "--resume"]) == 0
    text, notes = capsys.readouterr()
    gap, done = text.splitlines()
    assert gap.startswith("few: greedy ")
    assert done == f"{out / 'model.safetensors'}: all 2 phases are finished"
    assert "task20 finetune (2 of 2): training, step 2, 0:00 left, loss " in notes
    file.write_text(TOML.replace("tokens =", "tokns ="))
    assert main([*command, "--resume"]) == 1
    error = capsys.readouterr().err
    assert error == (
        f"arcfleet: {file}: stage task20, pretrain: expected a known setting, got tokns: "
        "did you mean tokens?\n"
    )
    assert main([*command, "--minutes", "0"]) == 1
    assert "expected --minutes above 0, got 0" in capsys.readouterr().err


def test_time_left() -> None:
    def line(later: float | None) -> str:
        told = TrainingProgress(
            doing="a", share=0.5, step=1, seconds=30.0, gaps={}, later=later
        )
        return describe(told, None)

    assert line(0.0) == "a, step 1, 0:30 left"
    assert line(None) == "a, step 1, 0:30 left of this phase"
    assert line(90.0) == "a, step 1, 0:30 left of this phase, 2:00 of all"
