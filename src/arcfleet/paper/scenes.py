"""Plans of street scenes by several methods, kept so that they can be drawn again."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from arcfleet.bench.machine import commit, machine
from arcfleet.datasets.chunks import run_all
from arcfleet.datasets.store import LineFormat, Store
from arcfleet.errors import OptionError, SolutionError
from arcfleet.instance.files import read, write
from arcfleet.methods import find_method, load_for_methods, model_files, solve
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
from arcfleet.paper.sets import refuse_beside_quick
from arcfleet.report.plot import ScenePlans, draw_scenes
from arcfleet.search.stop import Stop
from arcfleet.solution.checker import check
from arcfleet.solution.plan import from_plan, to_plan
from arcfleet.solution.solution import Route, Service, Solution
from arcfleet.streets.scene import make_scene
from arcfleet.streets.synthetic import SyntheticSettings, synthetic_streets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from arcfleet.instance import Instance
    from arcfleet.methods import Method
    from arcfleet.neural.solver import LoadedModel
    from arcfleet.paper.commands import Watch
    from arcfleet.search import ProgressCallback, Result

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


_METHODS = ("ps", "daam", "maens=5000", "ruin-recreate=1000000")
_QUICK = ("ps", "daam-greedy", "maens=20", "ruin-recreate=50")


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
        Methods of `arcfleet methods`, as NAME, NAME=ITERATIONS or, with a model of its
        own, NAME@FILE.
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
        Tiny scenes, to see that all of it works; methods are those given, or cheap ones.
    """

    scenes: tuple[Path, ...] = field(
        default=(), metadata={"positional": True, "metavar": "SCENE"}
    )
    out: Path = field(metadata={"metavar": "DIR"})
    methods: tuple[str, ...] = _METHODS
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
        refuse_beside_quick(scenes=config.scenes)
        methods = _QUICK if config.methods == _METHODS else config.methods
        tiny = _tiny_scenes(config.out / "inputs")
        config = replace(config, scenes=tiny, methods=methods)
    texts = split_names(config.methods)
    if not texts or not config.scenes:
        what = "scene" if texts else "method"
        raise OptionError(f"expected at least one {what}, got none")
    chosen = [_parse(text) for text in texts]
    scenes = [(instance, _checksum(instance)) for instance in map(read, config.scenes)]
    files = ModelFiles({}, config.device)
    loaded: dict[str, LoadedModel] = {}  # by the checksum of the file
    sums: dict[tuple[str, Path | None], str] = {}
    owners = dict.fromkeys(each.file for each in chosen)
    for own in owners:
        every = [each.method for each in chosen if each.file == own]
        is_plain = len(owners) > 1 and not any(each.is_learned for each in every)
        given = (own or config.model, "auto" if is_plain else config.device)
        models = load_for_methods(every, *given)
        for model_type, file in model_files(every, *given).items():
            checksum = files.checksum(model_path(file, model_type))
            sums[model_type, own] = checksum
            loaded[checksum] = models[model_type]
    jobs = []
    for instance, checksum in scenes:
        for method, iterations, own in chosen:
            kind = method.model_type
            model = None if kind is None else sums[kind, own]
            key = (checksum, method.name, iterations, config.seed, model)
            stop = Stop(iterations=iterations) if iterations else method.default_stop
            jobs.append(_Job(key, instance, stop))
    prepare_folder(config.out, figures=config.figures)
    with Store(config.out / "scenes.jsonl", PLANS) as store:
        device = files.device_name() if loaded else "cpu"
        plans = _solve_all(jobs, store, loaded, device, config.workers, watch)
    report = _report(scenes, chosen, [plans[job.key] for job in jobs])
    return write_report(report, config.out, figures=config.figures)


def _tiny_scenes(folder: Path) -> tuple[Path, ...]:
    make_folder(folder)
    paths = []
    for seed in range(2):
        path = folder / f"scene-{seed + 1}.json"
        streets = synthetic_streets(SyntheticSettings(columns=5, rows=5), seed=seed)
        name = f"town {seed + 1}"
        instance = make_scene(
            streets, capacity=100, demand=(5, 10), seed=seed, name=name, turns="free"
        )
        write(instance, path)
        paths.append(path)
    return tuple(paths)


