"""Compare the speed of two builds of the C++ extension, by turns in one run.

    python -m benchmarks.engine_speed --old OLD.so --new NEW.so
    python -m benchmarks.engine_speed --turn-rules --out DIR

The second form compares the installed build without and with turn rules: U-turns at dead
ends only, and one in twenty of all other turns forbidden. It writes one JSON line per
comparison to DIR/speeds.jsonl, in place of an earlier one.

Each build runs in a process of its own. Both search the same instance from the same
seed, so that turn k is the same work in both. The processes take turns on one core, each
goes first every second time, and the time is CPU time: what else the machine does meets
both alike. A ratio above 1 means that the new build does more iterations per second.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from arcfleet import Instance, _core

INSTANCES = ("egl/egl-s4-A.dat", "hefei/Hefei-10.txt")
#: Iterations of a turn on the first and the second instance: about 0.1 s each.
TURNS = {
    "ruin-recreate": (60_000, 20_000),
    "maens": (600, 9),
    "path-scanning": (4_000, 500),
}
SEED = 1
#: After the name of an instance: with turn rules.
WITH_TURNS = "+turns"


def load_extension(path: Path) -> None:
    """Load a build of the extension in the place of the installed one."""
    spec = importlib.util.spec_from_file_location("arcfleet._core", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"expected a build of the extension, got {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules["arcfleet._core"] = module
    spec.loader.exec_module(module)
    if not hasattr(module.Network, "place_terminals"):
        vars(module)["Network"] = _without_fleets(vars(module)["Network"])


def _without_fleets(network: Any) -> type:
    """Return the network of a build from before there were fleets, for today's package."""

    class Network(network):  # type: ignore[misc]
        place_terminals = property(lambda self: self.terminal_nodes[:1] * 0)

        def __init__(self, **arguments: Any) -> None:
            for name in ("places", "closed", "least_closed_cost"):
                arguments.pop(name)
            super().__init__(**arguments)

    return Network


def with_turn_rules(instance: Instance) -> Instance:
    """Return the instance with the turn rules of this benchmark; all can be served."""
    import random

    from arcfleet import Turn
    from arcfleet.instance.turns import TurnCosts, servable

    generator = random.Random(SEED)
    leaving = TurnCosts(instance).leaving
    turns = [
        Turn(index, reverse, *onto)
        for index, link in enumerate(instance.links)
        for reverse in ((False,) if link.one_way else (False, True))
        for onto in leaving(link.ends(reverse)[1])
        if onto[0] != index and generator.random() < 0.05
    ]
    ruled = dataclasses.replace(instance, u_turns="dead-ends", turns=tuple(turns))
    # Signs that close a street to all are taken down.
    while closed := set(instance.required) - servable(ruled):
        turns = [t for t in turns if closed.isdisjoint((t.link_in, t.link_out))]
        ruled = dataclasses.replace(ruled, turns=tuple(turns))
    return ruled


def make_engine(
    name: str, instance: str
) -> _core.Maens | _core.PathScanning | _core.RuinRecreate:
    """Return an engine of the extension that was loaded."""
    import numpy as np

    from arcfleet import _core, read
    from arcfleet.network import Network
    from arcfleet.search.maens import MaensSettings
    from arcfleet.search.path_scanning import PATH_SCANNING_VARIANTS
    from arcfleet.search.ruin_recreate import RuinRecreateSettings
    from benchmarks import shared_dir

    problem = read(shared_dir() / "carplib" / instance.removesuffix(WITH_TURNS))
    if instance.endswith(WITH_TURNS):
        problem = with_turn_rules(problem)
    network = Network(problem)
    if name == "path-scanning":
        variant = PATH_SCANNING_VARIANTS["ps-efficiency"]
        return _core.PathScanning(
            network.core,
            variant.choice,
            variant.trigger,
            variant.filter,
            variant.alpha,
            SEED,
        )
    none = np.zeros(0, dtype=np.int32)
    common: dict[str, Any] = {"seed": SEED, "arcs": none, "route_starts": none}
    if name == "maens":
        maens = dataclasses.asdict(MaensSettings())
        return _core.Maens(network.core, **maens, **common)
    return _core.RuinRecreate(
        network.core,
        **dataclasses.asdict(RuinRecreateSettings()),
        **common,
        chains=1,
        horizon_iterations=10_000_000,
        horizon_seconds=0.0,
    )


