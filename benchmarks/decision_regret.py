"""What each decision of greedy plans costs, beside the best completion of the plan so far.

    python -m benchmarks.decision_regret DATA.npz ... --count 100 --iterations 10000

After every decision ruin and recreate completes the plan: the route under way is one task
more, a one-way street from the depot to where the vehicle is, with the load that it
carries. What a plan and its best completion cost together never falls from decision to
decision; the regret of a decision is by how much it rises. All regrets of a plan add up to
its gap. Where a search falls short, those of later decisions stand in, as they complete the
same beginning. Instances with turn rules are refused: there, driving on depends on more
than the place.
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from arcfleet.datasets import Dataset
from arcfleet.errors import OptionError
from arcfleet.instance import Link
from arcfleet.network import Network
from arcfleet.neural.batch import batch_from_networks
from arcfleet.neural.decoding import greedy
from arcfleet.neural.env import action_mask
from arcfleet.neural.solver import LoadedModel, load_for_solving
from arcfleet.neural.train.steps import num_choices, states_at
from arcfleet.report.tables import table
from arcfleet.search.ruin_recreate import ruin_recreate
from arcfleet.search.run import RunContext
from arcfleet.search.stop import Stop
from benchmarks import run_and_exit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from arcfleet.instance import Instance

#: Upper ends of the classes of probability of the chosen arc.
_SURE = (0.4, 0.6, 0.8, 0.9, 0.97, 0.99, 1.01)
# Nobody drives the street that stands for a route under way without serving it.
_FORBIDDING = 10**6


class Regrets(NamedTuple):
    """Decisions of one greedy plan."""

    chance: NDArray[np.float64]  # probability of each choice
    percent: NDArray[np.float64]  # regret of each, in percent of the best cost known


def regrets(instance: Instance, loaded: LoadedModel, iterations: int) -> Regrets:
    """Compute what each decision of the greedy plan of an instance costs."""
    if instance.has_turn_rules:
        raise OptionError(
            f"expected an instance with free turns, got {instance.name!r}: leave it out"
        )
    network = Network(instance)
    batch = batch_from_networks([network], device=loaded.device)
    with torch.inference_mode():
        found = greedy(loaded.model, batch)
        steps = int(num_choices(found.arcs)[0, 0])
        state, choice = states_at(batch, found.arcs, torch.arange(steps)[None, None])
        mask = action_mask(batch, state)
        logits = loaded.model(loaded.model.prepare(batch), state, mask)
        chance = logits.double().softmax(-1).gather(-1, choice[..., None])[0, :, 0]
    begun = [_completed(instance, iterations), *_completions(network, choice, iterations)]
    # The best completion after a decision also completes what was before it.
    best = np.minimum.accumulate(np.array(begun, dtype=np.float64)[::-1])[::-1]
    return Regrets(chance.numpy(), 100 * np.diff(best) / best[0])


def _completions(network: Network, choice: torch.Tensor, iterations: int) -> Iterator[int]:
    """Yield the cost of the plan so far with its best completion after each decision."""
    instance, edge = network.instance, network.arc_edge
    links = list(instance.links)
    cost = load = before = 0
    for arc in choice[0].tolist():
        start, end = network.arc_start[arc], network.arc_end[arc]
        cost += int(network.distances[network.arc_end[before], start])
        before = arc
        if arc == 0:
            load = 0
        else:
            link = int(edge[arc]) // 2
            cost += int(network.arc_service_cost[arc])
            load += int(network.arc_demand[arc])
            links[link] = dataclasses.replace(
                links[link],
                required=False,
                demand=0,
                service_cost=None,
                reverse_service_cost=None,
                service_seconds=None,
            )
        under_way = []
        if arc:
            under_way = [
                Link(
                    tail=instance.depot,
                    head=int(instance.nodes[network.terminal_nodes[end]]),
                    cost=_FORBIDDING,
                    one_way=True,
                    required=True,
                    demand=load,
                    service_cost=0,
                )
            ]
        rest = dataclasses.replace(instance, links=(*links, *under_way))
        yield cost + _completed(rest, iterations)


def _completed(instance: Instance, iterations: int) -> int:
    """Return the cost of the plan that ruin and recreate finds."""
    context = RunContext(method="ruin-recreate", stop=Stop(iterations=iterations), seed=1)
    return int(ruin_recreate(Network(instance), context).solution.cost)


def report(path: Path, found: list[Regrets]) -> None:
    """Print where the regret of the plans of a data set is."""
    chance = np.concatenate([each.chance for each in found])
    percent = np.concatenate([each.percent for each in found])
    plans = len(found)
    print(
        f"{path.stem}: {plans} plans of {len(percent) / plans:.1f} decisions, gap "
        f"{percent.sum() / plans:.2f} %; the worst decision of each has "
        f"{np.mean([each.percent.max() for each in found]):.2f}, the worst three "
        f"{np.mean([np.sort(each.percent)[-3:].sum() for each in found]):.2f}"
    )
    rows = []
    for least, most in zip((0.0, *_SURE), _SURE, strict=False):
        here = (chance >= least) & (chance < most)
        count = int(here.sum())
        rows.append(
            (
                f"{least:.2f} to {min(most, 1):.2f}",
                f"{count / plans:.1f}",
                f"{percent[here].sum() / plans:.3f}",
                f"{100 * np.mean(percent[here] > 0.02) if count else 0:.1f} %",
            )
        )
    print(table(rows, ["probability", "decisions", "regret", "wrong"]))
    tenths = [np.array_split(each.percent, 10) for each in found]
    sums = np.array([[part.sum() for part in each] for each in tenths]).mean(0)
    print("regret by tenths of the plan: " + " ".join(f"{x:.2f}" for x in sums))


def main() -> None:
    """Parse the command line and print a table for each data set."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("data", type=Path, nargs="+", help="data sets with free turns")
    parser.add_argument("--model", default=None, help="model file; default: shipped")
    parser.add_argument("--count", type=int, default=100, help="instances of each set")
    parser.add_argument("--iterations", type=int, default=10_000)
    args = parser.parse_args()
    if args.count < 1:
        raise OptionError(f"expected a count of at least 1, got {args.count}")
    torch.set_num_threads(1)
    loaded = load_for_solving(args.model, "cpu")
    for path in args.data:
        dataset = Dataset.open(path)
        instances = dataset[: args.count]
        report(path, [regrets(each, loaded, args.iterations) for each in instances])


if __name__ == "__main__":
    run_and_exit(main)
