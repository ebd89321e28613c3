"""Raster tiles from a PMTiles file, version 3 of the format.

https://github.com/protomaps/PMTiles/blob/main/spec/v3/spec.md
"""

from __future__ import annotations

import json
import struct
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from arcfleet._files import reading, unpack
from arcfleet.errors import FileError

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

_HEADER = struct.Struct("<7sB11Q6B4i")
_MAGIC = b"PMTiles"
_NONE, _GZIP = 1, 2
_VECTOR = 1
_MEDIA = {2: "image/png", 3: "image/jpeg", 4: "image/webp", 5: "image/avif"}
#: A file has a root and leaves; more levels than this are a loop.
_MOST_LEVELS = 4
#: Directories of more bytes than this are none.
_LARGEST_DIRECTORY = 64 << 20


@dataclass(frozen=True, slots=True)
class _Entry:
    """Tiles of the same content, or a leaf directory if `count` is 0."""

    tile: int
    offset: int
    length: int
    count: int


class PMTiles:
    """An open file of raster tiles.

    Raises
    ------
    FileError
        If the file cannot be read, is no PMTiles file or has no raster tiles.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with reading(path, "a PMTiles file"):
            self._stream: BinaryIO = path.open("rb")
        try:
            self._read_header()
        except BaseException:
            self._stream.close()
            raise

    def __enter__(self) -> PMTiles:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the file."""
        self._stream.close()

    def tile(self, zoom: int, x: int, y: int) -> bytes | None:
        """Return the image of a tile; None where the file has none."""
        wanted = tile_id(zoom, x, y)
        entries = self._root
        for _ in range(_MOST_LEVELS):
            position = bisect_right(entries, wanted, key=lambda entry: entry.tile) - 1
            if position < 0:
                return None
            entry = entries[position]
            if entry.count:
                if wanted >= entry.tile + entry.count:
                    return None
                return self._unpacked(
                    self._part(self._tiles_at + entry.offset, entry.length),
                    self._tile_packing,
                )
            start = self._leaves_at + entry.offset
            entries = self._directory(start, entry.length)
        raise self._broken("directories nested too deeply")

    def attribution(self) -> str:
        """Return the attribution of the metadata, which may be HTML; empty if none."""
        data = self._unpacked(self._part(*self._metadata), self._packing)
        try:
            metadata = json.loads(data or b"{}")
        except ValueError:
            raise self._broken("metadata that are no JSON") from None
        text = metadata.get("attribution") if isinstance(metadata, dict) else None
        return text if isinstance(text, str) else ""

    def _read_header(self) -> None:
        data = self._stream.read(_HEADER.size)
        if len(data) < _HEADER.size or not data.startswith(_MAGIC):
            raise FileError(self.path, "expected a PMTiles file, found another one")
        _, version, *rest = _HEADER.unpack(data)
        root_at, root_length, metadata_at, metadata_length, self._leaves_at = rest[:5]
        self._tiles_at = rest[6]
        self._packing, self._tile_packing, form = rest[12:15]
        self.least_zoom, self.most_zoom = rest[15:17]
        if version != 3:
            raise FileError(
                self.path,
                f"expected version 3 of PMTiles, found {version}; convert it with pmtiles",
            )
        if form == _VECTOR:
            raise FileError(
                self.path,
                "expected raster tiles (PNG, JPEG, WebP), found vector tiles; render them "
                "to raster tiles first",
            )
        if form not in _MEDIA:
            raise FileError(self.path, "expected raster tiles, found tiles of another kind")
        if not self.least_zoom <= self.most_zoom <= 31:
            raise self._broken(f"zoom levels {self.least_zoom} to {self.most_zoom}")
        self.media = _MEDIA[form]
        self._metadata = (metadata_at, metadata_length)
        self._root = self._directory(root_at, root_length)

    def _directory(self, start: int, length: int) -> list[_Entry]:
        data = self._unpacked(self._part(start, length), self._packing)
        numbers = _Numbers(data)
        try:
            count = next(numbers)
            if count > len(data):
                raise self._broken("a directory of too many entries")
            steps = [next(numbers) for _ in range(count)]
            counts = [next(numbers) for _ in range(count)]
            lengths = [next(numbers) for _ in range(count)]
            offsets: list[int] = []
            for position in range(count):
                offset = next(numbers)
                if offset == 0 and position == 0:
                    raise self._broken("a directory without a first offset")
                # 0 is the place right behind the entry before.
                after = offsets[-1] + lengths[position - 1] if offset == 0 else offset - 1
                offsets.append(after)
        except StopIteration:
            raise self._broken("a directory that is cut off") from None
        entries = []
        tile = 0
        for step, offset, size, number in zip(steps, offsets, lengths, counts, strict=True):
            tile += step
            entries.append(_Entry(tile, offset, size, number))
        return entries

    def _part(self, start: int, length: int) -> bytes:
        if length > _LARGEST_DIRECTORY:
            raise self._broken(f"a part of {length} bytes")
        with reading(self.path, "a PMTiles file"):
            self._stream.seek(start)
            data = self._stream.read(length)
        if len(data) < length:
            raise FileError(
                self.path, "expected a whole PMTiles file, found a cut one; fetch it again"
            )
        return data

    def _unpacked(self, data: bytes, packing: int) -> bytes:
        if packing == _GZIP:
            # An empty part is no gzip data, as the specification says.
            if not data.startswith(b"\x1f\x8b"):
                raise self._broken("gzip data that cannot be unpacked")
            return unpack(self.path, data)
        if packing not in (0, _NONE):
            raise FileError(
                self.path,
                "expected PMTiles that are not compressed or with gzip, found another "
                "compression; convert it with pmtiles",
            )
        return data

    def _broken(self, what: str) -> FileError:
        return FileError(self.path, f"expected a sound PMTiles file, found {what}")


class _Numbers:
    """The whole numbers of a directory: seven bits to a byte, the lowest first."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def __next__(self) -> int:
        value = shift = 0
        while True:
            if self._at >= len(self._data) or shift > 63:
                raise StopIteration
            byte = self._data[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7


def tile_id(zoom: int, x: int, y: int) -> int:
    """Return the number of a tile: lower zooms first, then along a Hilbert curve."""
    number = ((1 << 2 * zoom) - 1) // 3
    side = 1 << zoom
    half = side >> 1
    while half:
        right, low = int(x & half > 0), int(y & half > 0)
        number += half * half * ((3 * right) ^ low)
        if not low:
            if right:
                x, y = side - 1 - x, side - 1 - y
            x, y = y, x
        half >>= 1
    return number
