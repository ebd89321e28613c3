"""Own data of `arcfleet scene`: a list of bins becomes a plan, and no row is lost."""

import csv
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import shapely

from arcfleet import StreetMap, check, read, read_map, read_solution
from tests.cli.running import ROOT, arcfleet, one_sentence, succeeded
from tests.shared_data import maps_dir
from tests.streets.own_files import SHAPED, write_csv, write_layer

GUIDE = ROOT / "docs" / "guide"
DOWNTOWN = GUIDE / "downtown.geojson"
BINS = GUIDE / "bins.csv"


def facts_of(*arguments: object) -> dict[str, Any]:
    ran = arcfleet("scene", *arguments, "--json")
    assert ran.returncode == 0, ran.stderr
    facts: dict[str, Any] = json.loads(ran.stdout)
    return facts


def test_a_list_of_bins_becomes_a_plan(tmp_path: Path) -> None:
    out, plan = tmp_path / "scene.json", tmp_path / "plan.json"
    said = succeeded(
        *("scene", DOWNTOWN, "--demand-file", BINS, "--demand-column", "litres"),
        *("--capacity", 4000, "-o", out),
    )
    assert (
        f"demand file   {BINS} by place (lon, lat): 24 of 24 rows on 24 streets, "
        "litres 11600\n"
    ) in said
    assert "without row   125 streets" in said
    instance = read(out)
    with BINS.open(encoding="utf-8") as stream:
        litres = [int(row["litres"]) for row in csv.DictReader(stream)]
    assert instance.total_demand == sum(litres)
    assert list(tmp_path.iterdir()) == [out]  # no file of unmatched rows
    arcfleet("solve", out, "--iterations", 50, "--out", plan)
    assert check(instance, read_solution(plan, instance)).ok


def test_unmatched_rows_are_counted_and_written(tmp_path: Path) -> None:
    rows = [
        {"street": "Brodway", "bins": 3},
        {"street": "Stout St. 12", "bins": 4},
        {"street": "", "bins": 5},
        {"street": "Logan Street", "bins": 2},
    ]
    file = write_csv(tmp_path / "rows.csv", rows, ";")
    out = tmp_path / "scene.json"
    command = (
        *("scene", DOWNTOWN, "--demand-file", file, "--demand-column", "bins"),
        *("--exclude-name", "logan street", "--capacity", 10, "-o", out),
    )
    ran = arcfleet(*command)
    assert ran.returncode == 0
    assert ran.stderr == (
        f"arcfleet: warning: 3 of 4 rows of {file} found no street to serve, as row 2, "
        "'Brodway': no street of this name (suggestion: Broadway)\n"
    )
    lost = tmp_path / "scene-unmatched.csv"
    assert f"UNMATCHED     3 rows, all in {lost}\n" in ran.stdout
    with lost.open(encoding="utf-8") as stream:
        found = list(csv.DictReader(stream))
    assert [(row["row"], row["value"], row["demand"]) for row in found] == [
        ("2", "Brodway", "3"),
        ("4", "", "5"),
        ("5", "Logan Street", "2"),
    ]
    assert [row["reason"] for row in found] == [
        *("no street of this name", "no name in column street", "excluded"),
    ]
    assert found[0]["suggestion"] == "Broadway"
    assert arcfleet(*command, "--strict").returncode == 1
    facts = json.loads(arcfleet(*command, "--json").stdout)
    assert facts["own_data"] == [
        {
            "role": "demand",
            "file": str(file),
            "join": "name",
            "columns": ["street"],
            "demand_column": "bins",
            "rows": 4,
            "matched": 1,
            "unmatched": 3,
            "streets": 7,
            "demand": 4,
        }
    ]
    assert facts["unmatched_file"] == str(lost)
    # Once the rows are mended, the file says that none is left.
    write_csv(file, [rows[1]])
    assert facts_of(*command[1:])["unmatched_file"] is None
    assert lost.read_text(encoding="utf-8").count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--demand-file", "missing.csv"], "found nothing of that name"),
        (["--demand-file", "rows.csv", "--demand-column", "x"], "expected a column 'x'"),
        (["--demand-file", "rows.csv", "--demand-join", "way"], "to join by way"),
        (["--demand-column", "x"], "expected a demand file with demand_column"),
        (["--serve-file", "broken.csv"], "broken.csv:3: expected 2 columns"),
        (["--exclude-file", "broken.xlsx"], "found a cut or broken one"),
        (["--exclude-name", "Brodway"], "did you mean 'Broadway'?"),
        (["--exclude-kind", "motorway"], "expected the kind of a street"),
        (["--demand-file", "fractions.csv"], "fractions.csv:2: expected whole numbers"),
        (["--demand-file", "out-unmatched.csv"], "whose unmatched rows go there"),
    ],
)
def test_a_mistake_is_one_sentence_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rows.csv").write_text("street,bins\nBroadway,3\n")
    Path("out-unmatched.csv").write_text("street,bins\nBroadway,3\n")
    Path("broken.csv").write_text("street,bins\nBroadway,3\nBroadway\n")
    Path("fractions.csv").write_text("street,demand\nBroadway,0.5\n")
    Path("broken.xlsx").write_bytes(b"PK\x03\x04 nothing")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    ran = arcfleet("scene", DOWNTOWN, "--capacity", 9, *arguments, "-o", "out.json")
    assert message in one_sentence(ran)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


