"""A worker process of the server: reads maps, makes scenes, solves jobs, writes exports.

It is told its tasks on stdin, a line of JSON each, and answers on stdout. It ends when
stdin does, which the system closes when the server dies however it dies. Results are files,
written whole or not at all; a job's best plan is one from the moment it is found, so that a
worker that is killed loses nothing but the search of its last quarter of a second.
"""

from __future__ import annotations

import errno
import fcntl
import io
import json
import math
import os
import queue
import resource
import signal
import sys
import threading
import time
import traceback
import warnings
import zipfile
from collections import defaultdict
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import lru_cache
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ClassVar

import arcfleet
from arcfleet._files import write_bytes_atomically
from arcfleet.errors import (
    ArcfleetError,
    FileError,
    OptionError,
    SolutionError,
    UnsolvableError,
)
from arcfleet.instance.formats import FORMATS
from arcfleet.methods import named_routes
from arcfleet.report.colours import route_colours
from arcfleet.serve.store import append_event, last_progress, read_json, write_json
from arcfleet.solution.drive import driven_points, on_globe, route_legs, with_all_paths
from arcfleet.solution.files import write_solution
from arcfleet.solution.json_solution import read_json_solution
from arcfleet.solution.keep import lock
from arcfleet.solution.renumber import renumber
from arcfleet.solution.start import prepare_start
from arcfleet.streets.choice import kind_of
from arcfleet.streets.scene import cut_scene
from arcfleet.streets.tables import has_layers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from arcfleet import Instance, Progress, Solution, StreetMap
    from arcfleet.solution import Route

#: Progress is told so often, in seconds; where nothing was found, less often.
_OFTEN, _SELDOM = 0.25, 1.0
#: Storing plans takes at most such a share of the time.
_STORING_SHARE = 0.05
#: Cost units, as abbreviated in answers.
_UNITS = {"metres": "m", "seconds": "s", "": ""}

Facts = dict[str, Any]


class _Stopping:
    """Folders of the jobs that the user asked to stop, and that of the running one."""

    jobs: ClassVar[set[str]] = set()
    job = ""

    @classmethod
    def asked(cls) -> bool:
        """Return whether the running job is to stop."""
        return cls.job in cls.jobs


# --- Talking to the server ----------------------------------------------------------------


def main() -> None:
    """Do tasks until stdin ends."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the server ends us, by closing stdin
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what a library prints is no answer
    tasks: queue.SimpleQueue[Facts] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=[tasks], daemon=True).start()
    while True:
        task = tasks.get()
        _Stopping.job = task.get("folder", "")
        if task.get("stop"):
            _Stopping.jobs.add(_Stopping.job)

        def tell(message: Facts) -> None:
            answers.write(json.dumps(message, separators=(",", ":")) + "\n")

        with _limited(task.get("memory")):
            tell({"end": _done(task, tell)})


def _listen(tasks: queue.SimpleQueue[Facts]) -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "task" in message:
            tasks.put(message)
        else:
            _Stopping.jobs.add(message["stop"])
    os._exit(0)


@contextmanager
def _limited(memory: int | None) -> Iterator[None]:
    """Let a task have so many bytes of address space."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    if memory is not None:
        with suppress(ValueError, OSError):  # a system that does not know this limit
            resource.setrlimit(resource.RLIMIT_AS, (memory, before[1]))
    try:
        yield
    finally:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_AS, before)


def _done(task: Facts, tell: Callable[[Facts], None]) -> Facts:
    """Do a task and return what came of it: `error` where it failed."""
    function = {
        "map": read_map,
        "scene": make_scene,
        "job": solve_job,
        "export": export,
        "changes": changes,
        "plan": take_plan,
    }[task["task"]]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(task, tell)
    except Exception as error:
        return {"error": error_facts(error, task.get("file", ""))}


