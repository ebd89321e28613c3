import tempfile
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
import xmlschema
from hypothesis import given, settings
from hypothesis import strategies as st
from shapely import LineString, Point

from arcfleet import Stop
from arcfleet.errors import FileError, FormatWarning, OptionError
from arcfleet.instance.instance import Coordinate, Instance
from arcfleet.solution.directions import directions
from arcfleet.solution.drive import joined, route_legs, with_all_paths
from arcfleet.solution.gpx import check_gpx, write_gpx
from arcfleet.solution.solution import Solution
from tests.helpers import solved
from tests.located_instances import located_plans

GPX = "{http://www.topografix.com/GPX/1/1}"
SCHEMA = xmlschema.XMLSchema(Path(__file__).parents[1] / "data" / "gpx-1.1.xsd")


def place(element: ElementTree.Element) -> Coordinate:
    return float(element.attrib["lon"]), float(element.attrib["lat"])


def segments(track: ElementTree.Element) -> list[tuple[str, list[Coordinate]]]:
    """The segments of a track: what is done, and the points."""
    return [
        (
            segment.findtext("{*}extensions/{*}mode", ""),
            [place(point) for point in segment.findall(f"{GPX}trkpt")],
        )
        for segment in track.findall(f"{GPX}trkseg")
    ]


def tracks(path: Path) -> dict[str, list[Coordinate]]:
    """The tracks of a file by name, which the schema must allow."""
    SCHEMA.validate(path)
    found = {}
    for track in ElementTree.parse(path).getroot().findall(f"{GPX}trk"):
        points: list[Coordinate] = []
        for _, line in segments(track):
            assert not points or points[-1] == line[0]  # the drive has no gaps
            points += line[1:] if points else line
        found[track.findtext(f"{GPX}name", "")] = points
    return found


def moves(points: list[Coordinate]) -> list[Coordinate]:
    """Points without those that follow themselves."""
    return [x for i, x in enumerate(points) if i == 0 or x != points[i - 1]]


def rounded(points: list[Coordinate]) -> list[Coordinate]:
    return [(round(x, 7), round(y, 7)) for x, y in points]


def test_village(tmp_path: Path, village: Instance, village_plan: Solution) -> None:
    path = tmp_path / "plan.gpx"
    write_gpx(village, village_plan, path)
    found = tracks(path)
    assert list(found) == [f"Route {i}" for i in range(1, village_plan.num_routes + 1)]
    assert all(line[0] == line[-1] == (5.001834, 50.999908) for line in found.values())
    root = ElementTree.parse(path).getroot()
    depot = root.find(f"{GPX}wpt")
    assert depot is not None
    assert place(depot) == (5.001834, 50.999908)
    assert depot.findtext(f"{GPX}name") == "Depot"
    assert root.findtext(f"{GPX}metadata/{GPX}desc") == village.notice


@settings(max_examples=30)
@given(located_plans())
def test_tracks_follow_the_streets(drawn: tuple[Instance, Solution]) -> None:
    instance, solution = drawn
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan.GPX"
        write_gpx(instance, solution, path)
        found = list(tracks(path).values())
    depot = instance.coordinates[instance.nodes.index(instance.depot)]
    legs = route_legs(instance, with_all_paths(instance, solution))
    driven = [rounded(joined(route, depot)) for route in legs]
    assert [moves(line) for line in found] == [moves(line) for line in driven]


def test_folder_gets_a_file_per_route(
    tmp_path: Path, village: Instance, village_plan: Solution
) -> None:
    write_gpx(village, village_plan, tmp_path)
    together = tmp_path / "all.gpx"
    write_gpx(village, village_plan, together)
    files = sorted(tmp_path.glob("route-*.gpx"))
    assert len(files) == village_plan.num_routes
    for number, file in enumerate(files, start=1):
        assert file.name == f"route-{number:02}.gpx"
        name = f"Route {number}"
        assert tracks(file) == {name: tracks(together)[name]}


def test_a_name_without_suffix_is_a_folder_to_make(
    tmp_path: Path, village: Instance, village_plan: Solution
) -> None:
    write_gpx(village, village_plan, tmp_path / "tracks")
    assert len(list((tmp_path / "tracks").iterdir())) == village_plan.num_routes


def test_folder_with_tracks_of_an_earlier_plan(
    tmp_path: Path, village: Instance, village_plan: Solution
) -> None:
    (tmp_path / "route-99.gpx").touch()
    (tmp_path / "other.gpx").touch()
    with pytest.warns(FormatWarning, match=r"route-99\.gpx belong to an earlier plan"):
        write_gpx(village, village_plan, tmp_path)
    assert (tmp_path / "route-99.gpx").exists()


