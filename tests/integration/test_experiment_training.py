from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from arcfleet.cli.main import main
from arcfleet.neural.checkpoint import read_model_info
from arcfleet.neural.train import loop as training_loop
from arcfleet.paper.convergence import read_curves
from arcfleet.paper.quick import make_quick_files
from tests.neural.labelled_towns import labelled_file
from tests.tiny_model import tiny_model_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SETTINGS = "steps = 2\ntokens = 1000\nvalidations = 2\nlog_steps = 1\n"
SIZES = "[model]\nwidth = 16\nlayers = 1\nheads = 2\nfeed_forward = 16\n"
MORE = 'copies = 2\nrollout_tokens = 1000\nobjective = "samples"\n'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("training")
    for scale in ("task20", "task30"):
        for seed, name in enumerate(("train", "validation", "test")):
            labelled_file(folder, f"{scale}-{name}", scale, count=4, seed=seed)
    (folder / "pretrain.toml").write_text(SETTINGS + SIZES)
    (folder / "finetune.toml").write_text(SETTINGS + MORE + SIZES)
    return folder


def ablation(folder: Path, out: Path, *arguments: str) -> int:
    files = [str(folder / f"task20-{name}.npz") for name in ("test", "train", "validation")]
    configs = ["--pretrain-config", str(folder / "pretrain.toml")]
    configs += ["--finetune-config", str(folder / "finetune.toml"), "--device", "cpu"]
    sets = [files[0], "--data", files[1], "--validation", files[2]]
    where = ["--no-figures", "--quiet", "--out", str(out)]
    return main(["experiment", "ablation", *sets, *configs, *where, *arguments])


