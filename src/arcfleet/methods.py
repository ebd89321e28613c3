"""Solving an instance by any method: the one list of methods, and `solve`.

The learned methods need torch, which is imported only when one of them runs.
"""

from __future__ import annotations

import difflib
import os
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from arcfleet._checks import check_whole_number
from arcfleet.errors import OptionError
from arcfleet.instance import Instance
from arcfleet.instance.diagnose import require_solvable
from arcfleet.instance.files import read
from arcfleet.network import Network
from arcfleet.search.maens import maens
from arcfleet.search.path_scanning import PATH_SCANNING_VARIANTS, path_scanning
from arcfleet.search.ruin_recreate import ruin_recreate
from arcfleet.search.stop import Stop

if TYPE_CHECKING:
    from collections.abc import Iterable

    from arcfleet.neural.solver import LoadedModel
    from arcfleet.search import ProgressCallback, Result
    from arcfleet.solution import Solution

#: What "auto" stands for.
DEFAULT_METHOD = "ruin-recreate"


class Runner(Protocol):
    """What a method's function looks like."""

    def __call__(
        self,
        network: Network,
        *,
        method: str,
        stop: Stop,
        seed: int,
        threads: int,
        started: float,
        progress: ProgressCallback | None,
        start: Solution | None,
    ) -> Result:
        """Search until `stop` is met."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """A way of solving.

    Parameters
    ----------
    name
        As given to `solve`.
    summary
        One line for people.
    default_stop
        Where none is given.
    run
        The function that does it.
    kind
        Of the model that it needs, of which `run` takes the shipped one; None for a method
        that is not learned.
    """

    name: str
    summary: str
    default_stop: Stop
    run: Runner
    kind: str | None = None

    @property
    def is_learned(self) -> bool:
        """Whether it needs a model."""
        return self.kind is not None


_PATH_SCANNING_SUMMARIES = {
    "ps": "path scanning, the five rules of Golden, DeArmon and Baker in turn",
    "ps-random-rule": "path scanning, a rule drawn at each step (Pearn)",
    "ps-random-arc": "path scanning, a nearest arc drawn at each step (Belenguer et al.)",
    "ps-ellipse": "path scanning that turns home along an ellipse (Santos et al.)",
    "ps-efficiency": "path scanning that turns home when work no longer pays (Arakaki)",
    "ps-alt1": "ps-efficiency's filter, triggered as in ps-ellipse",
    "ps-alt2": "ps-ellipse's filter, triggered as in ps-efficiency",
}


def load_for_method(
    method: Method | str,
    model: Path | str | LoadedModel | None = None,
    device: str = "auto",
) -> LoadedModel | None:
    """Load the model of a learned method; None for a method that has none.

    What it gives may be the `model` of any number of calls, which then need not load it.

    Raises
    ------
    OptionError
        If the method has no use for `model` or `device`, no model is shipped, torch is
        not installed, or the device is not there.
    FileError
        If the model file is none, damaged, or of another kind.
    """
    if isinstance(method, str):
        method = find_method(method)
    if method.kind is None:
        for name, value, usual in (("model", model, None), ("device", device, "auto")):
            if value != usual:
                raise OptionError(
                    f"expected {name} for a learned method only, got it for "
                    f"{method.name!r}: leave it out or choose {', '.join(LEARNED)}"
                )
        return None
    from arcfleet.neural.checkpoint import require_packages

    require_packages(f"method {method.name!r}")
    from arcfleet.neural.solver import load_for_solving

    return load_for_solving(model, device, method.kind)


def load_for_methods(
    methods: Iterable[Method], model: Path | str | None, device: str
) -> dict[str, LoadedModel]:
    """Load the models of those of some methods that are learned, by their kinds.

    Raises
    ------
    OptionError, FileError
        As `model_files` and `load_for_method` do.
    """
    chosen = {method.kind: method for method in methods}
    files = model_files(chosen.values(), model, device)
    loaded = {
        kind: load_for_method(chosen[kind], file, device) for kind, file in files.items()
    }
    return {kind: each for kind, each in loaded.items() if each is not None}


def model_files(
    methods: Iterable[Method], model: Path | str | None, device: str = "auto"
) -> dict[str, Path | str | None]:
    """Say which file each kind of learned methods takes, None for the shipped one.

    A named file is for the methods of its kind; others take what is shipped.

    Raises
    ------
    OptionError, FileError
        If no method has use for `model` or `device`, or the file is none.
    """
    kinds = dict.fromkeys(method.kind for method in methods if method.kind is not None)
    if not kinds:
        for name, idle in (("--model", model is None), ("--device", device == "auto")):
            if not idle:
                raise OptionError(
                    f"expected {name} for learned methods only, got none of them: leave it "
                    f"out or add one of {', '.join(LEARNED)}"
                )
    if model is None or len(kinds) < 2:
        return dict.fromkeys(kinds, model)
    named = _kind_of_file(model)
    if named not in kinds:
        raise OptionError(
            f"expected a model of one of the kinds {', '.join(kinds)}, got {model} of kind "
            f"{named!r}: add a method of that kind or name another file"
        )
    return {kind: model if kind == named else None for kind in kinds}


def usable_methods(model: Path | str | None, device: str) -> list[Method]:
    """List the methods that run without more ado, and those that `model` is for."""
    # Asking for a device is asking for learned methods; if they cannot run, they say so.
    wanted = {"daam"} if model is None and device != "auto" else set()
    if model is not None:
        wanted.add(_kind_of_file(model))
    return [
        method
        for method in METHODS.values()
        if method.kind is None or method.kind in wanted or has_model(method.kind)
    ]


def has_model(kind: str = "daam") -> bool:
    """Say whether methods of a kind run as they are: model shipped, torch installed."""
    from arcfleet.neural.checkpoint import missing_package, shipped_model

    return shipped_model(kind) is not None and missing_package() is None


def _kind_of_file(model: Path | str) -> str:
    from arcfleet.neural.checkpoint import require_packages

    require_packages("reading a model")
    from arcfleet.neural.checkpoint import find_model_type, read_model_info

    return find_model_type(read_model_info(model).model_type).serves


def _runner(method: Method, loaded: LoadedModel | None) -> Runner:
    if loaded is None:
        return method.run
    from arcfleet.neural.solver import solve_learned

    return partial(solve_learned, loaded=loaded)


def _learned(
    network: Network,
    *,
    method: str,
    stop: Stop,
    seed: int,
    threads: int,
    started: float,
    progress: ProgressCallback | None,
    start: Solution | None,
) -> Result:
    """Run a learned method with the shipped model."""
    chosen = METHODS[method]
    return _runner(chosen, load_for_method(chosen, None, "auto"))(
        network,
        method=method,
        stop=stop,
        seed=seed,
        threads=threads,
        started=started,
        progress=progress,
        start=start,
    )


_LEARNED_METHODS = (
    Method(
        name="daam",
        summary="learned: DaAM's likeliest plans of four views, and the path optimiser",
        default_stop=Stop(iterations=1),
        run=_learned,
        kind="daam",
    ),
    Method(
        name="daam-greedy",
        summary="learned: one plan, the likeliest street at each step, path optimiser",
        default_stop=Stop(iterations=1),
        run=_learned,
        kind="daam",
    ),
    Method(
        name="daam-sample",
        summary="learned: plans drawn by the model, then routes of the best drawn anew",
        default_stop=Stop(iterations=32),
        run=_learned,
        kind="daam",
    ),
    Method(
        name="hybrid",
        summary="learned: daam-greedy's plan, improved by ruin-recreate",
        default_stop=Stop(seconds=5.0),
        run=_learned,
        kind="daam",
    ),
)

#: Names of the methods that need a model.
LEARNED = tuple(method.name for method in _LEARNED_METHODS)

#: Names of those that need a DaAM.
DAAM_METHODS = tuple(method.name for method in _LEARNED_METHODS if method.kind == "daam")

#: Every method, by name.
METHODS: dict[str, Method] = {
    "ruin-recreate": Method(
        name="ruin-recreate",
        summary="ruin and recreate with simulated annealing (Christiaens, Vanden Berghe)",
        default_stop=Stop(seconds=5.0),
        run=ruin_recreate,
    ),
    "maens": Method(
        name="maens",
        summary="memetic algorithm with extended neighbourhood search (Tang, Mei, Yao)",
        default_stop=Stop(iterations=90_000),
        run=maens,
    ),
} | {
    name: Method(
        name=name,
        summary=_PATH_SCANNING_SUMMARIES[name],
        default_stop=Stop(iterations=variant.plans),
        run=path_scanning,
    )
    for name, variant in PATH_SCANNING_VARIANTS.items()
}
METHODS |= {method.name: method for method in _LEARNED_METHODS}


def solve(
    instance: Instance | Path | str,
    method: str = "auto",
    *,
    stop: Stop | None = None,
    seconds: float | None = None,
    seed: int = 0,
    threads: int = 1,
    progress: ProgressCallback | None = None,
    start: Solution | None = None,
    model: Path | str | LoadedModel | None = None,
    device: str = "auto",
) -> Result:
    """Find a cheap plan.

    The same seed gives the same plan, as far as the stop rule depends neither on the
    clock nor, with several threads, on a target. Ctrl-C ends the search and returns the
    best plan so far.

    Parameters
    ----------
    instance
        The instance, or the path of its file.
    method
        One of `METHODS`, or "auto" for the one that serves best.
    stop
        Stop rule; by default that of the method.
    seconds
        Time limit, short for `stop=Stop(seconds=...)`.
    seed
        Seed of the random number generator.
    threads
        Number of threads; 0 means one per core.
    progress
        Callback, called several times a second.
    start
        Plan to warm-start from, for methods that can. Its directions are chosen anew.
    model
        Model file of a learned method, or what `load_for_method` gave; by default the one
        that is shipped. Loading it does not count as time of the search.
    device
        Where a learned method works: "cpu", "cuda", "cuda:1", or "auto" for CUDA where
        there is any.

    Raises
    ------
    UnsolvableError
        If no plan can exist, with the reasons, or none was found.
    OptionError
        If an argument is wrong.
    FileError
        If the model file is none or damaged.
    """
    chosen = find_method(method)
    instance = as_instance(instance)
    check_whole_number("seed", seed, 0, 2**64 - 1)
    check_whole_number("threads", threads, 0, 1024)
    threads = threads or os.cpu_count() or 1
    stop = chosen_stop(chosen, stop, seconds)
    if not instance.required:
        stop = Stop(iterations=1)  # there is nothing to search for
    run = _runner(chosen, load_for_method(chosen, model, device))
    started = time.perf_counter()
    require_solvable(instance)
    return run(
        Network(instance, threads),
        method=chosen.name,
        stop=stop,
        seed=seed,
        threads=threads,
        started=started,
        progress=progress,
        start=start,
    )


def as_instance(source: object) -> Instance:
    """Return an instance, reading it if it is the path of a file."""
    if isinstance(source, str | Path):
        return read(source)
    if not isinstance(source, Instance):
        raise OptionError(
            f"expected an Instance or the path of one, got {type(source).__name__}"
        )
    return source


def chosen_stop(method: Method, stop: Stop | None, seconds: float | None = None) -> Stop:
    """Return the stop rule, or that of the method; raise OptionError if it is unfit."""
    if seconds is not None:
        if stop is not None:
            raise OptionError(
                "expected either seconds or stop, got both: use Stop(seconds=...)"
            )
        stop = Stop(seconds=seconds)
    if stop is None:
        return method.default_stop
    if not isinstance(stop, Stop):
        raise OptionError(f"expected stop to be a Stop, got {stop!r}")
    if stop.is_open:
        raise OptionError(
            f"expected a stop rule that is certain to be met, got {stop}: "
            "add seconds, iterations or stale_iterations"
        )
    return stop


def find_method(name: str) -> Method:
    """Give the method of that name, or raise OptionError with the nearest one."""
    if name == "auto":
        return METHODS[DEFAULT_METHOD]
    if name in METHODS:
        return METHODS[name]
    near = difflib.get_close_matches(str(name), METHODS, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(METHODS)}"
    raise OptionError(f"expected the name of a method, got {name!r}: {hint}")
