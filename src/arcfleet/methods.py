"""Solving an instance by any method: the one table of methods, and `solve`.

The learned methods need torch, which is imported only when one of them runs.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import sys
import time
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from arcfleet._checks import check_whole_number, name_hint, whole
from arcfleet.bounds.run import require_highs, run_with_bound
from arcfleet.errors import OptionError
from arcfleet.instance import Instance
from arcfleet.instance.diagnose import require_solvable
from arcfleet.instance.diagnose_fleet import stuck_vehicles
from arcfleet.instance.files import read
from arcfleet.network import Network
from arcfleet.neural.strategies import method_strategies
from arcfleet.search import Result, RunContext, Stop
from arcfleet.search.maens import MaensSettings, maens
from arcfleet.search.path_scanning import FIVE_RULES, PATH_SCANNING_VARIANTS, path_scanning
from arcfleet.search.ruin_recreate import (
    RuinRecreateSettings,
    plans_in_areas,
    ruin_recreate,
)
from arcfleet.search.run import TooShortError, too_short
from arcfleet.search.stop import StopSince, time_limit
from arcfleet.solution.files import as_solution
from arcfleet.solution.renumber import renumber
from arcfleet.solution.start import prepare_start

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from arcfleet.neural.model import Model
    from arcfleet.neural.solver import LoadedModel
    from arcfleet.search import ProgressCallback, StopRule
    from arcfleet.solution import Solution

#: What "auto" stands for.
DEFAULT_METHOD = "ruin-recreate"

#: Where a method's own time limit holds, it is at least so long for each task.
SECONDS_PER_TASK = 0.01
#: Up to so many tasks there is always a plan, however short the time limit is.
ALWAYS_PLANNED = 2000
#: With more tasks, a plan that would be later than this share of the time limit is refused.
LATEST_SHARE = 0.1
#: Where torch is not imported yet, so long it takes to load a model.
LOADING_SECONDS = 2.0
#: Time until a search can start, in times of its shortest paths.
_SETUP = 3.0
#: Time from the end of a search to its Result: in times of `require_solvable`, and of the
#: shortest paths, or of what precedes them where a city is planned in areas.
_AFTER_STREETS = 1.5
_AFTER_PAIRS = 0.3
_AFTER_AREAS = 2.0
#: And at most, as a share of the time limit: a pause of the system is measured with them.
#: Not where a city is planned in areas, which is refused instead.
_AFTER_AT_MOST = 0.2

#: What a method's function looks like.
Runner = Callable[[Network, RunContext], Result]

AnyRunner = TypeVar("AnyRunner", bound=Runner)

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
#: Types of settings that are written as numbers or texts.
_WRITTEN = {int: "a whole number", float: "a number", str: "a text"}


def _require_certain(stop: StopRule) -> None:
    """Raise OptionError if a Stop may never be met."""
    if isinstance(stop, Stop) and stop.is_open:
        raise OptionError(
            f"expected a stop rule that is certain to be met, got {stop}: "
            "add seconds, iterations or no_improvement"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """A way of solving, one entry of `METHODS`.

    Parameters
    ----------
    name
        Name of the method, as given to `solve`.
    summary
        One line for people.
    run
        Function that searches until the stop rule of its context ends it.
    default_stop
        Stop rule where none is given.
    settings
        Default settings, an instance of a dataclass; None if the method has none.
    model_type
        Type of the model that a learned method needs; None for other methods.
    operations
        Whether it plans with all that `Instance.operations` can name: vehicle types,
        facilities, a longest route, pins and so on.
    warm_start
        Whether it can start from a given plan, `solve(start=...)`.
    """

    name: str
    summary: str
    run: Runner
    default_stop: Stop = Stop(seconds=5.0)  # noqa: RUF009
    settings: Any = None
    model_type: str | None = None
    operations: bool = False
    warm_start: bool = False

    def __post_init__(self) -> None:
        """Raise OptionError if the stop rule or the settings are unfit."""
        if not isinstance(self.default_stop, Stop):
            raise OptionError(
                f"expected default_stop of method {self.name!r} to be a Stop, got "
                f"{self.default_stop!r:.40}"
            )
        _require_certain(self.default_stop)
        is_instance = not isinstance(self.settings, type)
        if self.settings is not None and not (
            dataclasses.is_dataclass(self.settings) and is_instance
        ):
            raise OptionError(
                f"expected settings of method {self.name!r} as a dataclass with defaults, "
                f"got {self.settings!r:.40}"
            )

    @property
    def is_learned(self) -> bool:
        """Whether it needs a model."""
        return self.model_type is not None


#: Every method, by name; `register_method` adds to it.
METHODS: dict[str, Method] = {}


def register_method(
    name: str,
    *,
    summary: str = "",
    default_stop: Stop = Stop(seconds=5.0),  # noqa: B008
    settings: object = None,
    model_type: str | None = None,
    operations: bool = False,
    warm_start: bool = False,
) -> Callable[[AnyRunner], AnyRunner]:
    """Return a decorator that adds a function `run(network, context)` to `METHODS`.

    `solve` and the command line then know the method. With several workers it is sent to
    them, so its function must be one of a module.

    Parameters
    ----------
    name
        Name of the method: lower-case letters, digits, dots, hyphens.
    summary
        One line for people; by default the first line of the function's docstring.
    default_stop
        Stop rule where none is given.
    settings
        Dataclass of the settings, with a default for each, or an instance of it.
    model_type
        Type of the model that a learned method needs.
    operations
        Whether it plans with all that `Instance.operations` can name. By default `solve`
        refuses such instances.
    warm_start
        Whether it starts from the plan of its context. By default `solve` refuses one.

    Raises
    ------
    OptionError
        If the name is taken or is none, or the stop rule or the settings are unfit.

    Examples
    --------
    >>> @arcfleet.register_method("mine", summary="my own search")  # doctest: +SKIP
    ... def mine(network, context): ...
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name == "auto":
        raise OptionError(
            "expected a method's name of lower-case letters, digits, dots and hyphens, "
            f"got {name!r}"
        )

    def register(run: AnyRunner) -> AnyRunner:
        # The same function may come again: a cell of a notebook that is run twice.
        if name in METHODS and _origin(METHODS[name].run) != _origin(run):
            raise OptionError(
                f"expected a new name for a method, got {name!r}, which is taken by "
                f"{'.'.join(_origin(METHODS[name].run))}: choose another"
            )
        METHODS[name] = Method(
            name=name,
            summary=summary or (run.__doc__ or name).strip().splitlines()[0],
            run=run,
            default_stop=default_stop,
            settings=_usual_settings(name, settings),
            model_type=model_type,
            operations=operations,
            warm_start=warm_start,
        )
        return run

    return register


