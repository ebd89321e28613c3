"""Compare the speed of the search with operations and without, by turns in one run.

    python -m benchmarks.fleet_speed --out DIR

The classical search and the search over plans of a fleet take turns on one core, on the
same instance: with a longest route that does not bind, and with one and two facilities.
Turns and CPU time are those of `engine_speed`; a ratio of 1/3 is asked for. One JSON line
per comparison is appended to DIR/speeds.jsonl.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arcfleet import Facility, Instance, read
from arcfleet.bench.machine import commit, machine
from arcfleet.network import Network
from arcfleet.search.fleet import fleet_engine
from arcfleet.search.ruin_recreate import RuinRecreateSettings
from benchmarks import shared_dir
from benchmarks.engine_speed import INSTANCES, SEED, TURNS, make_engine

if TYPE_CHECKING:
    from collections.abc import Sequence

OPERATIONS = ("a longest route", "a longest route and two facilities")


def with_operations(instance: Instance, operations: str) -> Instance:
    """Return the instance with operations; facilities are spread over its nodes."""
    if operations == OPERATIONS[0]:
        return dataclasses.replace(instance, max_route_cost=2**27)
    nodes = instance.nodes
    places = (nodes[len(nodes) // 3], nodes[2 * len(nodes) // 3])
    # Three or four trips a route on the first instance, two or three on the second.
    network = Network(instance)
    longest = max(network.distances[0].max() * 4, 1)
    return dataclasses.replace(
        instance,
        max_route_cost=int(longest),
        facilities=tuple(Facility(node=node, cost=0) for node in places),
    )


def turn(engine: Any, iterations: int) -> float:
    """Run a turn and return its CPU time in seconds."""
    end = engine.iterations + iterations
    started = time.process_time()
    while engine.iterations < end:
        engine.run(end - engine.iterations, 1e6, -1, 1)
    return time.process_time() - started


def compare(instance: str, operations: str, turns: int, iterations: int) -> dict[str, Any]:
    """Return the speeds of both searches on an instance, by turns."""
    problem = with_operations(read(shared_dir() / "carplib" / instance), operations)
    engines: list[Any] = [
        make_engine("ruin-recreate", instance),
        fleet_engine(Network(problem), RuinRecreateSettings(), SEED),
    ]
    for engine in engines:
        turn(engine, iterations)  # warm-up
    times: list[list[float]] = [[], []]
    for number in range(turns):
        for which in (0, 1) if number % 2 == 0 else (1, 0):
            times[which].append(turn(engines[which], iterations))
    ratios = [classical / fleet for classical, fleet in zip(*times, strict=True)]
    classical, fleet = (iterations * turns / sum(spent) for spent in times)
    return {
        "instance": Path(instance).stem,
        "operations": operations,
        "seed": SEED,
        "turns": turns,
        "iterations": iterations,
        "classical_speed": classical,
        "fleet_speed": fleet,
        "ratio_quartiles": statistics.quantiles(ratios, n=4),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare both searches on all instances."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=40, help="turns of each search")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder for JSON lines")
    options = parser.parse_args(arguments)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    here = {"machine": machine(), "commit": commit()}
    for number, instance in enumerate(INSTANCES):
        iterations = TURNS["ruin-recreate"][number] // 2
        for operations in OPERATIONS:
            found = compare(instance, operations, options.turns, iterations)
            low, middle, high = found["ratio_quartiles"]
            print(
                f"{found['instance']:10} {operations:36} "
                f"classical {found['classical_speed']:9,.0f}/s  "
                f"fleet {found['fleet_speed']:9,.0f}/s  "
                f"ratio {middle:.3f} (quartiles {low:.3f} to {high:.3f})",
                flush=True,
            )
            if options.out:
                options.out.mkdir(parents=True, exist_ok=True)
                with (options.out / "speeds.jsonl").open("a") as lines:
                    lines.write(json.dumps(found | here) + "\n")


if __name__ == "__main__":
    main()
