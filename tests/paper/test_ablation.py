import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from arcfleet.errors import ArcfleetError
from arcfleet.neural.checkpoint import read_model_info
from arcfleet.neural.train import loop as training_loop
from arcfleet.paper.ablation import Config, ablation_report, run
from arcfleet.paper.commands import Watch
from arcfleet.paper.convergence import read_curves
from arcfleet.paper.measure import MeasureConfig
from arcfleet.paper.report import Report
from tests.neural.labelled_towns import labelled_file
from tests.paper.some_series import line, series

SETTINGS = "steps = 2\ntokens = 1000\nvalidations = 2\nlog_steps = 1\n"
SIZES = "[model]\nwidth = 16\nlayers = 1\nheads = 2\nfeed_forward = 16\n"
MORE = "samples = 2\nrollout_tokens = 1000\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("training")
    for seed, name in enumerate(("train", "validation", "test")):
        labelled_file(folder, f"task20-{name}", "task20", count=4, seed=seed)
    labelled_file(folder, "task30-test", "task30", count=1)
    (folder / "pretrain.toml").write_text(SETTINGS + SIZES)
    (folder / "finetune.toml").write_text(SETTINGS + MORE)
    return folder


def ablation(folder: Path, out: Path, *inputs: str, **changes: Any) -> Report:
    files = {
        name: folder / f"task20-{name}.npz" for name in ("test", "train", "validation")
    }
    settings: dict[str, Any] = {
        "sets": (files["test"],),
        "out": out,
        "data": (files["train"],),
        "validation": (files["validation"],),
        "inputs": inputs,
        "pretrain_config": folder / "pretrain.toml",
        "finetune_config": folder / "finetune.toml",
        "measure": MeasureConfig(device="cpu"),
        "figures": False,
    }
    return run(Config(**(settings | changes)), Watch())


def test_a_stopped_ablation_goes_on(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = 0

    @contextmanager
    def stop_in_the_second_run() -> Iterator[Callable[[], bool]]:
        def stopped() -> bool:
            nonlocal asked
            asked += 1
            return asked > 3  # the first run asks before each of its two steps

        yield stopped

    with monkeypatch.context() as patch:
        patch.setattr(training_loop, "stop_on_signals", stop_in_the_second_run)
        with pytest.raises(KeyboardInterrupt):
            ablation(folder, tmp_path, "gat")
    runs = tmp_path / "ablation" / "gat"
    first = (runs / "pretrain" / "model.safetensors").read_bytes()
    assert not (tmp_path / "ablation.jsonl").exists()

    report = ablation(folder, tmp_path, "gat")
    assert (runs / "pretrain" / "model.safetensors").read_bytes() == first
    (curve,) = read_curves([("gat", runs / "task20")])
    assert (curve.steps[0], curve.steps[-1]) == (0, 2)
    assert "finetune steps 2" in report.caption
    _, *lines = (tmp_path / "ablation.jsonl").read_text().splitlines()
    assert [json.loads(line)["row"] for line in lines] == ["labels", "daam-sl-rl:gat"]
    assert (tmp_path / "ablation-convergence.csv").is_file()
    # Others are trained beside it.
    ablation(folder, tmp_path, "gat,mds")
    assert "| MDS | " in (tmp_path / "ablation.md").read_text()
    config = json.loads((runs / "task20" / "config.json").read_text())["config"]
    assert (config["learning_rate"], config["temperature"]) == (1e-4, 1.0)  # the paper's


def test_an_ablation_does_not_pass_off_shorter_runs(folder: Path, tmp_path: Path) -> None:
    ablation(folder, tmp_path, "gat")
    model = tmp_path / "ablation" / "gat" / "task20" / "model.safetensors"
    before = model.read_bytes()
    ablation(folder, tmp_path, "gat")
    assert model.read_bytes() == before
    longer = tmp_path / "longer.toml"
    more = SETTINGS.replace("steps = 2", "steps = 3")
    longer.write_text(more + MORE)
    report = ablation(folder, tmp_path, "gat", finetune_config=longer)
    assert "finetune steps 3" in report.caption
    assert read_model_info(model).facts["steps"] == 3
    # The models that were fine-tuned would be those of another start.
    longer.write_text(more + SIZES)
    with pytest.raises(ArcfleetError, match="the same steps and minutes of pre-training"):
        ablation(folder, tmp_path, "gat", pretrain_config=longer)


def test_wrong_inputs(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    endless, bad = tmp_path / "endless.toml", tmp_path / "bad.toml"
    endless.write_text("tokens = 1000\n")
    bad.write_text("steps = 2\nmodel = 3\n")
    other = folder / "task30-test.npz"
    for message, changes in (
        ("inputs among mds, gat", {"inputs": ("eyes",)}),
        ("a set to validate task20 on", {"validation": (other,)}),
        ("training sets in --data", {"data": ()}),
        ("expected --finetune-minutes, or steps", {"finetune_config": endless}),
        ("scales of --data, task20, got task30", {"sets": (other,)}),
        ("expected UTF-8 text", {"pretrain_config": other}),
        ("model to be a table of sizes, got 3", {"pretrain_config": bad}),
    ):
        with pytest.raises(ArcfleetError, match=message):
            ablation(folder, out, **changes)
    assert not out.exists()


def test_a_quick_run_with_figures(tmp_path: Path) -> None:
    config = Config(out=tmp_path, quick=True, measure=MeasureConfig(device="cpu"))
    report = run(config, Watch())
    assert {path.suffix for path in report.files} == {
        *(".md", ".csv", ".tex", ".png", ".svg"),
    }
    assert (tmp_path / "ablation-convergence.svg").is_file()


def test_gaps_of_several_seeds_and_their_mean() -> None:
    trained = [
        line(f"daam-sl-rl:{name}", [cost], label=name.upper(), pretrain_seed=seed)
        for name, costs in (("mds", (110, 130)), ("gat", (140, 160)))
        for seed, cost in enumerate(costs, start=1)
    ]
    report = ablation_report(series(line("labels", [100]), *trained))
    means, costs, gaps = report.sections
    assert means.rows == [["MDS", "20.00"], ["GAT", "50.00"]]
    assert costs.rows[1] == ["GAT, seed 1", "140.0"]
    assert ["MDS, seed 2", "30.00 (n=1)"] in gaps.rows
    assert "pretrain seed 1, pretrain seed 2" in report.caption

    one = ablation_report(series(line("labels", [100]), *trained[::2]))
    assert [row[0] for row in one.sections[-1].rows] == ["GAT", "MDS"]
    assert len(one.sections) == 2
