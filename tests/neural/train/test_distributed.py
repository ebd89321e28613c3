from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tests.neural.curriculum_file import TOML

from arcfleet.errors import FileError, OptionError
from arcfleet.neural.checkpoint import load_model, save_model
from arcfleet.neural.model import Daam
from arcfleet.neural.train.config import FinetuneConfig, config_from, config_of
from arcfleet.neural.train.distributed import ALONE, Team, join_team
from arcfleet.neural.train.finetune import finetune
from arcfleet.neural.train.pretrain import pretrain
from tests.neural.labelled_towns import joined_file, labelled_file

ROOT = Path(__file__).parents[2]
SIZES = {
    "width": 16,
    "layers": 1,
    "heads": 2,
    "feed_forward": 16,
    "mds_dimensions": 4,
    "inputs": "mds",
}
#: Of each process; 41 arcs, and 61 in the other set.
QUICK = {
    "model": SIZES,
    "steps": 4,
    "tokens": 41 * 61 * 2 * 3,
    "moments": 2,
    "log_steps": 1,
    "validations": 1,
    "learning_rate": 2e-3,
    "warm_up_steps": 1,
    "pictures": 0,
}
#: Two instances of three copies each at a time, in two updates.
TUNING = {
    **QUICK,
    "temperature": 1.0,
    "copies": 3,
    "rollout_tokens": 41 * 61 * 3 * 2,
    "tokens": 41 * 61 * 3 * 2,
    "lessons": 2,
    # By which no loss of reinforcement, a difference of large numbers, is nearly 0.
    "seed": 1,
}
OBJECTIVES = ("samples", "self-critical", "imitate-best")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    labelled_file(folder, "few", "task20", count=8)
    labelled_file(folder, "mixed", "task30", count=8, one_way=0.3)
    joined_file(folder, "unequal", [folder / "few.npz", folder / "mixed.npz"])
    start = pretrain(
        folder / "start",
        config_from({**QUICK, "steps": 2}),
        data=[folder / "few.npz"],
        device="cpu",
    )
    start.model_file.rename(folder / "start.safetensors")
    # The same weights, for a model that looks away from served arcs.
    model, _ = load_model(folder / "start.safetensors")
    hidden = Daam(replace(model.config, served="hidden"))
    hidden.load_state_dict(model.state_dict())
    save_model(hidden, folder / "hidden.safetensors", {})
    return folder


def job(folder: Path, kind: str, out: Path, **more: Any) -> dict[str, Any]:
    """Describe a run; `pretrain` or an objective of fine-tuning."""
    tuning = kind != "pretrain"
    settings = {**TUNING, "objective": kind} if tuning else dict(QUICK)
    return {
        "kind": "finetune" if tuning else "pretrain",
        "out": str(out),
        "settings": settings,
        "data": [str(folder / "few.npz"), str(folder / "mixed.npz")],
        "validation": [str(folder / "few.npz")],
        "init": str(folder / "start.safetensors"),
        **more,
    }


