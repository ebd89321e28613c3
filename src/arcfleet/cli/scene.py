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
    number,
    number_up_to,
    option,
    positive_number,
    whole_number,
)
from arcfleet.cli.output import count_of, note, print_either
from arcfleet.cli.scene_data import (
    data_facts,
    data_files,
    data_lines,
    data_options,
    data_rules,
    unmatched_path,
    write_unmatched,
)
from arcfleet.cli.scene_turns import turn_facts, turn_lines
from arcfleet.errors import OptionError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterable, Iterator

    from arcfleet.streets.area import Area
    from arcfleet.streets.choice import Demand
    from arcfleet.streets.fleet import SceneOperations, ScenePlace
    from arcfleet.streets.scene import Scene, StreetCount
    from arcfleet.streets.simplify import Dropped
    from arcfleet.streets.street_map import Street, StreetMap
    from arcfleet.streets.turns import TurnPolicy

#: Streets that cannot be served, in the summary.
_MOST_LISTED = 10


def _options(parser: ArgumentParser) -> None:
    from arcfleet.streets.scene import SceneRules

    usual = {field.name: field.default for field in fields(SceneRules)}
    place = coordinates(2, "LON,LAT")
    text = (
        "OpenStreetMap extract (.osm.pbf, .osm), lines (GeoJSON, KML, GPX, GeoPackage, "
        "Shapefile), or another street map that arcfleet reads"
    )
    file_argument(parser, "map", text, "MAP")
    text = "instance to write; .json keeps names and geometry"
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="FILE", help=text)
    text = "capacity of a vehicle, in the unit of the demand"
    option(parser, "--capacity", text, positive_number, "N", required=True)
    text = (
        "depot, at the nearest junction, in the area or not (default: the most central "
        "junction of the area); given again, further depots"
    )
    option(parser, "--depot", text, place, "LON,LAT", action="append", default=[])
    text = (
        "demand of a street: its length in metres, N, or a random number from LO to HI; "
        "with --demand-file, that of streets without a row (default: length)"
    )
    option(parser, "--demand", text, _demand, "length|N|LO-HI")
    option(parser, "--name", "name of the instance (default: the map's)", str, "TEXT")
    add_shared(parser, "seed", "json")

    text = (
        "exit with code 1 if a street that was to be served cannot be, or a row of own "
        "data finds no street"
    )
    option(parser, "--strict", text)

    area = parser.add_argument_group("area to serve (default: the whole map)")
    one = area.add_mutually_exclusive_group()
    box, circle = coordinates(4, "W,S,E,N"), coordinates(3, "LON,LAT,METRES")
    option(one, "--bbox", "serve streets between these degrees", box, "W,S,E,N")
    text = "serve streets in a polygon (GeoJSON, KML, GPX, GeoPackage, Shapefile)"
    option(one, "--polygon", text, Path, "FILE")
    option(one, "--around", "serve streets in a circle", circle, "LON,LAT,METRES")
    text = (
        "streets that cross the border of the area: serve none of them, or those whose "
        "middle is inside"
    )
    default = usual["border"]
    option(area, "--border", text, choices=["leave", "middle"], default=default)

    drive = parser.add_argument_group("where to drive (default: the whole map)")
    one = drive.add_mutually_exclusive_group()
    text = (
        "drive on streets up to this far from the area, and on the shortest ways between "
        "the depot and the streets to serve; 0 cuts the map at the border of the area"
    )
    option(one, "--margin", text, number_up_to(1e9, "metres"), "METRES")
    option(one, "--drive-area", "drive in a polygon only", Path, "FILE")

    streets = parser.add_argument_group("streets")
    repeatable: dict[str, Any] = {"action": "append", "default": []}
    text = (
        "read only streets of these kinds; repeatable (default: those open to cars; of CSV "
        "files, all)"
    )
    option(streets, "--streets", text, str, "KIND[,KIND]", **repeatable)
    text = (
        "serve streets of these kinds, as in residential; all for every kind; repeatable "
        "(default: all but motorways, trunk roads and their ramps)"
    )
    option(streets, "--serve-kind", text, str, "KIND[,KIND]", **repeatable)
    text = "serve streets of this name as well; repeatable"
    option(streets, "--serve-name", text, str, "NAME", **repeatable)
    option(streets, "--ignore-one-way", "make every street two-way")
    text = "serve each side of a two-way street on its own, with half the demand"
    option(streets, "--both-sides", text)
    text = "how to treat streets with more demand than the capacity"
    default = usual["oversized"]
    option(streets, "--oversized", text, choices=["split", "refuse"], default=default)
    text = "column or tag of MAP with ids of your own, which plans then have"
    option(streets, "--id", text, str, "COLUMN")
    text = "keep pieces of street without a crossing between them apart"
    option(streets, "--no-merge-chains", text)
    text = "merge junctions at most this far apart first"
    option(streets, "--merge", text, number_up_to(1e9, "metres"), "METRES")
    data_options(parser)
    _operation_options(parser)
    _cost_options(parser, usual)
    _turn_options(parser)


