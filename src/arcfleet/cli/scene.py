"""`arcfleet scene`: an instance from a street map."""

from __future__ import annotations

from argparse import ArgumentTypeError
from pathlib import Path
from typing import TYPE_CHECKING

from arcfleet.cli.options import (
    Command,
    add_json,
    add_seed,
    coordinates,
    default_of,
    names,
    number_up_to,
    positive_number,
    whole_number,
)
from arcfleet.cli.output import print_json, print_result
from arcfleet.errors import OptionError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from arcfleet.streets.area import Area
    from arcfleet.streets.scene import Demand, Scene
    from arcfleet.streets.simplify import Dropped
    from arcfleet.streets.street_map import StreetMap


def _options(parser: ArgumentParser) -> None:
    from arcfleet.streets.scene import SceneRules

    parser.add_argument(
        "map",
        type=Path,
        metavar="MAP",
        help="OpenStreetMap extract (.osm.pbf, .osm), GeoJSON file of lines, or another "
        "street map that arcfleet reads",
    )
    parser.add_argument(
        "-o",
        "--out",
        type=Path,
        required=True,
        metavar="FILE",
        help="instance to write; .json keeps names and geometry",
    )
    parser.add_argument(
        "--capacity",
        type=positive_number,
        metavar="N",
        required=True,
        help="capacity of a vehicle, in the unit of the demand",
    )
    parser.add_argument(
        "--depot",
        type=coordinates(2, "LON,LAT"),
        metavar="LON,LAT",
        help="depot, at the nearest junction (default: the most central junction)",
    )
    parser.add_argument(
        "--demand",
        type=_demand,
        default=default_of(SceneRules, "demand"),
        metavar="length|N|LO-HI",
        help="demand of a street: its length in metres, N, or a random number from LO to "
        "HI (default: %(default)s)",
    )
    add_seed(parser)
    parser.add_argument(
        "--name", metavar="TEXT", help="name of the instance (default: the map's)"
    )
    parser.add_argument(
        "--remark",
        default=default_of(SceneRules, "remark"),
        metavar="TEXT",
        help="text to keep in the comment of the instance",
    )
    add_json(parser)

    area = parser.add_argument_group("area (default: the whole map)")
    one = area.add_mutually_exclusive_group()
    one.add_argument(
        "--bbox",
        type=coordinates(4, "W,S,E,N"),
        metavar="W,S,E,N",
        help="streets between these degrees",
    )
    one.add_argument(
        "--polygon", type=Path, metavar="FILE", help="streets in a polygon (GeoJSON)"
    )
    one.add_argument(
        "--around",
        type=coordinates(3, "LON,LAT,METRES"),
        metavar="LON,LAT,METRES",
        help="streets in a circle",
    )

    streets = parser.add_argument_group("streets")
    streets.add_argument(
        "--streets",
        action="append",
        metavar="KIND[,KIND]",
        help="read only streets of these kinds; repeatable (default: those open to cars; "
        "of CSV files, all)",
    )
    streets.add_argument(
        "--serve-kind",
        action="append",
        default=[],
        metavar="KIND[,KIND]",
        help="serve streets of these kinds, as in residential; repeatable (default: all)",
    )
    streets.add_argument(
        "--serve-name",
        action="append",
        default=[],
        metavar="NAME",
        help="serve streets of this name as well; repeatable",
    )
    streets.add_argument(
        "--ignore-one-way", action="store_true", help="make every street two-way"
    )
    streets.add_argument(
        "--both-sides",
        action="store_true",
        help="serve each side of a two-way street on its own, with half the demand",
    )
    streets.add_argument(
        "--oversized",
        choices=["split", "refuse"],
        default=default_of(SceneRules, "oversized"),
        help="how to treat streets with more demand than the capacity "
        "(default: %(default)s)",
    )
    streets.add_argument(
        "--merge",
        type=number_up_to(1e9, "metres"),
        metavar="METRES",
        help="merge junctions at most this far apart first",
    )


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
    if options.json:
        print_json(_facts(scene) | {"merged_away": merged_away})
    else:
        print_result(_summary(scene, merged_away))
    return 0


def _read(options: Namespace) -> StreetMap:
    from arcfleet.errors import MapError
    from arcfleet.streets.files import read_map

    if options.streets is None:
        return read_map(options.map)
    kinds = tuple(names(",".join(options.streets)))
    street_map = read_map(options.map, streets=kinds)
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
        "outside": _dropped_facts(scene.outside),
        "cut_off": _dropped_facts(scene.cut_off),
        "comment": instance.comment,
        "attribution": instance.attribution,
    }


def _dropped_facts(dropped: Dropped) -> dict[str, int]:
    return {
        "junctions": dropped.junctions,
        "streets": dropped.streets,
        "metres": round(dropped.metres),
    }


def _summary(scene: Scene, merged_away: dict[str, int]) -> str:
    """Describe a scene, for people.

    Parameters
    ----------
    scene
        The scene.
    merged_away
        How many junctions and streets of the map became part of others before.
    """
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
