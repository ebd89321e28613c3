import json
from pathlib import Path
from typing import Any

import pytest

from arcfleet.neural.train.loop import Gaps, TrainingProgress
from arcfleet.neural.train.recipe import RecipeOutcome
from arcfleet.paper import table, train
from arcfleet.paper.commands import COMMANDS, Watch
from arcfleet.paper.report import Report
from tests.cli.running import arcfleet, one_sentence, succeeded


@pytest.fixture
def configs(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The configs that `paper table` is called with, in the place of a table."""
    found: list[Any] = []

    def run(config: table.Config, watch: Watch) -> Report:
        found.append(config)
        watch.note("a note")
        if (told := watch.training("a run")) is not None:
            told(
                TrainingProgress(
                    activity="training",
                    loss=1.0,
                    states_per_second=2.0,
                    gaps={"a": Gaps(3.0, 2.0)},
                )
            )
        files = (Path("table.md"),)
        return Report(
            name="table", sections=(), caption="A table.", records=({"a": 1},), files=files
        )

    monkeypatch.setattr(table, "run", run)
    return found


def test_every_command_of_the_table_is_a_command() -> None:
    text = " ".join(succeeded("paper", "--help").split())
    for command in COMMANDS:
        assert f" {command.name} {command.summary}" in text
        assert "--out" in succeeded("paper", command.name, "--help")


def test_a_quick_table(tmp_path: Path) -> None:
    options = ("--quick", "--no-figures", "--device", "cpu", "--rows", "ps")
    ran = arcfleet("paper", "table", *options, "--out", tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.rstrip().endswith("table.md, table.tex, table.csv")
    facts = json.loads(succeeded("paper", "table", *options, "--out", tmp_path, "--json"))
    assert [record["row"] for record in facts["records"]] == ["ps"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("table --rows foo", "foo"),
        ("table a.npz", "expected no sets beside --quick, which makes its own, got a.npz"),
        ("runtime --labelled b.npz", "expected no labelled beside --quick"),
        ("pareto a.npz", "expected no sets beside --quick"),
        ("pareto --scale task90", "of scale 'task90'"),
        ("generalise a.npz", "expected no sets beside --quick"),
        ("generalise --rows foo", "foo"),
        ("ablation a.npz", "expected no sets beside --quick"),
        ("ablation --data a.npz", "expected no data beside --quick"),
        ("ablation --validation a.npz", "expected no validation beside --quick"),
        ("ablation --inputs eyes", "expected inputs among mds, gat"),
        ("convergence a=runs/a", "expected no runs beside --quick"),
        ("scenes a.json", "expected no scenes beside --quick"),
        ("scenes --methods foo", "foo"),
        ("train --folder data", "expected no folder of data sets beside quick"),
    ],
)
def test_a_quick_run_ignores_nothing(words: str, message: str, tmp_path: Path) -> None:
    rows = () if "--rows" in words or words.split()[0] != "pareto" else ("--rows", "ps")
    options = (*rows, "--quick", "--out", tmp_path / "out")
    ran = arcfleet("paper", *words.split(), *options)
    assert ran.returncode == 1
    assert message in ran.stderr.splitlines()[-1]


def test_options_and_outputs(configs: list[Any]) -> None:
    command = ("paper", "table", "a.npz", "b.npz", "--out", "x", "--rows", "ps", "maens=5")
    ran = arcfleet(*command, "--count", 7, "--device", "cpu", "--no-figures")
    assert ran.returncode == 0
    assert ran.stdout == "A table.\n\ntable.md\n"
    assert ran.stderr.splitlines() == [
        "arcfleet: a note",
        "a run: training, loss 1.000, 2 states/s, a 3.00/2.00 %",
    ]
    facts = json.loads(succeeded(*command, "--quiet", "--json"))
    assert facts == {"records": [{"a": 1}], "files": ["table.md"]}
    first, second = configs
    assert first.sets == (Path("a.npz"), Path("b.npz"))
    assert first.selection.rows == ("ps", "maens=5")
    assert (first.selection.count, first.measure.device) == (7, "cpu")
    assert (first.figures, second.figures, second.quick) == (False, True, False)


@pytest.mark.parametrize("over_time", [True, False])
def test_training(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, over_time: bool) -> None:
    found: list[train.Config] = []

    def run(config: train.Config, progress: object) -> RecipeOutcome:
        found.append(config)
        stage: Any = type("Stage", (), {"name": "ppo"})
        return RecipeOutcome(
            stages=2,
            model_file=tmp_path / "model.safetensors",
            stopped_in=stage,
            over_time=over_time,
            last=None,
        )

    monkeypatch.setattr(train, "run", run)
    options = ("--config", "own.toml", "--out", tmp_path, "--minutes", 5, "--quiet")
    ran = arcfleet("paper", "train", "vrp-dl", *options, "--json")
    (config,) = found
    assert (config.model, config.recipe.out) == ("vrp-dl", tmp_path)
    assert (config.recipe.config, config.recipe.minutes) == (Path("own.toml"), 5.0)
    if over_time:
        assert json.loads(ran.stdout)["stopped_in"] == "ppo"
    else:
        assert "stopped in stage ppo: it was interrupted" in one_sentence(ran)


@pytest.mark.parametrize(
    ("words", "code"),
    [("table a.npz", 2), ("nothing-like-it", 2), ("table --workers x --out y", 2)],
)
def test_wrong_usage(words: str, code: int) -> None:
    assert arcfleet("paper", *words.split()).returncode == code
