from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from arcfleet import check, read_solution
from arcfleet.cli.main import main
from arcfleet.cli.training_bar import describe, last_metrics, training_display
from arcfleet.datasets import Dataset
from arcfleet.instance.files import write
from arcfleet.neural.checkpoint import load_model
from arcfleet.neural.train.loop import Gaps, TrainingProgress
from tests.neural.labelled_towns import labelled_file

if TYPE_CHECKING:
    from pathlib import Path

SIZES = ("--width", 16, "--layers", 1, "--heads", 2, "--feed-forward", 16)
QUICK = (*SIZES, "--tokens", 400, "--moments", 2, "--log-steps", 2, "--device", "cpu")

# Runs the command where packages that training does not need are not there.
BARE = """
import sys
class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] in ('rich', 'tensorboard', 'scipy', 'matplotlib'):
            raise ModuleNotFoundError(f'No module named {name!r}', name=name)
sys.meta_path.insert(0, Hide())
from arcfleet.cli.main import main
sys.exit(main(sys.argv[1:]))
"""

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return labelled_file(tmp_path_factory.mktemp("data"), "small", count=6)


def arcfleet(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


def one_sentence(capsys: Capture, *arguments: object) -> str:
    """Give the error of a failed command: exit code 1, one line, nothing on stdout."""
    capsys.readouterr()
    assert arcfleet(*arguments) == 1
    out, error = capsys.readouterr()
    assert out == ""
    (line,) = error.splitlines()
    assert line.startswith("arcfleet: ")
    return str(line)


def test_train_then_solve(data: Path, tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "run"
    command = ("train", "pretrain", "--data", data, "--out")
    settings = ("--steps", 4, "--seed", 3, "--validations", 2, *QUICK)
    assert arcfleet(*command, out, "--validation", data, *settings) == 0
    text, notes = capsys.readouterr()
    gap, done = text.splitlines()
    assert gap.startswith("small: greedy ")
    assert done.startswith(f"{out / 'model.safetensors'}: 4 steps in ")
    (line,) = notes.splitlines()  # in a pipe, one line for each validation
    assert line.startswith("training, step 4, 0:00 left, loss ")
    assert json.loads((out / "config.json").read_text())["config"]["seed"] == 3
    instance = Dataset.open(data)[0]
    write(instance, tmp_path / "a.json")
    solved = arcfleet(
        *("solve", tmp_path / "a.json", "--method", "daam-greedy", "--device", "cpu"),
        *("--model", out / "model.safetensors", "--out", tmp_path / "plan.json"),
    )
    assert solved == 0
    assert check(instance, read_solution(tmp_path / "plan.json", instance)).ok
    pictures = {path.name for path in (out / "plans").iterdir()}
    assert pictures == {"step-2.png", "step-4.png"}
    # It goes on to a later end, all other settings being those it was started with.
    files = (*command, out, "--validation", data, "--device", "cpu")
    capsys.readouterr()
    assert arcfleet(*files, "--resume", "--steps", 6, "--pictures", 0) == 0
    text, _ = capsys.readouterr()
    assert text.splitlines()[-1].startswith(f"{out / 'model.safetensors'}: 6 steps in ")
    assert "beyond the 6 steps" in one_sentence(capsys, *files, "--resume", "--steps", 5)
    # Another run can start from it, with its sizes.
    again = arcfleet(
        *(*command, tmp_path / "next", "--steps", 2, "--tokens", 400),
        *("--init", out / "model.safetensors", "--device", "cpu"),
    )
    assert again == 0
    assert load_model(tmp_path / "next" / "model.safetensors")[0].config.width == 16


def test_finetune_by_the_command(data: Path, tmp_path: Path, capsys: Capture) -> None:
    first, out = tmp_path / "first", tmp_path / "second"
    assert (
        arcfleet("train", "pretrain", "--data", data, "--out", first, "--steps", 2, *QUICK)
        == 0
    )
    unlabelled = tmp_path / "unlabelled.npz"
    unlabelled.write_bytes(data.read_bytes())
    model = first / "model.safetensors"
    command = ("train", "finetune", "--data", unlabelled, "--init", model, "--out", out)
    device = ("--device", "cpu")
    settings = ("--best-of", 2, "--copies", 3, "--moments", 2, "--tokens", 400)
    small = (*settings, "--rollout-tokens", 400, "--steps", 2, *device)
    capsys.readouterr()
    assert arcfleet(*command, "--validation", data, *small) == 0
    text, _ = capsys.readouterr()
    gap, done = text.splitlines()
    assert gap.startswith("small: greedy ")
    assert done.startswith(f"{out / 'model.safetensors'}: 2 steps in ")
    tuned, facts = load_model(out / "model.safetensors")
    assert tuned.config.width == 16
    assert facts["config"]["objective"] == "samples"  # type: ignore[index]
    assert facts["config"]["best_of"] == 2  # type: ignore[index]
    # A finished run has nothing left to do.
    assert arcfleet(*command, "--validation", data, *device, "--resume") == 0
    line = one_sentence(capsys, *command, "--steps", 2, "--objective", "best", *device)
    assert "expected objective to be one of imitate-best, samples" in line
    with pytest.raises(SystemExit) as ended:
        arcfleet("train", "finetune", "--data", data, "--out", out, "--steps", 1)
    assert ended.value.code == 2


def test_settings_from_a_file(data: Path, tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "x.toml"
    file.write_text("steps = 2\ntokens = 400\nseed = 4\n[model]\nwidth = 8\nheads = 2\n")
    command = ("train", "pretrain", "--data", data, "--config", file, "--device", "cpu")
    assert arcfleet(*command, "--seed", 7, "--layers", 1, "--out", tmp_path / "run") == 0
    model, facts = load_model(tmp_path / "run" / "model.safetensors")
    assert (model.config.width, model.config.layers) == (8, 1)
    assert facts["config"]["seed"] == 7  # type: ignore[index]
    for text, message in (
        ("stepz = 2", "expected a known setting, got stepz: did you mean steps?"),
        ("steps = ", "expected a TOML file"),
        ("model = 3\nsteps = 1", "expected model to be a table"),
    ):
        file.write_text(text)
        assert message in one_sentence(capsys, *command, "--out", tmp_path / "no")
    assert not (tmp_path / "no").exists()


def test_stopped_run_goes_on_in_a_bare_environment(
    data: Path, tmp_path: Path, capsys: Capture
) -> None:
    """Started with neither rich nor TensorBoard, ended by SIGTERM, resumed by one word."""
    out = tmp_path / "run"
    command = ("train", "pretrain", "--data", data, "--out", out, "--device", "cpu")
    settings = (*command, "--steps", 200, *QUICK)
    process = subprocess.Popen(
        [sys.executable, "-c", BARE, *map(str, settings)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 120
    while not (out / "metrics.jsonl").exists() and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.terminate()
    text, notes = process.communicate(timeout=60)
    assert (process.returncode, text) == (1, "")
    assert notes.startswith("arcfleet: interrupted after ")
    assert "--resume goes on from here" in notes
    assert arcfleet(*command, "--resume") == 0
    assert ": 200 steps in " in capsys.readouterr().out
    lines = [json.loads(x) for x in (out / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(2, 201, 2))


def test_wrong_use(data: Path, tmp_path: Path, capsys: Capture) -> None:
    command = ("train", "pretrain", "--out", tmp_path / "run", "--data")
    assert "expected steps or minutes" in one_sentence(capsys, *command, data)
    lonely = tmp_path / "lonely.npz"
    lonely.write_bytes(data.read_bytes())
    line = one_sentence(capsys, *command, lonely, "--steps", 2)
    assert "arcfleet dataset label" in line
    line = one_sentence(capsys, *command, data, "--resume")
    assert "expected a run to resume, found none" in line
    line = one_sentence(capsys, *command, data, "--steps", 2, "--device", "cuda:77")
    assert "expected device 'cuda:77' to be there" in line
    with pytest.raises(SystemExit) as ended:
        arcfleet(*command, data, "--steps", "many")
    assert ended.value.code == 2


def running(*validated: str) -> TrainingProgress:
    """A quarter of a run that takes 400 seconds, with the gaps of some sets."""
    return TrainingProgress(
        doing="training",
        share=0.25,
        step=50,
        seconds=100.0,
        loss=1.25,
        states_per_second=3e4,
        gaps=dict.fromkeys(validated, Gaps(5.0, 4.25)),
    )


def test_the_line_of_the_bar() -> None:
    started = TrainingProgress(doing="preparing a.npz", gaps={})
    assert describe(started, None) == "preparing a.npz"
    told = running("a")
    assert describe(told, told) == (
        "training, step 50, 5:00 left, loss 1.250, 30000 states/s, a 5.00/4.25 %"
    )


def test_the_bar_on_a_narrow_terminal() -> None:
    """The bar and the time left are seen however many gaps there are."""
    screen = io.StringIO()
    display = training_display(Console(file=screen, width=80, force_terminal=True))
    told = running("20-validation", "50-validation", "100-validation")
    display.add_task(describe(told, told), total=1.0)
    with display:
        pass
    line = next(line for line in screen.getvalue().splitlines() if "training" in line)
    assert "━━━━" in line
    assert "step 50, 5:00 left" in line


def test_loss_and_speed_of_one_phase_are_not_those_of_the_next() -> None:
    trained = running()
    validating = TrainingProgress(doing="validating", step=50, gaps={})
    preparing = TrainingProgress(doing="preparing", gaps={})
    assert last_metrics(trained, None) is trained
    assert last_metrics(validating, trained) is trained
    assert last_metrics(preparing, trained) is None
    assert last_metrics(preparing, None) is None
