"""One of several processes that train together: runs the jobs of a JSON file in order."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from arcfleet.errors import OptionError
from arcfleet.neural.train.config import FinetuneConfig, config_from, config_of
from arcfleet.neural.train.distributed import Team, leave_team
from arcfleet.neural.train.finetune import finetune
from arcfleet.neural.train.loop import Learner
from arcfleet.neural.train.pretrain import pretrain


def run(job: dict[str, Any]) -> None:
    stops = Team.of_environment().rank == job.get("stopped")
    update, made = Learner.update, 0

    def counted(self: Learner[Any], *arguments: Any) -> None:
        nonlocal made
        update(self, *arguments)
        made += 1
        if stops and made == 3:
            os.kill(os.getpid(), signal.SIGTERM)

    Learner.update = counted  # type: ignore[assignment,method-assign]
    files: dict[str, Any] = {
        "data": job["data"],
        "validation": job["validation"],
        "init": job["init"],
        "resume": job.get("resume", False),
        "device": "cpu",
    }
    out = job["out"] if Team.of_environment().leads else job.get("others", job["out"])
    if job["kind"] == "pretrain":
        result = pretrain(out, config_from(job["settings"]), **files)
    else:
        config = config_of(FinetuneConfig, job["settings"])
        result = finetune(out, config, **files)
    Learner.update = update  # type: ignore[method-assign]
    assert result.finished == ("stopped" not in job)
    # What the first process has written is there for all.
    assert result.model_file.exists()


if __name__ == "__main__":
    torch.set_num_threads(1)
    for job in json.loads(Path(sys.argv[1]).read_text()):
        if "refused" not in job:
            run(job)
            continue
        with pytest.raises(OptionError, match=job["refused"]):
            run(job)
    leave_team()
    # Threads that outlive the group bring the program down now and then as it ends.
    if Path("/proc/self/task").exists():
        names = [x.read_text() for x in Path("/proc/self/task").glob("*/comm")]
        assert not [name for name in names if "gloo" in name]