def _operation_options(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("operations")
    text = (
        "place where vehicles empty or refill, at the nearest junction, and the cost of a "
        "visit; repeatable"
    )
    more: dict[str, Any] = {"action": "append", "default": []}
    option(group, "--facility", text, _facility, "LON,LAT[=COST]", **more)
    option(group, "--no-empty-at-end", "vehicles may end their routes loaded")
    text = "longest route: a number in the unit of costs, or as 8h, 450min, 40km"
    option(group, "--shift", text, str, "LIMIT")
    text = "vehicle types, a table [[vehicle]] for each (.toml)"
    option(group, "--vehicles", text, Path, "FILE")
    option(group, "--fleet-limit", "use at most N routes", positive_number, "N")
    option(group, "--exact-fleet", "every vehicle drives a route")
    option(group, "--fewest-routes", "fewer routes first, then cost")
    text = "price of uneven routes, as a share of the cost; try 1"
    option(group, "--balance", text, number_up_to(1e6, "a price"), "PRICE", default=0.0)
    text = "price of every street whose nearest other street is on another route"
    option(group, "--compactness", text, whole_number, "PRICE", default=0)


def _operations(options: Namespace) -> SceneOperations:
    from arcfleet.streets.fleet import SceneOperations, read_vehicles

    return SceneOperations(
        depots=tuple(options.depot[1:]),
        facilities=tuple(options.facility),
        empty_at_end=not options.no_empty_at_end,
        vehicles=() if options.vehicles is None else read_vehicles(options.vehicles),
        shift=options.shift,
        fleet_limit=options.fleet_limit,
        exact_fleet=options.exact_fleet,
        fewest_routes=options.fewest_routes,
        balance=options.balance,
        compactness=options.compactness,
    )


def _facility(text: str) -> ScenePlace:
    """Parse --facility, for argparse."""
    from arcfleet.streets.fleet import ScenePlace

    place, equals, cost = text.partition("=")
    longitude, latitude = coordinates(2, "LON,LAT or LON,LAT=COST")(place)
    price = whole_number(cost) if equals else 0
    return ScenePlace(place=(longitude, latitude), cost=price)


def _turn_options(parser: ArgumentParser) -> None:
    from arcfleet.streets.restrictions import DEFAULT_VEHICLE

    turns = parser.add_argument_group("turns")
    text = (
        "turn rules that differ from the default: u-turn=allowed|dead-ends|forbidden, "
        "u-turn-penalty=N, left=N, right=N, straight=N (penalties in the unit of the "
        "cost), traffic=right|left, osm (obey the map's turn restrictions); after free, "
        "only the rules that follow hold"
    )
    option(turns, "--turns", text, _turns, "RULE[,RULE]", default="osm,u-turn=dead-ends")
    text = (
        "vehicle that turn restrictions are read for, in OpenStreetMap's words, as motorcar"
    )
    option(turns, "--vehicle", text, _vehicle, "NAME", default=DEFAULT_VEHICLE)


def _cost_options(parser: ArgumentParser, usual: dict[str, Any]) -> None:
    from arcfleet.streets.speeds import COSTS

    costs = parser.add_argument_group("costs")
    text = "measure of costs: metres or seconds; links have both in either case"
    option(costs, "--cost", text, choices=list(COSTS), default=usual["cost"])
    text = "driving speed in km/h on streets of a kind without maxspeed; repeatable"
    more: dict[str, Any] = {"action": "append", "default": []}
    option(costs, "--speed", text, _speeds, "KIND=KMH[,KIND=KMH]", **more)
    text = "speed of serving in km/h"
    default = usual["service_speed"]
    option(costs, "--service-speed", text, number, "KMH", default=default)
    text = "seconds that every service takes in addition"
    option(costs, "--service-time", text, number, "S", default=usual["service_time"])


def _run(options: Namespace) -> int:
    from arcfleet._files import check_writable
    from arcfleet.instance.files import format_of, write
    from arcfleet.streets.area import Polygons
    from arcfleet.streets.fleet import SceneOperations
    from arcfleet.streets.scene import SceneRules, cut_scene
    from arcfleet.streets.simplify import merge_close_junctions
    from arcfleet.streets.turns import FREE_TURNS

    check_writable(options.out)
    if data_files(options):
        check_writable(unmatched_path(options.out))
    inputs = [options.map, options.polygon, options.drive_area, options.vehicles]
    inputs = [path for path in inputs if path is not None]
    read = [path.resolve() for path in (*inputs, *data_files(options))]
    if options.out.resolve() in read or unmatched_path(options.out).resolve() in read:
        raise OptionError(
            f"expected another file than the input, got -o {options.out}"
            + ("" if options.out.resolve() in read else ", whose unmatched rows go there")
        )
    # Found wrong before a large map is read.
    if format_of(options.out) != "json" and options.turns != FREE_TURNS:
        raise OptionError(
            "expected a .json file for a scene with turn rules, which others cannot hold, "
            f"got -o {options.out}: write .json, or add --turns free"
        )
    operations = _operations(options)
    if format_of(options.out) != "json" and operations != SceneOperations():
        raise OptionError(
            "expected a .json file for a scene with facilities, vehicles or limits of "
            f"routes, got -o {options.out}: write .json"
        )
    rules = SceneRules(
        capacity=options.capacity,
        area=_area(options),
        border=options.border,
        margin=options.margin,
        drive_area=None if options.drive_area is None else Polygons(options.drive_area),
        depot=options.depot[0] if options.depot else None,
        serve_kinds=tuple(names(",".join(options.serve_kind))),
        serve_names=tuple(options.serve_name),
        demand=options.demand,
        one_way=not options.ignore_one_way,
        both_sides=options.both_sides,
        oversized=options.oversized,
        cost=options.cost,
        speeds={kind: speed for given in options.speed for kind, speed in given.items()},
        service_speed=options.service_speed,
        service_time=options.service_time,
        name=options.name,
        seed=options.seed,
        turns=options.turns,
        operations=operations,
        **data_rules(options),
    )
    street_map = _read(options)
    merged = street_map
    if options.merge is not None:
        merged = merge_close_junctions(street_map, options.merge)
    scene = cut_scene(merged, rules)
    write(scene.instance, options.out)
    unmatched = write_unmatched(scene, options.out)
    merged_away = {
        "junctions": len(street_map.junctions) - len(merged.junctions),
        "streets": len(street_map.streets) - len(merged.streets),
    }
    facts = _facts(scene) | {
        "merged_away": merged_away,
        "turns": turn_facts(scene, rules.turns),
        **data_facts(scene, unmatched),
    }
    lines = [*data_lines(scene, unmatched), *turn_lines(scene, rules.turns)]
    left = _left(scene, options.border)
    print_either(options, facts, _summary(scene, merged_away, lines, left))
    for warning in scene.warnings:
        note(f"warning: {warning}")
    return 1 if options.strict and (scene.unserved or unmatched is not None) else 0


def _read(options: Namespace) -> StreetMap:
    from arcfleet.errors import MapError
    from arcfleet.streets.files import read_map

    kinds = tuple(names(",".join(options.streets)))
    street_map = read_map(
        options.map,
        streets=kinds or None,
        vehicle=options.vehicle,
        id=options.id,
        merge_chains=not options.no_merge_chains,
    )
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


def _speeds(text: str) -> dict[str, float]:
    """Parse --speed, for argparse."""
    speeds = {}
    for one in names(text):
        kind, _, speed = one.partition("=")
        try:
            speeds[kind.strip()] = float(speed)
        except ValueError as error:
            raise ArgumentTypeError(
                "expected kinds of street with their speeds, as in "
                f"residential=20,primary=50, got {text[:60]!r}"
            ) from error
    return speeds


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
    instance, streets = scene.instance, scene.street_map.streets
    return {
        "name": instance.name,
        "junctions": len(scene.street_map.junctions),
        "streets": len(scene.street_map.streets),
        "one_way": sum(street.one_way for street in scene.street_map.streets),
        "metres": round(scene.metres),
        "to_serve": _rounded(scene.to_serve),
        "served": _rounded(scene.served),
        "unserved": [
            {
                "name": one.street.name,
                "kind": one.street.kind,
                "tail": one.street.tail,
                "head": one.street.head,
                "metres": round(one.street.metres),
                "reason": one.reason,
            }
            for one in scene.unserved
        ],
        "driven_only": {kind: _rounded(count) for kind, count in scene.driven_only.items()},
        "crossing": _rounded(scene.crossing),
        "tasks": len(instance.required),
        "total_demand": instance.total_demand,
        "capacity": instance.capacity,
        "least_routes": instance.least_routes,
        "least_trips": instance.least_trips if instance.facilities else None,
        "cost_unit": instance.cost_unit,
        "streets_with_limit": sum(_has_limit(street) for street in streets),
        "depot": instance.depot,
        "depot_metres": (
            None if scene.depot_metres is None else round(scene.depot_metres, 1)
        ),
        "depots": list(dict.fromkeys(n for x in instance.fleet for n in x.depots)),
        "facilities": [facility.node for facility in instance.facilities],
        "vehicles": [vehicle.name for vehicle in instance.vehicles],
        "operations": list(instance.operations),
        "place_metres": [round(metres, 1) for metres in scene.place_metres.values()],
        "split_streets": scene.split_streets,
        "outside": _rounded(scene.outside),
        "cut_off": _rounded(scene.cut_off),
        "comment": instance.comment,
        "attribution": instance.attribution,
        "warnings": scene.warnings,
    }


def _has_limit(street: Street) -> bool:
    return street.limit is not None or street.reverse_limit is not None


def _rounded(count: StreetCount | Dropped) -> dict[str, int]:
    return asdict(count) | {"metres": round(count.metres)}


def _summary(
    scene: Scene, merged_away: dict[str, int], turns: list[str], left: Iterable[str]
) -> str:
    """Describe a scene, for people."""
    from arcfleet._checks import one_line

    known = _facts(scene)
    depot = "the most central junction"
    if scene.depot_metres is not None:
        depot = f"{scene.depot_metres:,.0f} m from the place given"
    served = f"{count_of(scene.served.streets, 'street')}, {_km(scene.served)} km"
    if scene.unserved:
        served = (
            f"{scene.served.streets} of {count_of(scene.to_serve.streets, 'street')}, "
            f"{_km(scene.served)} of {_km(scene.to_serve)} km"
        )
    least = f"least routes  {known['least_routes']}"
    if scene.instance.facilities:
        least = f"least trips   {known['least_trips']}"
    lines = [
        f"scene         {one_line(scene.instance.name)}",
        f"serves        {served}",
        f"drives on     {count_of(len(scene.street_map.streets), 'street')}, "
        f"{scene.metres / 1000:.1f} km, {known['one_way']} one-way, between "
        f"{count_of(len(scene.street_map.junctions), 'junction')}",
        f"depot         {known['depot']}, {depot}",
        f"tasks         {known['tasks']}, total demand {known['total_demand']}",
        f"{least} of capacity {known['capacity']}",
        *turns,
    ]
    if scene.instance.operations:
        lines.append(f"operations    {', '.join(scene.instance.operations)}")
    if scene.place_metres:
        places = ", ".join(f"{metres:,.0f} m" for metres in scene.place_metres.values())
        lines.append(
            f"places        further depots and facilities at junctions {places} away"
        )
    if scene.instance.cost_unit == "seconds":
        lines.append(
            f"costs         seconds, by maxspeed on {known['streets_with_limit']} streets, "
            "by their kind on the others"
        )
    if scene.split_streets:
        split = count_of(scene.split_streets, "street")
        lines.append(f"split         {split} with more demand than that")
    if any(merged_away.values()):
        lines.append(f"merged        {_counts(**merged_away)} into others")
    lines += left
    if scene.instance.notice:
        lines.append(f"attribution   {one_line(scene.instance.notice)}")
    lines += _unserved(scene)
    return "\n".join(lines)


def _left(scene: Scene, border: str) -> Iterator[str]:
    """Yield lines about what the scene does not serve or drive on, as it was asked to."""
    if scene.driven_only:
        kinds = ", ".join(f"{n.streets} {kind}" for kind, n in scene.driven_only.items())
        yield f"driven only   {kinds}; --serve-kind all serves them, too"
    if scene.crossing.streets:
        across = count_of(scene.crossing.streets, "street")
        why = "not served; --border middle serves those whose middle is inside"
        if border == "middle":
            why = "with the middle outside, not served"
        yield f"border        {across} across it {why}"
    for dropped, why in (
        (scene.outside, "outside the area to drive in"),
        (scene.cut_off, "without a way there and back"),
    ):
        if dropped.junctions or dropped.streets:
            counts = _counts(dropped.junctions, dropped.streets)
            yield f"dropped       {counts} ({dropped.metres / 1000:.1f} km) {why}"


def _unserved(scene: Scene) -> Iterator[str]:
    """Yield a line for each of the longest streets that cannot be served."""
    from arcfleet._checks import one_line

    for row, one in enumerate(scene.unserved[:_MOST_LISTED]):
        yield f"{'NOT SERVED' if row == 0 else '':14}{one_line(str(one))}"
    if len(scene.unserved) > _MOST_LISTED:
        yield f"{'':14}and {len(scene.unserved) - _MOST_LISTED} more (--json lists all)"


def _km(count: StreetCount) -> str:
    return f"{count.metres / 1000:.1f}"


def _counts(junctions: int, streets: int) -> str:
    return f"{count_of(junctions, 'junction')} and {count_of(streets, 'street')}"


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
  arcfleet scene town.osm.pbf --polygon district.geojson --margin 1000 --strict \\
      --capacity 3000 -o scene.json
  arcfleet scene town.osm.pbf --demand-file bins.xlsx --demand-column litres \\
      --exclude-name "Mill Lane" --capacity 8000 -o scene.json
  arcfleet scene town.osm.pbf --capacity 3000 --cost time --service-speed 8 \\
      --speed residential=20,service=10 -o scene.json
  arcfleet scene town.osm.pbf --capacity 3000 --cost time --shift 7h \\
      --depot 13.70,51.06 --depot 13.78,51.03 --facility 13.75,51.09=600 -o scene.json

Places are longitude,latitude in degrees.
""",
)
