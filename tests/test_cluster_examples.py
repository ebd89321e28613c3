"""The files in examples/cluster do what they say, without a cluster."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.cli.running import succeeded
from tests.helpers import ROOT, SMALL, VILLAGE

EXAMPLES = ROOT / "examples" / "cluster"
SLURM = EXAMPLES / "slurm.sh"
KUBERNETES = EXAMPLES / "kubernetes.yaml"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with towns, and `arcfleet` as a command."""
    towns = tmp_path / "towns"
    towns.mkdir()
    for number in range(11):
        shutil.copy(SMALL, towns / f"{number}.dat")
    shutil.copy(VILLAGE, towns)
    command = tmp_path / "bin" / "arcfleet"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m arcfleet.cli.main "$@"\n')
    command.chmod(0o755)
    return tmp_path


def run(command: list[str], place: Path, **environment: str) -> None:
    path = f"{place / 'bin'}:{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, **environment}
    ran = subprocess.run(
        command, cwd=place, env=env, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")


def require_all(place: Path) -> None:
    """Merge the parts, as the examples say."""
    out = place / "plans.jsonl"
    parts = sorted((place / "parts").glob("plans-*.jsonl"))
    assert "12 instances of 10 parts" in succeeded("merge", out, *parts)
    records = [json.loads(line) for line in out.read_text().splitlines()[1:]]
    assert [x["position"] for x in records] == list(range(12))
    assert all(x["error"] is None for x in records)


def shortened(text: str) -> str:
    changed, count = re.subn(r"--time \d+", "--iterations 100", text)
    assert count == 1
    return changed


def test_the_slurm_array_solves_all(place: Path) -> None:
    script = place / "slurm.sh"
    text = SLURM.read_text()
    script.write_text(shortened(text))
    ((first, last),) = re.findall(r"^#SBATCH --array=(\d+)-(\d+)$", text, re.MULTILINE)
    for task in range(int(first), int(last) + 1):
        run(
            ["bash", str(script)],
            place,
            SLURM_ARRAY_TASK_ID=str(task),
            SLURM_ARRAY_TASK_COUNT=last,
            SLURM_CPUS_PER_TASK="1",
        )
    # One part again, as after `sbatch --array=3`.
    part = place / "parts" / "plans-3.jsonl"
    before = part.read_bytes()
    run(["bash", str(script)], place, SLURM_ARRAY_TASK_ID="3", SLURM_ARRAY_TASK_COUNT="1")
    assert part.read_bytes() == before
    require_all(place)


def test_the_kubernetes_job_solves_all(place: Path) -> None:
    job = yaml.safe_load(KUBERNETES.read_text())
    assert (job["apiVersion"], job["kind"]) == ("batch/v1", "Job")
    spec = job["spec"]
    assert spec["completionMode"] == "Indexed"
    pod = spec["template"]["spec"]
    assert pod["restartPolicy"] == "Never"  # as backoffLimitPerIndex asks for
    (container,) = pod["containers"]
    mounts = {x["name"] for x in container["volumeMounts"]}
    assert mounts == {x["name"] for x in pod["volumes"]}
    assert container["volumeMounts"][0]["mountPath"] == container["workingDir"]
    *shell, script = container["command"]
    assert shell == ["/bin/sh", "-c"]
    assert f"/{spec['completions']} " in script
    one = shortened(script).replace("--workers 4", "--workers 1")
    for index in range(spec["completions"]):
        run([*shell, one], place, JOB_COMPLETION_INDEX=str(index))
    require_all(place)
