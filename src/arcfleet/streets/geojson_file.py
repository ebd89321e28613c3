"""What the readers of GeoJSON share: the document, its points, quotes for messages."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from arcfleet.errors import FileError
from arcfleet.instance.plain_text import decode_text, quote
from arcfleet.streets.packed_file import read_unpacked

if TYPE_CHECKING:
    from pathlib import Path

    from arcfleet.instance.instance import Coordinate


def read_document(path: Path | str) -> object:
    """Return what a file of JSON holds, plain or packed by gzip or bzip2."""
    text = decode_text(path, read_unpacked(path))
    try:
        document: object = json.loads(text)
    except json.JSONDecodeError as error:
        raise FileError(
            path, f"expected GeoJSON, found a mistake ({error.msg})", error.lineno
        ) from error
    except RecursionError as error:
        raise FileError(path, "expected GeoJSON, found brackets nested too deep") from error
    except ValueError as error:
        # Python refuses numbers of thousands of digits.
        raise FileError(
            path, "expected GeoJSON, found a number with too many digits"
        ) from error
    return document


def point_of(path: Path | str, value: object, where: str = "") -> Coordinate:
    """Return the longitude and latitude of a position, or raise FileError.

    Parameters
    ----------
    path
        The file, for the message.
    value
        The position; what follows its first two numbers, such as the height, is left out.
    where
        In the file, for the message.
    """
    if isinstance(value, list) and len(value) >= 2:
        longitude, latitude = value[:2]
        if (
            # Not isinstance, for true is an int as well.
            type(longitude) in (int, float)
            and type(latitude) in (int, float)
            and -180 <= longitude <= 180
            and -90 <= latitude <= 90
        ):
            return float(longitude), float(latitude)
    place = f" {where}" if where else ""
    raise FileError(
        path,
        "expected points as [longitude, latitude] in degrees, "
        f"found {quoted(value)}{place}; convert the file to WGS 84 (EPSG:4326)",
    )


def quoted(value: object) -> str:
    """Quote a part of a document in a message."""
    return quote(json.dumps(value, ensure_ascii=False))
