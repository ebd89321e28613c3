"""The walks name every function on the way, and there is no step back on it."""

from __future__ import annotations

import pytest

import arcfleet
from tools.docs import walk_pages
from tools.docs.trace import counts, first_calls


@pytest.fixture(scope="module")
def calls() -> dict[str, int]:
    """Number of calls on the way from a file to a map, in the order of first calls."""
    found: dict[str, int] = {}
    for part in walk_pages.walk_of_a_file().values():
        found |= counts(part)
    return found


def test_from_a_file_to_a_map_each_stage_comes_once_and_in_order(
    calls: dict[str, int],
) -> None:
    stages = [
        "arcfleet.instance.files.read",
        "arcfleet.instance.instance.Instance",
        "arcfleet.methods.solve",
        "arcfleet.instance.diagnose.diagnose",
        "arcfleet.network.network.Network",
        "arcfleet.search.ruin_recreate.ruin_recreate",
        "arcfleet.solution.plan.from_plan",
        "arcfleet.report.html_map.write_html",
    ]
    assert [name for name in calls if name in stages] == stages
    assert [calls[name] for name in stages] == [1] * len(stages)


def test_the_page_names_the_functions_below_their_callers() -> None:
    lines = walk_pages.file_to_map().splitlines()
    read = next(line for line in lines if "`instance.files.read`" in line)
    parse = next(line for line in lines if "json_format.read_json`" in line)
    assert (read.index("-"), parse.index("-")) == (0, 4)
    assert lines.index(read) < lines.index(parse)


def test_functions_of_earlier_parts_are_not_listed_again() -> None:
    def work() -> None:
        arcfleet.read("example:denver")

    first = first_calls(work)
    assert "arcfleet.instance.files.read" in counts(first)
    assert counts(first_calls(work, [first])) == {}


def test_from_a_data_set_to_a_learned_plan_the_stages_come_in_order() -> None:
    stages = [
        "arcfleet.datasets.make.make_dataset",
        "arcfleet.datasets.labels.label_dataset",
        "arcfleet.search.ruin_recreate.ruin_recreate",
        "arcfleet.neural.train.pretrain.pretrain",
        "arcfleet.neural.batch.batch_from_arrays",
        "arcfleet.neural.train.steps.imitation_loss",
        "arcfleet.neural.checkpoint.save_model",
        "arcfleet.methods.solve",
        "arcfleet.neural.checkpoint.load_model",
        "arcfleet.neural.decoding.sample",
    ]
    found = [
        name for part in walk_pages.walk_of_a_data_set().values() for name in counts(part)
    ]
    assert [name for name in found if name in stages] == stages