def _usual_settings(name: str, settings: object) -> object:
    """Return the default settings: an instance of the dataclass, if that is given."""
    if not (isinstance(settings, type) and dataclasses.is_dataclass(settings)):
        return settings
    for field in dataclasses.fields(settings):
        defaults = (field.default, field.default_factory)
        if field.init and all(each is dataclasses.MISSING for each in defaults):
            raise OptionError(
                f"expected a default for each setting of method {name!r}, got none for "
                f"{field.name!r}"
            )
    return settings()


def _origin(run: Runner) -> tuple[str, str]:
    return run.__module__, getattr(run, "__qualname__", type(run).__qualname__)


def run_learned(network: Network, context: RunContext) -> Result:
    """Run a learned method with the model of the context, by default the shipped one."""
    if context.model is None:
        loaded = load_for_method(context.method)
        context = dataclasses.replace(context, model=loaded)
    from arcfleet.neural.solver import solve_learned

    return solve_learned(network, context)


register_method(
    "ruin-recreate",
    summary="ruin and recreate with simulated annealing (Christiaens, Vanden Berghe)",
    settings=RuinRecreateSettings,
    operations=True,
    warm_start=True,
)(ruin_recreate)
register_method(
    "maens",
    summary="memetic algorithm with extended neighbourhood search (Tang, Mei, Yao)",
    default_stop=Stop(iterations=90_000),
    settings=MaensSettings,
    warm_start=True,
)(maens)
for _name, _summary in {
    "ps": "path scanning, the five rules of Golden, DeArmon and Baker in turn",
    "ps-random-rule": "path scanning, a random rule at each step (Pearn)",
    "ps-random-arc": "path scanning, a random nearest arc at each step (Belenguer et al.)",
    "ps-ellipse": "path scanning that turns home along an ellipse (Santos et al.)",
    "ps-efficiency": "path scanning that turns home when work no longer pays (Arakaki)",
    "ps-alt1": "ps-efficiency's filter, triggered as in ps-ellipse",
    "ps-alt2": "ps-ellipse's filter, triggered as in ps-efficiency",
}.items():
    register_method(
        _name,
        summary=_summary,
        default_stop=Stop(iterations=FIVE_RULES if _name == "ps" else 1000),
        settings=PATH_SCANNING_VARIANTS[_name],
        operations=True,
    )(path_scanning)
