import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from arcfleet.errors import FileError, OptionError
from arcfleet.neural.checkpoint import load_model, sizes_of
from arcfleet.neural.train.config import FinetuneConfig, PretrainConfig, config_from
from arcfleet.neural.train.distributed import ALONE, World, init_process_group
from arcfleet.neural.train.finetune import finetune
from arcfleet.neural.train.pretrain import pretrain
from tests.neural.train.quick import TINY, TINY_PUBLISHED, assert_same, metrics

ROOT = Path(__file__).parents[3]
#: Of each process; 41 arcs, and 61 in the other set.
QUICK = {
    **{"steps": 3, "tokens": 41 * 61 * 2 * 3, "decision_steps": 2, "log_steps": 1},
    **{"validations": 1, "learning_rate": 2e-3, "warm_up_steps": 1},
    "giant_tour_fraction": 0,
}
#: Two instances of three samples each at a time, in two updates.
TUNING = {
    **{**QUICK, "temperature": 1.0, "samples": 3, "rollout_tokens": 41 * 61 * 3 * 2},
    "tokens": 41 * 61 * 3 * 2,
    # By which no loss of reinforcement, a difference of large numbers, is nearly 0.
    "seed": 1,
}
RECIPE: dict[str, Any] = {
    "model": {"width": 16, "layers": 1, "heads": 2, "feed_forward": 16},
    "settings": {"steps": 2, "tokens": 400, "decision_steps": 2, "log_steps": 1},
    "finetune": {"samples": 2, "rollout_tokens": 400},
    "stage": [
        {"name": name, "phase": name, "data": ["few.npz"], "validation": ["few.npz"]}
        for name in ("pretrain", "finetune")
    ],
}


def job(folder: Path, phase: str, out: Path, sizes: Any = TINY, **more: Any) -> Any:
    settings = dict(QUICK if phase == "pretrain" else TUNING)
    if sizes == TINY:
        settings["tokens"] = 48 * 11 * 2 * 14  # states have 48 or 88 arcs then
    weak = "weak-daam" if sizes == TINY else "weak"
    return {
        "phase": phase,
        "out": str(out),
        "settings": {**settings, "model": sizes_of(sizes)},
        "data": [str(folder / "small.npz"), str(folder / "mixed.npz")],
        "validation": [str(folder / "small.npz")],
        "init": str(folder / f"{weak}.safetensors"),
        **more,
    }


def run_alone(job: dict[str, Any], out: Path) -> None:
    """Do a job in this process, with everything of a step doubled."""
    files: dict[str, Any] = {name: job[name] for name in ("data", "validation", "init")}
    settings = {**job["settings"], "tokens": 2 * job["settings"]["tokens"]}
    if job["phase"] == "pretrain":
        config = config_from(PretrainConfig, settings)
        pretrain(out, config, device="cpu", **files)
        return
    settings["rollout_tokens"] *= 2
    finetune(out, config_from(FinetuneConfig, settings), device="cpu", **files)


