"""Plans of street scenes by several methods, kept so that they can be drawn again."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path  # noqa: TC003 (the command line reads the types)
from typing import TYPE_CHECKING, NamedTuple

from arcfleet.bench.machine import commit, machine
from arcfleet.datasets.store import LineFormat, Store
from arcfleet.errors import ArcfleetError, OptionError, SolutionError
from arcfleet.instance.files import read, write
from arcfleet.methods import (
    find_method,
    load_for_methods,
    model_files,
    solve,
)
from arcfleet.network import Network
from arcfleet.neural.checkpoint import model_path
from arcfleet.paper.measure import MeasureConfig, split_names
from arcfleet.paper.report import (
    Report,
    Section,
    make_folder,
    prepare_folder,
    seconds_text,
    write_report,
)
from arcfleet.paper.rows import ModelFiles
from arcfleet.report.plot import ScenePlans, draw_scenes
from arcfleet.search.stop import Stop
from arcfleet.solution.checker import check
from arcfleet.solution.plan import from_plan, to_plan
from arcfleet.solution.solution import Route, Service, Solution
from arcfleet.streets.scene import make_scene
from arcfleet.streets.synthetic import SyntheticSettings, synthetic_streets
from arcfleet.workers import TaskFailure, run_tasks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from arcfleet.instance import Instance
    from arcfleet.neural.solver import LoadedModel
    from arcfleet.paper.commands import Watch
    from arcfleet.search import ProgressCallback

#: Checksum of the scene, method, iterations, seed and checksum of the model.
Key = tuple[str, str, int | None, int, str | None]

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Inputs and settings of `arcfleet paper scenes`.

    Parameters
    ----------
    scenes
        Instance files, as `arcfleet scene` writes them.
    out
        Output folder; unchanged results in it are reused.
    methods
        Methods of `arcfleet methods`, as NAME or NAME=ITERATIONS.
    model
        Model file of the learned methods of its type; default: the shipped one.
    device
        Device of the models: auto, cpu, cuda or cuda:1.
    seed
        Seed of the random number generator.
    workers
        Number of processes.
    figures
        Figures, which need matplotlib.
    quick
        Tiny inputs in place of those given, to see that all of it works.
    """

    scenes: tuple[Path, ...] = field(
        default=(), metadata={"positional": True, "metavar": "SCENE"}
    )
    out: Path = field(metadata={"metavar": "DIR"})
    methods: tuple[str, ...] = ("ps", "daam", "maens=5000", "ruin-recreate=1000000")
    model: Path | None = None
    device: str = "auto"
    seed: int = 0
    workers: int = 1
    figures: bool = True
    quick: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenePlan:
    """A plan of a scene: a line of the store."""

    scene_sha256: str  # checksum of the instance
    # Method and settings; None for the default stop rule.
    method: str
    iterations: int | None
    seed: int
    model_sha256: str | None  # checksum of the model file; None for a method that has none
    scene: str  # name of the instance
    # Cost of the plan and time of the search.
    cost: int
    seconds: float
    # Device, machine and version of the run.
    device: str
    machine: str
    commit: str
    # Services of each route: twice the link, plus one where it is driven backwards.
    routes: tuple[tuple[int, ...], ...]

    @property
    def key(self) -> Key:
        """Identity of the plan."""
        of = (self.scene_sha256, self.method, self.iterations, self.seed)
        return (*of, self.model_sha256)


#: Lines of `arcfleet paper scenes`.
PLANS = LineFormat("arcfleet-scene-plan-1", ScenePlan, "a plan of `arcfleet paper scenes`")


def run(config: Config, watch: Watch) -> Report:
    """Solve scenes by several methods, as far as the store lacks plans, and report all."""
    MeasureConfig(device=config.device, seed=config.seed, workers=config.workers)  # checks
    if config.quick:
        quick = ("ps", "daam-greedy", "maens=20", "ruin-recreate=50")
        tiny = _tiny_scenes(config.out / "inputs")
        config = replace(config, scenes=tiny, methods=quick)
    texts = split_names(config.methods)
    if not texts or not config.scenes:
        what = "scene" if texts else "method"
        raise OptionError(f"expected at least one {what}, got none")
    methods = [find_method(text.strip().partition("=")[0]) for text in texts]
    scenes = [(instance, _checksum(instance)) for instance in map(read, config.scenes)]
    loaded = load_for_methods(methods, config.model, config.device)
    sums, device = {}, "cpu"
    if loaded:
        files = ModelFiles({}, config.device)
        named = model_files(methods, config.model, config.device)
        sums = {
            model_type: files.checksum(model_path(x, model_type))
            for model_type, x in named.items()
        }
        device = files.device_name()
    jobs = []
    for instance, checksum in scenes:
        for text in texts:
            method, iterations, stop = _method(text)
            model_type = find_method(method).model_type
            model = None if model_type is None else sums[model_type]
            key = (checksum, method, iterations, config.seed, model)
            jobs.append(_Job(key, instance, stop))
    prepare_folder(config.out, figures=config.figures)
    with Store(config.out / "scenes.jsonl", PLANS) as store:
        plans = _solve_all(jobs, store, loaded, device, config.workers, watch)
    report = _report(scenes, texts, [plans[job.key] for job in jobs])
    return write_report(report, config.out, figures=config.figures)