for _name, _strategy in method_strategies().items():
    register_method(
        _name,
        summary=_strategy.summary,
        default_stop=Stop(iterations=_strategy.default_iterations),
        model_type="daam",
    )(run_learned)

#: Remedies for names that are in no table any more, or not yet.
_ABSENT = {
    "hybrid": "it was removed, since it found no better plans than 'ruin-recreate' in the "
    "same time; use 'ruin-recreate'",
    "s2v-dqn": "it belongs to the paper; `import arcfleet.paper.methods` first",
    "vrp-dl": "it belongs to the paper; `import arcfleet.paper.methods` first",
}


def find_method(name: str | Method) -> Method:
    """Return the method of that name, or raise OptionError with the nearest one."""
    if isinstance(name, Method):
        return name
    if name == "auto":
        return METHODS[DEFAULT_METHOD]
    if name in METHODS:
        return METHODS[name]
    hint = _ABSENT.get(name) or name_hint(name, METHODS)
    raise OptionError(f"expected the name of a method, got {name!r}: {hint}")


def require_operations(
    method: Method, instance: Instance, *, has_start: bool = False
) -> None:
    """Raise OptionError if a method cannot plan with an instance, or with a plan to start.

    It names the methods that can.
    """
    asked = bool(instance.operations)
    if (method.operations or not asked) and (method.warm_start or not has_start):
        return
    able = [
        repr(each.name)
        for each in METHODS.values()
        if (each.operations or not asked) and (each.warm_start or not has_start)
    ]
    if method.operations or not asked:
        raise OptionError(
            f"expected a method that warm-starts from a plan, got {method.name!r}: use "
            f"{_listed(able, 'or')} or give no start"
        )
    raise OptionError(
        f"expected a method that plans with {_listed(instance.operations)}, which instance "
        f"{instance.name!r} asks for, got {method.name!r}: use {_listed(able, 'or')}"
    )


def _listed(words: Sequence[str], last: str = "and") -> str:
    return f" {last} ".join(x for x in (", ".join(words[:-1]), words[-1]) if x)