@pytest.fixture(scope="module")
def jobs(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Jobs that two processes, started by torchrun, have done."""
    out = tmp_path_factory.mktemp("jobs")
    jobs = {
        f"{phase}-{name}": job(folder, phase, out / f"{phase}-{name}", sizes)
        for phase in ("pretrain", "finetune")
        for name, sizes in (("daam", TINY), ("published", TINY_PUBLISHED))
    }
    for rank in (0, 1):
        part = out / f"part-{rank}"
        jobs[f"stopped-{rank}"] = job(folder, "pretrain", part, stopped=rank)
        jobs[f"resumed-{rank}"] = job(folder, "pretrain", part, resume=True)
    # One that finds another checkpoint, or none, would make other steps than the rest.
    refused = "expected the same checkpoint in all 2 processes, found others"
    elsewhere = {"resume": True, "others": str(out / "elsewhere"), "refused": refused}
    jobs["refused"] = job(folder, "pretrain", out / "pretrain-daam", **elsewhere)
    recipe = {"phase": "recipe", "content": RECIPE, "folder": str(folder)}
    jobs["recipe"] = {**recipe, "out": str(out / "recipe")}
    file = out / "jobs.json"
    file.write_text(json.dumps(list(jobs.values())))
    done = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
            *("--nproc-per-node", "2", "-m", "tests.neural.train.member", str(file)),
        ],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return jobs


@pytest.mark.parametrize("phase", ["pretrain", "finetune"])
@pytest.mark.parametrize("model", ["daam", "published"])
def test_two_processes_are_one_with_a_doubled_batch(
    jobs: dict[str, Any], tmp_path: Path, phase: str, model: str
) -> None:
    each = jobs[f"{phase}-{model}"]
    run_alone(each, tmp_path / "one")
    one, two = metrics(tmp_path / "one"), metrics(Path(each["out"]))
    assert len(one) == len(two) >= 4  # every line is written once
    for alone, together in zip(one, two, strict=True):
        for name in ("step", "loss", "sampled", "kl", "learning_rate"):
            assert (name in together) == (name in alone)
            if name in alone:
                assert together[name] == pytest.approx(alone[name], rel=1e-4)
    weights = load_file(tmp_path / "one" / "model.safetensors")
    others = load_file(Path(each["out"]) / "model.safetensors")
    start = load_file(each["init"])
    moved = max((weights[name] - start[name]).abs().max().item() for name in start)
    for name in weights:
        assert (weights[name] - others[name]).abs().max().item() < 1e-2 * moved, name


def test_a_signal_to_any_process_stops_all_at_one_step(jobs: dict[str, Any]) -> None:
    whole = jobs["pretrain-daam"]
    out = Path(whole["out"])
    for rank in (0, 1):
        part = Path(jobs[f"resumed-{rank}"]["out"])
        assert_same(out / "checkpoint.safetensors", part / "checkpoint.safetensors")
        assert [x["step"] for x in metrics(part) if "loss" in x] == [1, 2, 3]
    _, facts = load_model(out / "model.safetensors")
    assert facts["processes"] == 2
    # One process alone would make other steps.
    with pytest.raises(FileError, match="resumed with the same processes"):
        pretrain(
            out,
            config_from(PretrainConfig, whole["settings"]),
            **{name: whole[name] for name in ("data", "validation", "init")},
            device="cpu",
            resume=True,
        )


def test_a_recipe_of_two_processes(jobs: dict[str, Any]) -> None:
    _, facts = load_model(Path(jobs["recipe"]["out"]) / "model.safetensors")
    assert (facts["phase"], facts["processes"], facts["steps"]) == ("finetune", 2, 2)


def test_wrong_use(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert World.from_environment() == ALONE
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "1")
    with pytest.raises(OptionError, match=r"RANK below WORLD_SIZE.*got 1 and 1"):
        World.from_environment()
    monkeypatch.setenv("WORLD_SIZE", "two")
    with pytest.raises(OptionError, match="number in the environment variable WORLD_SIZE"):
        World.from_environment()
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert World.from_environment() == World(rank=1, size=2)
    with pytest.raises(OptionError, match="a GPU of its own, got 'cuda:0'"):
        init_process_group("cuda:0")
    for address, port, message in (
        (None, "29500", "address of rank 0 .* MASTER_ADDR, got none"),
        ("127.0.0.1", None, "number in the environment variable MASTER_PORT.* got ''"),
        ("127.0.0.1", "-5", "number in the environment variable MASTER_PORT.* got '-5'"),
        ("127.0.0.1", "65536", "port from 1 to 65535 .* MASTER_PORT, got 65536"),
    ):
        for name, value in (("MASTER_ADDR", address), ("MASTER_PORT", port)):
            monkeypatch.delenv(name, raising=False)
            if value is not None:
                monkeypatch.setenv(name, value)
        with pytest.raises(OptionError, match=message):
            init_process_group("cpu")
    sizes = {**sizes_of(TINY_PUBLISHED), "norm": "batch"}
    batch = config_from(PretrainConfig, {**QUICK, "model": sizes})
    with pytest.raises(OptionError, match="another norm than batch for 2 processes"):
        pretrain(tmp_path / "run", batch, data=[folder / "few.npz"], device="cpu")
    assert not (tmp_path / "run").exists()


def test_every_row_is_of_one_process() -> None:
    rows = torch.arange(6)
    parts = [World(rank=rank, size=3).shard(rows) for rank in range(3)]
    assert torch.stack(parts, dim=1).flatten().tolist() == rows.tolist()
    assert ALONE.shard(rows) is rows
