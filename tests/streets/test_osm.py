import bz2
import gzip
from dataclasses import replace
from pathlib import Path

import pytest

from arcfleet.errors import FileError, OptionError
from arcfleet.streets.files import read_map
from arcfleet.streets.osm import read_osm
from arcfleet.streets.osm_tags import Tags
from arcfleet.streets.scene import SceneRules, cut_scene
from arcfleet.streets.simplify import largest_strong_part, merge_chains
from arcfleet.streets.street_map import OSM_ATTRIBUTION, Street, StreetMap
from tests.helpers import refused
from tests.shared_data import maps_dir

_STEPS = [(0, 0), (1, 0), (2, 0), (3, 0), (2, 1), (2, 2), (3, 2)]
NODES = {n: (8 + x / 1000, 48 + y / 1000) for n, (x, y) in enumerate(_STEPS, start=1)}


def osm_text(*ways: tuple[str, str], nodes_last: bool = False) -> str:
    """Write an extract; each way is its points and its tags, as `1 2 3`, `a=b c=d`."""
    places = "".join(
        f'<node id="{number}" lon="{longitude}" lat="{latitude}" version="1"/>\n'
        for number, (longitude, latitude) in NODES.items()
    )
    lines = ""
    for number, (points, tags) in enumerate(ways, start=1):
        refs = "".join(f'<nd ref="{point}"/>' for point in points.split())
        pairs = (tag.split("=") for tag in tags.split())
        marks = "".join(f'<tag k="{key}" v="{value}"/>' for key, value in pairs)
        lines += f'<way id="{number}" version="1">{refs}{marks}</way>\n'
    body = lines + places if nodes_last else places + lines
    return f'<?xml version="1.0"?>\n<osm version="0.6">\n{body}</osm>\n'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "town.osm"


TOWN = osm_text(
    ("1 2 3", "highway=residential name=Main"),
    ("3 4", "highway=residential name=Main"),
    ("6 5 3", "highway=tertiary oneway=-1"),
    ("6 7 6", "highway=footway"),
    ("5 6 7 5", "highway=residential area=yes"),
    ("1 7", "building=yes"),
)


def short(street: Street) -> tuple[int, int, bool, str, str, int]:
    points = len(street.geometry) or 2
    return street.tail, street.head, street.one_way, street.kind, street.name, points


@pytest.mark.parametrize(
    ("suffix", "content"),
    [
        ("osm", TOWN.encode()),
        ("osm.gz", gzip.compress(TOWN.encode())),
        ("osm.bz2", bz2.compress(TOWN.encode())),
    ],
    ids=["plain", "gzip", "bzip2"],
)
def test_a_town_is_read_from_xml_plain_or_packed(
    tmp_path: Path, suffix: str, content: bytes
) -> None:
    path = tmp_path / f"town.{suffix}"
    path.write_bytes(content)
    street_map = read_map(path)
    assert street_map.name == "town"
    assert street_map.attribution == OSM_ATTRIBUTION
    assert {short(street) for street in street_map.streets} == {
        (1, 3, False, "residential", "Main", 3),
        (3, 4, False, "residential", "Main", 2),
        (3, 6, True, "tertiary", "", 3),
    }
    assert dict(street_map.junctions) == {n: NODES[n] for n in (1, 3, 4, 6)}


def test_the_order_of_nodes_and_ways_does_not_matter(path: Path) -> None:
    path.write_text(osm_text(("1 2 3", "highway=road"), nodes_last=True))
    assert [short(street) for street in read_map(path).streets] == [
        (1, 3, False, "road", "", 3)
    ]


def test_the_rule_can_be_changed(path: Path) -> None:
    path.write_text(TOWN)
    assert {s.kind for s in read_map(path, streets={"tertiary"}).streets} == {"tertiary"}

    def is_building(tags: Tags) -> bool:
        return "building" in tags

    (only,) = read_map(path, streets=is_building).streets
    assert short(only) == (1, 7, False, "", "", 2)
    with pytest.raises(OptionError, match=r"write {'tertiary'}"):
        read_map(path, streets="tertiary")


def test_an_error_in_the_rule_is_not_blamed_on_the_file(path: Path) -> None:
    path.write_text(TOWN)

    def broken(tags: Tags) -> bool:
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        read_map(path, streets=broken)


def test_numbers_below_zero_are_replaced(path: Path) -> None:
    text = osm_text(("1 2 3", "highway=road"), ("3 4", "highway=primary"))
    path.write_text(text.replace('"3"', '"-3"').replace('"4"', '"-4"'))
    street_map = read_map(path)
    first, second = street_map.streets
    assert first.tail == 1
    assert first.head == second.tail
    assert min(street_map.junctions) == 1
    assert street_map.junctions[first.head] == NODES[3]
    assert street_map.junctions[second.head] == NODES[4]
    # They leave numbers for the parts of split streets.
    scene = cut_scene(read_map(path), SceneRules(capacity=20))
    assert scene.split_streets == 2
    assert max(scene.instance.nodes) < 100