def run_two(tmp_path: Path, jobs: list[dict[str, Any]]) -> None:
    """Let two processes do the jobs, started as torchrun would start them."""
    file = tmp_path / "jobs.json"
    file.write_text(json.dumps(jobs))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.neural.team_member", str(file)],
            cwd=ROOT,
            env={
                **os.environ,
                **{"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2"},
                **{"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)},
                **{"OMP_NUM_THREADS": "1"},
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(2)
    ]
    said = [process.communicate(timeout=240)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], "\n".join(said)


def run_alone(job: dict[str, Any], out: Path) -> None:
    """Do a job in this process, with everything of a step doubled."""
    files: dict[str, Any] = {
        "data": job["data"],
        "validation": job["validation"],
        "device": "cpu",
    }
    settings = {**job["settings"], "tokens": 2 * job["settings"]["tokens"]}
    if job["kind"] == "pretrain":
        pretrain(out, config_from(settings), init=job["init"], **files)
        return
    settings["rollout_tokens"] *= 2
    finetune(out, config_of(FinetuneConfig, settings), init=job["init"], **files)


def metrics(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


def test_two_processes_are_one_with_a_doubled_batch(folder: Path, tmp_path: Path) -> None:
    jobs = {
        kind: job(folder, kind, tmp_path / f"{kind}-two")
        for kind in ("pretrain", *OBJECTIVES)
    }
    for kind in ("pretrain", "samples"):
        hidden = job(folder, kind, tmp_path / f"{kind}-hidden-two")
        hidden["settings"]["model"] = {**SIZES, "served": "hidden"}
        # States have 48 or 88 arcs then.
        hidden["settings"]["tokens"] = 48 * 11 * 2 * 14
        hidden["init"] = str(folder / "hidden.safetensors")
        jobs[f"{kind}-hidden"] = hidden
    # Instances of unequal sizes, one at a time.
    unequal = job(folder, "imitate-best", tmp_path / "unequal-two")
    unequal["data"] = [str(folder / "unequal.npz")]
    unequal["settings"]["rollout_tokens"] = 61 * 3
    jobs["unequal"] = unequal
    run_two(tmp_path, list(jobs.values()))
    for kind, each in jobs.items():
        run_alone(each, tmp_path / f"{kind}-one")
        one, two = (metrics(tmp_path / f"{kind}-{number}") for number in ("one", "two"))
        assert len(one) == len(two) >= 5  # every line is written once
        for alone, together in zip(one, two, strict=True):
            for name in (
                "step",
                "loss",
                "sampled",
                "greedy",
                "left",
                "improved",
                "learning_rate",
            ):
                assert (name in together) == (name in alone)
                if name in alone:
                    assert together[name] == pytest.approx(alone[name], rel=1e-4), kind
        weights, others = (
            load_file(tmp_path / f"{kind}-{number}" / "model.safetensors")
            for number in ("one", "two")
        )
        start = load_file(folder / "start.safetensors")
        moved = max((weights[name] - start[name]).abs().max().item() for name in start)
        for name in weights:
            difference = (weights[name] - others[name]).abs().max().item()
            assert difference < 1e-2 * moved, (kind, name)


def test_a_signal_to_any_process_stops_all_at_one_step(
    folder: Path, tmp_path: Path
) -> None:
    whole = job(folder, "pretrain", tmp_path / "whole")
    jobs = [whole]
    for rank in (0, 1):
        part = tmp_path / f"part-{rank}"
        jobs.append(job(folder, "pretrain", part, stopped=rank))
        jobs.append(job(folder, "pretrain", part, resume=True))
    # One that finds another checkpoint, or none, would make other steps than the rest.
    elsewhere = {"resume": True, "others": str(tmp_path / "elsewhere")}
    refused = "expected the same checkpoint in all 2 processes, found others"
    jobs.append(job(folder, "pretrain", tmp_path / "whole", refused=refused, **elsewhere))
    best = [
        job(folder, "imitate-best", tmp_path / "best"),
        job(folder, "imitate-best", tmp_path / "best-part", stopped=1),
        job(folder, "imitate-best", tmp_path / "best-part", resume=True),
    ]
    run_two(tmp_path, [*jobs, *best])
    for one, other in (("whole", "part-0"), ("whole", "part-1"), ("best", "best-part")):
        expected, found = (
            load_file(tmp_path / name / "checkpoint.safetensors") for name in (one, other)
        )
        assert expected.keys() == found.keys()
        assert all(torch.equal(expected[name], found[name]) for name in expected)
        steps = [line["step"] for line in metrics(tmp_path / other) if "loss" in line]
        assert steps == [1, 2, 3, 4]
    _, facts = load_model(tmp_path / "whole" / "model.safetensors")
    assert facts["processes"] == 2
    # One process alone would make other steps.
    with pytest.raises(FileError, match="resumed with the same processes"):
        pretrain(
            tmp_path / "whole",
            config_from(whole["settings"]),
            data=whole["data"],
            validation=whole["validation"],
            init=whole["init"],
            device="cpu",
            resume=True,
        )


def test_torchrun_and_a_curriculum(folder: Path, tmp_path: Path) -> None:
    out, file = tmp_path / "out", tmp_path / "x.toml"
    file.write_text(TOML)
    command = [
        *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
        *("--nproc-per-node", "2", "-m", "arcfleet.cli.main", "train", "curriculum"),
        *("--config", file, "--folder", folder, "--out", out, "--device", "cpu"),
    ]
    done = subprocess.run(
        [str(part) for part in command],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    gap, last = done.stdout.splitlines()  # once, not twice
    assert gap.startswith("few: greedy ")
    assert last == f"{out / 'model.safetensors'}: all 2 phases are finished"
    _, facts = load_model(out / "model.safetensors")
    assert (facts["kind"], facts["processes"], facts["steps"]) == ("finetune", 2, 2)


def test_wrong_use(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Team.of_environment() == ALONE
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "1")
    with pytest.raises(OptionError, match=r"RANK below WORLD_SIZE.*got 1 and 1"):
        Team.of_environment()
    monkeypatch.setenv("WORLD_SIZE", "two")
    with pytest.raises(OptionError, match="number in the environment variable WORLD_SIZE"):
        Team.of_environment()
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert Team.of_environment() == Team(rank=1, size=2)
    with pytest.raises(OptionError, match="a GPU of its own, got 'cuda:0'"):
        join_team("cuda:0")
    for address, port, message in (
        (None, "29500", "address of the first process .* MASTER_ADDR, got none"),
        ("127.0.0.1", None, "number in the environment variable MASTER_PORT.* got ''"),
        ("127.0.0.1", "-5", "number in the environment variable MASTER_PORT.* got '-5'"),
        ("127.0.0.1", "65536", "port from 1 to 65535 .* MASTER_PORT, got 65536"),
    ):
        for name, value in (("MASTER_ADDR", address), ("MASTER_PORT", port)):
            monkeypatch.delenv(name, raising=False)
            if value is not None:
                monkeypatch.setenv(name, value)
        with pytest.raises(OptionError, match=message):
            join_team("cpu")
    files: dict[str, Any] = {"data": [folder / "few.npz"], "device": "cpu"}
    start = folder / "start.safetensors"
    ppo = config_of(FinetuneConfig, {**TUNING, "objective": "ppo"})
    with pytest.raises(OptionError, match="one process for the objective ppo, got 2"):
        finetune(tmp_path / "run", ppo, init=start, **files)
    batch = config_from({**QUICK, "model": {**SIZES, "norm": "batch"}})
    with pytest.raises(OptionError, match="another norm than batch for 2 processes"):
        pretrain(tmp_path / "run", batch, **files)
    assert not (tmp_path / "run").exists()


def test_every_row_is_of_one_process() -> None:
    rows = torch.arange(6)
    parts = [Team(rank=rank, size=3).mine(rows) for rank in range(3)]
    assert torch.stack(parts, dim=1).flatten().tolist() == rows.tolist()
    assert ALONE.mine(rows) is rows
