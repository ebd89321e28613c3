"""`arcfleet scene`: an instance from a street map."""

from __future__ import annotations

from argparse import ArgumentTypeError
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arcfleet.cli.options import (
    Command,
    add_shared,
    coordinates,
    file_argument,
    names,
    number_up_to,
    option,
    positive_number,
    whole_number,
)
from arcfleet.cli.output import print_either
from arcfleet.cli.scene_turns import turn_facts, turn_lines
from arcfleet.errors import OptionError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from arcfleet.streets.area import Area
    from arcfleet.streets.scene import Demand, Scene
    from arcfleet.streets.street_map import StreetMap
    from arcfleet.streets.turns import TurnPolicy


def _options(parser: ArgumentParser) -> None:
    from arcfleet.streets.scene import SceneRules

    usual = {field.name: field.default for field in fields(SceneRules)}
    place = coordinates(2, "LON,LAT")
    text = (
        "OpenStreetMap extract (.osm.pbf, .osm), GeoJSON file of lines, or another street "
        "map that arcfleet reads"
    )
    file_argument(parser, "map", text, "MAP")
    text = "instance to write; .json keeps names and geometry"
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="FILE", help=text)
    text = "capacity of a vehicle, in the unit of the demand"
    option(parser, "--capacity", text, positive_number, "N", required=True)
    text = "depot, at the nearest junction (default: the most central junction)"
    option(parser, "--depot", text, place, "LON,LAT")
    text = "demand of a street: its length in metres, N, or a random number from LO to HI"
    option(parser, "--demand", text, _demand, "length|N|LO-HI", default=usual["demand"])
    option(parser, "--name", "name of the instance (default: the map's)", str, "TEXT")
    text = "text to keep in the comment of the instance"
    option(parser, "--remark", text, str, "TEXT", default=usual["remark"])
    add_shared(parser, "seed", "json")

    area = parser.add_argument_group("area (default: the whole map)")
    one = area.add_mutually_exclusive_group()
    box, circle = coordinates(4, "W,S,E,N"), coordinates(3, "LON,LAT,METRES")
    option(one, "--bbox", "streets between these degrees", box, "W,S,E,N")
    option(one, "--polygon", "streets in a polygon (GeoJSON)", Path, "FILE")
    option(one, "--around", "streets in a circle", circle, "LON,LAT,METRES")

    streets = parser.add_argument_group("streets")
    repeatable: dict[str, Any] = {"action": "append", "default": []}
    text = (
        "read only streets of these kinds; repeatable (default: those open to cars; of CSV "
        "files, all)"
    )
    option(streets, "--streets", text, str, "KIND[,KIND]", **repeatable)
    text = "serve streets of these kinds, as in residential; repeatable (default: all)"
    option(streets, "--serve-kind", text, str, "KIND[,KIND]", **repeatable)
    text = "serve streets of this name as well; repeatable"
    option(streets, "--serve-name", text, str, "NAME", **repeatable)
    option(streets, "--ignore-one-way", "make every street two-way")
    text = "serve each side of a two-way street on its own, with half the demand"
    option(streets, "--both-sides", text)
    text = "how to treat streets with more demand than the capacity"
    default = usual["oversized"]
    option(streets, "--oversized", text, choices=["split", "refuse"], default=default)
    text = "merge junctions at most this far apart first"
    option(streets, "--merge", text, number_up_to(1e9, "metres"), "METRES")
    _turn_options(parser)


def _turn_options(parser: ArgumentParser) -> None:
    from arcfleet.streets.restrictions import DEFAULT_VEHICLE

    turns = parser.add_argument_group("turns")
    text = (
        "turn rules that differ from the default: u-turn=allowed|dead-ends|forbidden, "
        "u-turn-penalty=N, left=N, right=N, straight=N (penalties, in the unit of costs), "
        "traffic=right|left, osm (obey the map's turn restrictions); after free, only the "
        "rules that follow hold"
    )
    option(turns, "--turns", text, _turns, "RULE[,RULE]", default="osm,u-turn=dead-ends")
    text = (
        "vehicle that turn restrictions are read for, in OpenStreetMap's words, as motorcar"
    )
    option(turns, "--vehicle", text, _vehicle, "NAME", default=DEFAULT_VEHICLE)


def _run(options: Namespace) -> int:
    from arcfleet._files import check_writable
    from arcfleet.instance.files import format_of, write
    from arcfleet.streets.scene import SceneRules, cut_scene
    from arcfleet.streets.simplify import merge_close_junctions

    check_writable(options.out)
    inputs = [path for path in (options.map, options.polygon) if path is not None]
    if options.out.resolve() in [path.resolve() for path in inputs]:
        raise OptionError(f"expected another file than the input, got -o {options.out}")
    format_of(options.out)  # found wrong before a large map is read
    rules = SceneRules(
        capacity=options.capacity,
        area=_area(options),
        depot=options.depot,
        serve_kinds=tuple(names(",".join(options.serve_kind))),
        serve_names=tuple(options.serve_name),
        demand=options.demand,
        one_way=not options.ignore_one_way,
        both_sides=options.both_sides,
        oversized=options.oversized,
        name=options.name,
        remark=options.remark,
        seed=options.seed,
        turns=options.turns,
    )
    street_map = _read(options)
    merged = street_map
    if options.merge is not None:
        merged = merge_close_junctions(street_map, options.merge)
    scene = cut_scene(merged, rules)
    write(scene.instance, options.out)
    merged_away = {
        "junctions": len(street_map.junctions) - len(merged.junctions),
        "streets": len(street_map.streets) - len(merged.streets),
    }
    facts = _facts(scene) | {
        "merged_away": merged_away,
        "turns": turn_facts(scene, rules.turns),
    }
    lines = list(turn_lines(scene, rules.turns))
    print_either(options, facts, _summary(scene, merged_away, lines))
    return 0


