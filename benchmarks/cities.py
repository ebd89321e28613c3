"""Cities of any size: iterations per second, memory, and the cost at points of a run.

    python -m benchmarks.cities 60 scene.json...

Each instance is solved in a process of its own, so that the memory is its own.
"""

import argparse
import json
import resource
import subprocess
import sys

from arcfleet import read, solve

_POINTS = (0.1, 0.25, 0.5, 0.75, 1.0)


def _measure(file: str, seconds: float, threads: int, seed: int) -> dict[str, object]:
    instance = read(file)
    result = solve(instance, seconds=seconds, threads=threads, seed=seed)
    history = result.history
    return {
        "name": instance.name,
        "tasks": len(instance.required),
        "seconds": round(result.seconds, 1),
        "iterations": result.iterations,
        "first": round(history[0].seconds, 1),
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "routes": result.solution.num_routes,
        "costs": [
            min((x.cost for x in history if x.seconds <= point * seconds), default=None)
            for point in _POINTS
        ],
    }


def main() -> None:
    """Print a row for each instance."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("seconds", type=float, help="time limit of each run")
    parser.add_argument("files", nargs="+", help="instances")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        row = _measure(given.files[0], given.seconds, given.threads, given.seed)
        print(json.dumps(row))
        return
    print("| tasks | iterations/s | first plan, s | MB | routes | cost after", end=" ")
    print(" | ".join(f"{point * given.seconds:g} s" for point in _POINTS), "|")
    for file in given.files:
        command = [sys.executable, "-m", "benchmarks.cities", str(given.seconds), file]
        command += ["--threads", str(given.threads), "--seed", str(given.seed), "--one"]
        out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        row = json.loads(out)
        rate = row["iterations"] / row["seconds"]
        facts = [row["tasks"], f"{rate:,.0f}", row["first"], row["megabytes"]]
        facts += [row["routes"], *row["costs"]]
        print("|", *(f"{fact} |" for fact in facts), flush=True)


if __name__ == "__main__":
    main()
