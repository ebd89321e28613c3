"""Every product command works without the folder `arcfleet/paper`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from arcfleet.methods import has_model
from tests.cli.running import ROOT

if TYPE_CHECKING:
    from pathlib import Path

# An editable install would find the package in its own place.
START = """
import sys
sys.meta_path[:] = [finder for finder in sys.meta_path if isinstance(finder, type)]
"""
IMPORT_ALL = """
import importlib, pkgutil
import arcfleet
for module in pkgutil.walk_packages(arcfleet.__path__, "arcfleet."):
    importlib.import_module(module.name)
"""
RUN = """
from arcfleet.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("without")
    shutil.copytree(
        ROOT / "src" / "arcfleet",
        folder / "arcfleet",
        ignore=shutil.ignore_patterns("paper", "__pycache__"),
    )
    return folder


def python(
    package: Path, code: str, *arguments: object
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", START + code, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": str(package)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_other_module_imports(package: Path) -> None:
    pytest.importorskip("torch")
    ran = python(package, IMPORT_ALL + "print(arcfleet.__file__)")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith(str(package))


def test_every_other_command_is_there(package: Path) -> None:
    ran = python(package, RUN, "--help")
    assert ran.returncode == 0, ran.stderr
    for command in ("solve", "compare", "scene", "dataset", "train", "model", "bench"):
        assert f"  {command} " in ran.stdout


def test_the_learned_solver_solves(package: Path, tmp_path: Path) -> None:
    if not has_model():
        pytest.skip("no model")
    plan = tmp_path / "plan.json"
    instance = ROOT / "examples" / "village.json"
    for method in ("ps", "daam-greedy"):
        ran = python(package, RUN, "solve", instance, "--method", method, "--out", plan)
        assert (ran.returncode, ran.stderr) == (0, "")
        ran = python(package, RUN, "check", instance, plan)
        assert ran.returncode == 0


def test_the_command_of_the_paper_says_that_it_is_not_there(package: Path) -> None:
    for words in (["paper"], ["paper", "table", "--out", "x"]):
        ran = python(package, RUN, *words)
        assert (ran.returncode, ran.stdout) == (1, "")
        assert ran.stderr == (
            "arcfleet: expected the folder arcfleet/paper, found none: this installation "
            "has no reproduction of the paper\n"
        )
