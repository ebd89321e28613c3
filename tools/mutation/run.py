"""Runs the tests against mutants, each in a forked process.

Tests are collected once. A first run notes which lines of the mutated modules each test
reaches; a mutant is then shown only to tests that reach its line, the fastest first, until
one of them fails. Faults outside of functions need the module to be imported anew, and are
shown to all tests; those that survive inside of one are shown again that way. Tests that
start other processes cannot notice a mutant there.
"""

from __future__ import annotations

import gc
import importlib.abc
import importlib.util
import json
import os
import resource
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec

    from tools.mutation.mutants import Mutant

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
OUT = ROOT / "build" / "mutation"
KILLED, SURVIVED, TIMEOUT, NOT_REACHED = "killed", "survived", "timeout", "not reached"
# A mutant that runs this many times as long as its tests did, and some seconds, hangs. The
# machine may be busy.
SLOWER, SECONDS = 10, 60
MEMORY = 8 << 30  # bytes; a mutant may fill a list for ever


def module_name(path: Path) -> str:
    """Return the name by which a file of the package is imported."""
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(
        ".__init__"
    )


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a mutant."""

    mutant: Mutant
    fate: str
    reached_by: Sequence[str] = ()  # tests that reach it; not known outside of functions
    killer: str = ""  # the test that failed

    def line(self) -> str:
        """Return the outcome as a line of JSON."""
        mutant = self.mutant
        return json.dumps(
            {
                "file": str(mutant.path.relative_to(ROOT)),
                "line": mutant.line,
                "number": mutant.number,
                "change": mutant.change,
                "fate": self.fate,
                "tests": len(self.reached_by),
                "killer": self.killer,
            }
        )


def run_mutants(
    chosen: Sequence[Mutant], tests: Sequence[str], report: Callable[[Outcome], None]
) -> None:
    """Run the tests against each mutant and report what became of it."""
    OUT.mkdir(parents=True, exist_ok=True)
    os.environ["ARCFLEET_SAME_EXAMPLES"] = "1"
    whole = [mutant for mutant in chosen if not mutant.function]
    for mutant in whole:
        report(_imported_anew(mutant, tests))
    inside = [mutant for mutant in chosen if mutant.function]
    survivors: list[Outcome] = []

    def sift(outcome: Outcome) -> None:
        (survivors.append if outcome.fate == SURVIVED else report)(outcome)

    if inside:
        _pytest(tests, [_Session(inside, sift)])
    # Functions that are called while modules are imported, and those made by others, do
    # not change with their code.
    for outcome in survivors:
        report(_imported_anew(outcome.mutant, outcome.reached_by))


def _pytest(tests: Sequence[str], plugins: Sequence[object]) -> int:
    options = ["-q", "-x", "-s", "-p", "no:cacheprovider", "-p", "no:xdist"]
    base = OUT / f"files-{os.getpid()}"
    return int(
        pytest.main(
            [*options, f"--basetemp={base}", f"--rootdir={ROOT}", *tests],
            [_Examples(), *plugins],
        )
    )


class _Examples:
    """Failing examples need not be made small."""

    def pytest_sessionstart(self) -> None:
        from hypothesis import Phase, settings

        settings.register_profile(
            "mutation",
            parent=settings.default,
            phases=(Phase.explicit, Phase.generate),
            database=None,
        )
        settings.load_profile("mutation")


class _Session:
    """Takes the place of pytest's loop over the tests."""

    def __init__(self, chosen: Sequence[Mutant], report: Callable[[Outcome], None]) -> None:
        self.chosen = chosen
        self.report = report
        self.failed = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        files = {str(mutant.path) for mutant in self.chosen}
        reached = OUT / f"reached-{os.getpid()}.json"
        fate = _forked(lambda: self._trace(session, files, reached), limit=3600)
        if fate != SURVIVED:
            raise pytest.UsageError(f"the tests fail or hang without a mutant: {fate}")
        seen = json.loads(reached.read_text())
        reached.unlink()
        functions = _functions({module_name(Path(file)) for file in files})
        items = {item.nodeid: item for item in session.items}
        for mutant in self.chosen:
            lines = range(mutant.line, mutant.end_line + 1)
            names = [
                name
                for name, (_, found) in sorted(seen.items(), key=lambda test: test[1][0])
                if not set(found.get(str(mutant.path), ())).isdisjoint(lines)
            ]
            if not names:
                self.report(Outcome(mutant, NOT_REACHED))
                continue
            note = OUT / f"killer-{os.getpid()}"
            note.write_text("")
            limit = SECONDS + SLOWER * sum(seen[name][0] for name in names)
            fate = _forked(
                lambda mutant=mutant, names=names, note=note: self._show(  # type: ignore[misc]
                    [items[name] for name in names], mutant, functions, note
                ),
                limit,
            )
            self.report(Outcome(mutant, fate, names, note.read_text()))
            note.unlink()
        return True

    def _trace(self, session: pytest.Session, files: set[str], out: Path) -> bool:
        """Run all tests, and write how long each takes and which lines it reaches."""
        seen: dict[str, tuple[float, dict[str, list[int]]]] = {}
        for place, item in enumerate(session.items):
            lines: dict[str, set[int]] = {}

            def trace(frame: FrameType, event: str, _: Any, lines: Any = lines) -> Any:
                name = frame.f_code.co_filename
                if name not in files:
                    return None
                if event in {"call", "line"}:
                    lines.setdefault(name, set()).add(frame.f_lineno)
                return trace

            after = session.items[place + 1 :][:1]
            started = time.perf_counter()
            sys.settrace(trace)
            session.config.hook.pytest_runtest_protocol(
                item=item, nextitem=after[0] if after else None
            )
            sys.settrace(None)
            taken = time.perf_counter() - started
            seen[item.nodeid] = (taken, {name: sorted(at) for name, at in lines.items()})
            if self.failed:
                print("fails without a mutant:", self.failed, file=sys.__stderr__)
                return False
        out.write_text(json.dumps(seen))
        return True

    def _show(
        self,
        items: Sequence[pytest.Item],
        mutant: Mutant,
        functions: dict[tuple[str, str, int], list[FunctionType]],
        note: Path,
    ) -> bool:
        """Run tests with a mutant in place; return whether all of them pass."""
        key = (module_name(mutant.path), mutant.function, mutant.function_line)
        code = _find(mutant.code(), mutant.function.split("."), mutant.function_line)
        for function in functions[key]:
            function.__code__ = code
        for place, item in enumerate(items):
            after = items[place + 1 :][:1]
            item.config.hook.pytest_runtest_protocol(
                item=item, nextitem=after[0] if after else None
            )
            if self.failed:
                note.write_text(self.failed)
                return False
        return True