def solve(
    instance: Instance | Path | str,
    method: str | Method = "auto",
    *,
    stop: StopRule | None = None,
    seconds: float | None = None,
    params: object = None,
    seed: int = 0,
    threads: int = 1,
    progress: ProgressCallback | None = None,
    start: Solution | Path | str | None = None,
    keep: int | None = None,
    lock: Sequence[int] = (),
    model: Path | str | LoadedModel | Model | None = None,
    device: str = "auto",
    bound: bool = False,
) -> Result:
    """Find a plan of low cost.

    The same seed gives the same plan, as far as the stop rule depends neither on the
    clock nor, with several threads, on a target. Ctrl-C ends the search and returns the
    best plan so far.

    Parameters
    ----------
    instance
        The instance, or the path of its file.
    method
        Name of a method in `METHODS`, or "auto" for the best one.
    stop
        Stop rule: a `Stop`, or any function of the `Progress` that returns True to end
        the search; by default that of the method. Its time limit grows with the instance:
        5 s, or 10 ms for each task.
    seconds
        Time limit, short for `stop=Stop(seconds=...)`. It holds from this call to its
        return: reading, shortest paths and the loading of a model count.
    params
        Settings of the method: a dict of those to change, or its dataclass.
    seed
        Seed of the random number generator.
    threads
        Number of threads; 0 means one per core.
    progress
        Callback, called several times a second.
    start
        Plan to warm-start from, or the path of its file, for methods with `warm_start` in
        `METHODS`: "ruin-recreate" and "maens". Its
        directions are chosen anew. A plan that does not fit the instance is repaired
        first, see `repair`; the notes of the Result say what changed.
    keep
        Price of every street that leaves its route of `start`, in the unit of all costs.
        It is no part of the cost of the plan.
    lock
        Numbers of routes of `start` that stay as they are.
    model
        Model of a learned method: its file, a model from `load_for_method`, or a module of
        torch of class `arcfleet.neural.model.Model`, which is copied; by default the
        shipped one. A model that is loaded already saves the time of loading it.
    device
        Device of a learned method: "cpu", "cuda", "cuda:1", or "auto" for CUDA where
        there is any.
    bound
        Whether to prove a lower bound beside the search, see `bound`: `Result.bound`. It
        takes a second core and the extra `bounds`. The search ends at a plan that costs
        no more. Without a time limit the bound may go on for 60 s in all.

    Raises
    ------
    UnsolvableError
        If no plan can exist, with the reasons, or none was found.
    OptionError
        If an argument is wrong, the method cannot plan with what the instance asks for,
        or the time limit is too short for any plan: below 2 s where a learned method has
        yet to be loaded, and with more than 2,000 tasks, where a plan would come more
        than a tenth too late.
    SolutionError
        If `start` is a plan of other streets.
    FileError
        If the file of the instance, of `start` or of the model is not one or is corrupt.
    """
    started, reserve, checked = time.perf_counter(), 0.0, None
    chosen = find_method(method)
    instance = as_instance(instance)
    if start is None and (keep is not None or lock):
        raise OptionError(
            f"expected a plan to start from with {'lock' if lock else 'keep'}, got none"
        )
    notes = tuple(stuck_vehicles(instance).values())
    given = begin = None if start is None else as_solution(start, instance)
    if given is not None:
        instance, repaired = prepare_start(instance, given, price=keep, locked=lock)
        without = f"searched without the plan to start from: {repaired.reason}"
        notes = (*(repaired.notes if repaired.ok else (without,)), *notes)
        begin = repaired.solution if repaired.ok else None
    require_operations(chosen, instance, has_start=given is not None)
    seed, threads = whole(seed), whole(threads)
    check_whole_number("seed", seed, 0, 2**64 - 1)
    check_whole_number("threads", threads, 0, 1024)
    threads = threads or os.cpu_count() or 1
    stop = chosen_stop(chosen, stop, seconds, tasks=len(instance.required))
    if isinstance(stop, StopSince):
        started, reserve, checked = stop.started, stop.reserve, stop.checked
    if not instance.required:
        stop = Stop(iterations=1)  # there is nothing to search for
    settings = chosen_settings(chosen, params)
    limit = time_limit(stop)
    require_time_to_load(chosen, limit, model)
    loaded = load_for_method(chosen, model, device)
    if bound:
        require_highs()
    if checked is None:
        began = time.perf_counter()
        require_solvable(instance)
        checked = time.perf_counter() - began
    solvable = time.perf_counter()
    in_parts = chosen.run is ruin_recreate and plans_in_areas(instance)
    network = _network(instance, threads, stop, started - reserve, in_parts=in_parts)
    if isinstance(stop, Stop) and limit is not None:
        # What follows the search looks at every street, and at every pair of tasks.
        after = _AFTER_STREETS * checked
        measured = time.perf_counter() - solvable
        if in_parts:
            share = len(instance.required) / len(instance.links)
            after += _AFTER_AREAS * share * measured
        else:
            after += _AFTER_PAIRS * measured
            after = min(after, _AFTER_AT_MOST * limit)
        reserve += after
        needed = time.perf_counter() - started + reserve
        if in_parts and begin is not None and needed > (1 + LATEST_SHARE) * limit:
            raise too_short(instance, limit, needed)
        stop = dataclasses.replace(stop, seconds=max(0.0, limit - reserve))
    context = RunContext(
        method=chosen.name,
        stop=stop,
        seed=seed,
        threads=threads,
        started=started,
        progress=progress,
        start=begin,
        params=settings,
        model=loaded,
    )
    run = partial(run_with_bound, chosen.run) if bound else chosen.run
    try:
        result = run(network, context)
    except TooShortError as error:
        raise too_short(instance, limit or 0.0, error.needed + reserve) from None
    solution = result.solution
    if given is not None:
        solution = renumber(solution, given, named_routes(instance))
    return dataclasses.replace(result, solution=solution, notes=(*notes, *result.notes))


