"""Count the turns of plans that a sign forbids and the U-turns away from dead ends.

    python -m benchmarks.turns_on_maps SCENE.json PLAN.json MAP

counts one plan against the map its scene was made from: an OpenStreetMap extract or a pair
of CSV files. Without files it makes scenes of the raw extracts and of some CSV maps, has
them solved without and with their turn rules, and prints a table with the cost of obeying:

    python -m benchmarks.turns_on_maps --out DIR

adds one JSON line per plan to DIR/turns.jsonl; finished ones are reused. Both plans serve
the same streets, those that the rules let be served.

The map is read here from the raw data, by rules of its own: nothing is shared with
`arcfleet.streets`. A plan's path is followed by the numbers and places of nodes. So maps
whose junctions were merged (`--merge`) cannot be counted.
"""

from __future__ import annotations

import csv
import gzip
import json
import math
import tempfile
from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arcfleet import write, write_solution
from arcfleet.report.tables import table
from arcfleet.streets.files import read_map
from arcfleet.streets.scene import SceneRules, cut_scene
from arcfleet.streets.turns import TurnPolicy
from benchmarks import run_and_exit, shared_dir
from benchmarks.drivable import (
    FREE,
    QUICK_ITERATIONS,
    TURN_COUNTS,
    TurnCount,
    drivable_report,
    make_missing,
    plan_parser,
    solve_verified,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from arcfleet.instance import Instance

EXTRACTS = (
    "raw_osm/herrenberg-minimal.osm.pbf",
    "raw_osm/portland-central-filtered.osm.pbf",
    "raw_osm/reno_east3.osm",
)
CSV_MAPS = ("denver_downtown", "monaco", "bangor_me", "liechtenstein", "paris_trocadero")
CAPACITY = 20_000
RULES = "osm,u-turn=dead-ends"
#: What the scenes drive on, and the words for a lorry in exceptions.
ROADS = {
    *("motorway", "trunk", "primary", "secondary", "tertiary"),
    *("motorway_link", "trunk_link", "primary_link", "secondary_link", "tertiary_link"),
    *("unclassified", "residential", "living_street", "road"),
}
LORRY = {"hgv", "motor_vehicle", "vehicle"}
#: The angle that a restriction speaks of, positive to the right.
ANGLES = {"left": -90.0, "right": 90.0, "straight": 0.0, "u": 180.0}


@dataclass
class Sign:
    """A restriction at a node."""

    relation: int
    value: str
    origins: set[int]
    targets: set[int]


@dataclass
class RawMap:
    """Nodes, the segments between them, and signs."""

    places: dict[int, tuple[float, float]]
    # How often one may drive from a node to the next, by the ways that lead there.
    onward: dict[int, list[tuple[int, int]]]
    ways_between: dict[tuple[int, int], set[int]] = field(default_factory=dict)
    # Nodes inside of a way, not at its ends.
    inner: set[tuple[int, int]] = field(default_factory=set)
    signs: dict[int, list[Sign]] = field(default_factory=dict)


@dataclass
class Counts:
    """What a plan does."""

    turns: int = 0
    forbidden: list[str] = field(default_factory=list)
    # Onto or from a way that runs on across the node: the sign may mean its other part.
    doubtful: list[str] = field(default_factory=list)
    u_turns: int = 0
    u_turns_elsewhere: list[str] = field(default_factory=list)  # away from dead ends
    lost: int = 0  # pairs of nodes of the path that are no segment of the map


def read_raw(path: Path) -> RawMap:
    """Read the raw map."""
    return read_extract(path) if path.suffix in (".pbf", ".osm") else read_csv(path)


def read_csv(path: Path) -> RawMap:
    """Read a pair of CSV files; each row is a segment."""

    def rows(part: str) -> list[dict[str, str]]:
        with gzip.open(f"{path}.{part}.csv.gz", "rt", encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    places = {
        int(row["id"]): (float(row["lon"]), float(row["lat"])) for row in rows("nodes")
    }
    onward: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for number, row in enumerate(rows("edges")):
        tail, head = int(row["u"]), int(row["v"])
        onward[tail].append((head, number))
        if row["oneway"] in ("0", "False", ""):
            onward[head].append((tail, number))
    return RawMap(places, onward)


def read_extract(path: Path) -> RawMap:
    """Read an OpenStreetMap extract."""
    import osmium

    places = {}
    onward: dict[int, list[tuple[int, int]]] = defaultdict(list)
    ways_between: dict[tuple[int, int], set[int]] = defaultdict(set)
    inner: set[tuple[int, int]] = set()
    signs: dict[int, list[Sign]] = defaultdict(list)
    things: Any = osmium.FileProcessor(str(path))
    for thing in things:
        if thing.is_node():
            places[thing.id] = (thing.location.lon, thing.location.lat)
        elif thing.is_way():
            tags = {tag.k: tag.v for tag in thing.tags}
            if not drivable(tags):
                continue
            nodes = [node.ref for node in thing.nodes if node.ref in places]
            direction = oneway(tags)
            inner.update((thing.id, node) for node in nodes[1:-1])
            for one, other in pairwise(nodes):
                for start, end, against in ((one, other, -1), (other, one, 1)):
                    ways_between[start, end].add(thing.id)
                    if direction != against:
                        onward[start].append((end, thing.id))
        else:
            tags = {tag.k: tag.v for tag in thing.tags}
            members = [(one.type, one.ref, one.role) for one in thing.members]
            for via, sign in signs_of(thing.id, tags, members):
                signs[via].append(sign)
    return RawMap(places, onward, ways_between, inner, signs)


def drivable(tags: dict[str, str]) -> bool:
    """Whether a lorry drives on a way."""
    access = [tags[key] for key in ("motor_vehicle", "vehicle", "access") if key in tags]
    is_open = not access or access[0] not in ("no", "private")
    return tags.get("highway") in ROADS and tags.get("area") != "yes" and is_open


def oneway(tags: dict[str, str]) -> int:
    """1 along the way only, -1 against it only, 0 both."""
    said = tags.get("oneway", "").lower()
    if said in ("yes", "true", "1"):
        return 1
    if said in ("-1", "reverse"):
        return -1
    circular = tags.get("junction") in ("roundabout", "circular")
    motorway = tags.get("highway") in ("motorway", "motorway_link")
    return int(not said and (circular or motorway))


def signs_of(
    number: int, tags: dict[str, str], members: list[tuple[str, int, str]]
) -> list[tuple[int, Sign]]:
    """Read a relation with one node as via that holds for lorries."""
    if tags.get("type") != "restriction":
        return []
    excepted = LORRY & set(tags.get("except", "").replace(",", ";").split(";"))
    values = [tags.get(f"restriction:{one}", "") for one in sorted(LORRY)]
    if not any(values):
        conditional = tags.get("restriction:conditional", "").partition("@")[0].strip()
        values = [] if excepted else [tags.get("restriction", conditional)]
    vias = [(kind, ref) for kind, ref, role in members if role == "via"]
    if len(vias) != 1 or vias[0][0] != "n":
        return []
    origins = {ref for _, ref, role in members if role == "from"}
    targets = {ref for _, ref, role in members if role == "to"}
    known = ("no_", "only_")
    return [
        (vias[0][1], Sign(number, value, origins, targets))
        for value in values
        if value.startswith(known) and origins and targets
    ]


def count(scene: dict[str, Any], plan: dict[str, Any], raw: RawMap) -> Counts:
    """Count the turns of a plan."""
    counts = Counts()
    places = dict(
        zip(scene["nodes"], map(tuple, scene.get("coordinates", [])), strict=True)
    )
    at: dict[tuple[float, float], list[int]] = defaultdict(list)
    for node in raw.onward if raw.signs else ():
        at[rounded(raw.places[node])].append(node)
    for number, route in enumerate(plan["routes"], start=1):
        steps = [Step(scene, places, step) for step in route["path"]]
        for before, after in pairwise(steps):
            counts.turns += 1
            if before.points == after.points[::-1] and before.name == after.name:
                counts.u_turns += 1
                if not is_dead_end(before, raw):
                    where = f"route {number}: U-turn at {before.end} ({before.name})"
                    counts.u_turns_elsewhere.append(where)
        if raw.signs:
            nodes = follow(steps, raw, at)
            count_signs(nodes, raw, counts, f"route {number}")
    return counts


class Step:
    """A link of a scene in the direction it is driven."""

    def __init__(
        self, scene: dict[str, Any], places: dict[int, tuple[float, ...]], step: Any
    ) -> None:
        link = scene["links"][step["link"]]
        points = [tuple(point) for point in link.get("geometry", [])]
        self.start, self.end = link["tail"], link["head"]
        self.points = points or [places[self.start], places[self.end]]
        self.name = link.get("name", "")
        if step.get("reverse", False):
            self.start, self.end = self.end, self.start
            self.points = self.points[::-1]


def is_dead_end(step: Step, raw: RawMap) -> bool:
    """Return whether nothing leaves the end of a street but the street itself.

    A street that is turned round on leaves its own end. Where a split street was cut, no
    node of the map is.
    """
    return len(raw.onward.get(step.end, ())) == 1


def rounded(place: tuple[float, ...]) -> tuple[float, float]:
    """Round a place as OpenStreetMap does."""
    return round(place[0], 7), round(place[1], 7)


def follow(
    steps: list[Step], raw: RawMap, at: dict[tuple[float, float], list[int]]
) -> list[int]:
    """Return the nodes of the map along a path; points between them are passed over."""
    nodes: list[int] = []
    for step in steps:
        for position, point in enumerate(step.points):
            end = {0: step.start, len(step.points) - 1: step.end}.get(position)
            if end is not None and end in raw.onward:
                found = [end]
            else:
                found = at.get(rounded(point), [])
            near = [node for node in found if not nodes or linked(nodes[-1], node, raw)]
            for node in (near or found)[:1]:
                if not nodes or nodes[-1] != node:
                    nodes.append(node)
    return nodes


def linked(one: int, other: int, raw: RawMap) -> bool:
    """Whether two nodes are next to each other on a way."""
    return one == other or (one, other) in raw.ways_between


def count_signs(nodes: list[int], raw: RawMap, counts: Counts, where: str) -> None:
    """Count the signs that a path breaks."""
    counts.lost += sum(pair not in raw.ways_between for pair in pairwise(nodes))
    for before, via, after in zip(nodes, nodes[1:], nodes[2:], strict=False):
        along = raw.ways_between.get((before, via), set())
        onto = raw.ways_between.get((via, after), set())
        for sign in raw.signs.get(via, []):
            origins, targets = along & sign.origins, onto & sign.targets
            if not origins or bool(targets) == sign.value.startswith("only_"):
                continue
            text = f"{where}: relation {sign.relation} ({sign.value}) at node {via}"
            across = any((way, via) in raw.inner for way in origins | targets)
            if not across:
                counts.forbidden.append(text)
            elif fits(sign, before, via, after, raw):
                counts.doubtful.append(text)


def fits(sign: Sign, before: int, via: int, after: int, raw: RawMap) -> bool:
    """Whether the angle of a turn is the one that a sign forbids."""
    kind, side = sign.value.split("_")[:2]
    if side not in ANGLES or kind == "only":
        return True
    turn = (bearing(via, after, raw) - bearing(before, via, raw) + 180) % 360 - 180
    return abs((turn - ANGLES[side] + 180) % 360 - 180) <= 45


def bearing(start: int, end: int, raw: RawMap) -> float:
    """Degrees clockwise from north."""
    (west, south), (east, north) = raw.places[start], raw.places[end]
    across = (east - west) * math.cos(math.radians(south))
    return math.degrees(math.atan2(across, north - south))


def row(counts: Counts) -> tuple[object, ...]:
    """Return the figures of a plan."""
    return (
        counts.turns,
        len(counts.forbidden),
        len(counts.doubtful),
        counts.u_turns,
        len(counts.u_turns_elsewhere),
        counts.lost,
    )


HEADER = ("turns", "forbidden", "doubtful", "U-turns", "not at dead ends", "lost")


def count_files(scene: Path, plan: Path, raw: RawMap) -> Counts:
    """Count the turns of a plan in a file."""
    return count(json.loads(scene.read_text()), json.loads(plan.read_text()), raw)


@lru_cache(maxsize=1)
def read_both(name: str) -> tuple[Instance, RawMap]:
    """Return the scene of a map, with turn rules, and the raw map."""
    path = shared_dir() / "maps" / name
    rules = SceneRules(capacity=CAPACITY, turns=TurnPolicy.parse(RULES))
    return cut_scene(read_map(path), rules).instance, read_raw(path)


def make_plan(name: str, rules: str, seed: int, iterations: int, **here: str) -> TurnCount:
    """Solve the scene of a map, with its turn rules or without, and count the turns."""
    instance, raw = read_both(name)
    if rules == FREE:
        instance = replace(instance, turns=(), u_turns="allowed", u_turn_penalty=0)
    plan = solve_verified(instance, iterations, seed).solution
    with tempfile.TemporaryDirectory() as folder:
        scene_file, plan_file = Path(folder) / "scene.json", Path(folder) / "plan.json"
        write(instance, scene_file)
        write_solution(instance, plan, plan_file)
        counts = count_files(scene_file, plan_file, raw)
    return TurnCount(
        map_name=name,
        rules=rules,
        seed=seed,
        iterations=iterations,
        **here,
        capacity=CAPACITY,
        tasks=len(instance.required),
        routes=plan.num_routes,
        cost=plan.cost,
        deadhead=plan.deadhead,
        signs=sum(map(len, raw.signs.values())),
        turns=counts.turns,
        forbidden=len(counts.forbidden),
        doubtful=len(counts.doubtful),
        u_turns=counts.u_turns,
        u_turns_elsewhere=len(counts.u_turns_elsewhere),
        lost=counts.lost,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Count one plan, or compare plans with and without rules."""
    parser = plan_parser(__doc__)
    parser.add_argument("files", nargs="*", type=Path, metavar="SCENE PLAN MAP")
    parser.add_argument("--maps", help="names of maps, with commas")
    options = parser.parse_args(arguments)
    if options.files:
        scene, plan, path = options.files
        counts = count_files(scene, plan, read_raw(path))
        print(table([row(counts)], HEADER))
        for text in (*counts.forbidden, *counts.doubtful, *counts.u_turns_elsewhere):
            print(text)
        return
    names = options.maps.split(",") if options.maps else (*EXTRACTS, *CSV_MAPS)
    seeds, iterations = options.seeds, options.iterations
    if options.quick:
        names, seeds, iterations = names[:1], seeds[:1], QUICK_ITERATIONS
    keys = [
        (name, rules, seed, iterations)
        for name in names
        for seed in seeds
        for rules in (FREE, RULES)
    ]
    plans = make_missing(TURN_COUNTS, options.out, keys, make_plan)
    print(drivable_report(TURN_COUNTS, plans).text())


if __name__ == "__main__":
    run_and_exit(main)
