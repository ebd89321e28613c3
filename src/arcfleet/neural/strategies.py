"""Decoding strategies: the one table that methods, results and validation share.

A strategy turns a policy and a batch into plans. Methods of `solve` (`daam`, `daam-greedy`,
`daam-sample`), rows of results (`solver.decode_dataset`) and the validation of a
training run all look it up in `STRATEGIES` and hand it a `DecodingRun`, so that all of them
run the same code. Importing this module does not import torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from arcfleet._checks import nearest_name
from arcfleet.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from arcfleet.neural.decoding_run import DecodingRun
    from arcfleet.neural.plans import Plans

    Decode = Callable[[DecodingRun], Plans]
    Improve = Callable[[DecodingRun, Sequence[int], int], Iterator[Plans]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """A way to decode plans.

    Parameters
    ----------
    name
        Name in `STRATEGIES`.
    summary
        One line for the list of methods.
    decode
        Function from a `DecodingRun` to plans of each instance. Where `improve` is given,
        the plans that `solve` has first, so that a time limit finds one.
    improve
        Function that yields so many more samples of some batch rows, as often as it is
        called; None for a strategy that makes no more plans.
    rollouts
        Rollouts of each instance in `decode`. Above 1, `solve` decodes a greedy plan
        before it, in case that a time limit ends it.
    method
        Name of the method of `solve` that runs the strategy; None for none.
    default_iterations
        Plans of that method where no stop rule is given.
    """

    name: str
    summary: str
    decode: Decode
    improve: Improve | None = None
    rollouts: int = 1
    method: str | None = None
    default_iterations: int = 1

    def best_plans(self, run: DecodingRun, samples: int = 1) -> Plans:
        """Return the cheapest plan of each instance, of so many where it samples."""
        rows = range(len(run.batch))
        if self.improve is None:
            run.offer(rows, self.decode(run))
        else:
            for _ in run.improve(self, rows, samples):
                pass
        return run.best


#: Every strategy, by name.
STRATEGIES: dict[str, Strategy] = {}


def register_strategy(strategy: Strategy) -> Strategy:
    """Add a strategy to `STRATEGIES`, in the place of one with the same name."""
    STRATEGIES[strategy.name] = strategy
    return strategy


def find_strategy(name: str) -> Strategy:
    """Return the strategy of that name, or raise OptionError with the nearest one."""
    if name in STRATEGIES:
        return STRATEGIES[name]
    near = nearest_name(name, STRATEGIES)
    hint = f"did you mean {near!r}?" if near else f"known are {', '.join(STRATEGIES)}"
    raise OptionError(f"expected the name of a decoding strategy, got {name!r}: {hint}")


def method_strategies() -> dict[str, Strategy]:
    """Return the strategies that are methods of `solve`, by the name of the method."""
    return {x.method: x for x in STRATEGIES.values() if x.method is not None}


def _greedy(run: DecodingRun) -> Plans:
    return run.split(run.greedy())


def _neural_lns(run: DecodingRun, rows: Sequence[int], samples: int) -> Iterator[Plans]:
    whole = min(samples, run.whole_samples - run.sampled)
    if whole:
        yield from run.sample(rows, whole)
    size = round_size(samples)
    for first in range(whole, samples, size):
        yield from run.destroy_and_repair(rows, min(size, samples - first))


# Samples between two groupings of routes at least, and groupings about at most.
_LEAST_ROUND = 4
_MOST_ROUNDS = 16


def round_size(samples: int) -> int:
    """Return how often routes are repaired before they are grouped again."""
    return max(_LEAST_ROUND, samples // _MOST_ROUNDS)


for _strategy in (
    Strategy(
        name="as-decoded",
        summary="one greedy rollout, the routes as decoded",
        decode=lambda run: run.as_decoded(run.greedy()),
    ),
    Strategy(
        name="augmented",
        summary="learned: best of 4 greedy rollouts (augmentations, giant tours), Split",
        decode=lambda run: run.augmented_greedy(),
        rollouts=4,
        method="daam",
    ),
    Strategy(
        name="greedy",
        summary="learned: one greedy rollout, then Split",
        decode=_greedy,
        method="daam-greedy",
    ),
    Strategy(
        name="neural-lns",
        summary="learned: sampled rollouts, then neural LNS on the best plan",
        decode=_greedy,
        improve=_neural_lns,
        method="daam-sample",
        default_iterations=32,
    ),
    Strategy(
        name="sampling",
        summary="sampled rollouts over augmentations, then Split",
        decode=_greedy,
        improve=lambda run, rows, samples: run.sample(rows, samples),
    ),
):
    register_strategy(_strategy)
