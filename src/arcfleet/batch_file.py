"""The plans of many instances in one file, which is resumable and may be a part."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from arcfleet._files import read_bytes
from arcfleet._version import __version__
from arcfleet.batch import solve_each
from arcfleet.datasets.dataset import Dataset
from arcfleet.datasets.shards import PartForm, identity_of
from arcfleet.datasets.store import LineFormat, Store
from arcfleet.errors import FileError
from arcfleet.instance.files import read
from arcfleet.solution.checker import check
from arcfleet.solution.json_solution import solution_document
from arcfleet.workers import PROCESSES, TaskFailure

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from arcfleet.batch import Setup
    from arcfleet.datasets.chunks import CountCallback
    from arcfleet.datasets.shards import Shard
    from arcfleet.instance import Instance
    from arcfleet.search import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanLine:
    """The plan of one instance: a line of the file."""

    position: int  # position of the instance among all, from 0
    instance: str  # name of the instance
    # Name of its file, and in a data set its number from 0; checksum of the file.
    source: str
    sha256: str
    version: str  # version of arcfleet
    error: str | None = None  # reason why there is no valid plan; None where there is one
    # Cost of the plan, as the checker confirmed it; None after an error, as all below.
    cost: int | None = None
    routes: int | None = None  # number of routes
    # Statistics of the search, as in Result.
    seconds: float | None = None
    iterations: int | None = None
    stopped_by: str | None = None
    plan: dict[str, Any] | None = None  # document of the plan, as in a plan file


def _upgrade(facts: dict[str, Any]) -> dict[str, Any]:
    if facts.get("error") is None and None in (facts.get("cost"), facts.get("plan")):
        raise ValueError("expected a plan and its cost")
    if facts["position"] < 0:
        raise ValueError("expected a position of 0 or more")
    return facts


#: Lines of `arcfleet solve-many`.
PLANS = LineFormat(
    "arcfleet-plans-1", PlanLine, "a plan of `arcfleet solve-many`", _upgrade
)
PLAN_PARTS = PartForm(PLANS, lambda x: [x.position], lambda x: x.position, "instances")


class _Source(NamedTuple):
    """Where an instance comes from: a file, or its number in a data set."""

    path: Path
    number: int | None = None

    @property
    def name(self) -> str:
        return self.path.name if self.number is None else f"{self.path.name}#{self.number}"


def solve_to_file(
    files: Sequence[Path],
    path: Path,
    how: Setup,
    *,
    model_sha256: str | None = None,
    shard: Shard | None = None,
    workers: int | None = None,
    executor: str = PROCESSES,
    progress: CountCallback | None = None,
) -> tuple[list[PlanLine], int]:
    """Solve instances, or those of one part, and add each plan to a file as it is made.

    Plans that are there are reused, and those of files that changed or could not be solved
    are made again. Ctrl-C ends it; what was cut short is not kept.

    Parameters
    ----------
    files
        Files of instances, and data sets (.npz), which hold many.
    path
        File of JSON lines to write.
    how
        Method, stop rule, settings and seed.
    model_sha256
        Checksum of the model file of a learned method.
    shard
        Part to solve; all by default.
    workers, executor
        As `solve_many` takes them.
    progress
        Callback that takes the number of instances done and the number of all.

    Returns
    -------
    lines, count
        The lines of the instances of the part, and how many it has.

    Raises
    ------
    FileError
        If the file holds something else or cannot be written, or a data set cannot be read.
    """
    _dataset.cache_clear()  # the file may be another one since
    sources = list(_sources(files))
    positions = range(len(sources))
    mine = list(positions) if shard is None else shard.tasks(positions)
    identity = _identity(sources, how, model_sha256)
    if shard is not None:
        identity = identity_of(shard, len(mine), identity)
    checksum = cache(_checksum)  # of a data set once
    with Store(path, PLANS, identity) as store:
        wanted = frozenset(mine)
        done = {
            x.position: x
            for x in store.records
            if x.position in wanted
            and x.error is None
            and x.sha256 == checksum(sources[x.position].path)
        }
        left = [x for x in mine if x not in done]

        def tell() -> None:
            if progress is not None:
                progress(len(done), len(mine))

        def keep(position: int, outcome: Result | TaskFailure) -> None:
            source = sources[position]
            line = PlanLine(
                position=position,
                instance=source.name,
                source=source.name,
                sha256=checksum(source.path),
                version=__version__,
            )
            if isinstance(outcome, TaskFailure):
                if outcome.interrupted:
                    return
                line = replace(line, error=outcome.message)
            elif outcome.stopped_by == "interrupt":  # not the plan that the seed stands for
                return
            else:
                line = _with_plan(line, outcome)
            store.add(line)
            done[position] = line
            tell()

        tell()
        solve_each(
            ((x, partial(_read, sources[x])) for x in left),
            how,
            workers=workers,
            executor=executor,
            count=len(left),
            finished=keep,
        )
    return [done[x] for x in sorted(done)], len(mine)


def _with_plan(line: PlanLine, result: Result) -> PlanLine:
    """Return a line with the plan of a result, or with what the checker found wrong."""
    instance = result.instance
    line = replace(line, instance=instance.name)
    report = check(instance, result.solution)
    if not report.ok:
        return replace(line, error=f"faulty plan: {report.faults[0]}")
    # Street paths are many and follow from the services.
    routes = tuple(replace(route, path=()) for route in result.solution.routes)
    return replace(
        line,
        cost=result.cost,
        routes=result.solution.num_routes,
        seconds=round(result.seconds, 6),
        iterations=result.iterations,
        stopped_by=result.stopped_by,
        plan=solution_document(replace(result.solution, routes=routes), instance),
    )


def _sources(files: Iterable[Path]) -> Iterator[_Source]:
    for path in files:
        if path.suffix == ".npz":
            yield from (_Source(path, number) for number in range(len(_dataset(path))))
        else:
            yield _Source(path)


def _read(source: _Source) -> Instance:
    if source.number is None:
        return read(source.path)
    return _dataset(source.path)[source.number]


@cache
def _dataset(path: Path) -> Dataset:
    return Dataset.open(path)


def _checksum(path: Path) -> str:
    """Return the checksum of a file; an empty one where it cannot be read."""
    if path.suffix == ".npz":
        return _dataset(path).checksum
    try:
        return hashlib.sha256(read_bytes(path)).hexdigest()
    except FileError:
        return ""


def _identity(
    sources: Sequence[_Source], how: Setup, model_sha256: str | None
) -> dict[str, object]:
    """Return what all parts, and the run that resumes one, have in common."""
    names = "\n".join(source.name for source in sources).encode(errors="replace")
    settings = None if how.settings is None else asdict(how.settings)
    # As JSON holds them: enumerations by their names.
    settings = json.loads(json.dumps(settings, default=str))
    return {
        "method": how.method.name,
        "stop_rule": asdict(how.stop),  # type: ignore[call-overload]
        "settings": settings,
        "seed": how.seed,
        "model": model_sha256,
        "instances": {"count": len(sources), "sha256": hashlib.sha256(names).hexdigest()},
    }
