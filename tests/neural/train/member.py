"""One of several processes that train together: runs the jobs of a JSON file in order."""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import arcfleet.paper  # noqa: F401  (enters its models)
from arcfleet.errors import OptionError
from arcfleet.neural.train.config import FinetuneConfig, PretrainConfig, config_from
from arcfleet.neural.train.distributed import World, destroy_process_group
from arcfleet.neural.train.finetune import finetune
from arcfleet.neural.train.loop import Learner
from arcfleet.neural.train.pretrain import pretrain
from arcfleet.neural.train.recipe import RecipeConfig, recipe_from, run_recipe


def run(job: dict[str, Any]) -> None:
    """Do a job; a process that is to be stopped gets a signal after two updates."""
    world = World.from_environment()
    out = Path(job["out"] if world.is_main else job.get("others", job["out"]))
    if job["phase"] == "recipe":
        recipe = recipe_from(job["content"], Path(job["folder"]))
        limits = RecipeConfig(out=out, device="cpu")
        assert run_recipe(recipe, limits).stopped_in is None
        return
    update, made = Learner.update, 0

    def counted(self: Learner, *arguments: Any) -> None:
        nonlocal made
        update(self, *arguments)
        made += 1
        if made == 2 and world.rank == job.get("stopped"):
            os.kill(os.getpid(), signal.SIGTERM)

    Learner.update = counted  # type: ignore[assignment,method-assign]
    files: dict[str, Any] = {name: job[name] for name in ("data", "validation", "init")}
    files |= {"resume": job.get("resume", False), "device": "cpu"}
    try:
        if job["phase"] == "pretrain":
            config = config_from(PretrainConfig, job["settings"])
            result = pretrain(out, config, **files)
        else:
            tuning = config_from(FinetuneConfig, job["settings"])
            result = finetune(out, tuning, **files)
    finally:
        Learner.update = update  # type: ignore[method-assign]
    assert result.finished == ("stopped" not in job)
    # What rank 0 has written is there for all.
    assert result.model_file.exists()


if __name__ == "__main__":
    torch.set_num_threads(1)
    for job in json.loads(Path(sys.argv[1]).read_text()):
        if "refused" not in job:
            run(job)
            continue
        with pytest.raises(OptionError, match=job["refused"]):
            run(job)
    destroy_process_group()
    # Threads that outlive the group bring the program down now and then as it ends.
    if Path("/proc/self/task").exists():
        names = [x.read_text() for x in Path("/proc/self/task").glob("*/comm")]
        assert not [name for name in names if "gloo" in name]
