"""Where to get a map: the requests for streets of OpenStreetMap. Nothing is fetched."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from arcfleet.errors import OptionError

if TYPE_CHECKING:
    from arcfleet.streets.area import Box

OVERPASS = "https://overpass-api.de/api/interpreter"
GEOFABRIK = "https://download.geofabrik.de"
#: A larger box, in square degrees, is more than Overpass likes to be asked for.
MOST_SQUARE_DEGREES = 0.25
#: Service roads as well: `--streets` may ask for them.
_KINDS = (
    "^(motorway|trunk|primary|secondary|tertiary|unclassified|residential|living_street|"
    "service|road)(_link)?$"
)
_REGION = re.compile(r"[a-z0-9-]+(/[a-z0-9-]+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class MapRequest:
    """How to get the streets of a town.

    Parameters
    ----------
    query
        What to ask Overpass for, in its language.
    url
        Address that answers with the map.
    curl
        Command that saves the map.
    out
        File that the map is saved to.
    """

    query: str
    url: str
    curl: str
    out: str


def overpass_request(where: Box | str, out: str) -> MapRequest:
    """Return the request for streets, their points and their turn restrictions.

    Parameters
    ----------
    where
        A box, or the name of a town as OpenStreetMap has it.
    out
        File to save the map to.
    """
    first = ""
    if isinstance(where, str):
        if not where.strip() or any(c in where for c in '"\\\n'):
            raise OptionError(f"expected the name of a town, got {where!r}")
        first = f'area["boundary"="administrative"]["name"="{where.strip()}"]->.town;\n'
        part = "area.town"
    else:
        # Overpass has latitudes first.
        sides = (where.south, where.west, where.north, where.east)
        part = ",".join(f"{side:.10g}" for side in sides)
    query = (
        "[out:xml][timeout:180];\n"
        f"{first}"
        f'way["highway"~"{_KINDS}"]({part})->.streets;\n'
        'rel(bw.streets)["type"="restriction"]->.rules;\n'
        "(.streets; node(w.streets); .rules;);\n"
        "out body;"
    )
    line = query.replace("\n", "")
    return MapRequest(
        query=query,
        url=f"{OVERPASS}?data={quote(line, safe='')}",
        curl=(
            f"curl --fail --output {shlex.quote(out)} "
            f"--data-urlencode {shlex.quote(f'data={line}')} {OVERPASS}"
        ),
        out=out,
    )


def geofabrik_commands(region: str, box: Box | None, out: str) -> list[str]:
    """Return the commands that save an extract of Geofabrik, and cut a box from it.

    Parameters
    ----------
    region
        Path of the region there, as in `europe/germany/baden-wuerttemberg`.
    box
        The box to cut; None takes the whole region.
    out
        File to save the map to.
    """
    if not _REGION.fullmatch(region):
        raise OptionError(
            "expected a region as Geofabrik names it, as in europe/germany/bremen, got "
            f"{region!r}: look at {GEOFABRIK}"
        )
    url = f"{GEOFABRIK}/{region}-latest.osm.pbf"
    if box is None:
        return [f"curl --fail --location --output {shlex.quote(out)} {url}"]
    sides = ",".join(f"{x:.10g}" for x in (box.west, box.south, box.east, box.north))
    whole = f"{region.rpartition('/')[2]}-latest.osm.pbf"
    return [
        f"curl --fail --location --output {whole} {url}",
        f"osmium extract --bbox {sides} --strategy complete_ways "
        f"--output {shlex.quote(out)} {whole}",
    ]
