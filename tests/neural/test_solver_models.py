"""Models of learned solvers: which are taken, loaded and refused."""

import math
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import arcfleet.paper
from arcfleet import Instance, RunContext, Stop, read, solve, solve_many
from arcfleet.errors import FileError, OptionError
from arcfleet.methods import METHODS, has_model, load_for_method
from arcfleet.network import Network
from arcfleet.neural import solver
from arcfleet.neural.batch import ArcBatch
from arcfleet.neural.checkpoint import (
    MODEL_TYPES,
    load_model,
    save_model,
    shipped_model,
)
from arcfleet.neural.env import State
from arcfleet.neural.model import DaamConfig, Model
from arcfleet.neural.strategies import method_strategies
from tests.helpers import SMALL, VILLAGE, verified
from tests.neural.test_solver import require_sound
from tests.tiny_model import tiny_config, tiny_model_file

# As in test_solver.py: the machine decides whether a short limit leaves time for a plan.
pytestmark = pytest.mark.filterwarnings(
    "default::arcfleet.errors.WithoutLearnedPlanWarning"
)


@pytest.mark.parametrize("method", method_strategies())
def test_a_start_is_refused(method: str, small: Instance, model: Path) -> None:
    plan = solve(small, "ps").solution
    with pytest.raises(OptionError, match="warm-starts from a plan"):
        solve(small, method, start=plan, model=model)


def test_the_threads_of_torch_stay_as_they_were(small: Instance, model: Path) -> None:
    before = torch.get_num_threads()
    result = solve(small, "daam-greedy", model=model, threads=before + 1)
    assert (result.threads, torch.get_num_threads()) == (before + 1, before)


def test_a_model_is_for_learned_methods_only(small: Instance, model: Path) -> None:
    with pytest.raises(OptionError, match="model for a learned method only, got it for"):
        solve(small, "ps", model=model)
    with pytest.raises(OptionError, match="expected device for a learned method only"):
        solve(small, device="cpu")


@pytest.mark.parametrize("method", ["daam-greedy", "s2v-dqn", "vrp-dl"])
def test_the_shipped_models_solve_the_shipped_example(method: str) -> None:
    model_type = "daam" if method.startswith("daam") else method
    weights = shipped_model(model_type)
    assert weights is not None
    folder = "neural" if model_type == "daam" else "paper"
    assert weights.is_relative_to(Path(arcfleet.__file__).parent / folder)
    denver = read("example:denver")
    result = solve(denver, method, device="cpu")
    require_sound(denver, result)


