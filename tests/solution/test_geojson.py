import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from arcfleet.errors import FileError, OptionError
from arcfleet.instance.instance import Instance
from arcfleet.solution.drive import with_all_paths
from arcfleet.solution.geojson import check_geojson, write_geojson
from arcfleet.solution.solution import Solution
from tests.located_instances import located_plans


def features_of(path: Path, kind: str) -> list[dict[str, Any]]:
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document["type"] == "FeatureCollection"
    assert {feature["type"] for feature in document["features"]} == {"Feature"}
    return [f for f in document["features"] if f["properties"]["kind"] == kind]


def test_village(tmp_path: Path, village: Instance, village_plan: Solution) -> None:
    path = tmp_path / "plan.geojson"
    colours = [f"#0000{number:02x}" for number in range(village_plan.num_routes)]
    write_geojson(village, village_plan, path, colours)
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document["name"] == "village"
    assert document["comment"] == village.comment
    assert document["attribution"] == village.attribution
    (depot,) = features_of(path, "depot")
    assert depot["geometry"] == {"type": "Point", "coordinates": [5.001834, 50.999908]}
    routes = features_of(path, "route")
    assert [f["properties"]["cost"] for f in routes] == [
        r.cost for r in village_plan.routes
    ]
    assert [f["properties"]["load"] for f in routes] == list(village_plan.loads)
    assert [f["properties"]["stroke"] for f in routes] == colours
    # Driving costs a metre each in the village, serving two.
    metres = sum(f["properties"]["metres"] for f in routes)
    assert metres == pytest.approx(
        village_plan.service_cost / 2 + village_plan.deadhead, rel=0.02
    )
    served = [f for f in features_of(path, "leg") if f["properties"]["mode"] == "serve"]
    for number, route in enumerate(village_plan.routes, start=1):
        mine = [f["properties"] for f in served if f["properties"]["route"] == number]
        assert [p["order"] for p in mine] == list(range(1, len(route.services) + 1))
        assert [p["link"] for p in mine] == [service.link for service in route.services]
        assert [p["street"] for p in mine] == [
            village.links[service.link].name for service in route.services
        ]
        assert mine[-1]["load"] == route.load
    assert [p.name for p in tmp_path.iterdir()] == ["plan.geojson"]


@settings(max_examples=30)
@given(located_plans())
def test_lines_follow_the_plan(drawn: tuple[Instance, Solution]) -> None:
    instance, solution = drawn
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan.json"
        write_geojson(instance, solution, path)
        routes, legs = features_of(path, "route"), features_of(path, "leg")
    driven = with_all_paths(instance, solution)
    depot = list(instance.coordinates[instance.nodes.index(instance.depot)])
    assert len(routes) == solution.num_routes
    for number, (feature, route) in enumerate(
        zip(routes, driven.routes, strict=True), start=1
    ):
        line = feature["geometry"]["coordinates"]
        assert line[0] == line[-1] == depot
        mine = [f for f in legs if f["properties"]["route"] == number]
        assert [f["properties"]["mode"] == "serve" for f in mine] == [
            step.serves for step in route.path
        ]
        end = depot
        for leg in mine:
            points = leg["geometry"]["coordinates"]
            assert len(points) >= 2
            assert points[0] == end
            assert all(point in line for point in points)
            end = points[-1]
        assert end == depot


def test_what_cannot_be_written(
    tmp_path: Path, village: Instance, village_plan: Solution
) -> None:
    for name in ("plan.txt", "plan"):
        with pytest.raises(OptionError, match=rf"\.geojson or \.json, got '{name}'"):
            write_geojson(village, village_plan, tmp_path / name)
    with pytest.raises(FileError, match="create it first"):
        check_geojson(tmp_path / "nowhere" / "plan.geojson")
    nowhere = replace(village, coordinates=())
    with pytest.raises(OptionError, match="expected coordinates"):
        write_geojson(nowhere, village_plan, tmp_path / "plan.geojson")
    assert list(tmp_path.iterdir()) == []
