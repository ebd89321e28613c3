"""Plans of street scenes by several methods, kept so that they can be drawn again."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from arcfleet.bench.store import LineFile, commit, machine
from arcfleet.errors import ArcfleetError, OptionError, SolutionError
from arcfleet.instance.files import read
from arcfleet.methods import find_method, solve
from arcfleet.network import Network
from arcfleet.paper.report import Drawing, Report, Section, seconds_text
from arcfleet.report.plot import ScenePlans, draw_scenes
from arcfleet.search.stop import Stop
from arcfleet.solution.checker import check
from arcfleet.solution.plan import from_plan, to_plan, with_street_paths
from arcfleet.solution.solution import Route, Service, Solution
from arcfleet.workers import TaskFailure, run_tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from arcfleet.instance import Instance
    from arcfleet.neural.solver import LoadedModel
    from arcfleet.search import ProgressCallback


_FORMAT = "arcfleet-scene-plan-1"


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneKey:
    """What tells one plan from another.

    Parameters
    ----------
    scene_sha256
        Checksum of the file of the scene.
    method, iterations, seed
        How; without iterations as is usual for the method.
    model_sha256
        Checksum of the model file; None for a method that has none.
    """

    scene_sha256: str
    method: str
    iterations: int | None
    seed: int
    model_sha256: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenePlan:
    """A plan of a scene.

    Parameters
    ----------
    key
        Which plan.
    scene
        Name of the scene.
    cost, seconds
        Of the plan.
    device, machine, commit
        Where it was made, and by what.
    routes
        Services of each route: twice the link, plus one where it is driven backwards.
    """

    key: SceneKey
    scene: str
    cost: int
    seconds: float
    device: str
    machine: str
    commit: str
    routes: tuple[tuple[int, ...], ...]


class SceneFile:
    """The plans in a file, and the place to add to."""

    def __init__(self, path: Path) -> None:
        self._file = LineFile(path, _FORMAT, "a plan of `arcfleet experiment scenes`")
        self.plans: dict[SceneKey, ScenePlan] = {}
        for number, line in enumerate(self._file.lines, start=1):
            try:
                plan = _parse(line)
            except (
                ValueError,
                TypeError,
                KeyError,
                AttributeError,
                RecursionError,
            ) as error:
                self._file.refuse(number, error)
            self.plans[plan.key] = plan
        self._file.open()

    def add(self, plan: ScenePlan) -> None:
        """Append one plan."""
        line = {"format": _FORMAT} | asdict(plan.key) | asdict(plan)
        del line["key"]
        self._file.add(json.dumps(line).encode() + b"\n")
        self.plans[plan.key] = plan

    def close(self) -> None:
        """Close the file."""
        self._file.close()


_KEY_FIELDS: dict[str, tuple[type, ...]] = {
    "scene_sha256": (str,),
    "method": (str,),
    "iterations": (int, type(None)),
    "seed": (int,),
    "model_sha256": (str, type(None)),
}

_FACT_FIELDS: dict[str, tuple[type, ...]] = {
    "scene": (str,),
    "cost": (int,),
    "seconds": (float, int),
    "device": (str,),
    "machine": (str,),
    "commit": (str,),
    "routes": (list,),
}


def _parse(line: bytes) -> ScenePlan:
    facts: dict[str, Any] = json.loads(line)
    if facts.pop("format") != _FORMAT:
        raise ValueError
    known = _KEY_FIELDS | _FACT_FIELDS
    if facts.keys() != known.keys() or not all(
        type(facts[name]) in types for name, types in known.items()
    ):
        raise ValueError
    facts["routes"] = tuple(tuple(route) for route in facts["routes"])
    if not all(type(x) is int for route in facts["routes"] for x in route):
        raise ValueError
    key = SceneKey(**{name: facts[name] for name in _KEY_FIELDS})
    return ScenePlan(key=key, **{name: facts[name] for name in _FACT_FIELDS})


_LABELS = {
    "ps": "PS",
    "daam": "DaAM",
    "daam-greedy": "DaAM, greedy",
    "daam-sample": "DaAM, sampled",
    "s2v-dqn": "S2V-DQN",
    "vrp-dl": "VRP-DL",
    "maens": "MAENS",
    "ruin-recreate": "ruin and recreate",
}


@dataclass(frozen=True, slots=True)
class _Job:
    key: SceneKey
    instance: Instance
    stop: Stop


def solve_scenes(
    paths: Sequence[Path],
    methods: Sequence[str],
    file: SceneFile,
    *,
    loaded: Mapping[str, LoadedModel] | None = None,
    model_sha256: Mapping[str, str] | None = None,
    device: str = "cpu",
    seed: int = 0,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Report:
    """Solve scenes by methods, as far as the file lacks plans, and report all.

    Parameters
    ----------
    paths
        Instance files, as `arcfleet scene` makes them.
    methods
        NAME or NAME=ITERATIONS.
    file
        Where plans are kept.
    loaded, model_sha256, device
        The models of learned methods and their checksums by kind, and the name of their
        device.
    seed
        Of all random choices.
    workers
        Processes.
    progress
        Told how many plans are made, and how many there will be.

    Raises
    ------
    OptionError
        If a method is unknown, or there is none.
    SolutionError
        If the checker finds a fault in a plan.
    """
    if not methods:
        raise OptionError("expected at least one method, got none")
    scenes = [(instance, _checksum(instance)) for instance in map(read, paths)]
    jobs = []
    for instance, checksum in scenes:
        for text in methods:
            method, iterations, stop = _method(text)
            kind = find_method(method).model_type
            key = SceneKey(
                scene_sha256=checksum,
                method=method,
                iterations=iterations,
                seed=seed,
                model_sha256=None if kind is None else (model_sha256 or {})[kind],
            )
            jobs.append(_Job(key, instance, stop))
    here = (machine(), commit())
    left = [job for job in jobs if job.key not in file.plans]
    learned = [job for job in left if find_method(job.key.method).is_learned]
    others = [job for job in left if not find_method(job.key.method).is_learned]
    failures: list[TaskFailure] = []

    def tell() -> None:
        if progress is not None:
            progress(sum(job.key in file.plans for job in jobs), len(jobs))

    def keep(job: _Job, outcome: _Solved | TaskFailure) -> None:
        if isinstance(outcome, TaskFailure):
            failures.append(outcome)
            return
        cost, seconds, routes = outcome
        used = "cpu" if job.key.model_sha256 is None else device
        file.add(
            ScenePlan(
                key=job.key,
                scene=job.instance.name,
                cost=cost,
                seconds=round(seconds, 6),
                device=used,
                machine=here[0],
                commit=here[1],
                routes=routes,
            )
        )
        tell()

    tell()
    for job in learned:
        kind = find_method(job.key.method).model_type or ""
        keep(job, _solve(job, None, (loaded or {})[kind]))
    run_tasks(
        _solve_job,
        others,
        workers=max(1, min(workers, len(others))),
        finished=lambda number, outcome: keep(others[number], outcome),
    )
    for failure in failures:
        if failure.interrupted:
            raise KeyboardInterrupt
        raise ArcfleetError(failure.message)
    if any(job.key not in file.plans for job in jobs):
        raise KeyboardInterrupt
    return _report(scenes, methods, [file.plans[job.key] for job in jobs])


_Solved = tuple[int, float, tuple[tuple[int, ...], ...]]


def _solve_job(job: _Job, progress: ProgressCallback) -> _Solved:
    return _solve(job, progress, None)


def _solve(
    job: _Job, progress: ProgressCallback | None, loaded: LoadedModel | None
) -> _Solved:
    result = solve(
        job.instance,
        job.key.method,
        stop=job.stop,
        seed=job.key.seed,
        progress=progress,
        model=loaded,
    )
    if result.stopped_by == "interrupt":
        raise KeyboardInterrupt
    report = check(job.instance, result.solution)
    if not report.ok:
        raise SolutionError(
            f"expected a valid plan of {job.instance.name!r} by {job.key.method}, found a "
            f"fault: {report.faults[0]}"
        )
    routes = tuple(
        tuple(2 * service.link + service.reverse for service in route.services)
        for route in result.solution.routes
    )
    return result.cost, result.seconds, routes


def _method(text: str) -> tuple[str, int | None, Stop]:
    name, _, number = text.strip().partition("=")
    method = find_method(name)
    if not number:
        return method.name, None, method.default_stop
    if not (number.isascii() and number.isdigit() and int(number)):
        raise OptionError(f"expected a method as NAME=ITERATIONS, got {text!r}")
    return method.name, int(number), Stop(iterations=int(number))


def _report(
    scenes: Sequence[tuple[Instance, str]],
    methods: Sequence[str],
    plans: Sequence[ScenePlan],
) -> Report:
    across = len(methods)
    lines = [plans[first : first + across] for first in range(0, len(plans), across)]
    labels = [_LABELS.get(_method(text)[0], _method(text)[0]) for text in methods]
    drawn = [
        ScenePlans(
            f"{instance.name} ({len(instance.required)} tasks)",
            instance,
            [
                (f"{label}: {plan.cost:,}", _solution(instance, plan))
                for label, plan in zip(labels, line, strict=True)
            ],
        )
        for (instance, _), line in zip(scenes, lines, strict=True)
    ]

    def draw(path: Path, caption: str) -> None:
        draw_scenes(drawn, path, caption)

    names = [instance.name for instance, _ in scenes]
    costs = Section(
        "Total cost",
        ["scene", *labels],
        [[n, *(str(x.cost) for x in line)] for n, line in zip(names, lines, strict=True)],
    )
    times = Section(
        "Time",
        ["scene", *labels],
        [
            [n, *(seconds_text(x.seconds) for x in line)]
            for n, line in zip(names, lines, strict=True)
        ],
    )
    places = "; ".join(
        dict.fromkeys(
            x.machine if x.device == "cpu" else f"{x.device} and {x.machine}" for x in plans
        )
    )
    commits = ", ".join(dict.fromkeys(x.commit for x in plans))
    return Report(
        name="scenes",
        sections=(costs, times),
        caption=(
            f"Plans of {len(scenes)} street scenes; above each its total cost. Solid: "
            "served streets, one colour per route; dashed: deadheads; grey: other streets; "
            f"red squares: depots. Methods: {', '.join(methods)}; seed "
            f"{plans[0].key.seed}. Made on {places}. Commit {commits}."
        ),
        details=tuple(f"scene {i.name}: {checksum}" for i, checksum in scenes),
        records=tuple(
            asdict(plan.key)
            | {"scene": plan.scene, "cost": plan.cost}
            | {"seconds": plan.seconds, "device": plan.device, "machine": plan.machine}
            | {"commit": plan.commit}
            for plan in plans
        ),
        drawings=(Drawing("scenes", draw),),
    )


def _solution(instance: Instance, plan: ScenePlan) -> Solution:
    """Build the plan again, with its costs and the streets it takes."""
    network = Network(instance)
    routes = tuple(
        Route(services=tuple(Service(x // 2, x % 2 == 1) for x in route), load=0, cost=0)
        for route in plan.routes
    )
    bare = Solution(routes=routes, cost=0, deadhead=0, service_cost=0)
    solution = from_plan(network, *to_plan(network, bare))
    if solution.cost != plan.cost:
        raise SolutionError(
            f"expected a plan of {instance.name!r} that costs {plan.cost}, found "
            f"{solution.cost}: name another folder"
        )
    return with_street_paths(network, solution)


def _checksum(instance: Instance) -> str:
    """Tell scenes apart by what they hold, whatever file or example it came from."""
    return hashlib.sha256(repr(instance).encode()).hexdigest()
