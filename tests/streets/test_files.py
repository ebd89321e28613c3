import sys
from pathlib import Path

import pytest

from arcfleet.errors import FileError, OptionError
from arcfleet.streets.files import read_map
from arcfleet.streets.simplify import merge_close_junctions

OSM = (
    '<osm version="0.6"><node id="1" lon="8" lat="48"/><node id="2" lon="8" lat="48.1"/>'
    '<way id="1"><nd ref="1"/><nd ref="2"/><tag k="highway" v="road"/></way></osm>'
)
LINE = '\ufeff {"type": "LineString", "coordinates": [[8, 48], [8, 48.1]]}'


@pytest.mark.parametrize("content", [OSM, LINE])
@pytest.mark.parametrize("name", ["town", "town.xml", "town.txt", "town.geojson"])
def test_the_content_tells_the_kind(tmp_path: Path, content: str, name: str) -> None:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    (street,) = read_map(path).streets
    assert street.metres == pytest.approx(11_120, rel=0.001)


@pytest.mark.parametrize(
    ("file_name", "map_name"),
    [
        ("st.-gallen.osm", "st.-gallen"),
        ("town.osm.pbf", "town"),
        ("town.osm.gz", "town"),
        ("town.v2.geojson", "town.v2"),
        ("town", "town"),
    ],
)
def test_the_name_comes_from_the_file(
    tmp_path: Path, file_name: str, map_name: str
) -> None:
    path = tmp_path / file_name
    path.write_text(OSM)
    assert read_map(path).name == map_name
    assert read_map(str(path), name="other").name == "other"


def test_what_is_no_map_is_an_error(tmp_path: Path) -> None:
    missing = tmp_path / "beijin"
    with pytest.raises(FileError, match=r"beijin: expected .* found nothing of that name"):
        read_map(missing)
    with pytest.raises(FileError, match="found a directory"):
        read_map(tmp_path)
    with pytest.raises(FileError, match="cannot be read"):
        read_map("a\0b")
    text = tmp_path / "notes.txt"
    text.write_text("streets of our town")
    with pytest.raises(FileError, match=r"expected an OpenStreetMap .* none of these"):
        read_map(text)


def test_a_missing_library_is_named_with_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "town"
    path.write_text(LINE, encoding="utf-8")
    street_map = read_map(path)
    monkeypatch.setitem(sys.modules, "scipy.spatial", None)
    with pytest.raises(OptionError, match=r"needs scipy, .*: install arcfleet\[maps\]"):
        merge_close_junctions(street_map, 15)
    path.write_text(OSM)
    monkeypatch.setitem(sys.modules, "osmium", None)
    with pytest.raises(OptionError, match=r"needs osmium, .*: install arcfleet\[maps\]"):
        read_map(path)
