"""Solving a city in districts over several workers, joined and improved as a whole."""

from __future__ import annotations

import dataclasses
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from arcfleet._checks import check_whole_number, whole
from arcfleet.errors import ArcfleetError, OptionError, UnsolvableError
from arcfleet.instance.change import not_required
from arcfleet.instance.diagnose import require_solvable
from arcfleet.methods import (
    LATEST_SHARE,
    METHODS,
    as_instance,
    chosen_settings,
    chosen_stop,
    find_method,
    solve,
)
from arcfleet.network.districts import cut_into_districts
from arcfleet.search import Improvement, Progress, Result, Stop
from arcfleet.search.interrupts import first_interrupt_held
from arcfleet.search.ruin_recreate import RuinRecreateSettings
from arcfleet.search.run import BEGUN, TooShortError, too_short, warn_of
from arcfleet.search.stop import StopSince
from arcfleet.solution.assemble import assemble_plan
from arcfleet.workers import (
    PROCESSES,
    TaskFailure,
    check_sendable,
    check_workers,
    child_seed,
    new_flag,
    run_tasks,
)

if TYPE_CHECKING:
    import ctypes
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from arcfleet.instance import Instance
    from arcfleet.methods import Method
    from arcfleet.search import ProgressCallback
    from arcfleet.search.stop import StoppedBy
    from arcfleet.solution import Route, Solution

#: Share of the time, or of the iterations, that the districts have; the rest is for the
#: whole, to improve across borders.
_SHARE = 0.5
#: Processes take about a second to start: with less time than this they are not.
_WORTH_STARTING = 5.0
_IN_TURN = (
    f"solved one after the other: for less than {_WORTH_STARTING:g} s no processes start"
)
#: The whole is improved from a plan that is good: first temperature, as a share of the
#: usual one.
_REHEAT = 0.4


def solve_districts(
    instance: Instance | Path | str,
    districts: int,
    method: str | Method = "auto",
    *,
    stop: Stop | None = None,
    seconds: float | None = None,
    params: object = None,
    seed: int = 0,
    workers: int | None = None,
    executor: str = PROCESSES,
    threads: int = 1,
    progress: ProgressCallback | None = None,
) -> Result:
    """Solve a city in districts, over several workers, then improve it across borders.

    Districts are compact and alike in demand. Each is solved as an instance of its own, on
    all streets of the city; half of the time or of the iterations is for that. The other
    half is for the whole, from the joined plan on. With a limit of iterations the same
    seed gives the same plan, whatever the workers. Ctrl-C ends the search and returns the
    best plan so far. Workers are spawned processes: with more than one, a script must
    guard its calls by `if __name__ == "__main__":`.

    Parameters
    ----------
    instance
        The instance, or the path of its file. It may ask for turn rules and a fleet
        limit, but for none of `Instance.operations`.
    districts
        Number of districts.
    method
        Name of a method with `warm_start` in `METHODS`, or "auto" for the best one.
    stop
        Limit of time, of iterations, or both; by default the time limit of the method.
        Iterations are those of all districts and of the whole.
    seconds
        Time limit, short for `stop=Stop(seconds=...)`. It holds from this call to its
        return; one that is too short for first plans of all districts is refused when the
        first district shows it. Below 5 s no processes are started, since that takes about
        a second: districts are then solved one after the other, and a note says so.
    params
        Settings of the method, as `solve` takes them.
    seed
        Seed of the random number generator; district i is solved with
        `child_seed(seed, i)`.
    workers
        Number of processes; 1, the default, works in the calling one. With Ray the most
        cores to use.
    executor
        "processes" of this machine, or "ray" for those of a Ray cluster.
    threads
        Number of threads of this machine that improve the whole; 0 means one per core.
    progress
        Callback, called when a district is finished, and then as `solve` calls it. What it
        raises ends the search, which returns the best plan so far.

    Raises
    ------
    UnsolvableError
        If no plan can exist, with the reasons, or none was found for a district.
    OptionError
        If an argument is wrong, the instance asks for operations, the fleet limit is too
        low for so many districts, or first plans of all districts are foreseen more than a
        tenth after the time limit.
    FileError
        If the file of the instance is not one or is corrupt.
    """
    started = time.perf_counter()
    chosen = find_method(method)
    instance = as_instance(instance)
    number, seed = whole(districts), whole(seed)
    workers = None if workers is None else whole(workers)
    check_whole_number("districts", number, 1, max(1, len(instance.required)))
    check_whole_number("seed", seed, 0, 2**64 - 1)
    threads = whole(threads)
    check_whole_number("threads", threads, 0, 1024)
    check_workers(workers, executor)
    _require_classical(instance)
    require_warm_start(chosen)
    rule = _checked_stop(chosen_stop(chosen, stop, seconds, len(instance.required)))
    if isinstance(rule, StopSince):
        started = rule.started
    in_turn = (
        executor == PROCESSES
        and (workers or 1) > 1
        and rule.seconds is not None
        and rule.seconds < _WORTH_STARTING
    )
    if in_turn:
        workers = 1
    if executor != PROCESSES and workers is None and rule.seconds is not None:
        raise OptionError(
            f"expected the number of workers beside executor {executor!r} and a time "
            "limit, got none: say how many districts are to be solved at a time"
        )
    settings = chosen_settings(chosen, params)
    if executor == PROCESSES and (workers or 1) > 1:
        check_sendable(method=chosen, settings=settings)
    before = time.perf_counter()
    require_solvable(instance)
    since = StopSince(
        seconds=rule.seconds,
        iterations=rule.iterations,
        started=started,
        reserve=rule.reserve if isinstance(rule, StopSince) else 0.0,
        checked=time.perf_counter() - before,
    )
    links = cut_into_districts(instance, number)
    work = _Work(
        instance=instance,
        method=chosen,
        settings=settings,
        seed=seed,
        stop=since,
        links=links,
        limits=_fleet_limits(instance, links),
        at_a_time=workers or (1 if executor == PROCESSES else number),
        progress=progress,
    )
    work.run(workers, executor)
    with first_interrupt_held() as signals:
        joined = work.joined()
        iterations = sum(one.iterations for one in work.found.values())
        now = time.perf_counter() - started
        plain = Result(
            instance=instance,
            method=chosen.name,
            seed=seed,
            threads=threads or os.cpu_count() or 1,
            solution=joined,
            seconds=now,
            iterations=iterations,
            stopped_by=_ended_by(work),
            history=(Improvement(now, max(0, iterations - 1), joined.cost),),
            notes=(
                f"{_count(number)}, joined at cost {joined.cost}",
                *([_IN_TURN] if in_turn else []),
                *work.notes(),
            ),
        )
    if signals:
        return dataclasses.replace(plain, stopped_by="interrupt")
    if work.interrupted or work.error is not None:
        return plain
    return _improved(plain, work, threads)


