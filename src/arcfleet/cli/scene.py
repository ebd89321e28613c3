"""`arcfleet scene`: make an instance from a street map."""

from __future__ import annotations

import argparse
from argparse import RawDescriptionHelpFormatter
from pathlib import Path
from typing import TYPE_CHECKING

from arcfleet.cli.options import add_json, coordinates, positive_number, whole_number
from arcfleet.cli.output import print_json, print_result

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from arcfleet.cli.options import Commands
    from arcfleet.streets.area import Area
    from arcfleet.streets.scene import Demand
    from arcfleet.streets.street_map import StreetMap

_EXAMPLES = """\
examples:
  arcfleet scene town.osm.pbf --capacity 3000 -o scene.json
  arcfleet scene town.osm.pbf --around 13.72,51.05,1500 --depot 13.70,51.06 \\
      --capacity 100 --demand 5-10 --serve-kind residential -o scene.json

MAP is an OpenStreetMap extract or another street map that arcfleet reads. Places are
longitude,latitude in degrees. The demand of a street is its length in metres unless
--demand says otherwise, and the capacity of a vehicle is in the same unit.
"""


def add_parser(commands: Commands) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "scene",
        help="make an instance from a street map",
        description="Make an instance from a street map.",
        epilog=_EXAMPLES,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("map", type=Path, metavar="MAP")
    parser.add_argument(
        "--streets",
        action="append",
        metavar="KIND[,KIND]",
        help="read streets of these kinds only; may be repeated "
        "(default: those to drive on, and all of CSV files)",
    )
    area = parser.add_mutually_exclusive_group()
    area.add_argument(
        "--bbox",
        type=coordinates(4, "W,S,E,N"),
        metavar="W,S,E,N",
        help="streets between these degrees; by default the whole map",
    )
    area.add_argument(
        "--polygon", type=Path, metavar="FILE", help="streets in a polygon (GeoJSON)"
    )
    area.add_argument(
        "--around",
        type=coordinates(3, "LON,LAT,METRES"),
        metavar="LON,LAT,METRES",
        help="streets in a circle",
    )
    parser.add_argument(
        "--depot",
        type=coordinates(2, "LON,LAT"),
        metavar="LON,LAT",
        help="at the junction nearest to it; by default the most central one",
    )
    parser.add_argument(
        "--capacity", type=positive_number, metavar="N", required=True, help="of a vehicle"
    )
    parser.add_argument(
        "--serve-kind",
        action="append",
        default=[],
        metavar="KIND[,KIND]",
        help="serve streets of these kinds (residential, ...); may be repeated",
    )
    parser.add_argument(
        "--serve-name",
        action="append",
        default=[],
        metavar="NAME",
        help="serve streets of this name, beside those kinds; may be repeated",
    )
    parser.add_argument(
        "--demand",
        type=_demand,
        default="length",
        metavar="length|N|LO-HI",
        help="of a street: its metres (default), N, or drawn from LO to HI",
    )
    parser.add_argument(
        "--ignore-one-way", action="store_true", help="let every street be two-way"
    )
    parser.add_argument(
        "--both-sides",
        action="store_true",
        help="serve each side of a two-way street for itself, with half the demand",
    )
    parser.add_argument(
        "--oversized",
        choices=["split", "refuse"],
        default="split",
        help="streets with more demand than the capacity (default split)",
    )
    parser.add_argument(
        "--merge",
        type=_metres,
        metavar="METRES",
        help="first make one junction of those as close as this",
    )
    parser.add_argument(
        "--seed", type=whole_number, default=0, metavar="N", help="of --demand LO-HI"
    )
    parser.add_argument("--name", metavar="TEXT", help="by default the map's")
    parser.add_argument(
        "--remark", default="", metavar="TEXT", help="comment of the instance"
    )
    parser.add_argument(
        "-o",
        "--out",
        type=Path,
        required=True,
        metavar="FILE",
        help="the instance (.json keeps names and geometry)",
    )
    add_json(parser)
    parser.set_defaults(run=run)


def run(options: Namespace) -> int:
    """Run the command."""
    from arcfleet._files import check_writable
    from arcfleet.cli.scene_report import facts, summary
    from arcfleet.errors import OptionError
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
        serve_kinds=_kinds(options.serve_kind),
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
        print_json(facts(scene) | {"merged_away": merged_away})
    else:
        print_result(summary(scene, merged_away))
    return 0


def _read(options: Namespace) -> StreetMap:
    from arcfleet.errors import MapError
    from arcfleet.streets.files import read_map

    if options.streets is None:
        return read_map(options.map)
    kinds = _kinds(options.streets)
    street_map = read_map(options.map, streets=kinds)
    found = {street.kind for street in street_map.streets}
    for kind in kinds:
        if kind not in found:
            raise MapError(
                f"expected --streets to name kinds of street on map {street_map.name!r}, "
                f"got {kind!r}, of which it has none to drive on: check its spelling"
            )
    return street_map


def _kinds(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(kind.strip() for kinds in words for kind in kinds.split(","))


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
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(
            f"expected length, a whole number as 10, or two as 5-10, got {text[:40]!r}"
        ) from error


def _metres(text: str) -> float:
    """Parse a distance, for argparse."""
    (metres,) = coordinates(1, "a number of metres")(text)
    if metres < 0:
        raise argparse.ArgumentTypeError(f"expected at least 0 metres, got {text[:40]!r}")
    return metres