def _read(options: Namespace) -> StreetMap:
    from arcfleet.errors import MapError
    from arcfleet.streets.files import read_map

    if not options.streets:
        return read_map(options.map, vehicle=options.vehicle)
    kinds = tuple(names(",".join(options.streets)))
    street_map = read_map(options.map, streets=kinds, vehicle=options.vehicle)
    found = {street.kind for street in street_map.streets}
    for kind in kinds:
        if kind not in found:
            raise MapError(
                f"expected --streets to name kinds of street on map {street_map.name!r}, "
                f"got {kind!r}, of which it has none to drive on: check its spelling"
            )
    return street_map


def _area(options: Namespace) -> Area | None:
    from arcfleet.streets.area import Box, Circle, Polygons

    if options.bbox is not None:
        west, south, east, north = options.bbox
        return Box(west=west, south=south, east=east, north=north)
    if options.around is not None:
        longitude, latitude, metres = options.around
        return Circle(longitude=longitude, latitude=latitude, metres=metres)
    return None if options.polygon is None else Polygons(options.polygon)


def _demand(text: str) -> Demand:
    """Parse --demand, for argparse."""
    if text == "length":
        return "length"
    least, dash, most = text.partition("-")
    try:
        return (whole_number(least), whole_number(most)) if dash else whole_number(text)
    except ArgumentTypeError as error:
        raise ArgumentTypeError(
            f"expected length, a whole number as 10, or two as 5-10, got {text[:40]!r}"
        ) from error


def _turns(text: str) -> TurnPolicy:
    """Parse --turns, for argparse."""
    from arcfleet.streets.turns import TurnPolicy

    try:
        return TurnPolicy.parse(text)
    except OptionError as error:
        raise ArgumentTypeError(str(error)) from error


def _vehicle(text: str) -> str:
    """Parse --vehicle, for argparse."""
    from arcfleet.streets.restrictions import check_vehicle

    try:
        check_vehicle(text)
    except OptionError as error:
        raise ArgumentTypeError(str(error)) from error
    return text


def _facts(scene: Scene) -> dict[str, object]:
    """Return the facts about a scene, for programs."""
    instance = scene.instance
    return {
        "name": instance.name,
        "junctions": len(scene.street_map.junctions),
        "streets": len(scene.street_map.streets),
        "one_way": sum(street.one_way for street in scene.street_map.streets),
        "metres": round(scene.metres),
        "tasks": len(instance.required),
        "total_demand": instance.total_demand,
        "capacity": instance.capacity,
        "least_routes": max(
            -(-instance.total_demand // instance.capacity), int(bool(instance.required))
        ),
        "depot": instance.depot,
        "depot_metres": (
            None if scene.depot_metres is None else round(scene.depot_metres, 1)
        ),
        "split_streets": scene.split_streets,
        "outside": asdict(scene.outside) | {"metres": round(scene.outside.metres)},
        "cut_off": asdict(scene.cut_off) | {"metres": round(scene.cut_off.metres)},
        "comment": instance.comment,
        "attribution": instance.attribution,
    }


def _summary(scene: Scene, merged_away: dict[str, int], turns: list[str]) -> str:
    """Describe a scene, for people."""
    from arcfleet._checks import one_line

    known = _facts(scene)
    depot = "the most central junction"
    if scene.depot_metres is not None:
        depot = f"{scene.depot_metres:,.0f} m from the place given"
    lines = [
        f"scene         {one_line(scene.instance.name)}",
        f"junctions     {known['junctions']}",
        f"streets       {known['streets']}, {scene.metres / 1000:.1f} km, "
        f"{known['one_way']} one-way",
        f"depot         {known['depot']}, {depot}",
        f"tasks         {known['tasks']}, total demand {known['total_demand']}",
        f"least routes  {known['least_routes']} of capacity {known['capacity']}",
        *turns,
    ]
    if scene.split_streets:
        split = _count(scene.split_streets, "street")
        lines.append(f"split         {split} with more demand than that")
    if any(merged_away.values()):
        lines.append(f"merged        {_counts(**merged_away)} into others")
    for dropped, why in (
        (scene.outside, "outside the area"),
        (scene.cut_off, "without a way there and back"),
    ):
        if dropped.junctions or dropped.streets:
            counts = _counts(dropped.junctions, dropped.streets)
            lines.append(f"dropped       {counts} ({dropped.metres / 1000:.1f} km) {why}")
    if scene.instance.notice:
        lines.append(f"attribution   {one_line(scene.instance.notice)}")
    return "\n".join(lines)


def _counts(junctions: int, streets: int) -> str:
    return f"{_count(junctions, 'junction')} and {_count(streets, 'street')}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


SCENE = Command(
    name="scene",
    summary="make an instance from a street map",
    options=_options,
    run=_run,
    epilog="""\
examples:
  arcfleet scene town.osm.pbf --capacity 3000 -o scene.json
  arcfleet scene town.osm.pbf --around 13.72,51.05,1500 --depot 13.70,51.06 \\
      --capacity 100 --demand 5-10 --serve-kind residential -o scene.json

Places are longitude,latitude in degrees.
""",
)