def _improved(plain: Result, work: _Work, threads: int) -> Result:
    """Return the joined plan improved across the borders of districts, in the time left."""
    since, done = work.stop, plain.iterations
    settings = work.settings
    if isinstance(settings, RuinRecreateSettings):
        heat = max(settings.last_temperature, _REHEAT * settings.first_temperature)
        settings = dataclasses.replace(settings, first_temperature=heat)
    rule = since
    if since.iterations is not None:
        if since.iterations <= done:
            return plain
        rule = dataclasses.replace(since, iterations=since.iterations - done)

    def told(progress: Progress) -> None:
        if work.progress is not None:
            work.progress(
                dataclasses.replace(progress, iterations=progress.iterations + done)
            )

    try:
        found = solve(
            plain.instance,
            work.method,
            stop=rule,
            params=settings,
            seed=plain.seed,
            threads=threads,
            progress=told,
            start=plain.solution,
        )
    except KeyboardInterrupt:
        return dataclasses.replace(plain, stopped_by="interrupt")
    except TooShortError as error:
        note = f"left as they were joined, for want of time: {error}"
        return dataclasses.replace(
            plain,
            seconds=time.perf_counter() - since.started,
            notes=(*plain.notes, note),
        )
    later = (
        dataclasses.replace(one, iteration=one.iteration + done)
        for one in found.history
        if one.cost < plain.cost
    )
    better = found.solution if found.cost <= plain.cost else plain.solution
    # Routes have the numbers of those that they began with, which say nothing here.
    routes = tuple(dataclasses.replace(route, number=None) for route in better.routes)
    return dataclasses.replace(
        found,
        solution=dataclasses.replace(better, routes=routes),
        iterations=found.iterations + done,
        history=(*plain.history, *later),
        notes=(*plain.notes, *found.notes),
    )