def test_any_text_fits_into_xml(
    tmp_path: Path, village: Instance, village_plan: Solution
) -> None:
    path = tmp_path / "plan.gpx"
    instance = replace(village, name="<a> & ]]>\0\x1f", comment='"\uffff')
    write_gpx(instance, village_plan, path)
    root = ElementTree.parse(path).getroot()
    assert root.findtext(f"{GPX}metadata/{GPX}name") == "<a> & ]]>\ufffd\ufffd"
    assert root.findtext(f"{GPX}metadata/{GPX}desc") == '"\ufffd'


def test_numbers_are_plain_decimals(tmp_path: Path, village: Instance) -> None:
    path = tmp_path / "plan.gpx"
    places = ((180.0, 1e-7), *village.coordinates[1:])
    first = replace(village, coordinates=places, depot=1)
    write_gpx(first, solved(first, "ps-efficiency", stop=Stop(iterations=1)).solution, path)
    assert '<wpt lat="0.0000001" lon="-180.0000000">' in path.read_text()


def test_what_cannot_be_written(
    tmp_path: Path, village: Instance, village_plan: Solution
) -> None:
    with pytest.raises(OptionError, match=r"ending in \.gpx, or a folder"):
        check_gpx(tmp_path / "tracks.xml")
    with pytest.raises(FileError, match="create it first"):
        check_gpx(tmp_path / "nowhere" / "tracks")
    with pytest.raises(FileError, match="create it first"):
        check_gpx(tmp_path / "nowhere" / "plan.gpx")
    with pytest.raises(OptionError, match="expected coordinates"):
        write_gpx(replace(village, coordinates=()), village_plan, tmp_path / "plan.gpx")
    with pytest.raises(OptionError, match="expected coordinates"):
        write_gpx(replace(village, coordinates=()), village_plan, tmp_path / "tracks")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").touch()
    with pytest.raises(FileError, match="expected a folder for the tracks, found a file"):
        check_gpx(tmp_path / "file")


def test_work_and_driving_are_segments(
    tmp_path: Path, village: Instance, village_plan: Solution
) -> None:
    path = tmp_path / "plan.gpx"
    write_gpx(village, village_plan, path)
    legs = route_legs(village, with_all_paths(village, village_plan))
    for track, route in zip(
        ElementTree.parse(path).getroot().findall(f"{GPX}trk"), legs, strict=True
    ):
        for mode, serves in (("serve", True), ("deadhead", False)):
            drawn = [
                pair for x, line in segments(track) if x == mode for pair in pairwise(line)
            ]
            driven = [
                pair
                for leg in route
                if leg.step.serves == serves
                for pair in pairwise(rounded(list(leg.points)))
                if pair[0] != pair[1]
            ]
            assert drawn == driven


def test_turns_are_waypoints(
    tmp_path: Path, village: Instance, village_plan: Solution
) -> None:
    path = tmp_path / "plan.gpx"
    write_gpx(village, village_plan, path)
    points = ElementTree.parse(path).getroot().findall(f"{GPX}wpt")
    turns = [point for point in points if point.findtext(f"{GPX}type") == "turn"]
    lines = [x for route in directions(village, village_plan) for x in route]
    lines = [line for line in lines if line.action in ("serve", "drive")]
    assert [place(turn) for turn in turns] == rounded([line.place for line in lines])
    assert [turn.findtext(f"{GPX}name") for turn in turns] == [x.manoeuvre for x in lines]


@settings(max_examples=30)
@given(located_plans(), st.floats(0.5, 200))
def test_fewer_points_stay_near_the_streets(
    drawn: tuple[Instance, Solution], metres: float
) -> None:
    instance, solution = drawn
    with tempfile.TemporaryDirectory() as folder:
        exact, fewer = Path(folder) / "exact.gpx", Path(folder) / "fewer.gpx"
        write_gpx(instance, solution, exact)
        write_gpx(instance, solution, fewer, simplify=metres)
        whole, found = tracks(exact), tracks(fewer)
    for name, line in found.items():
        drawn_line = LineString(line)
        most = metres * 1.02 / 69_000  # a degree of longitude
        assert all(drawn_line.distance(Point(x)) <= most for x in whole[name])
        assert set(line) <= set(whole[name])
        assert (line[0], line[-1]) == (whole[name][0], whole[name][-1])
