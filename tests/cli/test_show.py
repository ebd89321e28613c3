import json
from pathlib import Path

import pytest

from arcfleet import read
from arcfleet.instance.files import write
from tests.cli.running import SMALL, VILLAGE, arcfleet, one_sentence, succeeded


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.json"
    succeeded("solve", VILLAGE, "--iterations", 9, "--quiet", "--out", path)
    return path


def test_solve_and_show_write_the_same(tmp_path: Path) -> None:
    names = {"html": "map.html", "geojson": "map.geojson", "gpx": "map.gpx"}
    files = {}
    for folder in ("solved", "shown"):
        (tmp_path / folder).mkdir()
        files[folder] = [
            part
            for option, name in names.items()
            for part in (f"--{option}", tmp_path / folder / name)
        ]
    plan = tmp_path / "plan.sol"  # the text form: street paths are worked out anew
    search = ("--iterations", 9, "--quiet", "--out", plan)
    succeeded("solve", VILLAGE, *search, *files["solved"])
    succeeded("show", VILLAGE, plan, *files["shown"])
    for name in names.values():
        solved, shown = (tmp_path / folder / name for folder in ("solved", "shown"))
        assert solved.read_bytes() == shown.read_bytes()


def test_show_tells_what_it_wrote(tmp_path: Path, plan: Path) -> None:
    page, tracks, picture = (tmp_path / n for n in ("plan.html", "tracks", "plan.svg"))
    tracks.mkdir()
    views = ("--html", page, "--gpx", tracks, "--plot", picture)
    lines = succeeded("show", VILLAGE, plan, *views).splitlines()
    assert [line.split()[0] for line in lines] == ["plot", "html", "gpx"]
    assert lines[1].split()[1:] == [
        str(page),
        f"{page.stat().st_size / 1e3:.0f}",
        "kB",
    ]
    assert len(list(tracks.iterdir())) == len(json.loads(plan.read_text())["routes"])


def test_show_tells_programs_what_it_wrote(tmp_path: Path, plan: Path) -> None:
    page, tracks = tmp_path / "plan.html", tmp_path / "plan.gpx"
    views = ("--gpx", tracks, "--html", page)
    facts = json.loads(succeeded("show", VILLAGE, plan, *views, "--json"))
    assert set(facts.pop("shape")) == {
        *("longest", "shortest", "ratio", "variation", "interleaving")
    }
    assert all(set(route) == {"load", "cost"} for route in facts.pop("routes"))
    assert facts == {
        "instance": "village",
        "faults": [],
        "files": {"html": str(page), "gpx": str(tracks)},
    }
    facts = json.loads(plan.read_text())
    plan.write_text(json.dumps(facts | {"cost": facts["cost"] + 1}))
    ran = arcfleet("show", VILLAGE, plan, "--gpx", tracks, "--json")
    assert ran.returncode == 0
    (fault,) = json.loads(ran.stdout)["faults"]
    assert fault in ran.stderr


def test_nothing_asked_for(plan: Path) -> None:
    assert "expected one of --plot, --html" in one_sentence(arcfleet("show", VILLAGE, plan))


def test_missing_plan(tmp_path: Path) -> None:
    missing = tmp_path / "plan.json"
    line = one_sentence(arcfleet("show", VILLAGE, missing, "--html", tmp_path / "a.html"))
    assert str(missing) in line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("option", "name", "expected"),
    [
        ("--html", "a.pdf", "ending in .html or .htm, got 'a.pdf'"),
        ("--geojson", "a.gpx", "ending in .geojson or .json, got 'a.gpx'"),
        ("--gpx", "a.xml", "ending in .gpx, or a folder for one file per route"),
        ("--html", "nowhere/a.html", "create it first"),
        ("--geojson", "nowhere/a.json", "create it first"),
        ("--gpx", "nowhere/a.gpx", "create it first"),
        ("--kml", "a.kmz", "ending in .kml, got 'a.kmz'"),
        ("--stops", "a.ods", "ending in .csv or .xlsx, got 'a.ods'"),
        ("--sheets", "nowhere/sheets", "create it first"),
    ],
)
def test_bad_files_are_found_before_the_search(
    tmp_path: Path,
    option: str,
    name: str,
    expected: str,
) -> None:
    # An instance that is not there would be the next complaint.
    line = one_sentence(arcfleet("solve", tmp_path / "none.dat", option, tmp_path / name))
    assert expected in line


