import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from arcfleet import check, read_solution
from arcfleet.datasets import Dataset
from arcfleet.instance.files import write
from arcfleet.neural import checkpoint
from arcfleet.neural.checkpoint import load_model
from arcfleet.neural.train import recipe
from arcfleet.neural.train.loop import Gaps, TrainingProgress
from tests.cli.running import arcfleet, one_sentence, succeeded
from tests.neural.labelled_towns import labelled_file
from tests.tiny_model import tiny_model_file

SIZES = ("--width", 16, "--layers", 1, "--heads", 2, "--feed-forward", 16)
QUICK = (*SIZES, "--tokens", 400, "--decision-steps", 2, "--log-steps", 2)
DEVICE = ("--device", "cpu")

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


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return labelled_file(tmp_path_factory.mktemp("data"), "small", count=6)


def test_train_then_solve(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    model = out / "model.safetensors"
    command = ("train", "pretrain", "--data", data, *DEVICE, "--out")
    settings = ("--steps", 4, "--seed", 3, "--validations", 2, *QUICK)
    ran = arcfleet(*command, out, "--validation", data, *settings)
    assert ran.returncode == 0, ran.stderr
    gap, done = ran.stdout.splitlines()
    assert gap.startswith("small: greedy ")
    assert done.startswith(f"{model}: 4 steps in ")
    (line,) = ran.stderr.splitlines()  # in a pipe, one line for each validation
    assert re.match(r"training, step 4, \d+:\d\d left, loss ", line)
    assert json.loads((out / "config.json").read_text())["config"]["seed"] == 3
    instance = Dataset.open(data)[0]
    write(instance, tmp_path / "a.json")
    succeeded(
        *("solve", tmp_path / "a.json", "--method", "daam-greedy", *DEVICE),
        *("--model", model, "--out", tmp_path / "plan.json"),
    )
    assert check(instance, read_solution(tmp_path / "plan.json", instance)).ok
    # It resumes to a later end, all other settings being those it was started with.
    files = (*command, out, "--validation", data, "--quiet")
    facts = json.loads(succeeded(*files, "--resume", "--steps", 6, "--json"))
    assert (facts["model_file"], facts["steps"]) == (str(model), 6)
    assert facts["gaps"]["small"].keys() == {"greedy", "optimised"}
    line = one_sentence(arcfleet(*files, "--resume", "--steps", 5))
    assert "beyond the 6 steps" in line
    # Another run can start from it, with its sizes.
    more = ("--steps", 2, "--tokens", 400, "--init", model, "--quiet")
    succeeded(*command, tmp_path / "next", *more)
    assert load_model(tmp_path / "next" / "model.safetensors")[0].config.width == 16


def test_finetune_by_the_command(data: Path, tmp_path: Path) -> None:
    first, out = tmp_path / "first", tmp_path / "second"
    files = ("train", "pretrain", "--data", data, "--out", first, *DEVICE)
    succeeded(*files, "--steps", 2, *QUICK)
    unlabelled = tmp_path / "unlabelled.npz"
    unlabelled.write_bytes(data.read_bytes())
    model = first / "model.safetensors"
    command = (
        *("train", "finetune", "--data", unlabelled, "--init", model, "--out", out),
        *(*DEVICE, "--quiet"),
    )
    settings = ("--best-of-k", 2, "--samples", 3, "--decision-steps", 2, "--tokens", 400)
    small = (*settings, "--rollout-tokens", 400, "--steps", 2)
    gap, done = succeeded(*command, "--validation", data, *small).splitlines()
    assert gap.startswith("small: greedy ")
    assert done.startswith(f"{out / 'model.safetensors'}: 2 steps in ")
    tuned, facts = load_model(out / "model.safetensors")
    assert tuned.config.width == 16
    assert facts["config"]["best_of_k"] == 2  # type: ignore[index]
    # A finished run has nothing left to do.
    succeeded(*command, "--validation", data, "--resume")
    line = one_sentence(arcfleet(*command, "--steps", 2, "--best-of-k", 16))
    assert "expected best_of_k to be below samples" in line
    ran = arcfleet("train", "finetune", "--data", data, "--out", out, "--steps", 1)
    assert ran.returncode == 2
    assert "--init" in ran.stderr


def test_settings_from_a_file(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text(
        "steps = 2\ntokens = 400\nseed = 4\nlearning_rate = 1e-3\n"
        "[model]\nwidth = 8\nheads = 2\n"
    )
    command = ("train", "pretrain", "--data", data, "--config", file, *DEVICE)
    options = ("--seed", 7, "--layers", 1, "--out", tmp_path / "run")
    succeeded(*command, *options)
    model, facts = load_model(tmp_path / "run" / "model.safetensors")
    assert (model.config.width, model.config.layers) == (8, 1)
    assert facts["config"]["seed"] == 7  # type: ignore[index]
    assert facts["config"]["learning_rate"] == 1e-3  # type: ignore[index]
    for text, message in (
        ("stepz = 2", "expected a known setting, got stepz: did you mean steps?"),
        ("moments = 2", "expected the setting decision_steps, got moments"),
        ("steps = ", "expected a TOML file"),
        ("model = 3\nsteps = 1", "expected model to be a table"),
    ):
        file.write_text(text)
        line = one_sentence(arcfleet(*command, "--out", tmp_path / "no"))
        assert message in line
    assert not (tmp_path / "no").exists()


def test_stopped_run_resumes_in_a_bare_environment(data: Path, tmp_path: Path) -> None:
    """Started with neither rich nor TensorBoard, ended by SIGTERM, resumed by one word."""
    out = tmp_path / "run"
    command = ("train", "pretrain", "--data", data, "--out", out, *DEVICE)
    settings = (*command, "--steps", 200, *QUICK)
    process = subprocess.Popen(
        [sys.executable, "-c", BARE, *map(str, settings)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (out / "metrics.jsonl").exists() and process.poll() is None:
        time.sleep(0.005)
    process.terminate()
    text, notes = process.communicate()
    assert (process.returncode, text) == (1, "")
    assert notes.startswith("arcfleet: stopped after ")
    assert "--resume" in notes
    assert ": 200 steps in " in succeeded(*command, "--resume")
    _, *lines = (out / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == list(range(2, 201, 2))


def test_wrong_use(data: Path, tmp_path: Path) -> None:
    command = ("train", "pretrain", "--out", tmp_path / "run", "--data")
    assert "expected steps or minutes" in one_sentence(arcfleet(*command, data))
    lonely = tmp_path / "lonely.npz"
    lonely.write_bytes(data.read_bytes())
    line = one_sentence(arcfleet(*command, lonely, "--steps", 2, *DEVICE))
    assert "arcfleet dataset label" in line
    line = one_sentence(arcfleet(*command, data, "--resume"))
    assert "expected a run to resume, found none" in line
    line = one_sentence(arcfleet(*command, data, "--steps", 2, "--device", "cuda:77"))
    assert "expected device 'cuda:77' to be there" in line
    assert arcfleet(*command, data, "--steps", "many").returncode == 2


@pytest.mark.parametrize("words", ["train pretrain", "train recipe", "paper table"])
def test_without_torch_one_sentence_says_what_to_install(
    words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "missing_package", lambda: "torch")
    for help_too in ([], ["--help"]):
        line = one_sentence(arcfleet(*words.split(), *help_too))
        assert "install arcfleet[neural]" in line
    assert arcfleet(words.split()[0], "--help").returncode == 0


def test_a_recipe(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text(
        "[data.towns]\ntasks = [20]\ncount = 50\nlabels = { iterations = { 20 = 50 } }\n"
        '[[stage]]\nname = "only"\nphase = "pretrain"\ndata = ["towns"]\nminutes = 1\n'
    )
    out = tmp_path / "run"
    command = ("train", "recipe", "--config", file, "--out", out, *DEVICE, "--quiet")
    facts = json.loads(succeeded(*command, "--quick", "--json"))
    assert facts["stopped_in"] is None
    model, _ = load_model(facts["model_file"])
    assert model.config.width > 0
    assert "the stage is finished" in succeeded(*command, "--quick", "--resume")
    line = one_sentence(arcfleet(*command, "--minutes", 0))
    assert "expected minutes above 0" in line
    file.write_text("[[stage]]\n")
    assert f"{file}: expected stage 1" in one_sentence(arcfleet(*command))


@pytest.mark.parametrize(
    ("former", "now"),
    [
        *(("--copies", "samples"), ("--moments", "decision_steps")),
        *(("--objective", "RLOO"), ("--best-of", "best_of_k"), ("--pictures", "drop it")),
    ],
)
def test_former_options_name_the_new_ones(former: str, now: str, tmp_path: Path) -> None:
    model = tiny_model_file(tmp_path)
    files = ("--data", "a.npz", "--init", model, "--out", tmp_path / "run")
    assert now in one_sentence(arcfleet("train", "finetune", *files, former, "3"))


@pytest.mark.parametrize(
    ("command", "former", "message"),
    [
        ("pretrain", "--copies", "a setting of `train finetune`, named samples now"),
        ("finetune", "--route-order", "a setting of `train pretrain`, named label_order"),
        ("pretrain", "--standardise", "of another phase, named normalise_advantages"),
    ],
)
def test_former_options_of_another_phase(
    command: str, former: str, message: str, tmp_path: Path
) -> None:
    files = ("--data", "a.npz", "--init", tiny_model_file(tmp_path), "--out", tmp_path)
    assert message in one_sentence(arcfleet("train", command, *files, former, "3"))


@pytest.mark.parametrize("interrupted", [False, True])
@pytest.mark.parametrize("rank", [0, 1])
def test_of_several_processes_one_prints(
    rank: int, interrupted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def train_recipe(
        config: recipe.RecipeConfig, progress: Callable[[TrainingProgress], None] | None
    ) -> recipe.RecipeOutcome:
        if progress is not None:
            gaps = {"a": Gaps(3.0, 2.0)}
            known: Any = {"loss": 1.0, "states_per_second": 2.0, "gaps": gaps}
            progress(TrainingProgress(activity="training", **known))
        stage: Any = type("Stage", (), {"name": "ppo"}) if interrupted else None
        return recipe.RecipeOutcome(
            stages=1,
            model_file=config.out / "model.safetensors",
            stopped_in=stage,
            over_time=False,
            last=None,
        )

    monkeypatch.setattr(recipe, "train_recipe", train_recipe)
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", str(rank))
    ran = arcfleet("train", "recipe", "--out", tmp_path)
    assert ran.returncode == interrupted
    assert bool(ran.stdout) == (rank == 0 and not interrupted)
    assert bool(ran.stderr) == (rank == 0)