def test_a_stopped_ablation_goes_on(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = 0

    @contextmanager
    def stop_in_the_second_run() -> Iterator[Callable[[], bool]]:
        def stopped() -> bool:
            nonlocal asked
            asked += 1
            return asked > 3  # the first run asks before each of its two steps

        yield stopped

    inputs = ("--inputs", "gat")
    with monkeypatch.context() as patch:
        patch.setattr(training_loop, "stop_on_signals", stop_in_the_second_run)
        assert ablation(folder, tmp_path, *inputs) == 1
    assert "interrupted" in capsys.readouterr().err
    runs = tmp_path / "ablation" / "gat"
    first = (runs / "pretrain" / "model.safetensors").read_bytes()
    assert not (tmp_path / "ablation.jsonl").exists()

    assert ablation(folder, tmp_path, *inputs) == 0
    assert (runs / "pretrain" / "model.safetensors").read_bytes() == first
    (curve,) = read_curves([("gat", runs / "task20")])
    assert curve.steps[0] == 0
    assert curve.steps[-1] == 2
    shown = capsys.readouterr().out
    assert "finetune steps 2" in shown
    lines = (tmp_path / "ablation.jsonl").read_text().splitlines()
    assert [json.loads(line)["row"] for line in lines] == ["labels", "daam-sl-rl:gat"]
    assert (tmp_path / "ablation-convergence.csv").is_file()
    # Others are trained beside it.
    assert ablation(folder, tmp_path, "--inputs", "gat,mds") == 0
    assert "| MDS | " in (tmp_path / "ablation.md").read_text()


def test_ppo_has_the_settings_of_the_paper(folder: Path, tmp_path: Path) -> None:
    assert ablation(folder, tmp_path, "--inputs", "mds", "--objective", "ppo") == 0
    run = tmp_path / "ablation" / "mds" / "task20"
    config = json.loads((run / "config.json").read_text())["config"]
    assert (config["learning_rate"], config["temperature"]) == (1e-4, 1.0)


def test_wrong_ablations(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ablation(folder, tmp_path, "--inputs", "eyes") == 1
    assert "inputs among mds, gat" in capsys.readouterr().err
    unmatched = ("--validation", str(folder / "task30-validation.npz"))
    assert ablation(folder, tmp_path, *unmatched) == 1
    assert "to validate task20 on" in capsys.readouterr().err
    twice = ("--data", *[str(folder / f"task20-{name}.npz") for name in ("train", "test")])
    assert ablation(folder, tmp_path, *twice) == 1
    assert "one data set of each scale" in capsys.readouterr().err
    assert ablation(folder, tmp_path, "--objective", "luck") == 1
    assert "objective" in capsys.readouterr().err
    endless = tmp_path / "endless.toml"
    endless.write_text(MORE + SIZES)
    assert ablation(folder, tmp_path, "--finetune-config", str(endless)) == 1
    assert "expected --finetune-minutes, or steps" in capsys.readouterr().err
    endless.write_text("steps = 2\nmodel = 3\n")
    assert ablation(folder, tmp_path, "--pretrain-config", str(endless)) == 1
    assert "model to be a table of sizes, got 3" in capsys.readouterr().err
    both = [str(folder / f"task{scale}-{{}}.npz") for scale in (20, 30)]
    only = ("--data", both[0].format("train"), "--validation", both[0].format("validation"))
    sets = [x.format("test") for x in both]
    configs = ["--pretrain-config", str(folder / "pretrain.toml")]
    configs += ["--finetune-config", str(folder / "finetune.toml"), "--no-figures"]
    command = ["experiment", "ablation", *sets, *only, *configs, "--out", str(tmp_path)]
    assert main(command) == 1
    assert "scales of --data, task20, got task30" in capsys.readouterr().err
    assert not (tmp_path / "ablation").exists()  # nothing was trained


def test_an_ablation_does_not_pass_off_shorter_runs(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inputs = ("--inputs", "gat")
    assert ablation(folder, tmp_path, *inputs) == 0
    model = tmp_path / "ablation" / "gat" / "task20" / "model.safetensors"
    before = model.read_bytes()
    assert ablation(folder, tmp_path, *inputs) == 0
    assert model.read_bytes() == before
    longer = tmp_path / "longer.toml"
    more = SETTINGS.replace("steps = 2", "steps = 3")
    longer.write_text(more + MORE + SIZES)
    capsys.readouterr()
    assert ablation(folder, tmp_path, *inputs, "--finetune-config", str(longer)) == 0
    assert "finetune steps 3" in capsys.readouterr().out
    assert read_model_info(model).facts["steps"] == 3
    # The models that were fine-tuned would be those of another start.
    longer.write_text(more + SIZES)
    assert ablation(folder, tmp_path, *inputs, "--pretrain-config", str(longer)) == 1
    assert "the same steps and minutes of pre-training" in capsys.readouterr().err
    other = ("--objective", "self-critical")
    assert ablation(folder, tmp_path, *inputs, *other) == 1
    assert "the same objective" in capsys.readouterr().err


def test_quick_models_go_on_after_a_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def stop_at_once() -> Iterator[Callable[[], bool]]:
        yield lambda: True

    with monkeypatch.context() as patch:
        patch.setattr(training_loop, "stop_on_signals", stop_at_once)
        with pytest.raises(KeyboardInterrupt):
            make_quick_files(tmp_path)
    # A kill before the first checkpoint leaves no more than this.
    for path in (tmp_path / "daam-sl").iterdir():
        if path.is_file() and path.name != "config.json":
            path.unlink()
    files = make_quick_files(tmp_path)
    for path in files.models.values():
        assert read_model_info(path).facts["finished"]


def test_wrong_curves(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def error(*runs: str) -> str:
        where = ["--no-figures", "--out", str(tmp_path / "out")]
        assert main(["experiment", "convergence", *runs, *where]) == 1
        return capsys.readouterr().err

    assert "expected the metrics of a training run" in error(str(folder))
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "loss": 2.0}\n')
    assert "found none: train with --validation" in error(str(tmp_path))
    (tmp_path / "metrics.jsonl").write_text('{"gaps": {}}\n{"step": 1}\n')
    assert "metrics.jsonl:1: expected a line of metrics" in error(str(tmp_path))
    for damaged in (
        '{"step": 1, "seconds": 2, "gaps": 5}',
        '{"step": 1, "seconds": 2, "gaps": {"a": 5}}',
        '{"step": 1, "seconds": "2", "gaps": {"a": {"greedy": 5}}}',
        '{"step": 1, "seconds": 2, "gaps": {"a": {"greedy": "5"}}}',
        "5",
    ):
        (tmp_path / "metrics.jsonl").write_text(damaged + '\n{"step": 1}\n')
        assert "metrics.jsonl:1: expected a line of metrics" in error(str(tmp_path))
    assert "different names" in error("a=b", "a=c")
    good = '{"step": 1, "seconds": 2, "gaps": {"a": {"greedy": 5}}}\n'
    (tmp_path / "metrics.jsonl").write_text(good)
    tiny_model_file(tmp_path).rename(tmp_path / "model.safetensors")
    found = error(str(tmp_path))
    assert "model.safetensors: expected the facts of a training run" in found


def test_scenes_are_solved_once(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from arcfleet.datasets import Dataset
    from arcfleet.instance.files import write

    scene = tmp_path / "scene.json"
    write(Dataset.open(folder / "task20-test.npz")[0], scene)
    model = str(tiny_model_file(tmp_path))
    out = tmp_path / "out"
    command = ["experiment", "scenes", str(scene), "--out", str(out), "--quiet"]
    methods = ["--methods", "ps,daam-greedy,maens=5", "--model", model, "--device", "cpu"]
    assert main([*command, *methods]) == 0
    shown = capsys.readouterr().out
    assert "DaAM, greedy" in shown
    for suffix in (".png", ".svg", ".md", ".tex", ".csv"):
        assert (out / f"scenes{suffix}").is_file()
    before = (out / "scenes.jsonl").read_bytes()
    assert before.count(b"\n") == 3
    assert main([*command, *methods, "--no-figures"]) == 0
    assert (out / "scenes.jsonl").read_bytes() == before

    # A plan that is not what it was is not drawn.
    cost = json.loads(before.splitlines()[0])["cost"]
    changed = before.replace(f'"cost": {cost}'.encode(), f'"cost": {cost + 1}'.encode())
    (out / "scenes.jsonl").write_bytes(changed)
    assert main([*command, *methods]) == 1
    assert f"costs {cost + 1}, found {cost}" in capsys.readouterr().err
    assert main([*command, "--methods", ","]) == 1
    assert "expected at least one method" in capsys.readouterr().err
    for name, value in (("seed", [0]), ("cost", "a"), ("routes", [["a"]]), ("routes", 5)):
        damaged = json.loads(before.splitlines()[0]) | {name: value}
        (out / "scenes.jsonl").write_text(json.dumps(damaged) + "\n")
        assert main([*command, *methods]) == 1
        assert "jsonl:1: expected a plan of" in capsys.readouterr().err
    (out / "scenes.jsonl").unlink()
    assert main([*command, "--methods", "maens=many"]) == 1
    assert "NAME=ITERATIONS" in capsys.readouterr().err
    (out / "scenes.jsonl").write_text('{"format": "another"}\n')
    assert main([*command, *methods]) == 1
    assert "expected a plan of `arcfleet experiment scenes`" in capsys.readouterr().err


def test_examples_are_scenes_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["experiment", "scenes", "example:denver", "--methods", "ps", "--no-figures"]
    assert main([*command, "--out", str(tmp_path)]) == 0
    assert "Plans of" in capsys.readouterr().out