@pytest.mark.parametrize(
    ("option", "name"),
    [("--geojson", "a.json"), ("--gpx", "a.gpx"), ("--kml", "a.kml"), ("--sheets", "a")],
)
def test_missing_coordinates_are_found_before_the_search(
    tmp_path: Path, option: str, name: str
) -> None:
    # With this start plan missing, only a check before the search comes first.
    start = ("--start", tmp_path / "none.sol")
    line = one_sentence(arcfleet("solve", SMALL, *start, option, tmp_path / name))
    assert "expected coordinates to write directions, GeoJSON, GPX or KML" in line


def test_simplify_without_tracks(tmp_path: Path, plan: Path) -> None:
    files = ("--simplify", 5, "--html", tmp_path / "plan.html")
    line = one_sentence(arcfleet("show", VILLAGE, plan, *files))
    assert "expected --gpx or --kml with --simplify, got neither" in line


def test_one_file_for_two_things(tmp_path: Path, plan: Path) -> None:
    before = plan.read_bytes()
    line = one_sentence(arcfleet("show", VILLAGE, plan, "--geojson", plan))
    assert "expected different files for the solution and --geojson" in line
    assert plan.read_bytes() == before
    out = tmp_path / "a.json"
    line = one_sentence(arcfleet("solve", VILLAGE, "--out", out, "--geojson", out))
    assert "expected different files for --out and --geojson" in line


def test_faulty_plan_is_drawn_with_a_warning(tmp_path: Path, plan: Path) -> None:
    sound, drawn = tmp_path / "sound.gpx", tmp_path / "plan.gpx"
    succeeded("show", VILLAGE, plan, "--gpx", sound)
    facts = json.loads(plan.read_text())
    facts["routes"][0]["path"].pop(1)
    facts["cost"] += 1
    plan.write_text(json.dumps(facts))
    ran = arcfleet("show", VILLAGE, plan, "--gpx", drawn)
    assert ran.returncode == 0
    (line,) = ran.stderr.splitlines()
    assert line.startswith("arcfleet: warning: the plan is not right (")
    assert line.endswith("; see `arcfleet check`")
    # The services are those of the sound plan, and so are the ways between them.
    assert drawn.read_bytes() == sound.read_bytes()


def test_plan_of_another_instance(tmp_path: Path, plan: Path) -> None:
    other = tmp_path / "small.json"
    write(read(SMALL), other)
    assert arcfleet("show", other, plan, "--html", tmp_path / "a.html").returncode == 1
    assert not (tmp_path / "a.html").exists()


def test_what_drivers_get_in_one_folder(tmp_path: Path, plan: Path) -> None:
    folder, table, lines = tmp_path / "drivers", tmp_path / "a.xlsx", tmp_path / "a.kml"
    files = ("--sheets", folder, "--gpx", folder, "--stops", table, "--kml", lines)
    ran = arcfleet("show", VILLAGE, plan, *files, "--simplify", "5", "--json")
    assert ran.returncode == 0, ran.stderr
    names = {file.name for file in folder.iterdir()}
    routes = json.loads(ran.stdout)["routes"]
    for number in range(1, len(routes) + 1):
        assert {f"route-{number:02}.{x}" for x in ("gpx", "html", "pdf")} <= names
    assert len(names) == 3 * len(routes)
    assert table.stat().st_size
    assert lines.stat().st_size
    assert set(json.loads(ran.stdout)["files"]) == {"sheets", "gpx", "stops", "kml"}
