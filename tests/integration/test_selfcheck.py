from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

# cmake and ninja come with the environment; the system need not have them.
PATHS = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
ENVIRONMENT = os.environ | {"PATH": PATHS}
ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "selfcheck"


def test_the_core_checks_itself_under_the_sanitizers() -> None:
    cmake = shutil.which("cmake", path=PATHS) or "cmake"
    configure = [cmake, "-S", str(ROOT), "-B", str(BUILD), "-G", "Ninja"]
    options = {
        "ARCFLEET_PYTHON": "OFF",
        "ARCFLEET_SELFCHECK": "ON",
        "ARCFLEET_SANITIZE": "ON",
        "CMAKE_BUILD_TYPE": "RelWithDebInfo",
    }
    configure += [f"-D{name}={value}" for name, value in options.items()]
    for command in (configure, [cmake, "--build", str(BUILD)]):
        ran = subprocess.run(
            command, capture_output=True, text=True, check=False, env=ENVIRONMENT
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
    ran = subprocess.run(
        [str(BUILD / "selfcheck")], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "FAILED" not in ran.stdout
    assert ran.stdout.count("ok ") == 6
