import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from arcfleet.errors import FileError, FormatWarning, OptionError
from arcfleet.instance.instance import Instance
from arcfleet.report import base_map
from arcfleet.report.base_map import tile_at
from arcfleet.report.html_map import write_html
from arcfleet.solution.solution import Solution
from tests.cli.running import VILLAGE, arcfleet, one_sentence, succeeded
from tests.helpers import refused
from tests.report.pmtiles_files import Tile, pmtiles, png

TILES = "https://tile.example.org/{z}/{x}/{y}.png"


def around(instance: Instance, *zooms: int) -> dict[Tile, bytes]:
    """Green tiles below all of an instance, and some beside it."""
    xs, ys = zip(*instance.coordinates, strict=True)
    tiles = {}
    for zoom in zooms:
        left, top = tile_at(min(xs), max(ys), zoom)
        right, bottom = tile_at(max(xs), min(ys), zoom)
        for x in range(left - 3, right + 4):
            for y in range(top - 3, bottom + 4):
                tiles[zoom, x, y] = png("#00ff00")
    return tiles


def page_data(path: Path) -> dict[str, object]:
    text = path.read_text(encoding="utf-8")
    found = re.search(r'id="plan">(.*?)</script>', text, re.DOTALL)
    assert found
    data: dict[str, object] = json.loads(found[1])["base"]
    return data


def test_tiles_of_a_server(
    tmp_path: Path, village: Instance, village_plan: Solution
) -> None:
    page = tmp_path / "plan.html"
    write_html(village, village_plan, page, base_map=TILES)
    assert page_data(page) == {
        "url": TILES,
        "least": 0,
        "most": 19,
        "credit": "Base map: tile.example.org",
    }
    # Images of this server, and nothing else.
    policy = 'img-src data: https://tile.example.org">'
    assert policy in page.read_text(encoding="utf-8")
    write_html(village, village_plan, page, base_map=TILES, base_map_credit="© <them>")
    assert page_data(page)["credit"] == "© <them>"


def test_tiles_of_a_file(tmp_path: Path, village: Instance, village_plan: Solution) -> None:
    file, page = tmp_path / "town.pmtiles", tmp_path / "plan.html"
    tiles = around(village, 12, 13, 14, 15)
    text = '<a href="x">&copy; OpenStreetMap</a> contributors'
    file.write_bytes(pmtiles(tiles, attribution=text))
    write_html(village, village_plan, page, base_map=file)
    base = page_data(page)
    assert base["credit"] == "© OpenStreetMap contributors"
    embedded = base["tiles"]
    assert isinstance(embedded, dict)
    assert base["most"] == 15
    assert {key.split("/")[0] for key in embedded} == {
        str(zoom) for zoom in range(int(str(base["least"])), 16)
    }
    # What lies around the plan, and not the whole file.
    for longitude, latitude in village.coordinates:
        x, y = tile_at(longitude, latitude, 15)
        assert embedded[f"15/{x}/{y}"].startswith("data:image/png;base64,")
    assert len(embedded) < len(tiles)
    policy = 'img-src data:">'
    assert policy in page.read_text(encoding="utf-8")


def test_tiles_up_to_a_size(
    tmp_path: Path,
    village: Instance,
    village_plan: Solution,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file, page = tmp_path / "town.pmtiles", tmp_path / "plan.html"
    file.write_bytes(pmtiles(around(village, 14, 15, 16, 17)))
    monkeypatch.setattr(base_map, "MOST_BYTES", 1500)
    with pytest.warns(FormatWarning, match=r"zoom \d+ to \d+ of 17: with closer"):
        write_html(village, village_plan, page, base_map=file)
    base = page_data(page)
    assert int(str(base["least"])) <= int(str(base["most"])) < 17
    monkeypatch.setattr(base_map, "MOST_BYTES", 10)
    with refused(FileError, "found more; give another file or leave it out"):
        write_html(village, village_plan, page, base_map=file)


def test_a_file_of_another_town(
    tmp_path: Path, village: Instance, village_plan: Solution
) -> None:
    file = tmp_path / "town.pmtiles"
    file.write_bytes(pmtiles({(9, 0, 0): png("#00ff00")}))
    with refused(FileError, "found none; give another file"):
        write_html(village, village_plan, tmp_path / "plan.html", base_map=file)
    assert [path.name for path in tmp_path.iterdir()] == ["town.pmtiles"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("map.png", "expected a URL with {z}, {x} and {y} or a file ending in .pmtiles"),
        ("https://a.org/map.pmtiles", "fetch it and give its path"),
        ("https://a.org/{z}/{x}.png", "expected {z}, {x} and {y} in the URL"),
        ("https://{s}.a.org/{z}/{x}/{y}.png", "the name of one server"),
        ("https://a.org;script-src/{z}/{x}/{y}.png", "the name of one server"),
        ("https://user@a.org/{z}/{x}/{y}.png", "the name of one server"),
    ],
)
def test_sources_that_are_none(
    tmp_path: Path, village: Instance, village_plan: Solution, source: str, message: str
) -> None:
    with refused(OptionError, message):
        write_html(village, village_plan, tmp_path / "plan.html", base_map=source)
    assert list(tmp_path.iterdir()) == []


def test_a_plan_that_is_not_on_the_globe(
    tmp_path: Path, village: Instance, village_plan: Solution
) -> None:
    nowhere = replace(
        village,
        coordinates=(),
        links=tuple(replace(link, geometry=()) for link in village.links),
    )
    with refused(OptionError, "expected longitudes and latitudes to draw a base map"):
        write_html(nowhere, village_plan, tmp_path / "plan.html", base_map=TILES)
    with refused(OptionError, "expected a base map with its attribution"):
        write_html(village, village_plan, tmp_path / "plan.html", base_map_credit="me")


def test_the_command_line(tmp_path: Path) -> None:
    page = tmp_path / "plan.html"
    few = ("--iterations", 5, "--quiet")
    succeeded("solve", VILLAGE, *few, "--html", page, "--base-map", TILES)
    assert page_data(page)["url"] == TILES
    line = one_sentence(arcfleet("solve", VILLAGE, *few, "--base-map", TILES))
    assert "expected --html with a base map" in line
    bad = ("--html", page, "--base-map", tmp_path / "none.pmtiles")
    assert "nothing of that name" in one_sentence(arcfleet("solve", VILLAGE, *few, *bad))
