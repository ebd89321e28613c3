import csv
import gzip
from pathlib import Path

import pytest

from arcfleet.errors import FileError, OptionError
from arcfleet.instance.geodesy import line_lengths
from arcfleet.streets.csv_map import csv_pair, read_csv_map
from arcfleet.streets.files import read_map
from arcfleet.streets.osm_tags import DRIVABLE_KINDS, Tags
from arcfleet.streets.street_map import OSM_ATTRIBUTION, Street
from tests.helpers import refused
from tests.shared_data import maps_dir

NAME = 'Lange Straße, "Ost"'
NODES = "id,lon,lat\n12,8.0,48.0\n40,8.001,48.0\n"
HEADER = "u,v,length_m,oneway,highway,name,geometry\n"
EDGES = (
    HEADER
    + '12,40,74.5,1,residential,"Lange Straße, ""Ost""",\n'
    + "40,12,80,0,,,8.001 48.0;8.0005 48.0001;8.0 48.0\n"
)


def write_pair(
    folder: Path, nodes: str = NODES, edges: str = EDGES, suffix: str = ".gz"
) -> Path:
    for part, text in (("nodes", nodes), ("edges", edges)):
        data = text.encode()
        path = folder / f"town.{part}.csv{suffix}"
        path.write_bytes(gzip.compress(data) if suffix else data)
    return folder / "town"


@pytest.mark.parametrize("suffix", [".gz", ""])
@pytest.mark.parametrize("given", ["", ".nodes.csv", ".edges.csv"])
def test_a_pair_is_read_from_any_of_its_names(
    tmp_path: Path, suffix: str, given: str
) -> None:
    prefix = write_pair(tmp_path, suffix=suffix)
    path = prefix.with_name(f"town{given}{suffix}") if given else prefix
    street_map = read_csv_map(path)
    assert street_map.name == "town"
    assert street_map.attribution == OSM_ATTRIBUTION
    assert dict(street_map.junctions) == {12: (8.0, 48.0), 40: (8.001, 48.0)}
    bent = ((8.001, 48.0), (8.0005, 48.0001), (8.0, 48.0))
    assert street_map.streets == (
        Street(tail=12, head=40, metres=74.5, one_way=True, kind="residential", name=NAME),
        Street(tail=40, head=12, metres=80, geometry=bent),
    )


def test_name_and_attribution_can_be_given(tmp_path: Path) -> None:
    street_map = read_csv_map(write_pair(tmp_path), name="Town", attribution="the town")
    assert (street_map.name, street_map.attribution) == ("Town", "the town")


def test_the_rule_holds_for_the_column_of_kinds(tmp_path: Path) -> None:
    nodes = NODES + "50,8.002,48.0\n"
    path = write_pair(tmp_path, nodes, EDGES + "40,50,75,0,service,,\n")
    assert [s.kind for s in read_map(path).streets] == ["residential", "", "service"]
    assert len(read_map(path).junctions) == 3
    some = read_map(path, streets={"residential"})
    assert [s.kind for s in some.streets] == ["residential"]
    assert set(some.junctions) == {12, 40}
    # A street of unknown kind is there by default only.
    driven = read_map(path, streets=DRIVABLE_KINDS)
    assert [s.kind for s in driven.streets] == ["residential"]


def test_a_callable_sees_the_columns_as_tags(tmp_path: Path) -> None:
    seen: list[Tags] = []

    def is_two_way(tags: Tags) -> bool:
        seen.append(tags)
        return tags["oneway"] == "no"

    (only,) = read_map(write_pair(tmp_path), streets=is_two_way).streets
    assert only.metres == 80
    row = {"highway": "residential", "name": NAME, "oneway": "yes"}
    assert seen == [row, {"oneway": "no"}]


def test_a_rule_that_leaves_nothing_is_an_error(tmp_path: Path) -> None:
    path = write_pair(tmp_path)
    with refused(FileError, "edges.csv.gz: expected at least one street of a"):
        read_map(path, streets={"motorway"})
    with pytest.raises(OptionError, match=r"write {'road'}"):
        read_map(path, streets="road")


