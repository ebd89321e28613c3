"""MCARPTIF: plans with facilities and a longest route beside those of the authors' solver.

Each file of the collection's folder `mcarptif` is solved by ruin and recreate on one
thread, in a share of the CPU time that the solver took for its best plan (fewest vehicles,
then least time; of equal ones the fastest) and in longer limits. Every plan is verified by
the checker.

    python -m benchmarks.mcarptif --out benchmarks/results/mcarptif

adds one JSON line per run to DIR/runs.jsonl; finished ones are reused.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from arcfleet import read, solve
from arcfleet.cli.options import seconds as seconds_option
from arcfleet.datasets.store import LineFormat
from arcfleet.paper.report import Section
from arcfleet.search import Stop
from benchmarks import run_and_exit, shared_dir
from benchmarks.drivable import (
    Lines,
    add_out_option,
    drivable_report,
    listed,
    make_missing,
    mean,
    verified,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Shares of the peer's CPU time; the first is the one to reach.
SHARES = (0.1, 1.0)
#: Longer limits, in seconds.
SECONDS = (10.0,)
LEAST_SECONDS = 0.002
SEEDS = (1, 2, 3)


class Peer(NamedTuple):
    """Best row of the authors' solver for a file."""

    method: str
    vehicles: int
    cost: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A verified plan of a file, and the peer's best."""

    instance: str
    share: float | None  # of the peer's CPU time; None where the limit is in seconds
    limit_seconds: float
    seed: int
    machine: str
    commit: str
    tasks: int
    routes: int
    visits: int
    cost: int
    cpu_seconds: float  # of the whole call of `solve`
    iterations: int
    # None where the collection states nothing about the file.
    peer_method: str | None
    peer_vehicles: int | None
    peer_cost: int | None
    peer_seconds: float | None

    @property
    def key(self) -> tuple[object, ...]:
        """Identity of the run."""
        return self.instance, self.share, self.limit_seconds, self.seed

    @property
    def rank(self) -> tuple[int, int]:
        """What is compared: fewest routes, then least time."""
        return self.routes, self.cost

    @property
    def peer_rank(self) -> tuple[int, int] | None:
        """The same of the peer."""
        if self.peer_vehicles is None or self.peer_cost is None:
            return None
        return self.peer_vehicles, self.peer_cost


def best_rows() -> dict[str, Peer]:
    """Return the best row of each file, of equal ones the fastest; by name of the file."""
    rows: dict[str, list[Peer]] = defaultdict(list)
    path = shared_dir() / "carplib" / "mcarptif" / "reference.csv"
    with path.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            method = f"{row['method']} ({row['solver'].partition('@')[2]})"
            numbers = int(row["vehicles"]), int(row["cost"]), float(row["seconds"])
            rows[row["instance"]].append(Peer(method, *numbers))
    return {name: min(peers, key=lambda peer: peer[1:]) for name, peers in rows.items()}


def file_names() -> list[str]:
    """Return the names of the collection's files."""
    folder = shared_dir() / "carplib" / "mcarptif"
    return sorted(path.stem for path in folder.glob("*.txt"))


def make_run(
    name: str, share: float | None, limit_seconds: float, seed: int, **here: str
) -> Run:
    """Solve a file within a limit."""
    peer = best_rows().get(name)
    instance = read(shared_dir() / "carplib" / "mcarptif" / f"{name}.txt")
    before = time.process_time()
    result = solve(instance, "ruin-recreate", stop=Stop(seconds=limit_seconds), seed=seed)
    used = time.process_time() - before
    plan = verified(result).solution
    return Run(
        instance=name,
        share=share,
        limit_seconds=limit_seconds,
        seed=seed,
        **here,
        tasks=len(instance.required),
        routes=plan.num_routes,
        visits=sum(len(route.visits) for route in plan.routes),
        cost=plan.cost,
        cpu_seconds=round(used, 3),
        iterations=result.iterations,
        peer_method=None if peer is None else peer.method,
        peer_vehicles=None if peer is None else peer.vehicles,
        peer_cost=None if peer is None else peer.cost,
        peer_seconds=None if peer is None else peer.seconds,
    )


def keys_of(
    names: Sequence[str],
    shares: Sequence[float],
    seconds: Sequence[float],
    seeds: Sequence[int],
) -> list[tuple[str, float | None, float, int]]:
    """Return the runs to make, the shortest first."""
    peers = best_rows()
    limits: list[tuple[str, float | None, float]] = []
    for share in shares:
        for name in names:
            if name in peers:  # else there is no time to take a share of
                limit = max(LEAST_SECONDS, round(share * peers[name].seconds, 3))
                limits.append((name, share, limit))
    limits += [(name, None, limit) for limit in seconds for name in names]
    return [(*limit, seed) for limit in limits for seed in seeds]