def error_facts(error: BaseException, file: str = "") -> Facts:
    """Return an error as it is answered: type and one sentence, without our paths.

    `file` is what the user calls the file of the task.
    """
    kind, message, field = "internal", "", None
    if isinstance(error, UnsolvableError):
        kind, message = "unsolvable", str(error)
    elif isinstance(error, FileError):
        kind = "invalid"
        message = str(error).removeprefix(f"{error.path}").lstrip(":")
        if error.line is not None:
            message = f"line {message}"
        message = message.strip()
        if error.path.is_absolute():
            message = message.replace(str(error.path), file or "the file")
        if file:
            message = f"{file}: {message}"
        if isinstance(error.__cause__, OSError) and error.__cause__.errno == errno.ENOSPC:
            kind, message = "internal", _DISK_FULL
    elif isinstance(error, ArcfleetError):
        kind, message = "invalid", str(error)
    elif isinstance(error, MemoryError):
        kind = "too_large"
        message = "expected it to fit in memory, found too little: take a smaller part"
    elif isinstance(error, OSError) and error.errno == errno.ENOSPC:
        message = _DISK_FULL
    else:
        traceback.print_exception(error)
        message = f"unexpected {type(error).__name__}: tell the developers, see the log"
    return {"type": kind, "message": message, "field": field}


_DISK_FULL = "the disk of the server is full: free some space and ask again"


# --- Maps ---------------------------------------------------------------------------------


def bundled_map() -> Path:
    """Return the map that comes with the package, as `read_map` takes it."""
    return Path(str(resources.files("arcfleet.serve"))) / "maps" / "denver"


@lru_cache(maxsize=2)
def _street_map(source: str, name: str) -> StreetMap:
    # The library that reads other forms follows what these say of further files.
    if source and has_layers(source):
        raise FileError(
            source,
            "expected an OpenStreetMap extract (.osm.pbf, .osm, .osm.gz, .osm.bz2) or "
            "GeoJSON, found KML, GPX or a file with layers: save it as GeoJSON",
        )
    return arcfleet.read_map(Path(source) if source else bundled_map(), name=name)


def read_map(task: Facts, tell: Callable[[Facts], None]) -> Facts:
    """Read an uploaded map; write its streets as GeoJSON and return its facts."""
    street_map = _street_map(task["source"], task["name"])
    features, kinds = [], defaultdict[str, list[float]](list)
    for number, street in enumerate(street_map.streets):
        kinds[kind_of(street)].append(street.metres)
        facts = {"name": street.name, "kind": kind_of(street), "one_way": street.one_way}
        facts["length"] = round(street.metres, 1)
        features.append(_feature(number, street_map.points(street), facts))
    write_json(Path(task["folder"]) / "streets.geojson", _collection(features))
    places = list(street_map.junctions.values())
    west, east = min(x for x, _ in places), max(x for x, _ in places)
    south, north = min(y for _, y in places), max(y for _, y in places)
    by_length = sorted(kinds.items(), key=lambda entry: -sum(entry[1]))
    return {
        "streets": len(street_map.streets),
        "length": round(math.fsum(map(math.fsum, kinds.values())), 1),
        "bounds": [west, south, east, north],
        "kinds": [
            {"kind": kind, "streets": len(some), "length": round(math.fsum(some), 1)}
            for kind, some in by_length
        ],
        "attribution": street_map.attribution,
    }


def _feature(id: int, points: Any, properties: Facts) -> Facts:
    line = {"type": "LineString", "coordinates": points} if points else None
    return {"type": "Feature", "id": id, "geometry": line, "properties": properties}


def _collection(features: list[Facts], **more: object) -> Facts:
    return {"type": "FeatureCollection", **more, "features": features}


# --- Scenes -------------------------------------------------------------------------------


def make_scene(task: Facts, tell: Callable[[Facts], None]) -> Facts:
    """Make a scene of a map, or of an instance, and write its files; return its facts."""
    request, warned, owners = task["request"], list[str](), tuple[int, ...]()
    given = request.get("instance")
    if given == "example:denver":
        instance = arcfleet.read(given)
    elif given is not None:
        # From memory: nothing in the document is ever taken for the name of a file.
        instance = FORMATS["json"].read("instance", json.dumps(given))
    else:
        scene = cut_scene(_street_map(task["source"], task["name"]), _rules(request))
        instance, warned = scene.instance, list(scene.warnings)
        owners = scene.link_streets
    if request["name"]:
        instance = replace(instance, name=request["name"])
    return write_scene(Path(task["folder"]), instance, warned, owners)


