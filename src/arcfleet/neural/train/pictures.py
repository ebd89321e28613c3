"""Pictures of what a model in training makes of a few instances, beside their labels."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from arcfleet.network import Network
from arcfleet.neural.plans import NO_PLAN, flat_plan
from arcfleet.report.plot import ScenePlans, draw_scenes
from arcfleet.solution.plan import from_plan, with_street_paths

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from arcfleet.instance.instance import Instance
    from arcfleet.neural.plans import Plans
    from arcfleet.neural.train.data import Example, LabelledSet


def draw_examples(path: Path, found: Sequence[tuple[LabelledSet, Plans]]) -> None:
    """Draw the plans of the examples of some sets, each beside its label.

    Parameters
    ----------
    path
        The picture file; its folder is made.
    found
        Sets, and the plans of all their instances as decoded.

    Raises
    ------
    OptionError
        If matplotlib is not installed.
    FileError
        If the picture cannot be written.
    """
    path.parent.mkdir(exist_ok=True)
    rows = [
        _row(example, plans, number)
        for labelled, plans in found
        for number, example in enumerate(labelled.examples)
    ]
    draw_scenes(rows, path)


def _row(example: Example, plans: Plans, number: int) -> ScenePlans:
    network = Network(example.instance)
    cost, best = int(plans.costs[number, 0]), example.label.cost
    shown = [(f"label, cost {best}", with_street_paths(network, example.label))]
    if cost != NO_PLAN:
        title = f"greedy, cost {cost}"
        if best:
            title += f" ({100 * (cost / best - 1):+.1f} %)"
        made = from_plan(network, *flat_plan(plans, number))
        shown.append((title, with_street_paths(network, made)))
    return ScenePlans(example.instance.name, _with_places(example.instance), shown)


def _with_places(instance: Instance) -> Instance:
    """Drop coordinates that are all the same: a layout is made from the distances then."""
    if len(set(instance.coordinates)) <= 1:
        return replace(instance, coordinates=())
    return instance
