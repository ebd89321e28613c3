"""Data sets of instances of one's own."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arcfleet import Facility, Instance, Link, Turn, check, read
from arcfleet.datasets import Dataset, label_dataset
from arcfleet.datasets.array_file import ArrayFile, write_array_file
from arcfleet.datasets.statistics import summarise
from arcfleet.errors import FileError, OptionError
from tests.helpers import SMALL, VILLAGE, make_instance, refused, street
from tests.strategies import connected_instances

_COSTS = ("cost", "reverse_cost", "service_cost", "reverse_service_cost")


def held(instance: Instance) -> Instance:
    """Return the part of an instance that a data set holds, or near it."""
    links = (
        link if link.demand or not link.required else replace(link, demand=1)
        for link in instance.links
    )
    return replace(instance, links=tuple(links), route_cost=0)


def same_problem(found: Instance, given: Instance) -> None:
    number = {node: position for position, node in enumerate(given.nodes)}
    assert found.capacity == given.capacity
    assert found.depot == number[given.depot]
    for link, other in zip(found.links, given.links, strict=True):
        assert (link.tail, link.head) == (number[other.tail], number[other.head])
        for name in (*_COSTS, "demand", "one_way", "required"):
            assert getattr(link, name) == getattr(other, name), name


@settings(max_examples=40)
@given(drawn=st.lists(connected_instances(), min_size=1, max_size=4))
def test_instances_come_back_with_their_costs_demands_and_capacities(
    drawn: list[Instance], tmp_path_factory: pytest.TempPathFactory
) -> None:
    given = [
        replace(held(instance), capacity=instance.capacity + number)
        for number, instance in enumerate(drawn)
    ]
    path = tmp_path_factory.mktemp("own") / "own.npz"
    dataset = Dataset.from_instances(given, path)
    assert (dataset.name, len(dataset)) == ("own", len(given))
    for found, instance in zip(Dataset.open(path), given, strict=True):
        same_problem(found, instance)
    labels = label_dataset(dataset, iterations=20)
    for position, instance in enumerate(dataset):
        assert check(instance, labels[position]).ok
    padded = dataset.padded(range(len(given)))
    assert padded.capacity.tolist() == [instance.capacity for instance in given]
    assert summarise(dataset).instances == len(given)


def test_places_and_attribution_are_kept_where_they_are_known(tmp_path: Path) -> None:
    village, small = read(VILLAGE), read(SMALL)
    dataset = Dataset.from_instances([village, small], tmp_path / "own.npz", name="mine")
    assert dataset.name == "mine"
    assert dataset.attribution == village.attribution
    assert np.allclose(dataset[0].coordinates, village.coordinates, atol=1e-5)
    assert dataset[1].coordinates == ()
    assert dataset.capacities.tolist() == [village.capacity, small.capacity]


def with_rules() -> Instance:
    """Return four streets around a block, with a dead end and three kinds of rules."""
    block = [street(1, 2, 3, 1), street(2, 3, 4, 1), street(3, 4, 5, 2), street(4, 1, 6, 1)]
    dead_end = street(3, 5, 7, 1)
    turns = (
        Turn(link_in=0, reverse_in=False, link_out=1, reverse_out=False, penalty=8),
        Turn(link_in=2, reverse_in=True, link_out=1, reverse_out=True),
    )
    return replace(
        make_instance(*block, dead_end, Link(tail=1, head=6, cost=2), name="block"),
        turns=turns,
        u_turns="dead-ends",
        u_turn_penalty=9,
    )


def test_turn_rules_are_kept(tmp_path: Path) -> None:
    given = [with_rules(), read(SMALL)]
    path = tmp_path / "own.npz"
    dataset = Dataset.from_instances(given, path)
    for found, instance in zip(Dataset.open(path), given, strict=True):
        same_problem(found, instance)
        for name in ("turns", "u_turns", "u_turn_penalty"):
            assert getattr(found, name) == getattr(instance, name), name
    labels = label_dataset(dataset, iterations=20)
    for position, instance in enumerate(dataset):
        assert check(instance, labels[position]).ok
    rules = dataset.padded([1, 0]).turns
    assert rules is not None
    assert rules.num_turns.tolist() == [0, 2]
    assert rules.turn_price.tolist() == [[0, 0], [9, 0]]
    assert rules.u_turn_penalty.tolist() == [0, 9]


def test_damaged_turns_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "own.npz"
    Dataset.from_instances([with_rules()], path)
    file = ArrayFile(path, "arcfleet-dataset", 3, "x")
    arrays = {name: file.array(name) for name in file.facts["sha256"]}
    facts = {x: file.facts[x] for x in ("name", "capacity", "credit", "count")}
    for name, wrong, message in (
        ("turn_in", [0, 12], "links of the instance in the array 'turn_in'"),
        ("u_turns", [3], "0 to 2 in the array 'u_turns'"),
        ("turn_price", [1], "expected 2 entries of 'turn_price'"),
    ):
        damaged = {**arrays, name: np.array(wrong, dtype=np.uint8)}
        write_array_file(path, "arcfleet-dataset", 3, facts, damaged)
        with refused(FileError, message):
            Dataset.open(path)[0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"u_turns": "forbidden"}, "a way between every two required links"),
        ({"facilities": (Facility(node=1),)}, "no facilities in a data set"),
        ({"fleet_limit": 3}, "no fleet limit in a data set"),
        ({"route_cost": 3}, "no fixed costs of routes in a data set"),
        ({"links": (street(1, 2, 3, 0),)}, "required links that have no demand"),
        ({"links": (Link(tail=1, head=2, cost=3),)}, "instance without required links"),
    ],
)
def test_what_a_data_set_cannot_hold_is_refused(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    instance = replace(make_instance(street(1, 2, 3, 1), name="own"), **changes)
    with refused(OptionError, message) as caught:
        Dataset.from_instances([read(SMALL), instance], tmp_path / "own.npz")
    assert "in instance 1, 'own'" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_no_instances_and_other_files_are_refused(tmp_path: Path) -> None:
    with refused(OptionError, "expected at least one instance for a data set, got none"):
        Dataset.from_instances([], tmp_path / "own.npz")
    with refused(OptionError, "expected a file ending in .npz"):
        Dataset.from_instances([read(SMALL)], tmp_path / "own.json")


def test_damaged_capacities_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "own.npz"
    Dataset.from_instances([read(SMALL)], path)
    file = ArrayFile(path, "arcfleet-dataset", 2, "x")
    arrays = {name: file.array(name) for name in file.facts["sha256"]}
    facts = {
        name: value
        for name, value in file.facts.items()
        if name not in ("format", "version", "sha256")
    }
    none = {**arrays, "capacity": np.zeros(1, dtype=np.uint8)}
    write_array_file(path, "arcfleet-dataset", 2, facts, none)
    with refused(FileError, "whole numbers of at least 1 in the array 'capacity'"):
        Dataset.open(path)[0]
    write_array_file(path, "arcfleet-dataset", 4, facts, arrays)
    with refused(FileError, "version 3 of arcfleet-dataset or older, found version 4"):
        Dataset.open(path)
