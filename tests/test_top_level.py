"""What the package offers under its own name."""

import inspect
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given

import arcfleet
from arcfleet.network import Network
from tests.helpers import VILLAGE, make_instance, refused, solved, street
from tests.located_instances import located_plans
from tests.strategies import instances
from tests.towns import town, write_csv_map


class Page(HTMLParser):
    """The text of a page, and whether every element was closed."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.text: list[str] = []
        self.open: list[str] = []
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def svg_of(page: str) -> ET.Element:
    (drawing,) = page.split("<svg")[1:]
    return ET.fromstring("<svg" + drawing.split("</svg>")[0] + "</svg>")


def write_all(result: arcfleet.Result, folder: Path) -> None:
    for write in ("solution", "html", "gpx", "geojson"):
        path = folder / f"plan.{write.replace('solution', 'json')}"
        getattr(arcfleet, f"write_{write}")(result.instance, result.solution, path)
        assert path.stat().st_size


def test_every_name_is_there_and_documented() -> None:
    assert sorted(arcfleet.__all__) == sorted(set(arcfleet.__all__))
    for name in arcfleet.__all__:
        assert getattr(arcfleet, name).__doc__, name


#: What people build on; docs/reference/stable-names.md says what that means. A name that
#: goes is in the changelog.
STABLE = """
ArcfleetError Assignment BatchProgress Bound Box Circle Diff Edit Facility FacilityVisit
Failure FileError FormatWarning Improvement Incumbent Instance InstanceError Instruction
Link Lock METHODS MapError Method OptionError Polygons Problem Progress Repair Report Result
Route RunContext SceneOperations ScenePlace SceneRules SceneVehicle Service Solution
SolutionError Step Stop StopRule Street StreetMap Table Travel Turn TurnPolicy
UnsolvableError Vehicle bound check diagnose diff directions edit evaluate exclude
from_networkx from_pandas keep lock make_scene pin plot read read_map read_solution
read_table register_method repair require solve solve_districts solve_many write
write_diff_html write_geojson write_gpx write_html write_kml write_sheets write_solution
write_stops
"""


def test_the_stable_names_are_pinned() -> None:
    assert sorted(arcfleet.__all__) == sorted(STABLE.split())
    public = {name for name in vars(arcfleet) if not name.startswith("_")}
    modules = {name for name in public if isinstance(getattr(arcfleet, name), ModuleType)}
    assert public - modules == set(arcfleet.__all__)


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (
            arcfleet.solve,
            "instance method stop seconds params seed threads progress start keep lock "
            "model device bound",
        ),
        (arcfleet.bound, "instance stop seconds seed progress"),
        (
            arcfleet.solve_many,
            "instances method stop seconds params seed workers progress model device "
            "executor",
        ),
        (arcfleet.plot, "instance solution path title ax"),
        (arcfleet.from_pandas, "links depot capacity nodes id attributes more"),
        (arcfleet.from_networkx, "graph depot capacity cost demand id attributes more"),
        (
            arcfleet.read_map,
            "path name streets attribution vehicle id merge_chains",
        ),
        (arcfleet.Solution.to_dict, "self instance"),
        (arcfleet.Solution.to_geodataframe, "self instance"),
    ],
)
def test_arguments_of_stable_names_are_pinned(
    function: Callable[..., object], names: str
) -> None:
    assert list(inspect.signature(function).parameters) == names.split()


def test_from_a_map_to_a_page_with_names_of_the_package_alone(tmp_path: Path) -> None:
    file = write_csv_map(town(blocks=8), tmp_path / "town")
    streets = arcfleet.read_map(file)
    instance = arcfleet.make_scene(streets, capacity=3000)
    result = solved(instance, seconds=0.05, seed=1)
    write_all(result, tmp_path)
    assert str(result) == result.summary()
    assert result.instance is instance
    assert result.stopped_by == "seconds"


def test_a_rule_of_a_scene_that_is_none_is_named() -> None:
    streets = town(blocks=4)
    with pytest.raises(arcfleet.OptionError, match="'capcity': did you mean 'capacity'"):
        arcfleet.make_scene(streets, capcity=3000)
    with pytest.raises(arcfleet.OptionError, match="expected the capacity"):
        arcfleet.make_scene(streets)
    rules = arcfleet.SceneRules(capacity=3000)
    assert arcfleet.make_scene(streets, rules, capacity=2999).capacity == 2999
    with pytest.warns(UserWarning, match="more demand than the capacity of 99"):
        assert arcfleet.make_scene(streets, rules, capacity=99).capacity == 99


def test_solve_takes_the_path_of_an_instance() -> None:
    result = solved(VILLAGE, "ps")
    assert result.solution == solved(arcfleet.read(VILLAGE), "ps").solution
    with pytest.raises(arcfleet.OptionError, match="or the path of one, got int"):
        arcfleet.solve(3)  # type: ignore[arg-type]


def test_seconds_are_a_stop_rule_of_their_own() -> None:
    result = solved("example:denver", seconds=0.0)
    assert (result.iterations, result.stopped_by) == (1, "seconds")
    stop = arcfleet.Stop(iterations=1)
    with refused(arcfleet.OptionError, "either seconds or stop, got both"):
        arcfleet.solve(VILLAGE, seconds=1, stop=stop)
    with refused(arcfleet.OptionError, "either seconds or stop, got both"):
        arcfleet.solve_many([VILLAGE], seconds=1, stop=stop)


def test_the_network_is_built_once_however_much_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = []
    original = Network.__init__

    def counted(self: Network, instance: arcfleet.Instance, threads: int = 1) -> None:
        built.append(instance.name)
        original(self, instance, threads)

    monkeypatch.setattr(Network, "__init__", counted)
    instance = arcfleet.read(VILLAGE)
    result = solved(instance, "ps")
    write_all(result, tmp_path)
    assert result._repr_html_()
    assert built == ["village"]


def test_values_print_what_matters() -> None:
    instance = arcfleet.read("example:denver")
    assert str(instance).splitlines() == [
        "instance    denver",
        "nodes       91, depot 176085802",
        "links       150, 81 of them one-way",
        "required    150, total demand 14589",
        "capacity    2500, so at least 6 routes",
    ]
    limited = replace(instance, fleet_limit=7, route_cost=5, name="a\nb")
    assert str(limited).splitlines()[5:] == [
        "fleet       at most 7 routes",
        "route cost  5",
    ]
    assert str(limited).startswith("instance    a?b\n")
    plan = solved(instance, "ps").solution
    first = f"cost {plan.cost}: {plan.service_cost} serving, {plan.deadhead} deadheading"
    assert str(plan).splitlines()[0].startswith(f"{first}, 27.5 km (")
    assert len(str(plan).splitlines()) == 1 + plan.num_routes
    result = solved(instance, "ps")
    assert "Link(" not in repr(result)
    assert "Improvement(" not in repr(result)
    assert repr(result).startswith("Result(method='ps', seed=0, ")
    assert str(result) == result.summary()


def shown(value: arcfleet.Instance | arcfleet.Solution | arcfleet.Result) -> str:
    """Return what a notebook shows."""
    page = value._repr_html_()
    assert page is not None
    return page


def test_a_notebook_shows_summary_and_map() -> None:
    instance = arcfleet.read("example:denver")
    result = solved(instance, "ps")
    page = shown(result)
    assert len(page) < 300_000
    text = Page(page).text
    assert f"{result.cost} metres" in text
    assert instance.attribution in text
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
    namespace = "{http://www.w3.org/2000/svg}"
    routes = svg_of(page).findall(f"{namespace}g")
    assert len(routes) == result.solution.num_routes
    streets = svg_of(shown(instance))
    assert len(streets.findall(f"{namespace}path")) == 1  # all of them are required
    assert Page(shown(result.solution)).text[4:7] != []


def test_a_notebook_shows_length_and_time_of_every_route() -> None:
    instance = arcfleet.read(VILLAGE)
    links = tuple(replace(x, metres=300, seconds=60) for x in instance.links)
    result = solved(replace(instance, links=links), "ps")
    text = Page(shown(result)).text
    assert {"distance", "duration"} <= set(text)
    for route in result.solution.routes:
        assert route.travel is not None
        (length, part), (time, rest) = route.travel.texts().values()
        assert f"{length} ({part} deadhead)" in text
        assert f"{time} ({rest} deadhead)" in text
    # The table has the routes; the lines of the summary are not repeated.
    assert "route 1" not in text
    assert "route 1     load" in result.summary()


@given(plan=located_plans())
def test_a_notebook_shows_any_plan(
    plan: tuple[arcfleet.Instance, arcfleet.Solution],
) -> None:
    instance, solution = plan
    result = replace(solved(instance, "ps"), solution=solution)
    Page(shown(result))
    svg_of(shown(result))


@given(instance=instances())
def test_a_notebook_shows_any_instance(instance: arcfleet.Instance) -> None:
    page = shown(instance)
    Page(page)
    if "<svg" in page:
        svg_of(page)


def test_a_picture_that_fails_leaves_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object) -> None:
        raise ValueError("<no> places")

    result = solved(arcfleet.read(VILLAGE), "ps")
    monkeypatch.setattr("arcfleet.report.notebook.link_shapes", broken)
    text = Page(shown(result)).text
    assert "no picture: ValueError('<no> places')" in text
    assert str(result.cost) in text


def test_what_is_too_large_to_draw_is_shown_as_a_table() -> None:
    page = shown(make_instance(*(street(i, i + 1) for i in range(499)), name="<b>"))
    assert "<svg" not in page
    assert "<b>" in Page(page).text
