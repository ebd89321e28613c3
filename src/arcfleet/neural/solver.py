"""Learned solvers as methods: they keep the stop rule, report and give Results.

`daam` (four views) and `daam-greedy` make one plan, `daam-sample` goes on drawing
plans and routes of the best, and `hybrid` hands its greedy plan to ruin and recreate. The
baselines `s2v-dqn` and `vrp-dl` make one greedy plan and take it as decoded. One iteration
is one such plan, or every route drawn anew once; the cheapest of four views counts as one.

A time limit is looked at after every step of decoding. Under one, `daam` makes the greedy
plan first, for the case that four take too long. Where time is over before any plan
is ready, there is a warning and a plan of path scanning, so that a plan is always returned.
`hybrid` gives its greedy plan up when a fifth of the time limit is gone, and ruin and
recreate begins by itself.

The same seed, device and number of threads give the same plan, as far as the stop rule
does not depend on the clock.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch

from arcfleet.errors import OptionError
from arcfleet.neural.attempt import ANY_NUMBER, Attempt
from arcfleet.neural.checkpoint import load_model_of
from arcfleet.neural.device import choose_device, torch_threads, working_on
from arcfleet.neural.fast_policy import decoding_model
from arcfleet.neural.hybrid import improve
from arcfleet.neural.kinds import KINDS, kind_of
from arcfleet.neural.out_of_memory import expected_to_fit
from arcfleet.neural.plans import NO_PLAN
from arcfleet.neural.proposals import Proposer, one_plan
from arcfleet.neural.shipped import model_path
from arcfleet.search.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from arcfleet.network import Network
    from arcfleet.neural.kinds import Model
    from arcfleet.neural.plans import Plans
    from arcfleet.search import ProgressCallback, Result, Stop
    from arcfleet.search.result import StoppedBy
    from arcfleet.solution import Solution
    from arcfleet.solution.plan import IntArray

_PROGRESS_SECONDS = 0.1
# Plans drawn at a time: few at first, so that short time limits are kept, then more.
_FIRST_ROUND = 4
_GROWTH = 4
_LARGEST_ROUND = {"cpu": 64, "cuda": 1024}
# Of the time limit of `hybrid`, the most that its learned plan may take.
_HYBRID_SHARE = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedModel:
    """A model that is ready to solve.

    Parameters
    ----------
    model
        Its weights are on `device`.
    device
        Where it works.
    """

    model: Model
    device: torch.device

    @property
    def kind(self) -> str:
        """Name of the kind of model."""
        return kind_of(type(self.model))


def load_for_solving(
    model: Path | str | LoadedModel | None, device: str, kind: str = "daam"
) -> LoadedModel:
    """Load a model file, or the shipped one, on to a device; a loaded one stays as it is.

    Parameters
    ----------
    model
        The file, None for the shipped one, or a loaded model.
    device
        Its name, or "auto".
    kind
        Of model that is wanted.

    Raises
    ------
    OptionError
        If the model is none, the device is not there, or a loaded model is elsewhere or
        of another kind.
    FileError
        If the model file is none or damaged.
    """
    if isinstance(model, LoadedModel):
        if device != "auto" and choose_device(device) != model.device:
            raise OptionError(
                f"expected a model loaded on device {device!r}, got one on "
                f"{str(model.device)!r}: leave the device out or load the model there"
            )
        if model.kind != kind:
            raise OptionError(
                f"expected a loaded model of kind {kind!r}, got one of kind "
                f"{model.kind!r}: load one of that kind, or take the method of this one"
            )
        return model
    path = model_path(model, kind)
    place = choose_device(device)
    loaded = load_model_of(KINDS[kind].model, path, place)[0]
    return LoadedModel(model=decoding_model(loaded), device=place)


def solve_learned(
    network: Network,
    *,
    loaded: LoadedModel,
    method: str,
    stop: Stop,
    seed: int,
    threads: int,
    started: float,
    progress: ProgressCallback | None,
    start: Solution | None = None,
) -> Result:
    """Run the learned method of that name; the instance must have passed `diagnose`."""
    if start is not None:
        raise OptionError(
            f"expected a method that goes on from a plan, got {method!r}: "
            "use 'ruin-recreate' or give no start"
        )
    (attempt,) = attempt_together(
        [network],
        loaded=loaded,
        method=method,
        stop=stop,
        seed=seed,
        threads=threads,
        started=started,
        progress=progress,
    )
    if attempt.plan is None and attempt.stopped_by == "interrupt":
        raise KeyboardInterrupt
    if method != "hybrid":
        return attempt.result(method=method, seed=seed, threads=threads)
    first: Result | None = None
    if attempt.plan is not None:
        first = attempt.result(method=method, seed=seed, threads=threads)
    else:
        attempt.warn_without_plan()
    return improve(
        network,
        first,
        method=method,
        stop=stop,
        seed=seed,
        threads=threads,
        started=started,
        progress=progress,
    )


def attempt_together(
    networks: Sequence[Network],
    *,
    loaded: LoadedModel,
    method: str,
    stop: Stop,
    seed: int,
    threads: int,
    started: float,
    progress: ProgressCallback | None = None,
) -> list[Attempt]:
    """Make the plans of some instances side by side; of `hybrid` the learned part.

    The first plans have the time limits of all instances together, those of `hybrid` a
    fifth of it. If they take longer there are none for `hybrid`, and those of path scanning
    for the others. Ctrl-C ends it: attempts that it cut short say so and keep what they
    have.

    Parameters
    ----------
    networks
        The instances, of similar size; a large one must come alone.
    loaded
        The model.
    method
        One of the learned methods.
    stop
        For each instance; after the first plans, seconds count for all together.
    seed
        Of the draws for all.
    threads
        For torch and the path optimiser.
    started
        `time.perf_counter()` when the caller asked.
    progress
        Called several times a second.
    """
    attempts = [Attempt(network=x, stop=stop, started=started) for x in networks]
    watch = _Watch(attempts, method, stop, started, progress)
    try:
        with (
            torch_threads(threads),
            working_on(loaded.device),
            torch.inference_mode(),
            expected_to_fit(partial(_too_large, loaded.device)),
        ):
            _attempt(attempts, watch, loaded, method, seed, threads)
    except _TimeIsUp:
        for attempt in attempts:
            if attempt.iterations == 0 and method != "hybrid":
                attempt.scan_paths(method)
        _end(attempts, "seconds")
    except KeyboardInterrupt:
        _end(attempts, "interrupt")
    ended = time.perf_counter()
    for attempt in attempts:
        attempt.ended = ended
    return attempts


def _attempt(
    attempts: Sequence[Attempt],
    watch: _Watch,
    loaded: LoadedModel,
    method: str,
    seed: int,
    threads: int,
) -> None:
    if not any(attempt.network.num_tasks for attempt in attempts):
        for attempt in attempts:
            attempt.offer([0], _empty_plan)
        return
    watch.look()
    generator = torch.Generator()
    # torch takes 63 bits; numpy mixes all 64 of the seed into them.
    mixed = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
    generator.manual_seed(int(mixed) >> 1)
    proposer = Proposer(
        loaded.model,
        [attempt.network for attempt in attempts],
        loaded.device,
        threads=threads,
        generator=generator,
    )
    first = proposer.of_views if method == "daam" else proposer.greedy
    if loaded.kind != "daam":
        first = proposer.decoded
    watch.look()
    in_need = None
    if method == "daam" and watch.limit is not None:
        in_need = proposer.greedy(watch.look)
    began = time.perf_counter()
    try:
        plans = first(watch.look)
    except (_TimeIsUp, KeyboardInterrupt):
        if in_need is not None:
            _offer_legal(attempts, in_need)
        raise
    _offer(attempts, range(len(attempts)), plans)
    watch.limit = watch.stop.seconds
    # A round that would not be finished in time is lost: better a smaller one.
    in_time = watch.number_in_time(time.perf_counter() - began)
    size, most = max(1, min(_FIRST_ROUND, in_time)), _LARGEST_ROUND[loaded.device.type]
    while method == "daam-sample":
        watch.look()
        rows = [i for i, attempt in enumerate(attempts) if attempt.stopped_by is None]
        if not rows:
            return
        # One that is near its limit leaves some unused, and does not slow the others.
        copies = min(size, max(attempts[i].iterations_left for i in rows))
        began = time.perf_counter()
        for plans in proposer.sample(rows, copies, watch.look):
            _offer(attempts, rows, plans)
            if all(attempts[row].stopped_by is not None for row in rows):
                return
        each = (time.perf_counter() - began) / copies
        size = max(1, min(most, size * _GROWTH, watch.number_in_time(each)))


def _offer(attempts: Sequence[Attempt], rows: Sequence[int], plans: Plans) -> None:
    for place, row in enumerate(rows):
        if attempts[row].stopped_by is None:
            plan = partial(one_plan, plans, place)
            attempts[row].offer(plans.costs[place].tolist(), plan)


def _offer_legal(attempts: Sequence[Attempt], plans: Plans) -> None:
    """Offer one plan of each attempt that has one."""
    for row, attempt in enumerate(attempts):
        if plans.costs[row, 0] != NO_PLAN:
            attempt.offer(plans.costs[row].tolist(), partial(one_plan, plans, row))


def _empty_plan(_: int) -> tuple[IntArray, IntArray]:
    return np.zeros(0, dtype=np.int32), np.zeros(1, dtype=np.int32)


def _end(attempts: Sequence[Attempt], limit: StoppedBy) -> None:
    for attempt in attempts:
        if attempt.stopped_by is None:
            attempt.stopped_by = limit


class _TimeIsUp(Exception):  # noqa: N818
    """Ends a round of plans in its midst; what was complete before is kept."""


class _Watch:
    """Looks at the clock while plans are made, and reports."""

    def __init__(
        self,
        attempts: Sequence[Attempt],
        method: str,
        stop: Stop,
        started: float,
        progress: ProgressCallback | None,
    ) -> None:
        self.attempts = attempts
        self.stop = stop
        #: Seconds, of what is made now.
        self.limit = stop.seconds
        if self.limit is not None:
            share = _HYBRID_SHARE if method == "hybrid" else 1.0
            self.limit *= share * len(attempts)
        self.started = started
        self.progress = progress
        self.reported = started

    def number_in_time(self, seconds_each: float) -> int:
        """Say how many plans the time limit leaves room for."""
        if self.limit is None:
            return ANY_NUMBER
        left = self.limit - (time.perf_counter() - self.started)
        return int(min(ANY_NUMBER, left / max(seconds_each, 1e-9)))

    def look(self, done: int = 0, total: int = 0) -> None:
        """Report now and then; raise _TimeIsUp when it is."""
        now = time.perf_counter()
        if self.progress is not None and now - self.reported >= _PROGRESS_SECONDS:
            self.reported = now
            first = self.attempts[0]
            self.progress(Progress(now - self.started, first.iterations, first.cost))
        if self.limit is not None and now - self.started >= self.limit:
            raise _TimeIsUp


def _too_large(device: torch.device) -> str:
    return (
        f"expected the instance to fit in the memory of device {str(device)!r}, found "
        "too little: use another device or split it into smaller areas"
    )
