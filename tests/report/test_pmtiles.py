import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arcfleet.errors import FileError
from arcfleet.report.pmtiles import PMTiles, tile_id
from tests.helpers import refused
from tests.report.pmtiles_files import Tile, pmtiles, png

ZOOMS = 4


@st.composite
def places(draw: st.DrawFn) -> Tile:
    zoom = draw(st.integers(0, ZOOMS))
    side = st.integers(0, 2**zoom - 1)
    return zoom, draw(side), draw(side)


def test_tiles_are_numbered_as_the_specification_says() -> None:
    tiles = [(0, 0, 0), (1, 0, 0), (1, 0, 1), (1, 1, 1), (1, 1, 0), (2, 0, 0)]
    assert [tile_id(*tile) for tile in tiles] == list(range(6))
    assert tile_id(12, 3423, 1763) == 19078479


def test_every_tile_has_its_own_number() -> None:
    numbers = [
        tile_id(zoom, x, y)
        for zoom in range(ZOOMS + 1)
        for x in range(2**zoom)
        for y in range(2**zoom)
    ]
    assert sorted(numbers) == list(range(len(numbers)))


@settings(max_examples=40)
@given(
    st.dictionaries(places(), st.binary(min_size=1, max_size=40), min_size=1),
    st.sampled_from([1, 2]),
    st.sampled_from([1, 2]),
    st.integers(0, 3),
)
def test_what_was_written_is_read(
    tiles: dict[Tile, bytes], packing: int, tile_packing: int, leaves: int
) -> None:
    packings = {"packing": packing, "tile_packing": tile_packing}
    data = pmtiles(tiles, attribution="© me", leaves=leaves, **packings)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "town.pmtiles"
        path.write_bytes(data)
        with PMTiles(path) as read:
            assert read.attribution() == "© me"
            assert read.media == "image/png"
            assert (read.least_zoom, read.most_zoom) == (min(tiles)[0], max(tiles)[0])
            for zoom in range(ZOOMS + 1):
                for x in range(2**zoom):
                    for y in range(2**zoom):
                        assert read.tile(zoom, x, y) == tiles.get((zoom, x, y))


@settings(max_examples=300)
@given(st.data())
def test_a_damaged_file_is_refused_or_read(data: st.DataObject) -> None:
    leaves, packing = data.draw(st.integers(0, 2)), data.draw(st.sampled_from([1, 2]))
    tiles = {(1, x, y): png("#00ff00") for x in range(2) for y in range(2)}
    whole = bytearray(pmtiles(tiles, leaves=leaves, packing=packing))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(whole) - 1))
        whole[at] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(whole)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "town.pmtiles"
        path.write_bytes(whole[:cut] if data.draw(st.booleans()) else whole)
        # No other error, no endless loop.
        with suppress(FileError), PMTiles(path) as read:
            read.attribution()
            for x, y in ((0, 0), (1, 0), (0, 1), (1, 1)):
                read.tile(1, x, y)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"{}", "expected a PMTiles file, found another one"),
        (b"x" * 200, "expected a PMTiles file, found another one"),
        (pmtiles({(0, 0, 0): b"x"}, form=1), "found vector tiles; render them to raster"),
        (pmtiles({(0, 0, 0): b"x"}, form=0), "found tiles of another kind"),
        (pmtiles({(0, 0, 0): b"x"}, version=2), "expected version 3 of PMTiles, found 2"),
        (pmtiles({(0, 0, 0): b"x"}, packing=3), "found another compression"),
        (pmtiles({(0, 0, 0): b"x"})[:130], "found a cut one; fetch it again"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "town.pmtiles"
    path.write_bytes(data)
    with refused(FileError, message):
        PMTiles(path)


def test_a_missing_file(tmp_path: Path) -> None:
    with refused(FileError, "expected a PMTiles file, found nothing of that name"):
        PMTiles(tmp_path / "none.pmtiles")