# --- Real towns -------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["herrenberg-minimal", "portland-central-filtered"])
def town(request: pytest.FixtureRequest) -> tuple[Path, StreetMap]:
    path = maps_dir() / "raw_osm" / f"{request.param}.osm.pbf"
    return path, read_map(path)


def lost_in(facts: dict[str, Any]) -> int:
    """Return the demand of unmatched rows: all are on streets that no way leads to."""
    if facts["unmatched_file"] is None:
        return 0
    with Path(facts["unmatched_file"]).open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == sum(table["unmatched"] for table in facts["own_data"])
    assert all("its street cannot be served: " in row["reason"] for row in rows)
    return sum(int(row["demand"]) for row in rows)


def households(street_map: StreetMap, count: int) -> list[dict[str, Any]]:
    """Places a few metres beside the middles of streets that may be served."""
    generator = random.Random(7)
    chosen = generator.sample([s for s in street_map.streets if s.metres > 40], count)
    rows = []
    for street in chosen:
        line = shapely.LineString(street_map.points(street))
        middle = line.interpolate(0.5, normalized=True)
        place = {
            "lon": middle.x + generator.uniform(-2e-5, 2e-5),
            "lat": middle.y + generator.uniform(-2e-5, 2e-5),
        }
        rows.append(place | {"litres": generator.choice([120, 240, 1100])})
    return rows


def test_every_format_gives_the_same_scene(
    town: tuple[Path, StreetMap], tmp_path: Path
) -> None:
    path, street_map = town
    rows = households(street_map, 60)
    shapes = [shapely.Point(row["lon"], row["lat"]) for row in rows]
    litres = [{"litres": row["litres"]} for row in rows]
    files = [
        write_csv(tmp_path / "bins.csv", rows, ";"),
        write_layer(tmp_path / "bins.xlsx", "XLSX", rows),
        *(
            write_layer(tmp_path / name, driver, litres, shapes)
            for driver, name in SHAPED.items()
        ),
    ]
    scenes = []
    for file in files if "herrenberg" in path.name else files[:3]:
        out = tmp_path / "scene.json"
        facts = facts_of(
            *(path, "--demand-file", file, "--capacity", 5000),
            *("--demand-column", "litres", "-o", out),
        )
        (table,) = facts["own_data"]
        assert (table["join"], table["rows"]) == ("place", 60)
        assert table["demand"] + lost_in(facts) == sum(row["litres"] for row in rows)
        scenes.append(read(out))
        assert facts["total_demand"] + facts["lost_demand"] == table["demand"]
    assert all(one == scenes[0] for one in scenes)


def test_ways_and_names_of_a_town_keep_their_totals(
    town: tuple[Path, StreetMap], tmp_path: Path
) -> None:
    path, street_map = town
    ways = Counter(way for s in street_map.streets for way in dict(s.ways))
    rows: list[dict[str, Any]] = [
        {"osm_id": f"way/{way}", "demand": 10 + number}
        for number, way in enumerate(sorted(ways)[::9])
    ]
    out = tmp_path / "scene.json"
    file = write_csv(tmp_path / "ways.csv", rows)
    scene = facts_of(path, "--demand-file", file, "--capacity", 900, "-o", out)
    (table,) = scene["own_data"]
    assert table["join"] == "way"
    assert table["demand"] + lost_in(scene) == sum(row["demand"] for row in rows)
    wanted = {int(row["osm_id"][4:]) for row in rows}
    for link in read(out).links:
        if link.required:
            assert wanted & set(link.ways)
    names = sorted({s.name for s in street_map.streets if s.name})
    listed = [{"name": name.upper(), "demand": 7} for name in names]
    named = write_csv(tmp_path / "names.csv", listed)
    scene = facts_of(path, "--demand-file", named, "--capacity", 900, "-o", out)
    (table,) = scene["own_data"]
    assert table["demand"] + lost_in(scene) == 7 * len(names)
    assert table["matched"] * 7 == table["demand"]