def work(path: Path, name: str, instance: str) -> None:
    """Run a turn for each number of iterations read, and print its CPU time."""
    load_extension(path)
    engine = make_engine(name, instance)
    print("ready", flush=True)
    for line in sys.stdin:
        end = engine.iterations + int(line)
        started = time.process_time()
        while engine.iterations < end:
            engine.run(end - engine.iterations, 1e6, -1, 1)
        print(time.process_time() - started, flush=True)


class Worker:
    """A process that runs one build."""

    def __init__(self, path: Path, name: str, instance: str) -> None:
        # As a file: the package `benchmarks` would load the installed extension first.
        paths = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--worker", str(path), name, instance],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
        )
        if self.read() != "ready":
            raise SystemExit(f"expected a build that runs {name}, got {path}")

    def read(self) -> str:
        """Return the next line that the process prints."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def turn(self, iterations: int) -> float:
        """Run a turn and return its CPU time in seconds."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{iterations}\n")
        self.process.stdin.flush()
        return float(self.read())

    def close(self) -> None:
        """End the process."""
        self.process.communicate()


class Comparison(NamedTuple):
    """Speeds of two builds, or without and with turn rules."""

    name: str
    instance: str
    turns: int
    iterations: int  # per turn
    old_speed: float
    new_speed: float
    ratio_quartiles: tuple[float, float, float]

    def __str__(self) -> str:
        """Return a line with the ratio of the speeds and its spread."""
        low, middle, high = self.ratio_quartiles
        return (
            f"{self.name:14} {self.instance:10} old {self.old_speed:9,.0f}/s  "
            f"new {self.new_speed:9,.0f}/s  ratio {middle:.4f} (quartiles {low:.4f} to "
            f"{high:.4f}, {self.turns} turns of {self.iterations} iterations)"
        )


def compare(
    old: Path, new: Path, name: str, instance: str, turns: int, new_suffix: str = ""
) -> Comparison:
    """Compare the speeds of two builds on an instance, by turns."""
    iterations = TURNS[name][INSTANCES.index(instance)]
    workers = [Worker(old, name, instance), Worker(new, name, instance + new_suffix)]
    for worker in workers:
        worker.turn(iterations)  # warm-up
    times: list[list[float]] = [[], []]
    for number in range(turns):
        for which in (0, 1) if number % 2 == 0 else (1, 0):
            times[which].append(workers[which].turn(iterations))
    for worker in workers:
        worker.close()
    ratios = [before / after for before, after in zip(*times, strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    old_speed, new_speed = (iterations * turns / sum(spent) for spent in times)
    stem = Path(instance).stem
    return Comparison(
        name, stem, turns, iterations, old_speed, new_speed, (low, middle, high)
    )


def keep(compared: Comparison, folder: Path, here: dict[str, str]) -> None:
    """Write the line of a comparison without and with turn rules."""
    from benchmarks.drivable import ENGINE_SPEEDS, EngineSpeed, replace_lines

    line = EngineSpeed(
        method=compared.name,
        instance=compared.instance,
        seed=SEED,
        turns=compared.turns,
        iterations=compared.iterations,
        **here,
        speed_without=compared.old_speed,
        speed_with=compared.new_speed,
        ratio_quartiles=compared.ratio_quartiles,
    )
    replace_lines(ENGINE_SPEEDS, folder, [line])


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare two builds, or run one of them as a worker."""
    if sys.argv[1:2] == ["--worker"]:
        work(Path(sys.argv[2]), *sys.argv[3:])
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--old", type=Path, help="build to compare with")
    parser.add_argument("--new", type=Path, help="build to measure")
    parser.add_argument(
        "--turn-rules", action="store_true", help="compare without and with turn rules"
    )
    parser.add_argument("--turns", type=int, default=100, help="turns of each build")
    parser.add_argument("--engine", choices=TURNS, help="default: all")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="with --turn-rules: folder for JSON lines"
    )
    options = parser.parse_args(arguments)
    here: dict[str, str] = {}
    if options.turn_rules:
        from arcfleet import _core
        from arcfleet.bench.machine import commit, machine

        installed = Path(str(_core.__file__))
        options.old, options.new = options.old or installed, options.new or installed
        here = {"machine": machine(), "commit": commit()}
    elif options.out:
        parser.error("expected --turn-rules with --out")
    if options.old is None or options.new is None:
        parser.error("expected --old and --new, or --turn-rules")
    suffix = WITH_TURNS if options.turn_rules else ""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    for name in [options.engine] if options.engine else TURNS:
        for instance in INSTANCES:
            found = compare(options.old, options.new, name, instance, options.turns, suffix)
            print(found, flush=True)
            if options.out:
                keep(found, options.out, here)


if __name__ == "__main__":
    main()
