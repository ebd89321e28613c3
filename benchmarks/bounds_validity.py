"""Lower bounds of random small instances beside the best of all plans.

    python -m benchmarks.bounds_validity --count 10000 --seed 1

makes mixed graphs with parallel streets, loops, costs by direction, streets without demand
and route costs, finds the best plan of each by trying out all of them, and prints how many
bounds are equal to it. It ends with an error where one is above.
"""

from __future__ import annotations

import argparse
import random
from itertools import pairwise
from typing import TYPE_CHECKING

from arcfleet import Instance, Link, Stop, bound
from benchmarks import describe, run_and_exit

if TYPE_CHECKING:
    from collections.abc import Sequence

_FAR = 10**15
_MOST_TASKS = 6


def random_instance(seed: int) -> Instance:
    """Return a mixed graph, strongly connected, with at most six required links."""
    draw = random.Random(seed)
    nodes = list(range(1, draw.randint(2, 7) + 1))
    largest = draw.choice([3, 20, 1000])
    is_symmetric = draw.random() < 0.3
    ring = [*nodes, nodes[0]]
    ends = list(pairwise(ring))
    ends += [(draw.choice(nodes), draw.choice(nodes)) for _ in range(draw.randint(0, 6))]
    chosen = set(
        draw.sample(range(len(ends)), min(len(ends), draw.randint(1, _MOST_TASKS)))
    )
    capacity = draw.randint(3, 12)
    links = []
    for number, (tail, head) in enumerate(ends):
        required = number in chosen
        one_way = not is_symmetric and draw.random() < 0.4
        cost = draw.randint(0, largest)
        by_direction = not one_way and not is_symmetric and draw.random() < 0.5
        own_service = required and not is_symmetric and draw.random() < 0.5
        service = draw.randint(0, largest) if own_service else None
        links.append(
            Link(
                tail=tail,
                head=head,
                cost=cost,
                reverse_cost=draw.randint(0, largest) if by_direction else None,
                one_way=one_way,
                required=required,
                demand=draw.randint(0, min(capacity, 6)) if required else 0,
                service_cost=service,
                reverse_service_cost=draw.randint(0, largest)
                if service is not None and not one_way and draw.random() < 0.5
                else None,
            )
        )
    return Instance(
        name=f"random {seed}",
        links=tuple(links),
        depot=draw.choice(nodes),
        capacity=capacity,
        route_cost=draw.choice([0, 0, draw.randint(1, largest)]),
    )


def least_cost(instance: Instance) -> int:
    """Return the cost of the best plan, by dynamic programming over sets of streets.

    Nothing of the package but the instance is used. Turn rules and operations are not
    looked at.
    """
    drive = _shortest(instance)
    tasks = [instance.links[i] for i in instance.required]
    ways = [
        [(x.tail, x.head, x.service_cost or 0)]
        + ([] if x.one_way else [(x.head, x.tail, x.reverse_service_cost or 0)])
        for x in tasks
    ]
    full = 1 << len(tasks)
    depot = instance.depot
    # Of each set and its last service: the least cost of a route up to there.
    reach: list[dict[tuple[int, int], int]] = [{} for _ in range(full)]
    for task, choices in enumerate(ways):
        for way, (start, _, cost) in enumerate(choices):
            reach[1 << task][task, way] = drive[depot, start] + cost
    best = [_FAR] * full
    best[0] = 0
    for served in range(1, full):
        for (task, way), spent in reach[served].items():
            end = ways[task][way][1]
            for after, choices in enumerate(ways):
                if served >> after & 1:
                    continue
                grown = reach[served | 1 << after]
                for turn, (start, _, cost) in enumerate(choices):
                    total = spent + drive[end, start] + cost
                    if total < grown.get((after, turn), _FAR):
                        grown[after, turn] = total
        load = sum(x.demand for i, x in enumerate(tasks) if served >> i & 1)
        if load <= instance.capacity and reach[served]:
            best[served] = instance.route_cost + min(
                spent + drive[ways[task][way][1], depot]
                for (task, way), spent in reach[served].items()
            )
    # One route, or one with the first street and the best plan of the rest.
    for served in range(1, full):
        first = served & -served
        rest = served ^ first
        part = rest
        while part:
            alone = served ^ part
            best[served] = min(best[served], best[alone] + best[part])
            part = (part - 1) & rest
    return best[full - 1]


def _shortest(instance: Instance) -> dict[tuple[int, int], int]:
    nodes = instance.nodes
    drive = {(a, b): 0 if a == b else _FAR for a in nodes for b in nodes}
    for link in instance.links:
        for reverse in (False, True):
            cost = link.step_cost(reverse, serves=False)
            if cost is not None:
                ends = link.ends(reverse)
                drive[ends] = min(drive[ends], cost)
    for k in nodes:
        for a in nodes:
            for b in nodes:
                drive[a, b] = min(drive[a, b], drive[a, k] + drive[k, b])
    return drive


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare the bounds with the best plans and print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    equal, above = 0, []
    shares = []
    solvable = 0
    for number in range(options.count):
        instance = random_instance(options.seed * 10_000_000 + number)
        best = least_cost(instance)
        if best >= _FAR:
            continue
        solvable += 1
        found = bound(instance, stop=Stop(seconds=60, iterations=50))
        equal += found.value == best
        if found.value > best:
            above.append(instance.name)
        shares.append(found.value / best if best else 1.0)
    print(describe())
    print(
        f"{solvable} of {options.count} instances have a plan: {equal} bounds equal to the "
        f"best plan, {len(above)} above; mean bound {sum(shares) / len(shares):.4%} of it"
    )
    for name in above:
        print(f"above: {name}")
    return 1 if above else 0


if __name__ == "__main__":
    run_and_exit(main)