def _tiny_scenes(folder: Path) -> tuple[Path, ...]:
    make_folder(folder)
    paths = []
    for seed in range(2):
        path = folder / f"scene-{seed + 1}.json"
        streets = synthetic_streets(SyntheticSettings(columns=5, rows=5), seed=seed)
        name = f"town {seed + 1}"
        instance = make_scene(streets, capacity=100, demand=(5, 10), seed=seed, name=name)
        write(instance, path)
        paths.append(path)
    return tuple(paths)


class _Job(NamedTuple):
    key: Key
    instance: Instance
    stop: Stop

    @property
    def method(self) -> str:
        return str(self.key[1])


def _solve_all(
    jobs: Sequence[_Job],
    store: Store[ScenePlan],
    loaded: Mapping[str, LoadedModel],
    device: str,
    workers: int,
    watch: Watch,
) -> dict[Key, ScenePlan]:
    """Add the plans that the store lacks, and return all of them by their keys."""
    plans = {plan.key: plan for plan in store.records}
    left = [job for job in jobs if job.key not in plans]
    searches = [job for job in left if not find_method(job.method).is_learned]
    here = {"machine": machine(), "commit": commit()}
    failures: list[TaskFailure] = []

    def tell() -> None:
        if watch.progress is not None:
            watch.progress(sum(job.key in plans for job in jobs), len(jobs))

    def keep(job: _Job, outcome: _Solved | TaskFailure) -> None:
        if isinstance(outcome, TaskFailure):
            failures.append(outcome)
            return
        scene, method, iterations, seed, model = job.key
        plan = ScenePlan(
            scene_sha256=scene,
            method=method,
            iterations=iterations,
            seed=seed,
            model_sha256=model,
            scene=job.instance.name,
            cost=outcome[0],
            seconds=round(outcome[1], 6),
            device="cpu" if model is None else device,
            routes=outcome[2],
            **here,
        )
        store.add(plan)
        plans[plan.key] = plan
        tell()

    tell()
    for job in left:
        model_type = find_method(job.method).model_type
        if model_type is not None:
            keep(job, _solve(job, None, loaded[model_type]))
    run_tasks(
        _solve_job,
        searches,
        workers=max(1, min(workers, len(searches))),
        finished=lambda number, outcome: keep(searches[number], outcome),
    )
    for failure in failures:
        if failure.interrupted:
            raise KeyboardInterrupt
        raise ArcfleetError(failure.message)
    if any(job.key not in plans for job in jobs):
        raise KeyboardInterrupt
    return plans


_Solved = tuple[int, float, tuple[tuple[int, ...], ...]]


def _solve_job(job: _Job, progress: ProgressCallback) -> _Solved:
    return _solve(job, progress, None)


def _solve(
    job: _Job, progress: ProgressCallback | None, loaded: LoadedModel | None
) -> _Solved:
    result = solve(
        job.instance,
        job.method,
        stop=job.stop,
        seed=job.key[3],
        progress=progress,
        model=loaded,
    )
    if result.stopped_by == "interrupt":
        raise KeyboardInterrupt
    report = check(job.instance, result.solution)
    if not report.ok:
        raise SolutionError(
            f"expected a valid plan of {job.instance.name!r} by {job.method}, found a "
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
            f"{plans[0].seed}. Made on {places}. Commit {commits}."
        ),
        details=tuple(f"scene {i.name}: {checksum}" for i, checksum in scenes),
        records=tuple(
            {name: x for name, x in asdict(plan).items() if name != "routes"}
            for plan in plans
        ),
        figures={"scenes": draw},
    )


def _solution(instance: Instance, plan: ScenePlan) -> Solution:
    """Return the plan with its costs and its street paths."""
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
    return solution


def _checksum(instance: Instance) -> str:
    """Return what tells scenes apart, whatever file or example they came from."""
    return hashlib.sha256(repr(instance).encode()).hexdigest()