def write_scene(
    folder: Path, instance: Instance, warned: list[str], streets: Sequence[int] = ()
) -> Facts:
    """Write the files of a scene and return its facts.

    `streets` has the number of each link's street in the map, where there is one.
    """
    folder.mkdir(exist_ok=True)
    places = dict(zip(instance.nodes, instance.coordinates, strict=False))
    features = []
    for position, link in enumerate(instance.links):
        facts: Facts = {"name": link.name, "kind": link.kind, "required": link.required}
        facts |= {"demand": link.demand, "one_way": link.one_way}
        facts["street"] = streets[position] if streets else None
        points = driven_points(instance, places, position, False) if places else ()
        features.append(_feature(position, points, facts))
    facilities = [
        {"name": one.name, "place": places.get(one.node), "cost": one.cost}
        for one in instance.facilities
    ]
    starts = dict.fromkeys(end for vehicle in instance.fleet for end in vehicle.depots)
    collection = _collection(
        features,
        depots=[places[node] for node in starts if places],
        facilities=facilities,
        attribution=instance.attribution,
    )
    write_json(folder / "streets.geojson", collection)
    arcfleet.write(instance, folder / "instance.json", "json")
    return {
        "name": instance.name,
        "streets": len(instance.required),
        "links": len(instance.links),
        "length": sum(instance.links[one].metres or 0 for one in instance.required),
        "demand": instance.total_demand,
        "least_routes": instance.least_routes,
        "capacity": instance.capacity,
        "unit": {"cost": _UNITS[instance.cost_unit]},
        "warnings": warned,
    }


def _rules(request: Facts) -> arcfleet.SceneRules:
    """Return the rules of a request, none of which names a file."""
    serve, exclude = request["serve"], request["exclude"]
    vehicles = (request["operations"] or {}).get("vehicles", [])
    capacity = request["capacity"]
    if capacity is None:
        if not vehicles or any(one["capacity"] is None for one in vehicles):
            raise OptionError(
                "expected the capacity of a vehicle, got none: give capacity, or one for "
                "each vehicle"
            )
        capacity = max(one["capacity"] for one in vehicles)
    only = serve["streets"]
    area = None
    if request["area"] is not None and only is None:
        area = arcfleet.Polygons.of(request["area"])
    return arcfleet.SceneRules(
        capacity=capacity,
        area=area,
        border=request["border"],
        depot=_place(request["depot"]),
        serve_kinds=tuple(serve["kinds"] or ()),
        serve_names=tuple(serve["names"]),
        serve_streets=None if only is None else tuple(only),
        exclude_kinds=tuple(exclude["kinds"]),
        exclude_names=tuple(exclude["names"]),
        exclude_streets=tuple(exclude["streets"]),
        demand=request["demand"],
        cost=request["cost"],
        one_way=request["one_way"],
        both_sides=request["both_sides"],
        turns=arcfleet.TurnPolicy(**(request["turns"] or {})),
        operations=_operations(request["operations"] or {}),
    )


def _operations(asked: Facts) -> arcfleet.SceneOperations:
    plain = {name: asked[name] for name in asked if name not in _LISTS}
    return arcfleet.SceneOperations(
        **plain,
        depots=tuple((x, y) for x, y in asked.get("depots", ())),
        facilities=tuple(
            arcfleet.ScenePlace(**one | {"place": tuple(one["place"])})
            for one in asked.get("facilities", ())
        ),
        vehicles=tuple(
            arcfleet.SceneVehicle(
                **one
                | {"depot": _place(one["depot"]), "end": _place(one["end"])}
                | {"forbidden_kinds": tuple(one["forbidden_kinds"])}
            )
            for one in asked.get("vehicles", ())
        ),
    )


_LISTS = ("depots", "facilities", "vehicles")


def _place(given: list[float] | None) -> tuple[float, float] | None:
    return None if given is None else (given[0], given[1])


@lru_cache(maxsize=4)
def _instance(file: str) -> Instance:
    return arcfleet.read(file)


# --- Plans --------------------------------------------------------------------------------