def test_a_draft_does_not_fill_points_that_the_extract_lacks(path: Path) -> None:
    # 8, beyond all that have a place, is named by the way only.
    text = osm_text(("1 2 8 7 5", "highway=road"), ("5 6", "highway=primary"))
    path.write_text(text.replace('"6"', '"-6"').replace('"5"', '"-5"'))
    first, second, third = read_map(path).streets
    assert (first.tail, first.head, second.tail) == (1, 2, 7)
    assert second.head == third.tail
    assert 8 not in read_map(path).junctions


def test_barriers_are_not_looked_at(path: Path) -> None:
    path.write_text(TOWN)
    without = read_map(path)
    gate = f'<node id="2" lon="{NODES[2][0]}" lat="{NODES[2][1]}" version="1"'
    assert gate in TOWN
    marks = '<tag k="barrier" v="gate"/><tag k="access" v="no"/>'
    path.write_text(TOWN.replace(f"{gate}/>", f"{gate}>{marks}</node>"))
    assert read_map(path) == without


def test_a_map_without_streets_is_an_error(path: Path) -> None:
    path.write_text(osm_text(("1 2", "highway=path")))
    with pytest.raises(FileError, match="expected at least one street, found no way with"):
        read_map(path)
    path.write_text(osm_text(("1 98 99", "highway=road")))
    with pytest.raises(FileError, match="extract it with complete ways"):
        read_map(path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("cut.osm", TOWN.encode()[:-100]),
        ("page.osm", b"<html><body>not found</body></html>"),
        ("text.osm", b"hello"),
        ("empty.osm", b""),
        ("empty.osm.pbf", b""),
        ("text.osm.pbf", b"hello, this is no PBF"),
        ("cut.osm.gz", gzip.compress(TOWN.encode())[:-100]),
        ("cut.osm.bz2", bz2.compress(TOWN.encode())[:-100]),
    ],
)
def test_a_broken_file_is_an_error_of_one_sentence(
    tmp_path: Path, name: str, content: bytes
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with refused(FileError, "found") as caught:
        read_map(path)
    assert str(caught.value).startswith(f"{path}: expected ")


def test_a_format_that_is_none_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="expected one of pbf, osm"):
        read_osm(tmp_path / "x", "shp", name="x")


EXTRACTS = [
    ("herrenberg-minimal.osm.pbf", "herrenberg"),
    ("portland-central-filtered.osm.pbf", "portland_or"),
    ("reno_east3.osm", "reno_nv"),
]


@pytest.mark.parametrize(("extract", "city"), EXTRACTS)
def test_extracts_agree_with_the_collection(extract: str, city: str) -> None:
    folder = maps_dir()
    reference = read_map(folder / city)
    street_map = read_map(folder / "raw_osm" / extract)
    # The collection merges across kinds and names and keeps the largest weak part.
    alike = weak_part(merge_chains(street_map, across_kinds=True, across_names=True))
    assert len(alike.junctions) == pytest.approx(len(reference.junctions), rel=0.002)
    assert len(alike.streets) == pytest.approx(len(reference.streets), rel=0.002)
    assert metres(alike) == pytest.approx(metres(reference), rel=0.005)
    one_way, expected = (
        sum(street.one_way for street in each.streets) / len(each.streets)
        for each in (alike, reference)
    )
    assert one_way == pytest.approx(expected, abs=0.005)
    ends = {frozenset((s.tail, s.head)) for s in reference.streets}
    found = sum(frozenset((s.tail, s.head)) in ends for s in alike.streets)
    assert found > 0.99 * len(alike.streets)


@pytest.mark.parametrize("extract", ["herrenberg-minimal.osm.pbf", "reno_east3.osm"])
def test_a_cut_extract_is_an_error(tmp_path: Path, extract: str) -> None:
    whole = (maps_dir() / "raw_osm" / extract).read_bytes()
    path = tmp_path / extract
    for part in (0.02, 0.5, 0.98):
        path.write_bytes(whole[: int(len(whole) * part)])
        with pytest.raises(FileError, match="found a cut or broken one"):
            read_map(path)


def metres(street_map: StreetMap) -> float:
    return sum(street.metres for street in street_map.streets)


def weak_part(street_map: StreetMap) -> StreetMap:
    both_ways = tuple(replace(street, one_way=False) for street in street_map.streets)
    part, _ = largest_strong_part(replace(street_map, streets=both_ways))
    return replace(
        part, streets=tuple(s for s in street_map.streets if s.tail in part.junctions)
    )


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="only Linux lists them")
def test_broken_extracts_are_closed(tmp_path: Path) -> None:
    path = tmp_path / "town.osm.pbf"
    path.write_bytes(b"\0\0\0\x0d" + b"x" * 18)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(10):
        with pytest.raises(FileError, match="expected an OpenStreetMap extract"):
            read_map(path)
    assert len(list(Path("/proc/self/fd").iterdir())) <= before
