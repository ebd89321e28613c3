import tempfile
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings

from arcfleet import Stop
from arcfleet.errors import FileError, FormatWarning, OptionError
from arcfleet.instance.instance import Coordinate, Instance
from arcfleet.solution.drive import joined, route_legs, with_all_paths
from arcfleet.solution.gpx import check_gpx, write_gpx
from arcfleet.solution.solution import Solution
from tests.helpers import solved
from tests.located_instances import located_plans

GPX = "{http://www.topografix.com/GPX/1/1}"


def place(element: ElementTree.Element) -> Coordinate:
    return float(element.attrib["lon"]), float(element.attrib["lat"])


def tracks(path: Path) -> dict[str, list[Coordinate]]:
    """The tracks of a file by name, after a look at its structure."""
    root = ElementTree.parse(path).getroot()
    assert root.tag == f"{GPX}gpx"
    assert root.attrib == {"version": "1.1", "creator": "arcfleet"}
    # The schema prescribes this order.
    kinds = [child.tag.removeprefix(GPX) for child in root]
    assert kinds == ["metadata", "wpt", *["trk"] * (len(kinds) - 2)]
    found = {}
    for track in root.findall(f"{GPX}trk"):
        names = [child.tag.removeprefix(GPX) for child in track]
        assert names == ["name", "desc", "number", "trkseg"]
        points = track.findall(f"{GPX}trkseg/{GPX}trkpt")
        found[track.findtext(f"{GPX}name", "")] = [place(point) for point in points]
    return found


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
    assert found == [rounded(joined(route, depot)) for route in legs]


def test_folder_gets_a_file_per_route(
    tmp_path: Path, village: Instance, village_plan: Solution
) -> None:
    write_gpx(village, village_plan, tmp_path)
    together = tmp_path / "all.gpx"
    write_gpx(village, village_plan, together)
    files = sorted(tmp_path.glob("route-*.gpx"))
    assert len(files) == village_plan.num_routes < 10
    for number, file in enumerate(files, start=1):
        assert file.name == f"route-{number}.gpx"
        name = f"Route {number}"
        assert tracks(file) == {name: tracks(together)[name]}


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
    with pytest.raises(OptionError, match=r"ending in \.gpx, or an existing folder"):
        check_gpx(tmp_path / "tracks")
    with pytest.raises(FileError, match="create it first"):
        check_gpx(tmp_path / "nowhere" / "plan.gpx")
    with pytest.raises(OptionError, match="expected coordinates"):
        write_gpx(replace(village, coordinates=()), village_plan, tmp_path / "plan.gpx")
    assert list(tmp_path.iterdir()) == []