def store_plan(folder: Path, instance: Instance, plan: Solution, best: Facts) -> None:
    """Write a plan that the checker finds right, with what the page draws of it."""
    faults = arcfleet.check(instance, plan).faults
    if faults:
        raise SolutionError(f"expected a plan without faults, got one: {faults[0]}")
    plan = with_all_paths(instance, plan)
    if on_globe(instance):
        write_json(folder / "plan.geojson", plan_features(instance, plan))
    write_solution(instance, plan, folder / "plan.json", seconds=best["seconds"])
    write_json(folder / "best.json", best)
    append_event(folder, "plan", {"cost": plan.cost})


def plan_features(instance: Instance, plan: Solution) -> Facts:
    """Return every link that is driven along, as a line with its route."""
    features: list[Facts] = []
    colours = route_colours(plan.num_routes)
    legs = route_legs(instance, plan)
    for number, colour, route in zip(plan.numbers, colours, legs, strict=True):
        for position, leg in enumerate(route, start=1):
            facts: Facts = {
                "route": number,
                "kind": "service" if leg.step.serves else "drive",
                "link": leg.step.link,
                "name": instance.links[leg.step.link].name,
                "position": position,
                "stroke": colour,
            }
            features.append(_feature(len(features), leg.points, facts))
    return _collection(features, cost=plan.cost, attribution=instance.attribution)


def _route_facts(instance: Instance, number: int, route: Route) -> Facts:
    return {
        "number": number,
        "vehicle": instance.fleet[route.vehicle].name,
        "streets": len(route.services),
        "load": route.load,
        "cost": route.cost,
        "length": None if route.travel is None else route.travel.metres,
        "time": None if route.travel is None else route.travel.seconds,
    }


def result_facts(instance: Instance, plan: Solution, stopped_by: str) -> Facts:
    """Return the result of a job that has a plan."""
    routes = zip(plan.numbers, plan.routes, strict=True)
    return {
        "cost": plan.cost,
        "gap": None,
        "routes": [_route_facts(instance, number, route) for number, route in routes],
        "stopped_by": stopped_by,
        "fallback": None,
    }


def take_plan(task: Facts, tell: Callable[[Facts], None]) -> Facts:
    """Take a plan that was made elsewhere, if the checker finds no fault."""
    instance, folder = _instance(task["instance"]), Path(task["folder"])
    plan = read_json_solution("plan", json.dumps(task["plan"]), instance)
    faults = arcfleet.check(instance, plan).faults
    if faults:
        more = f", and {len(faults) - 1} more faults" if len(faults) > 1 else ""
        raise SolutionError(f"expected a plan of the scene, but {faults[0]}{more}")
    best = {"cost": plan.cost, "routes": plan.num_routes, "seconds": 0.0, "iterations": 0}
    store_plan(folder, instance, plan, best)
    plan = with_all_paths(instance, plan)
    return {"best": best, "result": result_facts(instance, plan, "uploaded"), "repair": []}


# --- Jobs ---------------------------------------------------------------------------------


