import tempfile
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings

from arcfleet.errors import OptionError
from arcfleet.instance.instance import Instance
from arcfleet.solution.directions import directions
from arcfleet.solution.drive import route_legs, with_all_paths
from arcfleet.solution.kml import write_kml
from arcfleet.solution.solution import Solution
from tests.located_instances import located_plans

KML = "{http://www.opengis.net/kml/2.2}"


@settings(max_examples=30)
@given(located_plans())
def test_lines_follow_the_streets(drawn: tuple[Instance, Solution]) -> None:
    instance, solution = drawn
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan.kml"
        write_kml(instance, solution, path)
        document = ElementTree.parse(path).getroot().find(f"{KML}Document")
    assert document is not None
    routes = document.findall(f"{KML}Folder")
    legs = route_legs(instance, with_all_paths(instance, solution))
    cues = directions(instance, solution)
    assert len(routes) == len(legs)
    for route, driven, lines in zip(routes, legs, cues, strict=True):
        found = [
            tuple(float(x) for x in point.split(","))
            for line in route.iter(f"{KML}LineString")
            for point in line.findtext(f"{KML}coordinates", "").split()
        ]
        expected = [(round(x, 7), round(y, 7)) for leg in driven for x, y in leg.points]
        assert _moves(found) == _moves(expected)
        texts = [x.text for x in route.findall(f"{KML}Folder//{KML}description")]
        assert texts == [str(line) for line in lines]


def _moves(points: Sequence[tuple[float, ...]]) -> list[tuple[float, ...]]:
    return [x for i, x in enumerate(points) if i == 0 or x != points[i - 1]]


def test_colours_and_names(
    tmp_path: Path, village: Instance, village_plan: Solution
) -> None:
    path = tmp_path / "plan.kml"
    write_kml(village, village_plan, path, ["#123456"] * village_plan.num_routes)
    root = ElementTree.parse(path).getroot()
    colours = {x.text for x in root.iter(f"{KML}color")}
    assert colours == {"ff563412"}  # blue, green, red
    styles = {f"#{x.attrib['id']}" for x in root.iter(f"{KML}Style")}
    assert {x.text for x in root.iter(f"{KML}styleUrl")} <= styles
    with pytest.raises(OptionError, match=r"a KML file ending in \.kml"):
        write_kml(village, village_plan, tmp_path / "plan.xml")
