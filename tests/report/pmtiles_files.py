"""PMTiles files and pictures for them, made as the specification says."""

import gzip
import json
import struct
import zlib
from collections.abc import Mapping
from itertools import pairwise

from arcfleet.report.pmtiles import tile_id

Tile = tuple[int, int, int]


def png(colour: str, side: int = 8) -> bytes:
    """A square of one colour."""
    rgb = bytes.fromhex(colour.removeprefix("#"))
    rows = (b"\0" + rgb * side) * side
    parts = {
        b"IHDR": struct.pack(">2I5B", side, side, 8, 2, 0, 0, 0),
        b"IDAT": zlib.compress(rows),
        b"IEND": b"",
    }
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data))
        + name
        + data
        + struct.pack(">I", zlib.crc32(name + data))
        for name, data in parts.items()
    )


def varint(number: int) -> bytes:
    data = bytearray()
    while number > 0x7F:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*data, number])


def directory(entries: list[tuple[int, int, int, int]]) -> bytes:
    """Entries of tile, offset, length and run length."""
    firsts = [0, *(entry[0] for entry in entries)]
    numbers = [len(entries)]
    numbers += [after - before for before, after in pairwise(firsts)]
    numbers += [entry[3] for entry in entries]
    numbers += [entry[2] for entry in entries]
    end = None
    for _, offset, length, _ in entries:
        numbers.append(0 if offset == end else offset + 1)
        end = offset + length
    return b"".join(map(varint, numbers))


def pmtiles(
    tiles: Mapping[Tile, bytes],
    *,
    attribution: str = "",
    form: int = 2,
    version: int = 3,
    packing: int = 2,
    tile_packing: int = 1,
    leaves: int = 0,
) -> bytes:
    """A file of these tiles, with so many entries to a leaf directory, 0 for none."""

    def packed(data: bytes, how: int) -> bytes:
        return gzip.compress(data, mtime=0) if how == 2 else data

    body, entries = b"", []
    for number, data in sorted((tile_id(*tile), data) for tile, data in tiles.items()):
        data = packed(data, tile_packing)
        entries.append((number, len(body), len(data), 1))
        body += data
    leaf_data = b""
    if leaves:
        root = []
        for first in range(0, len(entries), leaves):
            leaf = packed(directory(entries[first : first + leaves]), packing)
            root.append((entries[first][0], len(leaf_data), len(leaf), 0))
            leaf_data += leaf
        entries = root
    top = packed(directory(entries), packing)
    metadata = packed(json.dumps({"attribution": attribution}).encode(), packing)
    zooms = [zoom for zoom, _, _ in tiles] or [0]
    sizes = [len(top), len(metadata), len(leaf_data), len(body)]
    places = [127]
    for size in sizes[:-1]:
        places.append(places[-1] + size)
    spans = [number for pair in zip(places, sizes, strict=True) for number in pair]
    header = struct.pack("<7sB8Q", b"PMTiles", version, *spans)
    header += struct.pack("<3Q", len(tiles), len(tiles), len(tiles))
    header += struct.pack("<6B", 1, packing, tile_packing, form, min(zooms), max(zooms))
    header += struct.pack("<4iB2i", 0, 0, 0, 0, 0, 0, 0)
    return header + top + metadata + leaf_data + body