def solve_job(task: Facts, tell: Callable[[Facts], None]) -> Facts:
    """Solve a job, going on from its best plan if it has one; return its end."""
    folder = Path(task["folder"])
    tell({"begun": True})  # should this process die, it may be for the job
    # One that a server left behind ends soon; two never write into one folder.
    with (folder / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        return _Search(task, folder, tell).run()


def _same_streets(one: Instance, other: Instance) -> bool:
    """Return whether links and vehicle types have the same positions in both."""
    return one.fleet == other.fleet and [x.ends(False) for x in one.links] == [
        x.ends(False) for x in other.links
    ]


class _Search:
    """The search of one job: what it starts from, and what it tells while it runs."""

    def __init__(self, task: Facts, folder: Path, tell: Callable[[Facts], None]) -> None:
        self.request: Facts = task["request"]
        self.folder = folder
        self.repair: list[str] = []
        self.instance, self.searched, self.start = self._prepare(task, tell)
        before = last_progress(folder)
        self.seconds_before: float = before["seconds"]
        self.iterations_before: int = before["iterations"]
        self.best: Facts | None = read_json(folder / "best.json")
        self.named = named_routes(self.searched)
        self.told_at = -math.inf
        self.stored_at, self.storing_seconds = -math.inf, 0.0

    def _prepare(
        self, task: Facts, tell: Callable[[Facts], None]
    ) -> tuple[Instance, Instance, Solution | None]:
        """Return the instance of the plan, that of the search, and what it starts from."""
        request = self.request
        asked = instance = _instance(task["instance"])
        if request["exclude"]:
            instance = arcfleet.exclude(instance, request["exclude"])
        searched, start, repaired = instance, None, None
        if request["start"] is not None:
            old = _instance(task["start_instance"])
            plan = arcfleet.read_solution(self.folder / "start.json", old)
            other = None if _same_streets(old, instance) else old
            edit = request["edit"]
            if edit is None:
                searched, repaired = prepare_start(
                    instance,
                    plan,
                    price=request["keep"],
                    locked=request["lock"],
                    old_instance=other,
                )
            else:
                if other is not None or request["exclude"]:
                    plan = self._fit(arcfleet.repair(instance, plan, other))
                edited = arcfleet.edit(
                    instance,
                    plan,
                    move=[(one["link"], one["route"]) for one in edit["move"]],
                    remove=edit["remove"],
                    add={one["link"]: one["demand"] for one in edit["add"]},
                    free=edit["free"],
                    price=edit["price"] if request["keep"] is None else request["keep"],
                )
                instance, repaired = edited.plain_instance, edited.repaired
                searched = edited.instance
                if request["lock"]:
                    searched = lock(searched, edited.solution, request["lock"])
            if repaired.recomputed:
                self.repair.append(str(repaired))
            start = repaired.solution if repaired.ok else None
            if start is None and request["seconds"] == 0:
                raise SolutionError(
                    f"expected changes that fit the routes, but {repaired.reason}: free "
                    "more routes, or search for some seconds"
                )
        if instance is not asked and instance != asked:
            tell({"scene": write_scene(Path(task["new_scene"]), instance, [])})
        return instance, searched, start

    def _fit(self, repaired: arcfleet.Repair) -> Solution:
        if repaired.recomputed:
            self.repair.append(str(repaired))
        if not repaired.ok:
            raise SolutionError(
                f"expected an earlier plan that fits the scene, but {repaired.reason}: "
                "search without edits first"
            )
        return repaired.solution

    def run(self) -> Facts:
        request, known = self.request, None
        if self.best is not None:
            known = arcfleet.read_solution(self.folder / "plan.json", self.instance)
        elif self.start is not None:
            known = self.start
            self._store(known, 0.0, 0)
        left = request["seconds"] - self.seconds_before
        stopped_by, gap, fallback = "seconds", None, None
        iterations = request["iterations"]
        if iterations is not None:
            iterations = max(0, iterations - self.iterations_before)
        if known is not None and (_Stopping.asked() or left <= 0 or iterations == 0):
            stopped_by = "user" if _Stopping.asked() else "seconds"
        else:
            result = arcfleet.solve(
                self.searched,
                request["method"],
                stop=arcfleet.Stop(seconds=max(left, 0.01), iterations=iterations or None),
                seed=request["seed"],
                start=known,
                bound=request["bound"],
                progress=self._progress,
            )
            known, stopped_by = self._numbered(result.solution), result.stopped_by
            fallback = result.fallback
            if _Stopping.asked():
                stopped_by = "user"
            if result.bound is not None:
                gap = result.bound.gap_facts(known.cost)["gap_percent"]
            self.repair += result.notes if self.start is None else ()
            if self.best is None or known.cost != self.best["cost"]:
                self._store(known, result.seconds, result.iterations)
            elif result.seconds > self.told_at:
                self._tell(known.cost, known.num_routes, result.seconds, result.iterations)
        known = arcfleet.read_solution(self.folder / "plan.json", self.instance)
        facts = result_facts(
            self.instance, with_all_paths(self.instance, known), stopped_by
        )
        facts |= {"gap": gap, "fallback": fallback}
        return {"best": self.best, "result": facts, "repair": self.repair}

    def _numbered(self, plan: Solution) -> Solution:
        """Return a plan with the route numbers of the one it comes from."""
        return plan if self.start is None else renumber(plan, self.start, self.named)

    def _progress(self, progress: Progress) -> None:
        """Store a better plan and tell how far the search is; end it where asked."""
        if _Stopping.asked() and (progress.cost is not None or self.best is not None):
            raise KeyboardInterrupt
        if progress.cost is None:
            return
        since = progress.seconds - self.told_at
        better = self.best is None or progress.cost < self.best["cost"]
        if not better:
            if since >= _SELDOM and self.best is not None:
                best = self.best
                self._tell(
                    best["cost"], best["routes"], progress.seconds, progress.iterations
                )
            return
        pause = max(_OFTEN, self.storing_seconds / _STORING_SHARE)
        if progress.seconds - self.stored_at < pause:
            return
        plan = progress.solution
        if plan is not None:
            self._store(self._numbered(plan), progress.seconds, progress.iterations)

    def _store(self, plan: Solution, seconds: float, iterations: int) -> None:
        began = time.perf_counter()
        best = {
            "cost": plan.cost,
            "routes": plan.num_routes,
            "seconds": round(self.seconds_before + seconds, 3),
            "iterations": self.iterations_before + iterations,
        }
        if self.searched is not self.instance:
            faults = arcfleet.check(self.searched, plan).faults
            if faults:
                raise SolutionError(f"expected a plan without faults, got one: {faults[0]}")
        store_plan(self.folder, self.instance, plan, best)
        self.best = best
        self._tell(plan.cost, plan.num_routes, seconds, iterations)
        self.storing_seconds = time.perf_counter() - began
        self.stored_at = seconds

    def _tell(self, cost: int, routes: int, seconds: float, iterations: int) -> None:
        facts: Facts = {
            "seconds": round(self.seconds_before + seconds, 3),
            "iterations": self.iterations_before + iterations,
            "cost": cost,
            "routes": routes,
        }
        append_event(self.folder, "progress", facts)
        self.told_at = seconds


# --- Exports ------------------------------------------------------------------------------


def export(task: Facts, tell: Callable[[Facts], None]) -> Facts:
    """Write a plan in a format into a file."""
    instance = _instance(task["instance"])
    plan = arcfleet.read_solution(task["plan"], instance)
    plan = with_all_paths(instance, plan)
    with TemporaryDirectory(dir=task["parts"]) as folder:  # which a restart empties
        data = _exported(task["format"], instance, plan, Path(folder))
    write_bytes_atomically(task["target"], data)
    return {}


def _exported(form: str, instance: Instance, plan: Solution, folder: Path) -> bytes:
    colours = route_colours(plan.num_routes)
    target = folder / f"plan.{form}"
    if form == "gpx":
        arcfleet.write_gpx(instance, plan, folder / "tracks")
        return _zipped(folder / "tracks", ".gpx")
    if form in ("sheets", "pdf"):
        arcfleet.write_sheets(instance, plan, folder / "sheets")
        return _zipped(folder / "sheets", ".html" if form == "sheets" else ".pdf")
    if form in ("xlsx", "csv"):
        arcfleet.write_stops(instance, plan, target)
    elif form == "html":
        arcfleet.write_html(instance, plan, target)
    else:
        arcfleet.write_kml(instance, plan, target, colours)
    return target.read_bytes()


def _zipped(folder: Path, suffix: str) -> bytes:
    """Return the files of a folder with a suffix, packed; OptionError if there are none."""
    files = sorted(file for file in folder.iterdir() if file.suffix == suffix)
    if not files:
        raise OptionError("expected the extra sheets for PDF: install arcfleet[sheets]")
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            archive.write(file, file.name)
    return stream.getvalue()


def changes(task: Facts, tell: Callable[[Facts], None]) -> Facts:
    """Compare two plans; write the page of them where one is asked for."""
    instance, old = _instance(task["instance"]), _instance(task["old_instance"])
    before = arcfleet.read_solution(task["old_plan"], old)
    after = arcfleet.read_solution(task["plan"], instance)
    other = None if old.links == instance.links else old
    if task["format"] == "html":
        with TemporaryDirectory(dir=task["parts"]) as folder:
            page = Path(folder) / "diff.html"
            arcfleet.write_diff_html(instance, before, after, page, other)
            page.replace(task["target"])
        return {}
    found = arcfleet.diff(instance, before, after, other).facts()
    cost = {"before": found.pop("cost_before"), "after": found.pop("cost_after")}
    return {"changes": {"cost": cost, **found}}


if __name__ == "__main__":
    main()
