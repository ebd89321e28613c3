import shutil
from dataclasses import replace
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path

import pypdf
import pytest

from arcfleet import Stop, check, evaluate, make_scene, read_map
from arcfleet.errors import FileError, FormatWarning, OptionError
from arcfleet.instance.instance import Instance
from arcfleet.report import sheets
from arcfleet.report.sheet_pdf import sheet_pdf
from arcfleet.report.sheets import MAP_SIZE, icon_angle, make_sheets, write_sheets
from arcfleet.solution.directions import directions
from arcfleet.solution.drive import route_legs, with_all_paths
from arcfleet.solution.solution import Solution
from tests.directions_follower import Follower, Line
from tests.hauling_plans import hauling_plan, hauling_town
from tests.helpers import solved
from tests.located_instances import cross
from tests.shared_data import maps_dir


class Rows(HTMLParser):
    """The rows of the tables of a sheet: the class of the row, and cells by class."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[tuple[str, dict[str, str]]] = []
        self._cell: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        classes = dict(attrs).get("class") or ""
        if tag == "tr" and classes:
            self.rows.append((classes, {}))
        self._cell = classes.split()[-1] if tag == "td" and classes else None

    def handle_data(self, data: str) -> None:
        if self._cell is not None and self.rows:
            cells = self.rows[-1][1]
            cells[self._cell] = cells.get(self._cell, "") + data

    def handle_endtag(self, tag: str) -> None:
        if tag == "td":
            self._cell = None


def assert_driven(instance: Instance, solution: Solution, folder: Path) -> None:
    """A driver with the sheets in hand drives the paths of the plan."""
    plan = with_all_paths(instance, solution)
    files = sorted(folder.glob("route-*.html"))
    assert len(files) == plan.num_routes
    for file, route in zip(files, plan.routes, strict=True):
        driver = Follower(instance, instance.fleet[route.vehicle].start)
        rows = Rows(file.read_text(encoding="utf-8")).rows
        visits = 0
        for action, cells in rows:
            if action in ("serve", "drive"):
                assert cells["mode"] == {"serve": "work", "drive": "drive"}[action]
                serves = cells["mode"] == "work"
                metres = int(cells["metres"])
                driver.follow(Line(cells["what"], cells["street"], serves, metres))
            elif action == "visit":
                visit = route.visits[visits]
                assert driver.node == instance.facilities[visit.facility].node
                driver.stop()
                visits += 1
        assert driver.path == [(s.link, s.reverse, s.serves) for s in route.path]
        assert visits == len(route.visits)
        assert rows[-1][0] == "return"
        if not route.visits:
            assert int(rows[-1][1]["load"]) == route.load


def test_village(tmp_path: Path, village: Instance, village_plan: Solution) -> None:
    folder = tmp_path / "sheets"
    write_sheets(village, village_plan, folder)
    assert_driven(village, village_plan, folder)


def test_vehicles_and_landfills(tmp_path: Path, village: Instance) -> None:
    town = hauling_town(village)
    plan = hauling_plan(town, (2, 5, 11))
    write_sheets(town, plan, tmp_path)
    assert_driven(town, plan, tmp_path)
    text = (tmp_path / "route-02.html").read_text(encoding="utf-8")
    assert "north &amp; truck" in text
    assert "Landfill &lt;East&gt;" in text
    assert "Empty or refill" in text


@pytest.mark.parametrize(
    ("name", "capacity"),
    [("herrenberg-minimal", 4000), ("portland-central-filtered", 4200)],
)
def test_real_towns(tmp_path: Path, name: str, capacity: int) -> None:
    streets = read_map(maps_dir() / "raw_osm" / f"{name}.osm.pbf")
    with pytest.warns(UserWarning, match="NOT in the instance"):
        instance = make_scene(streets, capacity=capacity, cost="time")
    plan = solved(instance, "ps-efficiency", stop=Stop(iterations=1)).solution
    assert not check(instance, plan).faults
    # Pages of thousands of streets take long to draw as PDF; one route is as good as all.
    first = replace(plan, routes=plan.routes[:1])
    write_sheets(instance, first, tmp_path)
    assert_driven(instance, first, tmp_path)


def test_pdf_says_what_the_page_says(village: Instance, village_plan: Solution) -> None:
    for sheet in make_sheets(village, village_plan):
        pages = pypdf.PdfReader(BytesIO(sheet_pdf(sheet))).pages
        assert len(pages) == len(sheet.pages)
        for page, expected in zip(pages, sheet.pages, strict=True):
            text = page.extract_text()
            assert sheet.title in text
            for _, line in expected.lines:
                assert line.manoeuvre in text
                assert line.street in text
        assert sheet.track in pages[0].extract_text()
        assert sheet_pdf(sheet) == sheet_pdf(sheet)


def test_a_sheet_line_by_line(tmp_path: Path) -> None:
    town = cross()
    links = [replace(x, seconds=1500, reverse_seconds=1500) for x in town.links]
    links[1:] = [replace(link, service_seconds=1500) for link in links[1:]]
    slow = replace(town, links=tuple(links))
    plan = evaluate(slow, [[1, 2]])
    assert not check(slow, plan).faults
    write_sheets(slow, plan, tmp_path)
    text = (tmp_path / "route-01.html").read_text(encoding="utf-8")
    columns = ("what", "street", "mode", "metres", "load", "time")
    lines = [tuple(cells.get(x, "") for x in columns) for _, cells in Rows(text).rows]
    assert lines == [
        ("Leave to the north", "Main", "drive", "111", "0", "0:25"),
        ("Straight on", "Main", "work", "111", "4", "0:50"),
        ("Turn round at the dead end", "Main", "drive", "111", "4", "1:15"),
        ("Left", "Side", "work", "111", "9", "1:40"),
        ("Turn round at the dead end", "Side", "drive", "111", "9", "2:05"),
        ("Left", "Main", "drive", "111", "9", "2:30"),
        ("End of the route", "Depot", "", "", "9", "2:30"),
    ]
    facts = "2 streets to serve · load 9 of 9 · 666 m, 222 m of it working · 2:30 h"
    assert facts in text


def test_a_map_shows_the_lines_of_its_page(
    village: Instance, village_plan: Solution, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sheets, "LINES_PER_PAGE", 5)
    monkeypatch.setattr(sheets, "_is_on_map", lambda _: True)  # tested below
    legs = route_legs(village, village_plan)
    labelled = 0
    for sheet, driven in zip(make_sheets(village, village_plan), legs, strict=True):
        for page in sheet.pages:
            first, last = page.lines[0][1].first, page.lines[-1][1].last
            work, drive = iter(page.map.work), iter(page.map.drive)
            drawn = [next(work if x.step.serves else drive) for x in driven[first:last]]
            assert [*work, *drive] == []
            assert len(page.map.route) == len(driven) - len(drawn)
            for x, y in [point for line in drawn for point in line]:
                assert 0 <= x <= MAP_SIZE[0]
                assert 0 <= y <= MAP_SIZE[1]
            lines = {str(number): line for number, line in page.lines}
            for place, number in page.map.labels:
                line = lines[number]
                if line.first < line.last:
                    assert place == drawn[line.first - first][0]
                    labelled += 1
    assert labelled > 0


@pytest.mark.parametrize("side", ["left", "right"])
def test_arrows_point_to_their_side(side: str) -> None:
    instance = cross()
    (line, *_), *_ = directions(instance, evaluate(instance, [[1, 2]]))
    sign = 1 if side == "right" else -1
    turned, sharp = (
        icon_angle(replace(line, turn=turn)) for turn in (side, f"sharp {side}")
    )
    assert turned is not None
    assert sharp is not None
    assert 45 < sign * turned < 135 < sign * sharp < 180


@pytest.mark.parametrize("limit", range(2, 14))
def test_pages_are_equally_full(
    village: Instance,
    village_plan: Solution,
    monkeypatch: pytest.MonkeyPatch,
    limit: int,
) -> None:
    monkeypatch.setattr(sheets, "LINES_PER_PAGE", limit)
    for sheet in make_sheets(village, village_plan):
        numbers = [[number for number, _ in page.lines] for page in sheet.pages]
        sizes = [len(page) for page in numbers]
        total = sum(sizes)
        assert [x for page in numbers for x in page] == list(range(1, total + 1))
        assert len(sizes) == -(-total // limit)
        assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("name", ["Łódź ulica", "Ленина", "长安街", "銀座どおり", "종로"])
def test_names_in_other_letters(
    village: Instance, village_plan: Solution, name: str
) -> None:
    links = tuple(replace(link, name=name) for link in village.links)
    sheet = make_sheets(replace(village, links=links), village_plan)[0]
    document = sheet_pdf(sheet)
    assert document.startswith(b"%PDF")
    assert name in pypdf.PdfReader(BytesIO(document)).pages[0].extract_text()


def test_qr_code_holds_the_name_of_the_track(
    tmp_path: Path, village: Instance, village_plan: Solution
) -> None:
    import segno

    write_sheets(village, village_plan, tmp_path)
    text = (tmp_path / "route-01.html").read_text(encoding="utf-8")
    code = segno.make("route-01.gpx", error="m", micro=False)
    assert code.svg_inline(scale=1, border=2, omitsize=True) in text


def test_without_the_packages(
    tmp_path: Path,
    village: Instance,
    village_plan: Solution,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sheets, "find_spec", lambda _: None)
    with pytest.warns(FormatWarning, match=r"pip install 'arcfleet\[sheets\]'"):
        write_sheets(village, village_plan, tmp_path)
    assert_driven(village, village_plan, tmp_path)
    assert not list(tmp_path.glob("*.pdf"))


def test_sheets_of_an_earlier_plan(
    tmp_path: Path, village: Instance, village_plan: Solution
) -> None:
    (tmp_path / "route-99.pdf").touch()
    with pytest.warns(FormatWarning, match=r"route-99\.pdf belong to an earlier plan"):
        write_sheets(village, village_plan, tmp_path)


def test_what_cannot_be_written(
    tmp_path: Path, village: Instance, village_plan: Solution
) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(FileError, match="expected a folder for the sheets, found a file"):
        write_sheets(village, village_plan, file)
    with pytest.raises(FileError, match="create it first"):
        write_sheets(village, village_plan, tmp_path / "no" / "sheets")
    with pytest.raises(OptionError, match="expected coordinates to write directions"):
        write_sheets(replace(village, coordinates=()), village_plan, tmp_path / "new")
    assert not (tmp_path / "new").exists()
    shutil.rmtree(tmp_path)


def test_lines_of_many_points_are_drawn_with_few() -> None:
    """A map is drawn as finely as a pen is."""
    line = [(x / 1000, 10 + 0.01 * (x % 2)) for x in range(20_001)]
    thin = sheets._thinned(line)  # noqa: SLF001
    assert (thin[0], thin[-1]) == (line[0], line[-1])
    assert len(thin) <= 20 / 0.2 + 2
    assert set(thin) <= set(line)
    for short in (line[:1], line[:2]):
        assert sheets._thinned(short) == short  # noqa: SLF001


def test_what_lies_beyond_a_map_is_not_drawn(
    village: Instance, village_plan: Solution, monkeypatch: pytest.MonkeyPatch
) -> None:
    def routes() -> list[list[list[sheets.Point]]]:
        made = make_sheets(village, village_plan)
        return [page.map.route for sheet in made for page in sheet.pages]

    monkeypatch.setattr(sheets, "LINES_PER_PAGE", 5)
    shown = routes()
    monkeypatch.setattr(sheets, "_is_on_map", lambda _: True)
    assert sum(map(len, shown)) < sum(map(len, routes()))
    width, height = MAP_SIZE
    for some, every in zip(shown, routes(), strict=True):
        for line in every:
            columns, rows = zip(*line, strict=True)
            beyond = max(columns) < 0 or min(columns) > width
            beyond = beyond or max(rows) < 0 or min(rows) > height
            assert (line in some) is not beyond
