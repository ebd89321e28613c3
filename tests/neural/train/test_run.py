"""The folder of a run: what TensorBoard shows of its metrics."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from arcfleet.neural.train.run import RunFolder

if TYPE_CHECKING:
    from pathlib import Path

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
    folder.log({"step": 0, "gaps": {"task20": {"greedy": 4.0}}})
    folder.log({"step": 1, "loss": 3.0})
    folder.log({"step": 2, "loss": 2.5})
    folder.close()
    assert shown(tmp_path, "loss") == [(1, 3.0), (2, 2.5)]
    assert shown(tmp_path, "gaps/task20/greedy") == [(0, 4.0)]


def test_a_resumed_run_shows_no_step_twice(tmp_path: Path) -> None:
    first = RunFolder(tmp_path, IDENTITY, resume=False)
    for step in (1, 2, 3):
        first.log({"step": step, "loss": float(step)})
    first.close()
    again = RunFolder(tmp_path, IDENTITY, resume=True)
    again.forget_metrics_after(1)  # where its checkpoint is
    for step in (2, 3, 4):
        again.log({"step": step, "loss": 10.0 * step})
    again.close()
    wanted = [(1, 1.0), (2, 20.0), (3, 30.0), (4, 40.0)]
    assert shown(tmp_path, "loss") == wanted
    lines = (tmp_path / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    assert [(d["step"], d["loss"]) for d in map(json.loads, lines)] == wanted