def _network(
    instance: Instance, threads: int, stop: StopRule, started: float, *, in_parts: bool
) -> Network:
    """Return the network; OptionError where the time limit is too short for a plan."""
    limit, tasks = time_limit(stop), len(instance.required)
    if in_parts:
        return Network(instance, threads, in_parts=True)
    if limit is None or tasks <= ALWAYS_PLANNED:
        return Network(instance, threads)
    before = time.perf_counter() - started
    try:
        left = (1 + LATEST_SHARE) * limit - before
        return Network(instance, threads, seconds=max(0.0, left) / _SETUP)
    except TimeoutError as error:
        needed = before + _SETUP * float(error.args[0])
        raise too_short(instance, limit, needed) from None


def require_time_to_load(
    method: Method, limit: float | None, model: Path | str | LoadedModel | Model | None
) -> None:
    """Raise OptionError if a learned method cannot be loaded within a time limit."""
    if (
        method.is_learned
        and limit is not None
        and limit < LOADING_SECONDS
        and isinstance(model, str | Path | None)
        and "torch" not in sys.modules
    ):
        raise OptionError(
            f"expected a time limit of at least {LOADING_SECONDS:g} s for method "
            f"{method.name!r}, whose model takes about as long to load, got {limit:g} s: "
            f"give it more time, or use {DEFAULT_METHOD!r}, which starts at once"
        )


def named_routes(instance: Instance) -> set[int]:
    """Return the numbers of routes that mean something to the instance."""
    named = {one.route for one in instance.pins} | {one.route for one in instance.locks}
    if instance.change_price:
        named |= {one.route for one in instance.previous}
    return named


def as_instance(source: object) -> Instance:
    """Return an instance, reading it if it is the path of a file."""
    if isinstance(source, str | Path):
        return read(source)
    if not isinstance(source, Instance):
        raise OptionError(
            f"expected an Instance or the path of one, got {type(source).__name__}"
        )
    return source


def usual_stop(method: Method, tasks: int) -> Stop:
    """Return the stop rule of a method for an instance with so many tasks."""
    usual = method.default_stop
    if usual.seconds is None:
        return usual
    return dataclasses.replace(usual, seconds=max(usual.seconds, SECONDS_PER_TASK * tasks))


def chosen_stop(
    method: Method, stop: StopRule | None, seconds: float | None = None, tasks: int = 0
) -> StopRule:
    """Return the stop rule, or that of the method; raise OptionError if it is unfit."""
    if seconds is not None:
        if stop is not None:
            raise OptionError(
                "expected either seconds or stop, got both: use Stop(seconds=...)"
            )
        stop = Stop(seconds=seconds)
    if stop is None:
        return usual_stop(method, tasks)
    if isinstance(stop, type) or not callable(stop):
        raise OptionError(
            f"expected stop to be a Stop or a function of the progress, got {stop!r}"
        )
    _require_certain(stop)
    return stop


def chosen_settings(method: Method, params: object) -> Any:
    """Return the settings of a method, changed by `params`."""
    if params is None:
        return method.settings
    if not isinstance(params, Mapping):
        if method.settings is None or type(params) is not type(method.settings):
            wanted = f" or a {type(method.settings).__name__}" if method.settings else ""
            raise OptionError(
                f"expected params of method {method.name!r} as a dict{wanted}, "
                f"got {params!r:.40}"
            )
        return params
    for name in params:
        _check_setting(method, name)
    return dataclasses.replace(method.settings, **params) if params else method.settings


def parse_params(method: Method | str, texts: Sequence[str]) -> dict[str, object]:
    """Return settings given as `name=value`, each of the type of its field."""
    method = find_method(method)
    params: dict[str, object] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals:
            raise OptionError(f"expected a setting as name=value, got {text!r}")
        _check_setting(method, name)
        wanted = typing.get_type_hints(type(method.settings))[name]
        params[name] = _parsed(name, wanted, value)
    return params


def _check_setting(method: Method, name: object) -> None:
    """Raise OptionError unless the method has a setting of that name."""
    if method.settings is None:
        raise OptionError(
            f"expected no settings for method {method.name!r}, which has none, got {name!r}"
        )
    known = [field.name for field in dataclasses.fields(method.settings)]
    if name not in known:
        raise OptionError(
            f"expected a setting of method {method.name!r}, got {name!r}: "
            f"{name_hint(name, known)}"
        )