def test_without_a_model_one_sentence_says_so(
    small: Instance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    none = replace(MODEL_TYPES["daam"], weights=tmp_path / "none.safetensors")
    monkeypatch.setitem(MODEL_TYPES, "daam", none)
    assert not has_model()
    for method in method_strategies():
        with pytest.raises(OptionError, match="none comes with this version"):
            solve(small, method)
    stop = Stop(iterations=1)
    with pytest.raises(OptionError, match="none comes with this version"):
        METHODS["daam"].run(Network(small), RunContext(method="daam", stop=stop))


def test_a_loaded_model_is_used_as_it_is(
    small: Instance, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = solve(small, "daam", model=model, device="cpu")
    loaded = load_for_method(METHODS["daam"], model, "cpu")
    assert loaded is not None
    monkeypatch.setattr(solver, "load_model", None)  # must not be called
    for device in ("auto", "cpu"):
        again = solve(small, "daam", model=loaded, device=device)
        assert again.solution == expected.solution
    (one,) = solve_many([small], "daam-greedy", model=loaded)
    assert isinstance(one, arcfleet.Result)
    elsewhere = replace(loaded, device=torch.device("meta"))
    with pytest.raises(OptionError, match="on device 'cpu', got one on 'meta'"):
        solve(small, "daam", model=elsewhere, device="cpu")
    with pytest.raises(OptionError, match="model for a learned method only"):
        solve(small, "ps", model=loaded)


def test_loading_counts_as_time_and_a_loaded_model_takes_none(
    small: Instance, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = solver.load_for_solving(model, "cpu")
    clock = time.perf_counter

    def slow(*_: object) -> solver.LoadedModel:
        monkeypatch.setattr(time, "perf_counter", lambda: clock() + 1000)
        return loaded

    monkeypatch.setattr(solver, "load_for_solving", slow)
    # A time limit holds from the call on, so that loading is part of the time.
    assert solve(small, "daam-greedy", model=model).seconds >= 1000
    monkeypatch.undo()
    assert solve(small, "daam-greedy", model=loaded).seconds < 1000


def test_wrong_models_and_devices(small: Instance, model: Path, tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"none\.safetensors: cannot be read"):
        solve(small, "daam", model=tmp_path / "none.safetensors")
    with pytest.raises(FileError, match="another kind of file"):
        solve(small, "daam", model=VILLAGE)
    with pytest.raises(OptionError, match="path of a model file, got int"):
        solve(small, "daam", model=3)  # type: ignore[arg-type]
    for device in ("gpu", "cuda:x", "", "cuda:-1", 0):
        with pytest.raises(OptionError, match="device to be 'auto', 'cpu'"):
            solve(small, "daam", model=model, device=device)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match=r"'cuda:4321' to be there, found \d+ CUDA"):
        solve(small, "daam", model=model, device="cuda:4321")


@pytest.mark.parametrize("method", ["daam", "daam-sample"])
def test_a_published_model_serves_the_methods_of_the_shipped_one(
    method: str, small: Instance, tmp_path: Path
) -> None:
    model = tiny_model_file(tmp_path, "daam-paper")
    stop = Stop(iterations=3)
    result = solve(small, method, stop=stop, model=model, device="cpu")
    require_sound(small, result)


def test_without_torch_one_sentence_says_what_to_install(model: Path) -> None:
    # A package that is None in sys.modules counts as not there.
    code = "import sys\nsys.modules['torch'] = None\n"
    code += (
        "from arcfleet.cli.main import main\n"
        "assert main(['methods']) == 0\n"
        f"assert main(['solve', {str(SMALL)!r}, '--method', 'ps']) == 0\n"
        f"assert main(['solve', {str(SMALL)!r}, '--method', 'daam']) == 1\n"
        f"sys.exit(main(['model', 'info', {str(model)!r}]))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 1
    assert ran.stderr.splitlines() == [
        "arcfleet: method 'daam' needs torch, which is not installed: "
        "install arcfleet[neural]",
        "arcfleet: reading a model needs torch, which is not installed: "
        "install arcfleet[neural]",
    ]


class Nearest(Model):
    """A module of a user's own: the nearest arc next."""

    config_class = DaamConfig

    def __init__(self) -> None:
        super().__init__()
        self.config = tiny_config()
        self.scale = torch.nn.Parameter(torch.ones(()))

    def prepare(self, batch: ArcBatch, *, padded: bool | None = None) -> ArcBatch:
        return batch

    def forward(self, prepared: ArcBatch, state: State, mask: torch.Tensor) -> torch.Tensor:
        rows = torch.arange(len(prepared))[:, None, None]
        here = prepared.end.long().gather(1, state.previous.long())[..., None]
        there = prepared.start.long()[:, None]
        ways = prepared.distance[rows, here, there].float()
        return (-self.scale * ways).masked_fill(~mask, -math.inf)


def test_a_module_of_torch_is_a_model(small: Instance, model: Path) -> None:
    loaded, _ = load_model(model)
    loaded.train()
    result = solve(small, "daam-greedy", model=loaded)
    require_sound(small, result)
    assert result.solution == solve(small, "daam-greedy", model=model).solution
    assert loaded.training  # it stays as it was
    (again,) = solve_many([small], "daam-greedy", model=loaded)
    assert isinstance(again, arcfleet.Result)
    assert again.solution == result.solution


def test_a_module_of_ones_own_class_is_a_model(village: Instance) -> None:
    result = solve(village, "daam-greedy", model=Nearest())
    require_sound(village, result)
    with pytest.raises(OptionError, match="a registered class, got a Nearest: call regist"):
        save_model(Nearest(), "nowhere.safetensors", {})
    with pytest.raises(OptionError, match=r"arcfleet\.neural\.model\.Model, got a Linear"):
        solve(village, "daam-greedy", model=torch.nn.Linear(1, 1))  # type: ignore[arg-type]


def test_a_module_for_other_methods_is_refused(small: Instance, tmp_path: Path) -> None:
    other, _ = load_model(tiny_model_file(tmp_path, "s2v-dqn"))
    with pytest.raises(OptionError, match="of type 'daam', got one of type 's2v-dqn'"):
        solve(small, "daam-greedy", model=other)


class Fifth:
    """A stop rule with a memory: the fifth time that it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, progress: arcfleet.Progress) -> bool:
        self.asked += 1
        return self.asked >= 5


@pytest.mark.parametrize("method", ["daam-sample", "ps-random-arc"])
def test_searches_of_many_share_no_memory_of_a_rule(
    method: str, village: Instance, small: Instance, model: Path
) -> None:
    rule = Fifth()
    options = {"model": model} if method.startswith("daam") else {}
    outcomes = solve_many([small, village, small], method, stop=rule, **options)  # type: ignore[arg-type]
    assert [x.iterations for x in verified(outcomes)] == [5, 5, 5]
    assert rule.asked == 0
    # A search of its own asks the rule itself, which may be looked at afterwards.
    assert solve(village, method, stop=rule, **options).iterations == 5  # type: ignore[arg-type]
    assert rule.asked == 5


def test_a_rule_that_cannot_be_copied_is_shared(village: Instance) -> None:
    class Event:
        def __init__(self) -> None:
            self.lock = threading.Lock()
            self.asked = 0

        def __call__(self, progress: arcfleet.Progress) -> bool:
            with self.lock:
                self.asked += 1
            return True

    rule = Event()
    verified(solve_many([village, village], "ps-random-arc", stop=rule))
    assert rule.asked == 2