class _Job(NamedTuple):
    key: Key
    instance: Instance
    stop: Stop

    @property
    def method(self) -> Method:
        return find_method(self.key[1])


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
    searches = [job for job in left if job.method.model_type is None]
    here = {"machine": machine(), "commit": commit()}

    def tell() -> None:
        if watch.progress is not None:
            watch.progress(sum(job.key in plans for job in jobs), len(jobs))

    def keep(job: _Job, result: Result) -> None:
        scene, method, iterations, seed, model = job.key
        plans[job.key] = ScenePlan(
            scene_sha256=scene,
            method=method,
            iterations=iterations,
            seed=seed,
            model_sha256=model,
            scene=job.instance.name,
            cost=result.cost,
            seconds=round(result.seconds, 6),
            device="cpu" if model is None else device,
            routes=tuple(
                tuple(2 * service.link + service.reverse for service in route.services)
                for route in result.solution.routes
            ),
            **here,
        )
        store.add(plans[job.key])
        tell()

    tell()
    for job in left:
        if job.key[-1] is not None:
            keep(job, _solve(job, None, loaded[job.key[-1]]))
    run_all(
        _solve,
        searches,
        lambda number, result: keep(searches[number], result),
        workers=workers,
    )
    return plans


def _solve(
    job: _Job, progress: ProgressCallback | None, model: LoadedModel | None = None
) -> Result:
    """Solve a scene by one method, and verify the plan."""
    result = solve(
        job.instance,
        job.method,
        stop=job.stop,
        seed=job.key[3],
        progress=progress,
        model=model,
    )
    if result.stopped_by == "interrupt":
        raise KeyboardInterrupt
    report = check(job.instance, result.solution)
    if not report.ok:
        raise SolutionError(
            f"expected a valid plan of {job.instance.name!r} by {job.key[1]}, found a "
            f"fault: {report.faults[0]}"
        )
    return result


class _Chosen(NamedTuple):
    method: Method
    iterations: int | None  # None for the default stop rule
    file: Path | None  # model of its own; None for that of all methods

    def __str__(self) -> str:
        number = f"={self.iterations}" if self.iterations else ""
        model = f" ({self.file.stem})" if self.file else ""
        return f"{self.method.name}{number}{model}"

    @property
    def label(self) -> str:
        label = _LABELS.get(self.method.name, self.method.name)
        return f"{label} ({self.file.stem})" if self.file else label


def _parse(text: str) -> _Chosen:
    """Parse NAME, NAME=ITERATIONS or either of them with @FILE."""
    text, at, file = text.strip().partition("@")
    name, _, number = text.partition("=")
    if number and not (number.isascii() and number.isdigit() and int(number)):
        raise OptionError(f"expected a method as NAME=ITERATIONS, got {text!r}")
    method = find_method(name)
    if at and not (file and method.is_learned):
        raise OptionError(f"expected a learned method as NAME@FILE, got {name}@{file}")
    return _Chosen(method, int(number) if number else None, Path(file) if at else None)


def _report(
    scenes: Sequence[tuple[Instance, str]],
    methods: Sequence[_Chosen],
    plans: Sequence[ScenePlan],
) -> Report:
    """Lay out plans, scene by scene: costs, times and a figure."""
    across = len(methods)
    labels = [method.label for method in methods]
    costs, times, drawn = [], [], []
    for number, (instance, _) in enumerate(scenes):
        line = plans[number * across : (number + 1) * across]
        costs.append([instance.name, *(str(x.cost) for x in line)])
        times.append([instance.name, *(seconds_text(x.seconds) for x in line)])
        pairs = zip(labels, line, strict=True)
        shown = [(f"{label}\n{x.cost:,}", _solution(instance, x)) for label, x in pairs]
        title = f"{instance.name} ({len(instance.required)} tasks)"
        drawn.append(ScenePlans(title, instance, shown))
    header = ["scene", *labels]
    places = "; ".join(
        dict.fromkeys(
            x.machine if x.device == "cpu" else f"{x.device} and {x.machine}" for x in plans
        )
    )
    commits = ", ".join(dict.fromkeys(x.commit for x in plans))
    return Report(
        name="scenes",
        sections=(Section("Total cost", header, costs), Section("Time", header, times)),
        caption=(
            f"Plans of {len(scenes)} street scenes; above each its total cost. Solid: "
            "served streets, one colour per route; dashed: deadheads; grey: other streets; "
            f"red squares: depots. Methods: {', '.join(map(str, methods))}; seed "
            f"{plans[0].seed}. Made on {places}. Commit {commits}."
        ),
        details=tuple(f"scene {i.name}: {checksum}" for i, checksum in scenes),
        records=tuple(
            {name: x for name, x in asdict(plan).items() if name != "routes"}
            for plan in plans
        ),
        figures={"scenes": partial(draw_scenes, drawn)},
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
