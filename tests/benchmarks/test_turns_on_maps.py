"""The count of turns from the raw data and the rules that scenes have must agree."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from arcfleet.instance.instance import Instance
from arcfleet.streets.files import read_map
from arcfleet.streets.scene import SceneRules, cut_scene
from arcfleet.streets.street_map import StreetMap
from benchmarks.turns_on_maps import EXTRACTS, Counts, RawMap, count, read_raw
from tests.shared_data import maps_dir

Step = tuple[int, bool]


def scene_document(instance: Instance) -> dict[str, Any]:
    return {
        "nodes": list(instance.nodes),
        "coordinates": [list(place) for place in instance.coordinates],
        "links": [
            {
                "tail": link.tail,
                "head": link.head,
                "name": link.name,
                "geometry": [list(point) for point in link.geometry],
            }
            for link in instance.links
        ],
    }


def all_turns(instance: Instance) -> tuple[list[tuple[Step, Step]], set[tuple[Step, Step]]]:
    """The turns that the rules allow, and those that a turn of their own forbids."""
    named = {
        ((t.link_in, t.reverse_in), (t.link_out, t.reverse_out)): t.penalty
        for t in instance.turns
    }
    leaving: dict[int, list[Step]] = {node: [] for node in instance.nodes}
    steps = [(i, r) for i, k in enumerate(instance.links) for r in {False, not k.one_way}]
    for index, reverse in steps:
        leaving[instance.links[index].ends(reverse)[0]].append((index, reverse))
    allowed = []
    for along in steps:
        onward = leaving[instance.links[along[0]].ends(along[1])[1]]
        for onto in onward:
            u_turn = onto == (along[0], not along[1])
            dead_end = all(other == along[0] for other, _ in onward)
            usual = None if u_turn and not dead_end else 0
            if named.get((along, onto), usual) is not None:
                allowed.append((along, onto))
    return allowed, {turn for turn, penalty in named.items() if penalty is None}


def whole_streets(instance: Instance, turns: Any, raw: RawMap) -> list[list[Step]]:
    """Each turn with all parts of split streets before and after it."""
    at_cuts: list[dict[int, list[Step]]] = [defaultdict(list), defaultdict(list)]
    for index, link in enumerate(instance.links):
        for reverse in {False, not link.one_way}:
            for near, node in enumerate(link.ends(reverse)):
                if node not in raw.places:
                    at_cuts[near][node].append((index, reverse))
    paths = []
    for turn in turns:
        steps = list(turn)
        for place, near, far in ((0, 0, 1), (-1, 1, 0)):
            while (node := ends(instance, steps[place])[near]) not in raw.places:
                before = ends(instance, steps[place])[far]
                (more,) = (
                    step
                    for step in at_cuts[far][node]
                    if ends(instance, step)[near] != before
                )
                steps.insert(0 if place == 0 else len(steps), more)
        paths.append(steps)
    return paths


def ends(instance: Instance, step: Step) -> tuple[int, int]:
    return instance.links[step[0]].ends(step[1])


def counted(instance: Instance, turns: Any, raw: RawMap) -> Counts:
    routes = [
        {"path": [{"link": link, "reverse": reverse} for link, reverse in turn]}
        for turn in turns
    ]
    return count(scene_document(instance), {"routes": routes}, raw)


@pytest.mark.parametrize(
    ("name", "capacity", "both_sides"),
    [
        (EXTRACTS[0], 150, False),
        (EXTRACTS[0], 150, True),
        (EXTRACTS[0], 10**6, False),
        (EXTRACTS[1], 10**6, True),
    ],
)
def test_scenes_allow_what_the_raw_data_allows(
    name: str, capacity: int, both_sides: bool
) -> None:
    path = maps_dir() / name
    raw = read_raw(path)
    street_map = read_map(path)
    instance = scene(street_map, capacity, both_sides)
    allowed, forbidden = all_turns(instance)
    found = counted(instance, allowed, raw)
    assert (found.forbidden, found.doubtful, found.lost) == ([], [], 0)
    assert found.u_turns_elsewhere == []
    assert found.turns == len(allowed)
    # And each turn that is forbidden is so for a sign or as a U-turn.
    turns = sorted(forbidden)
    found = counted(instance, whole_streets(instance, turns, raw), raw)
    texts = (*found.forbidden, *found.doubtful, *found.u_turns_elsewhere)
    routes = {int(text.partition(":")[0].removeprefix("route ")) for text in texts}
    assert routes == set(range(1, len(turns) + 1))


@pytest.mark.parametrize("name", ["monaco", "denver_downtown"])
def test_scenes_of_csv_maps_turn_round_at_dead_ends_only(name: str) -> None:
    path = maps_dir() / name
    instance = scene(read_map(path), 1000, both_sides=True)
    allowed, forbidden = all_turns(instance)
    raw = read_raw(path)
    found = counted(instance, allowed, raw)
    assert found.u_turns > 0
    assert found.u_turns_elsewhere == []
    banned = counted(instance, sorted(forbidden), raw)
    assert len(banned.u_turns_elsewhere) == len(forbidden) > 0


def scene(street_map: StreetMap, capacity: int, both_sides: bool) -> Instance:
    rules = SceneRules(capacity=capacity, both_sides=both_sides)
    return cut_scene(street_map, rules).instance


def test_signs_are_read_from_an_extract(tmp_path: Path) -> None:
    path = tmp_path / "cross.osm"
    places = {1: (0, 0), 2: (-1, 0), 3: (1, 0), 4: (0, 1)}
    nodes = "".join(
        f'<node id="{n}" lon="{x / 1000}" lat="{y / 1000}" version="1"/>'
        for n, (x, y) in places.items()
    )
    tag = '<tag k="highway" v="residential"/>'
    ways = "".join(
        f'<way id="{n}" version="1"><nd ref="1"/><nd ref="{n}"/>{tag}</way>'
        for n in (2, 3, 4)
    )
    members = (
        '<member type="way" ref="2" role="from"/><member type="node" ref="1" role="via"/>'
    )
    members += '<member type="way" ref="4" role="to"/>'
    tags = '<tag k="type" v="restriction"/><tag k="restriction" v="no_left_turn"/>'
    relation = f'<relation id="9" version="1">{members}{tags}</relation>'
    path.write_text(f'<osm version="0.6">{nodes}{ways}{relation}</osm>')
    instance = scene(read_map(path), 10**6, both_sides=False)
    every = [
        ((0, True), (1, False)),  # straight on
        ((0, True), (2, False)),  # left, from west to north
        ((2, True), (0, False)),
        ((2, False), (2, True)),  # back from a dead end
        ((2, True), (2, False)),  # back from the crossing
    ]
    found = counted(instance, every, read_raw(path))
    assert [text.partition(":")[0] for text in found.forbidden] == ["route 2"]
    assert [text.partition(":")[0] for text in found.u_turns_elsewhere] == ["route 5"]
    assert (found.turns, found.u_turns, found.lost) == (5, 2, 0)