def _functions(modules: set[str]) -> dict[tuple[str, str, int], list[FunctionType]]:
    """Return all functions of some modules that are alive, whoever holds them."""
    found: dict[tuple[str, str, int], list[FunctionType]] = {}
    for function in gc.get_objects():
        # Of exactly this type: asking some objects of torch for their class warns.
        if type(function) is FunctionType and function.__module__ in modules:
            line = function.__code__.co_firstlineno
            key = (function.__module__, function.__qualname__, line)
            found.setdefault(key, []).append(function)
    return found


def _find(code: CodeType, names: Sequence[str], line: int) -> CodeType:
    """Return the code of a function within that of its module."""
    for part in code.co_consts:
        if isinstance(part, CodeType) and part.co_name == names[0]:
            if len(names) > 1:
                with suppress(LookupError):
                    return _find(part, names[1:], line)
            elif part.co_firstlineno == line:
                return part
    raise LookupError(f"no function {'.'.join(names)} in line {line}")


def _imported_anew(mutant: Mutant, tests: Sequence[str]) -> Outcome:
    """Run tests against a mutant whose module is imported with the fault in it."""
    note = OUT / f"killer-{os.getpid()}"
    note.write_text("")

    class Notes:
        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            if report.failed:
                note.write_text(report.nodeid)

    def passes() -> bool:
        for name in list(sys.modules):
            # The core cannot be imported twice.
            if name.split(".")[0] in {"arcfleet", "tests"} and name != "arcfleet._core":
                del sys.modules[name]
        sys.meta_path.insert(0, _Finder(mutant))
        return _pytest(tests, [Notes()]) == pytest.ExitCode.OK

    fate = _forked(passes, limit=1800)
    killer = note.read_text()
    note.unlink()
    return Outcome(mutant, fate, tests, killer)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module with a fault in it."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant
        self.name = module_name(mutant.path)

    def find_spec(self, name: str, *_: Any) -> ModuleSpec | None:
        if name != self.name:
            return None
        return importlib.util.spec_from_file_location(name, self.mutant.path, loader=self)

    def exec_module(self, module: Any) -> None:
        exec(self.mutant.code(), module.__dict__)


def _forked(passes: Callable[[], bool], limit: float) -> str:
    """Call a function in a process of its own; return what became of it."""
    child = os.fork()
    if child == 0:
        status = 2
        try:
            os.setsid()
            quiet = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(quiet, stream)
            resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
            status = 0 if passes() else 1
        finally:
            os._exit(status)
    ends = time.monotonic() + limit
    while time.monotonic() < ends:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return SURVIVED if status == 0 else KILLED
        time.sleep(0.005)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return TIMEOUT