@dataclass(slots=True, kw_only=True)
class _Work:
    """The districts of a city, and what has become of them."""

    instance: Instance
    method: Method
    settings: Any
    seed: int
    stop: StopSince
    links: list[tuple[int, ...]]  # of each district
    limits: list[int | None]  # of its fleet
    at_a_time: int
    progress: ProgressCallback | None
    found: dict[int, _Found] = dataclasses.field(default_factory=dict)
    interrupted: bool = False
    error: Exception | None = None  # of the progress callback
    #: Set where the search is to end.
    end: ctypes.c_bool = dataclasses.field(default_factory=new_flag)

    def run(self, workers: int | None, executor: str) -> None:
        """Solve all districts; those that Ctrl-C leaves out get a first plan."""
        failures: dict[int, TaskFailure] = {}

        def finished(position: int, outcome: _Found | ArcfleetError | TaskFailure) -> None:
            if isinstance(outcome, TaskFailure):
                failures[position] = outcome
            else:
                self._take(position, outcome)
                self._require_time(self.found[position].first_seconds)
            self._report()

        self._report()
        count = len(self.links)
        interrupted = run_tasks(
            _solve_district,
            self._tasks(),
            workers=None if workers is None else min(workers, count),
            executor=executor,
            finished=finished,
            stop=self.end,
        )
        self.interrupted |= interrupted
        for position in range(count):
            if position in self.found:
                continue
            failure = failures.get(position)
            if failure is not None and not failure.interrupted:
                self._fail(position, failure.message)
            self.interrupted |= self.error is None
            self._take(position, _solve_district(self._task(position, Stop(iterations=1))))

    def _take(self, position: int, outcome: _Found | ArcfleetError) -> None:
        if isinstance(outcome, TooShortError):
            self._refuse(self._waves(len(self.links)) * outcome.needed / _SHARE)
        if isinstance(outcome, UnsolvableError):
            self._fail(position, str(outcome))
        if isinstance(outcome, ArcfleetError):
            raise outcome
        self.found[position] = outcome
        self.interrupted |= outcome.interrupted and self.error is None

    def _waves(self, districts: int) -> int:
        """Return the number of rounds in which so many districts are solved."""
        return -(-districts // self.at_a_time)

    def _require_time(self, seconds: float) -> None:
        """Raise OptionError if the plans of the others come too late, each after so long.

        A pause of the machine is no reason: what is left must itself take too long.
        """
        limit = self.stop.seconds
        waves = self._waves(len(self.links)) - self._waves(len(self.found))
        if limit is None or waves == 0 or self.interrupted or self.end.value:
            return
        left = waves * seconds
        ends = time.perf_counter() - self.stop.started + left + self.stop.reserve
        if left > LATEST_SHARE * limit and ends > (1 + LATEST_SHARE) * limit:
            self._refuse(left)

    def _refuse(self, seconds: float) -> NoReturn:
        """Raise OptionError where the districts need so much time from now on."""
        passed = time.perf_counter() - self.stop.started
        needed = passed + seconds + self.stop.reserve
        remedy = "give it more time or more workers, or solve it as a whole"
        raise too_short(self.instance, self.stop.seconds or 0.0, needed, remedy)

    def joined(self) -> Solution:
        """Return the plan of all districts."""
        found = (self.found[position] for position in range(len(self.links)))
        return assemble_plan(self.instance, [x for one in found for x in one.routes])

    def notes(self) -> tuple[str, ...]:
        """Return what is to be said of districts that had too little time."""
        late = sum(one.hardly_begun for one in self.found.values())
        if not late:
            return ()
        return (
            f"{late} of {_count(len(self.links))} had hardly begun when their time was "
            "over: give it more time or more workers, or ask for fewer districts",
        )

    def _tasks(self) -> Iterator[_District]:
        tasks = max(1, len(self.instance.required))
        began = time.perf_counter()
        seconds = iterations = None
        if self.stop.seconds is not None:
            left = self.stop.seconds - self.stop.reserve - (began - self.stop.started)
            seconds = max(0.0, _SHARE * left / self._waves(len(self.links)))
        for position, links in enumerate(self.links):
            if self.stop.iterations is not None:
                share = _SHARE * self.stop.iterations * len(links) / tasks
                iterations = max(1, int(share))
            yield self._task(position, Stop(seconds=seconds, iterations=iterations))

    def _task(self, position: int, stop: Stop) -> _District:
        return _District(
            instance=self.instance,
            name=f"{self.instance.name}, district {position + 1}",
            links=self.links[position],
            fleet_limit=self.limits[position],
            method=self.method,
            settings=self.settings,
            seed=child_seed(self.seed, position),
            stop=stop,
            checked=self.stop.checked,
        )

    def _fail(self, position: int, message: str) -> NoReturn:
        raise UnsolvableError(
            f"found no plan for district {position + 1} of {len(self.links)} of instance "
            f"{self.instance.name!r} ({message}): ask for fewer districts"
        )

    def _report(self) -> None:
        if self.progress is None or self.error is not None:
            return
        progress = Progress(
            seconds=time.perf_counter() - self.stop.started,
            iterations=sum(one.iterations for one in self.found.values()),
            cost=None,
            districts=(len(self.found), len(self.links)),
        )
        try:
            self.progress(progress)
        except Exception as error:
            self.error = error
            self.end.value = True
            warn_of(error, stacklevel=6)


@dataclass(frozen=True, slots=True, kw_only=True)
class _District:
    """What a worker needs to solve a district."""

    instance: Instance  # the whole
    name: str
    links: tuple[int, ...]
    fleet_limit: int | None
    method: Method
    settings: Any
    seed: int
    stop: Stop
    checked: float | None  # as in StopSince

    def cut_out(self) -> Instance:
        """Return the instance of the district: all streets, but other ones not required."""
        kept = set(self.links)
        return dataclasses.replace(
            self.instance,
            name=self.name,
            fleet_limit=self.fleet_limit,
            links=tuple(
                not_required(link) if link.required and position not in kept else link
                for position, link in enumerate(self.instance.links)
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """The plan of a district."""

    routes: tuple[Route, ...]
    iterations: int
    first_seconds: float  # until there was a plan
    interrupted: bool
    hardly_begun: bool  # when its time was over


def _solve_district(
    task: _District, progress: ProgressCallback | None = None
) -> _Found | ArcfleetError:
    started = time.perf_counter()
    stop = StopSince(
        seconds=task.stop.seconds,
        iterations=task.stop.iterations,
        started=started,
        checked=task.checked,
    )
    try:
        result = solve(
            task.cut_out(),
            # The method itself: a worker does not know what a script registered.
            task.method,
            stop=stop,
            params=task.settings,
            seed=task.seed,
            progress=progress,
        )
    except ArcfleetError as error:
        return error
    return _Found(
        routes=result.solution.routes,
        iterations=result.iterations,
        first_seconds=result.history[0].seconds if result.history else result.seconds,
        interrupted=result.stopped_by == "interrupt",
        hardly_begun=result.stopped_by == "seconds"
        and result.iterations < BEGUN * len(task.links),
    )


def _fleet_limits(instance: Instance, links: Sequence[tuple[int, ...]]) -> list[int | None]:
    """Share the fleet limit out over districts, more where vehicles would be full."""
    limit, capacity = instance.fleet_limit, instance.capacity
    if limit is None:
        return [None] * len(links)
    demands = [sum(instance.links[x].demand for x in one) for one in links]
    shares = [max(1, -(-demand // capacity)) for demand in demands]
    spare = limit - sum(shares)
    if spare < 0:
        raise OptionError(
            f"expected a fleet limit of at least {sum(shares)} for {_count(len(links))} of "
            f"instance {instance.name!r}, got {limit}: ask for fewer districts"
        )
    fill = [x / (share * capacity) for x, share in zip(demands, shares, strict=True)]
    order = sorted(range(len(shares)), key=lambda one: (-fill[one], one))
    for turn in range(min(spare, len(instance.required))):
        shares[order[turn % len(order)]] += 1
    return list(shares)


def _require_classical(instance: Instance) -> None:
    if instance.operations:
        raise OptionError(
            "expected an instance of one depot and like vehicles to cut into districts, "
            f"got {instance.name!r} with {', '.join(instance.operations)}: solve it as a "
            "whole"
        )


def require_warm_start(method: Method) -> None:
    """Raise OptionError unless the method goes on from the joined plans of districts."""
    if not method.warm_start:
        able = " or ".join(repr(each.name) for each in METHODS.values() if each.warm_start)
        raise OptionError(
            "expected a method that warm-starts, from the joined plans of the districts, "
            f"got {method.name!r}: use {able}"
        )


def _checked_stop(rule: object) -> Stop:
    """Return a rule of seconds and iterations; raise OptionError for any other."""
    if (
        not isinstance(rule, Stop)
        or rule.no_improvement is not None
        or rule.target_cost is not None
    ):
        raise OptionError(
            f"expected a limit of seconds or iterations for districts, got {rule}"
        )
    return rule


def _ended_by(work: _Work) -> StoppedBy:
    if work.error is not None:
        return "error"
    if work.interrupted:
        return "interrupt"
    return "seconds" if work.stop.iterations is None else "iterations"


def _count(districts: int) -> str:
    return "1 district" if districts == 1 else f"{districts} districts"
