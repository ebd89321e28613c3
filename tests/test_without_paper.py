"""The product without the paper's folder: everything else imports and solves."""

import shutil
import subprocess
import sys
from pathlib import Path

import arcfleet
from tests.helpers import ROOT

# In another process, which takes the package from a copy.
_CODE = """
import importlib, pkgutil, sys
import arcfleet
from arcfleet import Stop, check, read, solve
from arcfleet.cli.main import build_parser, main
from arcfleet.errors import ArcfleetError

assert arcfleet.__file__.startswith(sys.argv[1]), arcfleet.__file__
names = [module.name for module in pkgutil.walk_packages(arcfleet.__path__, "arcfleet.")]
assert len(names) > 50 and not any(name.startswith("arcfleet.paper") for name in names)
for name in names:
    importlib.import_module(name)
assert not any(name.startswith("arcfleet.paper") for name in sys.modules)

instance = read("example:denver")
for method in ("ruin-recreate", "daam-greedy"):
    result = solve(instance, method, stop=Stop(iterations=1))
    assert check(instance, result.solution).ok, method
assert "s2v-dqn" not in arcfleet.METHODS
assert main(["methods"]) == 0
assert main(["model", "info"]) == 0
# The paper's command is one sentence, all others have their options.
assert main(["paper", "table", "--out", "x"]) == 1
build_parser()
# A file of the published model: one sentence says what is missing.
try:
    solve(instance, "daam", model=sys.argv[2])
except ArcfleetError as error:
    assert "arcfleet.paper" in str(error) and "\\n" not in str(error), error
else:
    raise AssertionError("a published model was read without its class")
print("done")
"""


def test_everything_else_imports_and_solves(tmp_path: Path) -> None:
    package = tmp_path / "arcfleet"
    source = Path(arcfleet.__file__).parent
    shutil.copytree(source, package, ignore=shutil.ignore_patterns("paper"))
    # An editable install has the extension elsewhere.
    core = Path(sys.modules["arcfleet._core"].__file__ or "")
    shutil.copy(core, package / core.name)
    assert not (package / "paper").exists()
    published = ROOT / "tests" / "regression" / "data" / "paper-like.safetensors"
    # The finder of an editable install, an instance, would find the package at its place.
    code = (
        "import sys\n"
        "sys.meta_path[:] = [each for each in sys.meta_path if isinstance(each, type)]\n"
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code + _CODE, str(tmp_path), str(published)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[-1] == "done"
    assert ran.stderr == (
        "arcfleet: expected the folder arcfleet/paper, found none: this installation has "
        "no reproduction of the paper\n"
    )