def test_rounded_geometry_ends_at_its_junctions(tmp_path: Path) -> None:
    edges = HEADER + "12,40,80,0,,,8.000001 48.0;8.0005 48.0001;8.001 47.999999\n"
    (street,) = read_csv_map(write_pair(tmp_path, edges=edges)).streets
    assert street.geometry == ((8.0, 48.0), (8.0005, 48.0001), (8.001, 48.0))


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("id,x,y\n", "nodes.csv:1: expected the columns id,lon,lat, found 'id,x,y'"),
        ("", "nodes.csv:1: expected the columns id,lon,lat, found ''"),
        ("id,lon,lat\n1,8\n", "nodes.csv:2: expected 3 columns, found 2 in '1,8'"),
        ("id,lon,lat\n-1,8,48\n", "nodes.csv:2: expected a junction number from 0"),
        ("id,lon,lat\n1,8,48\n1,8,48\n", "nodes.csv:3: expected every junction once"),
        ("id,lon,lat\n1,8,x\n", "nodes.csv:2: expected longitude and latitude in degrees"),
        ("id,lon,lat\n1,nan,8\n", "nodes.csv:2: expected longitude and latitude"),
        (
            "id,lon,lat\n1,500123.4,5312345.6\n",
            "nodes.csv:2: expected longitude and latitude in degrees, found '500123.4'",
        ),
        ('id,lon,lat\n1,"8,48\n', "nodes.csv:2: expected CSV"),
    ],
)
def test_a_broken_row_of_junctions_is_named(
    tmp_path: Path, nodes: str, expected: str
) -> None:
    prefix = write_pair(tmp_path, nodes=nodes, suffix="")
    with refused(FileError, f"town.{expected}"):
        read_csv_map(prefix)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("12,41,1,0,,,", "expected a junction of the nodes file, found '41'"),
        ("12,x,1,0,,,", "expected a junction of the nodes file, found 'x'"),
        ("12,40,-1,0,,,", "expected a length of at least 0 m, found '-1'"),
        ("12,40,,0,,,", "expected a length of at least 0 m, found ''"),
        ("12,40,inf,0,,,", "expected a length of at least 0 m, found 'inf'"),
        ("12,40,1,yes,,,", "expected oneway 0 or 1, found 'yes'"),
        ("12,40,1,0,,,8 48", "expected at least 2 points, found 1"),
        ("12,40,1,0,,,8 48;8.001", "expected points as `lon lat`, found '8.001'"),
        ("12,40,1,0,,,8 48;8.001 x", "expected longitude and latitude in degrees"),
        ("12,40,1,0,,,8.001 48;8 48", "expected the first point at its junction"),
        ("12,40,1,0,,,8 48;8 48.1", "expected the last point at its junction"),
        ("12,40,1,0,,", "expected 7 columns, found 6"),
    ],
)
def test_a_broken_row_of_streets_is_named(tmp_path: Path, row: str, expected: str) -> None:
    prefix = write_pair(tmp_path, edges=f"{EDGES}{row}\n", suffix="")
    with refused(FileError, f"town.edges.csv:4: {expected}"):
        read_csv_map(prefix)


def test_a_missing_partner_is_named(tmp_path: Path) -> None:
    prefix = write_pair(tmp_path)
    (tmp_path / "town.edges.csv.gz").unlink()
    for path in (prefix, tmp_path / "town.nodes.csv.gz"):
        with pytest.raises(FileError, match=r"expected its partner town\.edges\.csv\.gz"):
            read_csv_map(path)
    with pytest.raises(FileError, match="found nothing of that name"):
        read_csv_map(tmp_path / "town.edges.csv.gz")


def test_names_of_nothing_are_no_pair(tmp_path: Path) -> None:
    assert csv_pair(tmp_path / "town") is None
    assert csv_pair("/") is None
    with pytest.raises(FileError, match="found neither"):
        read_csv_map(tmp_path / "town")


def test_a_map_without_streets_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"edges\.csv\.gz: expected at least one street"):
        read_csv_map(write_pair(tmp_path, edges=HEADER))


def test_a_cut_file_is_an_error(tmp_path: Path) -> None:
    prefix = write_pair(tmp_path)
    edges = tmp_path / "town.edges.csv.gz"
    edges.write_bytes(edges.read_bytes()[:-12])
    with pytest.raises(FileError, match=r"edges\.csv\.gz: expected a whole packed file"):
        read_csv_map(prefix)


def test_all_maps_of_the_collection_are_read() -> None:
    folder = maps_dir()
    with (folder / "SOURCES.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert rows
    for row in rows:
        street_map = read_csv_map(folder / row["city"])
        assert len(street_map.junctions) == int(row["nodes"])
        assert len(street_map.streets) == int(row["edges"])
        metres = sum(street.metres for street in street_map.streets)
        assert metres / 1000 == pytest.approx(float(row["total_km"]), abs=0.1)
        # Rome's are straight lines that are longer than they are drawn.
        drawn = [street for street in street_map.streets if street.geometry]
        if drawn and row["city"] != "rome":
            # The collection's lengths were measured on a sphere.
            assert sum(line_lengths(map(street_map.points, drawn))) == pytest.approx(
                sum(street.metres for street in drawn), rel=0.002
            )
