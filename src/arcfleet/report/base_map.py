"""A map below the plan: tiles that the browser fetches, or tiles within the page."""

from __future__ import annotations

import base64
import html
import math
import re
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from arcfleet.errors import FileError, FormatWarning, OptionError
from arcfleet.report.pmtiles import PMTiles
from arcfleet.solution.drive import on_globe

if TYPE_CHECKING:
    from arcfleet.instance.instance import Coordinate, Instance
    from arcfleet.solution.solution import Solution

#: Bytes of tiles that a page holds at most.
MOST_BYTES = 12_000_000
#: Tiles of one zoom that are read at most.
_MOST_TILES = 20_000
#: The closest zoom of tiles from a URL; closer ones are stretched.
_MOST_ZOOM = 19
#: Part of its size that a plan's area has around it.
_AROUND = 0.15
#: Web Mercator ends there.
_MOST_LATITUDE = 85.0511


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseMap:
    """What the page needs to draw a base map.

    Parameters
    ----------
    facts
        Data of the page.
    origin
        Server that the page may ask for images; empty if none.
    """

    facts: dict[str, object] = field(default_factory=dict)
    origin: str = ""


def load_base_map(
    source: Path | str | None, credit: str, instance: Instance, *solutions: Solution
) -> BaseMap:
    """Return the base map of a source, see `write_html`; an empty one for None."""
    if source is None:
        if credit:
            raise OptionError("expected a base map with its attribution, got none")
        return BaseMap()
    check_base_map(source)
    if not on_globe(instance):
        raise OptionError(
            "expected longitudes and latitudes to draw a base map, got none in instance "
            f"{instance.name!r}: leave the base map out"
        )
    if is_url(source):
        address = urlsplit(str(source))
        facts = {
            "url": str(source),
            "least": 0,
            "most": _MOST_ZOOM,
            "credit": credit or f"Base map: {address.hostname}",
        }
        return BaseMap(facts={"base": facts}, origin=f"{address.scheme}://{address.netloc}")
    area = _area(instance, *solutions)
    with PMTiles(Path(source)) as tiles:
        facts = _embedded(tiles, *area)
        facts["credit"] = credit or _plain(tiles.attribution()) or Path(source).name
    return BaseMap(facts={"base": facts})


def is_url(source: Path | str) -> bool:
    """Return whether a base map is fetched by the browser."""
    return re.match(r"https?://", str(source)) is not None


def check_base_map(source: Path | str) -> None:
    """Raise what is wrong with the source of a base map, before the work for it."""
    text = str(source)
    if not is_url(source):
        if Path(source).suffix.lower() != ".pmtiles":
            raise OptionError(
                "expected a URL with {z}, {x} and {y} or a file ending in .pmtiles as base "
                f"map, got {text!r}"
            )
        PMTiles(Path(source)).__exit__(None, None, None)
        return
    if text.lower().endswith(".pmtiles"):
        raise OptionError(
            f"expected a PMTiles file on this machine, got {text!r}: fetch it and give its "
            "path"
        )
    if not all(part in text for part in ("{z}", "{x}", "{y}")):
        raise OptionError(
            "expected {z}, {x} and {y} in the URL of a base map, got "
            f"{text!r}: as in https://tile.example.org/{{z}}/{{x}}/{{y}}.png"
        )
    # The host becomes part of the page's policy, so that it may be nothing but a host.
    if not re.fullmatch(r"[A-Za-z0-9.-]+(:\d+)?", urlsplit(text).netloc):
        raise OptionError(
            f"expected a URL with the name of one server as base map, got {text!r}"
        )


def _area(instance: Instance, *solutions: Solution) -> tuple[float, float, float, float]:
    """Return the least and most longitude and latitude of what is served and driven."""
    driven = {
        step.link
        for solution in solutions
        for route in solution.routes
        for step in route.path
        if step.link < len(instance.links)
    }
    places = dict(zip(instance.nodes, instance.coordinates, strict=True))
    points: list[Coordinate] = []
    for position, link in enumerate(instance.links):
        if link.required or position in driven:
            points += [places[link.tail], places[link.head], *link.geometry]
    points = points or list(instance.coordinates)
    west, east = min(x for x, _ in points), max(x for x, _ in points)
    south, north = min(y for _, y in points), max(y for _, y in points)
    wide, high = _AROUND * (east - west), _AROUND * (north - south)
    return (
        max(west - wide, -180.0),
        max(south - high, -_MOST_LATITUDE),
        min(east + wide, 180.0),
        min(north + high, _MOST_LATITUDE),
    )


def _embedded(
    tiles: PMTiles, west: float, south: float, east: float, north: float
) -> dict[str, object]:
    """Return the tiles of an area, from the zoom that shows it whole to the closest."""

    def covered(zoom: int) -> tuple[range, range]:
        left, top = tile_at(west, north, zoom)
        right, bottom = tile_at(east, south, zoom)
        return range(left, right + 1), range(top, bottom + 1)

    def is_whole(zoom: int) -> bool:
        return all(len(side) <= 2 for side in covered(zoom))

    zooms = range(tiles.least_zoom, tiles.most_zoom + 1)
    first = max((zoom for zoom in zooms if is_whole(zoom)), default=tiles.least_zoom)
    found: dict[str, bytes] = {}
    left = MOST_BYTES
    last = None
    for zoom in range(first, tiles.most_zoom + 1):
        xs, ys = covered(zoom)
        level = _level(tiles, zoom, xs, ys) if len(xs) * len(ys) <= _MOST_TILES else None
        left -= MOST_BYTES + 1 if level is None else sum(map(len, level.values()))
        if left < 0:
            break
        if level:
            found |= level
            last = zoom
    if last is None:
        raise FileError(
            tiles.path,
            f"expected at most {MOST_BYTES // 1_000_000} MB of tiles around the plan "
            f"({west:.3f},{south:.3f},{east:.3f},{north:.3f}), found "
            f"{'more' if left < 0 else 'none'}; give another file or leave it out",
        )
    if left < 0:
        warnings.warn(
            f"the base map has zoom {first} to {last} of {tiles.most_zoom}: with closer "
            f"tiles it exceeds {MOST_BYTES // 1_000_000} MB",
            FormatWarning,
            stacklevel=2,
        )
    start = f"data:{tiles.media};base64,"
    return {
        "tiles": {key: start + base64.b64encode(x).decode() for key, x in found.items()},
        "least": first,
        "most": last,
    }


def _level(tiles: PMTiles, zoom: int, xs: range, ys: range) -> dict[str, bytes]:
    read = {f"{zoom}/{x}/{y}": tiles.tile(zoom, x, y) for x in xs for y in ys}
    return {key: data for key, data in read.items() if data is not None}


def tile_at(longitude: float, latitude: float, zoom: int) -> tuple[int, int]:
    """Return column and row of the Web Mercator tile at a place."""
    side = 1 << zoom
    column = math.floor((longitude + 180) / 360 * side)
    row = math.floor(
        (1 - math.asinh(math.tan(math.radians(latitude))) / math.pi) / 2 * side
    )
    return min(max(column, 0), side - 1), min(max(row, 0), side - 1)


def _plain(text: str) -> str:
    """Return the text of HTML."""
    return html.unescape(re.sub(r"<[^>]*>", "", text)).strip()
