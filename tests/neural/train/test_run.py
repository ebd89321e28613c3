"""The folder of a run, and where its settings come from."""

import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from arcfleet.errors import FileError, OptionError
from arcfleet.neural.checkpoint import save_model
from arcfleet.neural.model import DaamConfig
from arcfleet.neural.train.config import ADDED, PretrainConfig, changed, settings_of
from arcfleet.neural.train.run import (
    CPU_TOKENS,
    RunFolder,
    initial_model,
    require_unoccupied,
    resolve_config,
)
from tests.neural.train.quick import QUICK, TINY, TINY_PUBLISHED, metrics, run

IDENTITY: dict[str, object] = {"config": {}}


def shown(folder: Path, name: str) -> list[tuple[int, float]]:
    """Read steps and numbers as TensorBoard does."""
    pytest.importorskip("tensorboard", reason="TensorBoard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    board: Any = EventAccumulator(str(folder / "tensorboard"))
    board.Reload()
    return [(event.step, event.value) for event in board.Scalars(name)]


def test_tensorboard_shows_the_metrics(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path, IDENTITY, resume=False)
    folder.log(0, 0.0, gaps={"task20": {"greedy": 4.0}})
    folder.log(1, 0.1, values={"loss": 3.0})
    folder.log(2, 0.2, values={"loss": 2.5})
    folder.close()
    assert shown(tmp_path, "loss") == [(1, 3.0), (2, 2.5)]
    assert shown(tmp_path, "gaps/task20/greedy") == [(0, 4.0)]


def test_a_resumed_run_shows_no_step_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = RunFolder(tmp_path, IDENTITY, resume=False)
    for step in (1, 2, 3):
        first.log(step, 0.0, values={"loss": float(step)})
        if step == 1:
            first.save({}, {"step": 1})
    first.close()
    # TensorBoard reads its files by the second in their names.
    clock = time.time
    monkeypatch.setattr(time, "time", lambda: clock() + 2)
    again = RunFolder(tmp_path, IDENTITY, resume=True)
    again.load()
    for step in (2, 3, 4):
        again.log(step, 0.0, values={"loss": 10.0 * step})
    again.close()
    wanted = [(1, 1.0), (2, 20.0), (3, 30.0), (4, 40.0)]
    assert shown(tmp_path, "loss") == wanted
    assert [(line["step"], line["loss"]) for line in metrics(tmp_path)] == wanted


def test_a_run_from_before_a_setting_came_goes_on(tmp_path: Path) -> None:
    now = {"config": {"steps": 3, "muon_factor": 0.0}}
    # With a setting, too, that has gone since and did nothing.
    begun = {"config": {"steps": 3, "distil_free_turns": False}}
    RunFolder(tmp_path, begun, resume=False).close()
    RunFolder(tmp_path, now, resume=True).close()
    now["config"]["muon_factor"] = 3.0
    with pytest.raises(FileError, match="resumed with the same muon_factor"):
        RunFolder(tmp_path, now, resume=True)


def test_settings_that_came_do_by_default_what_was_done_before() -> None:
    """Else the settings of a run that is resumed would need them, too."""
    usual = settings_of(QUICK)
    assert {name: usual[name] for name in ADDED} == ADDED


@pytest.mark.parametrize(
    ("name", "found"), [("run", "a run"), ("recipe", "a recipe"), ("bare", "a model")]
)
def test_nothing_takes_the_place_of_a_model(tmp_path: Path, name: str, found: str) -> None:
    file = {"run": "config.json", "recipe": "recipe.jsonl"}.get(name, "model.safetensors")
    (tmp_path / file).write_bytes(b"precious")
    with pytest.raises(FileError, match=f"found {found} in it: name another folder"):
        require_unoccupied(tmp_path)
    with pytest.raises(FileError, match=r"found (one|a recipe|a model)"):
        RunFolder(tmp_path, IDENTITY, resume=False)
    assert (tmp_path / file).read_bytes() == b"precious"


def test_settings_come_from_many_places(folder: Path, tmp_path: Path) -> None:
    """Options before the file, before the run to resume, before the model's sizes."""
    run(folder, tmp_path / "run", QUICK, validation=[])
    init = folder / "weak.safetensors"
    resolve = partial(resolve_config, PretrainConfig, device="cpu")
    fresh = resolve({"steps": 2})
    assert (fresh.tokens, fresh.model) == (CPU_TOKENS, DaamConfig())
    started = resolve({"steps": 2, "tokens": 5}, init=init)
    sizes: Any = started.model
    assert (started.tokens, sizes) == (5, TINY_PUBLISHED)
    file = tmp_path / "some.toml"
    file.write_text("seed = 3\nlog_steps = 7\n")
    resumed = resolve({"seed": 1}, file=file, out=tmp_path / "run")
    assert resumed == changed(QUICK, seed=1, log_steps=7)
    file.write_text("model = 3\n")
    with pytest.raises(FileError, match=r"some.toml: .*model to be a table of sizes"):
        resolve({"steps": 2}, file=file)
    with pytest.raises(OptionError, match="expected steps"):
        resolve({"steps": -2}, file=file)


def test_a_run_of_another_version_names_the_settings(folder: Path, tmp_path: Path) -> None:
    run(folder, tmp_path / "run", QUICK, validation=[])
    file = tmp_path / "run" / "config.json"
    file.write_text(file.read_text().replace("decision_steps", "moments"))
    with pytest.raises(FileError, match="the setting decision_steps, got moments"):
        resolve_config(PretrainConfig, {}, out=tmp_path / "run", device="cpu")


def test_the_initial_model_depends_on_the_seed_alone(tmp_path: Path) -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    one, same, other = (
        initial_model(changed(QUICK, seed=seed), None).state_dict() for seed in (1, 1, 2)
    )
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert any(not torch.equal(one[name], other[name]) for name in one)
    deeper = changed(QUICK, model=replace(TINY, layers=2))
    save_model(initial_model(QUICK, None), tmp_path / "a.safetensors", {})
    with pytest.raises(OptionError, match=r"to have the sizes .*layers=2.*layers=1"):
        initial_model(deeper, tmp_path / "a.safetensors")
