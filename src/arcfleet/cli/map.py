"""`arcfleet map fetch`: where to get the streets of a town."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from arcfleet.cli.options import Command, add_shared, coordinates, option
from arcfleet.cli.output import print_either
from arcfleet.errors import OptionError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


def _options(parser: ArgumentParser) -> None:
    one = parser.add_mutually_exclusive_group()
    box = coordinates(4, "W,S,E,N")
    option(one, "--bbox", "streets between these degrees", box, "W,S,E,N")
    option(one, "--place", "streets of a town, by its name on the map", str, "NAME")
    text = "take them from this extract of Geofabrik, as in europe/germany/bremen"
    option(parser, "--region", text, str, "PATH")
    text = "file to save the map to (default: town.osm; of a region, town.osm.pbf)"
    parser.add_argument("-o", "--out", metavar="FILE", help=text)
    add_shared(parser, "json")


def _run(options: Namespace) -> int:
    from arcfleet.streets.area import Box
    from arcfleet.streets.fetch import (
        MOST_SQUARE_DEGREES,
        geofabrik_commands,
        overpass_request,
    )

    box = None
    if options.bbox is not None:
        west, south, east, north = options.bbox
        box = Box(west=west, south=south, east=east, north=north)
    if options.region is not None:
        if options.place is not None:
            raise OptionError(
                "expected --bbox beside --region, got --place: an extract is cut by a box"
            )
        out = options.out or "town.osm.pbf"
        commands = geofabrik_commands(options.region, box, out)
        lines = ["Run:", *(f"  {command}" for command in commands), *_next(out)]
        print_either(options, {"commands": commands, "out": out}, "\n".join(lines))
        return 0
    where = box or options.place
    if where is None:
        raise OptionError(
            "expected a box, a place or a region, got none: give --bbox W,S,E,N, --place "
            "NAME or --region PATH"
        )
    request = overpass_request(where, options.out or "town.osm")
    lines = [
        "Run:",
        f"  {request.curl}",
        "or open this address and save what it answers as " + request.out + ":",
        f"  {request.url}",
        "The query, as for https://overpass-turbo.eu:",
        *(f"  {line}" for line in request.query.splitlines()),
        *_next(request.out),
    ]
    if box and (box.east - box.west) * (box.north - box.south) > MOST_SQUARE_DEGREES:
        lines.append(
            "This box is large: --region takes it from an extract of Geofabrik, which is "
            "faster."
        )
    print_either(options, asdict(request), "\n".join(lines))
    return 0


def _next(out: str) -> list[str]:
    return ["Then:", f"  arcfleet scene {out} --capacity 3000 -o scene.json"]


MAP = Command(
    name="map",
    summary="say where to get a street map",
    commands=(
        Command(
            name="fetch",
            summary="print the request for the streets of a town; nothing is downloaded",
            options=_options,
            run=_run,
            epilog="""\
examples:
  arcfleet map fetch --bbox 8.85,48.58,8.90,48.61
  arcfleet map fetch --place Herrenberg -o herrenberg.osm
  arcfleet map fetch --region europe/germany/bremen --bbox 8.7,53.0,8.9,53.1

A box and a place are requests to Overpass (https://overpass-api.de), good for a town:
  [out:xml][timeout:180];
  way["highway"~"..."](S,W,N,E)->.streets;
  rel(bw.streets)["type"="restriction"]->.rules;
  (.streets; node(w.streets); .rules;);
  out body;
A region is an extract of Geofabrik, good for a county or more:
  https://download.geofabrik.de/REGION-latest.osm.pbf
Regions are listed on https://download.geofabrik.de. The data is that of OpenStreetMap,
free under the ODbL; arcfleet keeps its attribution.
""",
        ),
    ),
)