def _parsed(name: str, wanted: Any, text: str) -> object:
    """Return the value that a text stands for, by the type of its field."""
    is_union = typing.get_origin(wanted) in (typing.Union, types.UnionType)
    members = typing.get_args(wanted) if is_union else (wanted,)
    choices: dict[str, object] = {}  # those of literals and enumerations
    for member in members:
        if member is type(None):
            choices["none"] = None
        elif member is bool:
            choices |= {"true": True, "false": False}
        else:
            choices |= {str(value): value for value in typing.get_args(member)}
            choices |= getattr(member, "__members__", {})
    for spelling in (text, text.lower()):
        if spelling in choices:
            return choices[spelling]
    for member in members:
        if member in _WRITTEN:
            with contextlib.suppress(ValueError):
                return member(text)
    expected = [_WRITTEN[member] for member in members if member in _WRITTEN]
    if choices:
        listed = f"one of {', '.join(choices)}"
        expected.append("true or false" if wanted is bool else listed)
    shown = " or ".join(expected) or str(wanted)
    raise OptionError(f"expected {name} to be {shown}, got {text!r}")


def load_for_method(
    method: Method | str,
    model: Path | str | LoadedModel | Model | None = None,
    device: str = "auto",
) -> LoadedModel | None:
    """Load the model of a learned method; None for a method that has none.

    The loaded model may be the `model` of any number of calls, which then need not load it.

    Raises
    ------
    OptionError
        If the method has no use for `model` or `device`, no model is shipped, torch is
        not installed, or the device is not there.
    FileError
        If the model file is not one, is corrupt, or holds a model of another type.
    """
    method = find_method(method)
    if method.model_type is None:
        _check_unused(model, device, f"a learned method only, got it for {method.name!r}")
        return None
    from arcfleet.neural.checkpoint import require_packages

    require_packages(f"method {method.name!r}")
    from arcfleet.neural.solver import load_for_solving

    return load_for_solving(model, device, method.model_type)


def load_for_methods(
    methods: Iterable[Method], model: Path | str | None, device: str
) -> dict[str, LoadedModel]:
    """Load the models of those of some methods that are learned, by their types."""
    chosen = {method.model_type: method for method in methods}
    files = model_files(chosen.values(), model, device)
    loaded = {each: load_for_method(chosen[each], files[each], device) for each in files}
    return {name: each for name, each in loaded.items() if each is not None}


def model_files(
    methods: Iterable[Method], model: Path | str | None, device: str = "auto"
) -> dict[str, Path | str | None]:
    """Return the model file of each type of learned methods, None for the shipped one.

    A named file is for the methods of its type; others take the shipped one.
    """
    needed = dict.fromkeys(m.model_type for m in methods if m.model_type is not None)
    if not needed:
        _check_unused(model, device, "learned methods only, got none of them")
    if model is None or len(needed) < 2:
        return dict.fromkeys(needed, model)
    named = _type_of_file(model)
    if named not in needed:
        raise OptionError(
            f"expected a model of one of the types {', '.join(needed)}, got {model} of "
            f"type {named!r}: add a method of that type or name another file"
        )
    return {each: model if each == named else None for each in needed}


def _check_unused(model: object, device: str, reason: str) -> None:
    """Raise OptionError if a model or a device was named that no method uses."""
    for name, is_given in (("model", model is not None), ("device", device != "auto")):
        if is_given:
            learned = ", ".join(name for name, each in METHODS.items() if each.is_learned)
            raise OptionError(
                f"expected {name} for {reason}: leave it out or choose {learned}"
            )


def usable_methods(model: Path | str | None, device: str) -> list[Method]:
    """Return the methods whose model is available, and those without a model."""
    # Asking for a device is asking for learned methods; if they cannot run, they say so.
    wanted = {"daam"} if model is None and device != "auto" else set()
    if model is not None:
        wanted.add(_type_of_file(model))
    return [
        method
        for method in METHODS.values()
        if method.model_type is None
        or method.model_type in wanted
        or has_model(method.model_type)
    ]


def has_model(model_type: str = "daam") -> bool:
    """Return whether methods of a model type can run: model shipped, torch installed."""
    from arcfleet.neural.checkpoint import missing_package, shipped_model

    return shipped_model(model_type) is not None and missing_package() is None


def _type_of_file(model: Path | str) -> str:
    from arcfleet.neural.checkpoint import require_packages

    require_packages("reading a model")
    from arcfleet.neural.checkpoint import find_model_type, read_model_info

    return find_model_type(read_model_info(model).model_type).serves