def _sections(records: Sequence[Run]) -> list[Section]:
    groups: dict[str, list[Run]] = defaultdict(list)
    for run in records:
        groups[_limit_text(run)].append(run)
    return [_section(title, runs) for title, runs in groups.items()]


def _limit_text(run: Run) -> str:
    if run.share is None:
        return f"In {run.limit_seconds:g} seconds"
    if run.share == 1:
        return "In the CPU time of the peer"
    return f"In {run.share:g} of the CPU time of the peer"


def _section(title: str, runs: Sequence[Run]) -> Section:
    by_file: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        by_file[run.instance].append(run)
    rows: list[list[str | None]] = []
    for name, group in by_file.items():
        worst = _worst(group)
        best = min(group, key=lambda run: run.rank)
        peer = group[0]
        rows.append(
            [
                name,
                f"{peer.tasks:,}",
                None if peer.peer_vehicles is None else f"{peer.peer_vehicles}",
                None if peer.peer_cost is None else f"{peer.peer_cost:,}",
                None if peer.peer_seconds is None else f"{peer.peer_seconds:g}",
                f"{worst.routes}" if worst.routes == best.routes else _range(best, worst),
                f"{round(mean(group, 'cost')):,}",
                _gap(best),
                _gap(worst),
                f"{max(run.cpu_seconds for run in group):.2f}",
            ]
        )
    header = [
        *("file", "streets", "peer: vehicles", "cost", "CPU s", "ours: vehicles"),
        *("cost, mean", "best seed", "worst seed", "CPU s, most"),
    ]
    worst_runs = map(_worst, by_file.values())
    pairs = [(x.rank, x.peer_rank) for x in worst_runs if x.peer_rank is not None]
    ahead = sum(ours < theirs for ours, theirs in pairs)
    equal = sum(ours == theirs for ours, theirs in pairs)
    counts = f"worst seed ahead {ahead}, equal {equal}, behind {len(pairs) - ahead - equal}"
    return Section(f"{title}: {counts}", header, rows)


def _worst(group: Sequence[Run]) -> Run:
    return max(group, key=lambda run: run.rank)


def _range(best: Run, worst: Run) -> str:
    return f"{best.routes} to {worst.routes}"


def _gap(run: Run) -> str | None:
    if run.peer_vehicles is None or run.peer_cost is None:
        return None
    if run.routes != run.peer_vehicles:
        fewer = "fewer" if run.routes < run.peer_vehicles else "more"
        return f"{abs(run.routes - run.peer_vehicles)} {fewer}"
    gap = 100 * (run.cost / run.peer_cost - 1)
    return "0" if run.cost == run.peer_cost else f"{gap:+.2f} %"


def _caption(records: Sequence[Run]) -> str:
    return (
        "Fewest vehicles first, then least time. Peer: the best row of the authors' open "
        "solver (fewest vehicles, least cost, then fastest), its CPU seconds as stated in "
        "the collection. Ours: ruin and recreate on one thread, limited by wall-clock time "
        f"of at least {LEAST_SECONDS:g} s; CPU time of the whole call. Seeds: cost against "
        "the peer, or how many vehicles more or fewer. Seeds "
        f"{listed(run.seed for run in records)}. Every plan is verified by the checker."
    )


def _command(records: Sequence[Run]) -> str:
    shares = " ".join(dict.fromkeys(f"{x.share:g}" for x in records if x.share is not None))
    limits = dict.fromkeys(f"{x.limit_seconds:g}" for x in records if x.share is None)
    seeds = " ".join(map(str, dict.fromkeys(run.seed for run in records)))
    words = [f"--shares {shares}"] if shares else []
    words += [f"--seconds {' '.join(limits)}"] if limits else []
    return (
        f"python -m benchmarks.mcarptif {' '.join(words)} --seeds {seeds} "
        "--out benchmarks/results/mcarptif"
    )


MCARPTIF_RUNS = Lines(
    "runs.jsonl",
    LineFormat("arcfleet-mcarptif-run-1", Run, "a line of `mcarptif`"),
    _sections,
    _command,
    _caption,
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the runs that are missing and print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    text = "shares of the peer's CPU time"
    parser.add_argument("--shares", type=float, nargs="*", default=SHARES, help=text)
    text = "longer limits"
    parser.add_argument(
        "--seconds", type=seconds_option, nargs="*", default=SECONDS, help=text
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS, metavar="SEED")
    parser.add_argument("--files", nargs="+", metavar="NAME", help="default: all")
    add_out_option(parser)
    options = parser.parse_args(arguments)
    names = options.files or file_names()
    keys = keys_of(names, options.shares, options.seconds, options.seeds)
    runs = make_missing(MCARPTIF_RUNS, options.out, keys, make_run)
    print(drivable_report(MCARPTIF_RUNS, runs).text())


if __name__ == "__main__":
    run_and_exit(main)
