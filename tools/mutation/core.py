"""Mutants of a C++ file: one word changed, compiled, shown to self-check and tests.

A copy of the sources is built without optimisation across files, with the assertions of
the standard library, so that one mutant costs one compilation and two links.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, NamedTuple

from tools.mutation.run import KILLED, OUT, ROOT, SURVIVED, TIMEOUT

if TYPE_CHECKING:
    from pathlib import Path

FILE = "cpp/search/split.cpp"
CHECK = "split"  # of the self-check
TESTS = ("tests/search/test_split.py",)
SECONDS = 120.0  # that a build or a run may take; the machine may be busy
NOT_COMPILED = "not compiled"

_WORDS = {
    " < ": " <= ",
    " <= ": " < ",
    " > ": " >= ",
    " >= ": " > ",
    " == ": " != ",
    " != ": " == ",
    " + ": " - ",
    " - ": " + ",
    " * ": " + ",
    " += ": " -= ",
    " && ": " || ",
    " || ": " && ",
    "++": "--",
    "--": "++",
    "(!": "(",
    " !": " ",
    "continue;": "break;",
    "break;": "continue;",
    "std::min(": "std::max(",
}
_PLACES = re.compile(
    "|".join(map(re.escape, sorted(_WORDS, key=len, reverse=True)))
    + r"|(?<![\w.])\d+(?![\w.])|\b(?:true|false)\b"
)
# Comments, texts, directives and the types of templates.
_LEFT_ALONE = re.compile(r'//[^\n]*|"[^"\n]*"|^#[^\n]*|<[\w:, ]*>|^template[^\n]*', re.M)


class CoreMutant(NamedTuple):
    """One word of the file changed."""

    start: int
    end: int
    line: int
    old: str
    new: str


def core_mutants(text: str) -> list[CoreMutant]:
    """Return all mutants of a C++ text, from its beginning to its end."""
    hidden = _LEFT_ALONE.sub(lambda found: "\0" * len(found[0]), text)
    mutants = []
    for found in _PLACES.finditer(hidden):
        old = found[0]
        new = _WORDS.get(old) or {"true": "false", "false": "true"}.get(old)
        line = text.count("\n", 0, found.start()) + 1
        new = new or str(int(old) + 1)
        mutants.append(CoreMutant(found.start(), found.end(), line, old.strip(), new))
    return mutants


def show_core(sample: int | None, seed: int) -> None:
    """Show a sample of the mutants of Split to the self-check and to its tests."""
    folder = OUT / "core"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "cpp", folder / "cpp")
    shutil.copy(ROOT / "CMakeLists.txt", folder)
    text = (folder / FILE).read_text(encoding="utf-8")
    found = core_mutants(text)
    chosen = found
    if sample is not None and sample < len(found):
        chosen = sorted(random.Random(seed).sample(found, sample))
    programs = os.pathsep.join([str(ROOT / ".venv" / "bin"), os.environ["PATH"]])
    os.environ["PATH"] = programs
    options = ("SELFCHECK=ON", "PYTHON=ON")
    subprocess.run(
        [
            *("cmake", "-S", str(folder), "-B", str(folder / "build"), "-G", "Ninja"),
            *(f"-DARCFLEET_{option}" for option in options),
            "-DCMAKE_BUILD_TYPE=None",
            "-DCMAKE_CXX_FLAGS=-O1 -D_GLIBCXX_ASSERTIONS",
            f"-DPython_EXECUTABLE={sys.executable}",
            "--log-level=WARNING",
        ],
        check=True,
    )
    if _fate(folder) != SURVIVED:
        raise SystemExit("the self-check or the tests fail without a mutant")
    fates = []
    for mutant in chosen:
        changed = text[: mutant.start] + mutant.new + text[mutant.end :]
        (folder / FILE).write_text(changed, encoding="utf-8")
        fates.append(_fate(folder))
        if fates[-1] not in {KILLED, TIMEOUT}:
            change = f"{mutant.old} -> {mutant.new.strip()}"
            print(f"{FILE}:{mutant.line}: {change}: {fates[-1]}", flush=True)
    compiled = len(fates) - fates.count(NOT_COMPILED)
    killed = fates.count(KILLED) + fates.count(TIMEOUT)
    print(
        f"core: {killed} of {compiled} killed ({fates.count(TIMEOUT)} by their time), "
        f"sampled from {len(found)}",
        flush=True,
    )


_TEST = """
import importlib.machinery, importlib.util, sys
path, *tests = sys.argv[1:]
class Finder:
    def find_spec(self, name, *_):
        if name == "arcfleet._core":
            loader = importlib.machinery.ExtensionFileLoader(name, path)
            return importlib.util.spec_from_file_location(name, path, loader=loader)
sys.meta_path.insert(0, Finder())
import pytest
sys.exit(pytest.main(["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]))
"""


def _fate(folder: Path) -> str:
    build = folder / "build"
    if _run(["cmake", "--build", str(build)]) != 0:
        return NOT_COMPILED
    (library,) = build.glob("_core.*")
    for command in (
        [str(build / "selfcheck"), CHECK],
        [sys.executable, "-c", _TEST, str(library), *TESTS],
    ):
        status = _run(command)
        if status is None:
            return TIMEOUT
        if status != 0:
            return KILLED
    return SURVIVED


def _run(command: list[str]) -> int | None:
    """Run a command; return its exit status, or None where it takes too long."""
    environment = {**os.environ, "ARCFLEET_SAME_EXAMPLES": "1"}
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdout=quiet,
        stderr=quiet,
        start_new_session=True,
    )
    try:
        return process.wait(SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return None
