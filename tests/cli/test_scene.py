import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from arcfleet import Instance, diagnose, read, write
from arcfleet.solution.travel import duration_text, length_text
from tests.cli.running import ROOT, arcfleet, in_a_new_process, one_sentence, succeeded
from tests.shared_data import maps_dir
from tests.streets.test_street_facts import write_lines

DENVER = ROOT / "src" / "arcfleet" / "instance" / "examples" / "denver.json"
#: The town without its dead end.
SQUARE = ("--capacity", 3000, "--bbox", "-71.001,41.9,-70.985,42.02")
ATTRIBUTION = "© OpenStreetMap contributors, ODbL 1.0"


@pytest.fixture
def town(tmp_path: Path) -> Path:
    """Write a square of two-way streets west of Greenwich, with a one-way dead end."""
    corners = {1: (-71.0, 42.0), 2: (-70.99, 42.0), 3: (-70.99, 42.01), 4: (-71.0, 42.01)}
    corners[5] = (-70.98, 42.01)
    nodes = [f"{n},{lon},{lat}\n" for n, (lon, lat) in corners.items()]
    edges = [
        "1,2,827.0,0,residential,South Street,\n",
        "2,3,1110.7,0,residential,East Street,-70.99 42.0;-70.9895 42.005;-70.99 42.01\n",
        "3,4,826.9,0,primary,North Street,\n",
        "4,1,1110.7,1,residential,West Street,\n",
        "3,5,826.9,1,primary,Way Out,\n",
    ]
    folder = tmp_path / "maps"
    folder.mkdir()
    (folder / "town.nodes.csv").write_text("id,lon,lat\n" + "".join(nodes))
    (folder / "town.edges.csv").write_text(
        "u,v,length_m,oneway,highway,name,geometry\n" + "".join(edges)
    )
    return folder / "town"


def test_the_shortest_command(town: Path, tmp_path: Path) -> None:
    out = tmp_path / "scene.json"
    ran = in_a_new_process("scene", town, "--capacity", 3000, "-o", out)
    assert ran.returncode == 0
    assert ran.stdout.splitlines() == [
        "scene         town",
        "serves        4 of 5 streets, 3.9 of 4.7 km",
        "drives on     4 streets, 3.9 km, 1 one-way, between 4 junctions",
        "depot         3, the most central junction",
        "tasks         4, total demand 3876",
        "least routes  2 of capacity 3000",
        "turns         U-turns at dead ends only",
        "dropped       1 junction and 1 street (0.8 km) without a way there and back",
        f"attribution   {ATTRIBUTION}",
        "NOT SERVED    street 3>5 (Way Out), 827 m: no way back",
    ]
    assert ran.stderr.splitlines() == [
        "arcfleet: warning: 1 of 5 streets to serve (0.8 km) is NOT in the instance, "
        "because no way leads there and back: check the one-way streets and turns of the "
        "map there"
    ]
    instance = read(out)
    assert instance.attribution == ATTRIBUTION
    assert instance.links[1].geometry[1] == (-70.9895, 42.005)
    assert arcfleet("info", out).returncode == 0
    plan = tmp_path / "plan.json"
    assert arcfleet("solve", out, "--iterations", 20, "--out", plan).returncode == 0
    assert arcfleet("check", out, plan).stdout.startswith("ok: ")


def test_ids_and_chains(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "own.geojson")
    options = ("--capacity", 9000, "--id", "Segment", "-o", tmp_path / "x.json")
    assert arcfleet("scene", file, *options).returncode == 0
    merged = read(tmp_path / "x.json")
    assert {link.ids for link in merged.links} == {("north-1", 17), ("back",)}
    assert arcfleet("scene", file, *options, "--no-merge-chains").returncode == 0
    apart = read(tmp_path / "x.json")
    assert {link.ids for link in apart.links} == {("north-1",), (17,), (), ("back",)}
    ran = arcfleet("scene", file, "--capacity", 9, "--id", "x", "-o", tmp_path / "y.json")
    assert "expected ids of streets in a column 'x', found none" in one_sentence(ran)


def test_all_options_together(town: Path, tmp_path: Path) -> None:
    out = tmp_path / "scene.json"
    ran = arcfleet(
        "scene",
        *(f"{town}.edges.csv", "--bbox", "-71.001,41.9,-70.985,42.02"),
        *("--depot", "-70.989,42.009", "--capacity", 6, "--demand", "5-9"),
        *("--serve-kind", "residential,unclassified,primary", "--serve-name", "Way Out"),
        *("--ignore-one-way", "--both-sides", "--oversized", "split", "--merge", 15),
        *("--seed", 3, "--name", "square", "-o", out, "--json"),
    )
    assert "expected the kind of a street" in one_sentence(ran)
    assert not out.exists()
    ran = arcfleet(
        "scene",
        *(f"{town}.edges.csv", "--bbox", "-71.001,41.9,-70.985,42.02"),
        *("--depot", "-70.989,42.009", "--capacity", 3, "--demand", "5-9"),
        *("--serve-kind", "residential,primary", "--serve-name", "south street"),
        *("--ignore-one-way", "--both-sides", "--oversized", "split", "--merge", 15),
        *("--seed", 3, "--name", "square", "-o", out, "--json"),
        *("--margin", 0, "--border", "leave", "--strict"),
    )
    assert ran.returncode == 0
    assert ran.stderr == (
        "arcfleet: warning: 1 street has more demand than the capacity of 3 and is split "
        "into up to 2 parts: check that the capacity is in the unit of the demand "
        "(5 to 9 for each street)\n"
    )
    facts = json.loads(ran.stdout)
    instance = read(out)
    assert (facts["name"], facts["depot"]) == ("square", 3)
    assert facts["comment"] == instance.comment == ""
    assert facts["attribution"] == instance.attribution == ATTRIBUTION
    assert 100 < facts["depot_metres"] < 150
    assert (facts["junctions"], facts["streets"], facts["one_way"]) == (4, 4, 0)
    assert facts["outside"] == {"junctions": 1, "streets": 1, "metres": 827}
    assert facts["cut_off"] == {"junctions": 0, "streets": 0, "metres": 0}
    assert facts["to_serve"] == facts["served"] == {"streets": 4, "metres": 3875}
    assert (facts["unserved"], facts["driven_only"]) == ([], {})
    assert facts["crossing"] == {"streets": 1, "metres": 827}
    assert len(facts["warnings"]) == 1
    assert facts["merged_away"] == {"junctions": 0, "streets": 0}
    assert facts["tasks"] == len(instance.required) == len(instance.links)
    assert facts["total_demand"] == instance.total_demand
    assert facts["least_routes"] == -(-instance.total_demand // 3)
    assert facts["split_streets"] == (len(instance.links) - 8) // 2 > 0
    assert diagnose(instance) == ()


def test_a_lost_street_ends_a_strict_run(town: Path, tmp_path: Path) -> None:
    out = tmp_path / "scene.json"
    scene = ("scene", town, "--capacity", 3000, "-o", out)
    ran = arcfleet(*scene, "--strict", "--json")
    assert ran.returncode == 1
    assert len(read(out).required) == 4  # written all the same
    assert ran.stderr.splitlines()[-1].startswith("arcfleet: warning: 1 of 5 streets")
    assert json.loads(ran.stdout)["unserved"] == [
        {
            "name": "Way Out",
            "kind": "primary",
            "tail": 3,
            "head": 5,
            "metres": 827,
            "reason": "no way back",
        }
    ]
    assert arcfleet(*scene, "--strict", "--ignore-one-way").returncode == 0
    assert arcfleet(*scene, "--strict", "--serve-kind", "residential").returncode == 0


def test_the_border_line_names_no_option_that_is_given(town: Path, tmp_path: Path) -> None:
    box = ("--bbox", "-71.001,41.9,-70.987,42.02", "--capacity", 3000)
    scene = ("scene", town, *box, "--ignore-one-way", "-o", tmp_path / "scene.json")
    hint = "border        1 street across it not served; --border middle serves those whose"
    assert hint in arcfleet(*scene).stdout
    there = "border        1 street across it with the middle outside, not served\n"
    assert there in arcfleet(*scene, "--border", "middle").stdout


def test_many_lost_streets_are_counted(tmp_path: Path) -> None:
    places = [f"{n},{n / 1000},0\n" for n in range(1, 20)]
    ways = [f"1,{n},{n * 10},1,residential,Street {n},\n" for n in range(3, 20)]
    (tmp_path / "fan.nodes.csv").write_text("id,lon,lat\n" + "".join(places))
    (tmp_path / "fan.edges.csv").write_text(
        "u,v,length_m,oneway,highway,name,geometry\n1,2,50,0,motorway_link,,\n"
        "1,2,60,0,road,,\n" + "".join(ways)
    )
    out = tmp_path / "scene.json"
    ran = arcfleet("scene", tmp_path / "fan", "--capacity", 3000, "-o", out)
    lines = ran.stdout.splitlines()
    assert "serves        1 of 18 streets, 0.1 of 1.9 km" in lines
    assert "driven only   1 motorway_link; --serve-kind all serves them, too" in lines
    listed = lines[next(i for i, x in enumerate(lines) if x.startswith("NOT SERVED")) :]
    assert len(listed) == 11
    assert listed[0].endswith("street 1>19 (Street 19), 190 m: no way back")
    assert listed[-1].strip() == "and 7 more (--json lists all)"
    assert "17 of 18 streets to serve (1.9 km) are NOT in the instance" in ran.stderr


def test_the_kinds_to_read(town: Path, tmp_path: Path) -> None:
    out = tmp_path / "scene.json"
    scene = ("scene", town, "--capacity", 3000, "--ignore-one-way", "-o", out, "--json")
    for kinds, streets in (
        (["residential"], 3),
        (["primary"], 2),
        (["residential,primary"], 5),
        (["residential", "primary"], 5),
    ):
        options = [word for kind in kinds for word in ("--streets", kind)]
        ran = arcfleet(*scene, *options)
        assert ran.returncode == 0, ran.stderr
        assert json.loads(ran.stdout)["streets"] == streets
    out.unlink()
    error = one_sentence(arcfleet(*scene, "--streets", "residential,servise"))
    assert "got 'servise', of which it has none" in error
    assert "kind that is wanted" in one_sentence(arcfleet(*scene, "--streets", "service"))
    assert not out.exists()


def test_the_kinds_to_read_of_an_extract(tmp_path: Path) -> None:
    extract = maps_dir() / "raw_osm" / "herrenberg-minimal.osm.pbf"
    out = tmp_path / "scene.json"
    streets = []
    for options in ([], ["--streets", "residential"]):
        ran = arcfleet("scene", extract, "--capacity", 900, *options, "-o", out, "--json")
        assert ran.returncode == 0, ran.stderr
        streets.append(json.loads(ran.stdout)["streets"])
    assert 0 < streets[1] < streets[0]


def test_a_scene_and_its_plan_as_a_map(town: Path, tmp_path: Path) -> None:
    scene, page = tmp_path / "scene.json", tmp_path / "map.html"
    assert arcfleet("scene", town, "--capacity", 3000, "-o", scene).returncode == 0
    ran = arcfleet("solve", scene, "--time", 0.1, "--html", page)
    assert ran.returncode == 0, ran.stderr
    text = page.read_text(encoding="utf-8")
    assert "East Street" in text
    assert "OpenStreetMap contributors" in text


def test_a_polygon_and_a_circle(town: Path, tmp_path: Path) -> None:
    ring = [[-71.1, 41.9], [-70.985, 41.9], [-70.985, 42.1], [-71.1, 42.1], [-71.1, 41.9]]
    area = tmp_path / "area.geojson"
    area.write_text(json.dumps({"type": "Polygon", "coordinates": [ring]}))
    out = tmp_path / "scene.json"
    for option, value in (("--polygon", str(area)), ("--around", "-70.995,42.005,800")):
        scene = ("scene", town, "--capacity", 900, option, value, "-o", out, "--json")
        for drive, outside in (("--margin", 0), 1), (("--drive-area", area), 1), ((), 0):
            ran = arcfleet(*scene, *drive)
            assert ran.returncode == 0, ran.stderr
            facts = json.loads(ran.stdout)
            assert facts["outside"]["junctions"] == outside
            assert facts["to_serve"]["streets"] == 4
    ran = arcfleet("scene", town, "--capacity", 3000, "--polygon", area, "-o", area)
    assert "expected another file than the input" in one_sentence(ran)
    ran = arcfleet("scene", town, *SQUARE, "-o", town.with_name("square.dat"))
    assert "write .json, or add --turns free" in one_sentence(ran)
    assert not town.with_name("square.dat").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--around", "10,50,500"], "expected junctions in 500 m around 10,50"),
        (["--depot", "-70.9,42.0"], "m from the nearest one"),
        (["--depot", "42.0,-71.0"], "which looks like LAT,LON"),
        (["--serve-kind", "resident"], "did you mean 'residential'?"),
        (["--serve-name", "Main Street"], "did you mean"),
        (["--oversized", "refuse", "--capacity", "1000"], "2-3 (East Street)"),
        (["--bbox", "-70,42,-71,43"], "west < east"),
        (["--polygon", "missing.geojson"], "found nothing of that name"),
        (["--demand", "9-5"], "expected the least demand before the largest"),
        (["--margin", "500"], "expected an area to serve with margin, got none"),
        (["--drive-area", "missing.geojson"], "found nothing of that name"),
    ],
)
def test_errors_are_one_sentence_and_nothing_is_written(
    town: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    out = tmp_path / "scene.json"
    ran = arcfleet("scene", town, "--capacity", 3000, *arguments, "-o", out)
    assert message in one_sentence(ran)
    assert [path.name for path in tmp_path.iterdir()] == ["maps"]


def test_outputs_that_cannot_be(town: Path, tmp_path: Path) -> None:
    scene = ("scene", town, "--capacity", 3000, "-o")
    assert "create it first" in one_sentence(arcfleet(*scene, tmp_path / "no" / "s.json"))
    assert "found a directory" in one_sentence(arcfleet(*scene, tmp_path))
    assert "expected a file name in" in one_sentence(arcfleet(*scene, tmp_path / "s.yaml"))
    own = Path(f"{town}.nodes.csv")
    before = own.read_bytes()
    ran = arcfleet("scene", own, "--capacity", 3000, "-o", own)
    assert "expected another file than the input" in one_sentence(ran)
    assert own.read_bytes() == before
    assert "nowhere" in one_sentence(
        arcfleet("scene", tmp_path / "nowhere", "--capacity", 9, "-o", tmp_path / "s.json")
    )
    assert [path.name for path in tmp_path.iterdir()] == ["maps"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--capacity"),
        (["--capacity", "0"], "at least 1"),
        (["--capacity", "-5"], "--capacity"),
        (["--capacity", "5", "--demand", "five"], "expected length, a whole number"),
        (["--capacity", "5", "--demand", "5-"], "expected length, a whole number"),
        (["--capacity", "5", "--bbox", "-71,42,-70"], "expected W,S,E,N, got '-71,42,-70'"),
        (["--capacity", "5", "--depot", "-71,nan"], "expected LON,LAT"),
        (["--capacity", "5", "--depot", "here,there"], "expected LON,LAT"),
        (["--capacity", "5", "--merge", "-3"], "--merge"),
        (["--capacity", "5", "--oversized", "drop"], "--oversized"),
        (["--capacity", "5", "--turns", "lef=3"], "got 'lef=3': did you mean 'left='?"),
        (["--capacity", "5", "--turns", "left=x"], "expected left to be a whole number"),
        (["--capacity", "5", "--vehicle", "lorry"], "got 'lorry': known are hgv"),
        (["--capacity", "5", "--around", "1,2,3", "--bbox", "1,2,3,4"], "not allowed with"),
        (
            ["--capacity", "5", "--margin", "1", "--drive-area", "a.json"],
            "not allowed with",
        ),
        (["--capacity", "5", "--margin", "-1"], "--margin"),
        (["--capacity", "5", "--border", "both"], "--border"),
    ],
)
def test_wrong_usage_exits_2(
    town: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    out = tmp_path / "scene.json"
    ran = arcfleet("scene", town, *arguments, "-o", out)
    assert ran.returncode == 2
    assert message in ran.stderr.splitlines()[-1]
    assert not out.exists()


def test_an_openstreetmap_extract(tmp_path: Path) -> None:
    extract = maps_dir() / "raw_osm" / "herrenberg-minimal.osm.pbf"
    out = tmp_path / "scene.json"
    arguments = ("--capacity", 3000, "--both-sides", "--serve-kind", "residential")
    ran = arcfleet("scene", extract, *arguments, "-o", out, "--json")
    assert ran.returncode == 0
    facts = json.loads(ran.stdout)
    instance = read(out)
    assert instance.attribution == ATTRIBUTION
    assert diagnose(instance) == ()
    assert 0 < facts["tasks"] == len(instance.required) < len(instance.links)
    assert facts["streets"] > 400
    assert facts["cut_off"]["streets"] > 0
    assert all(instance.links[i].one_way for i in instance.required)
    solved = arcfleet("solve", out, "--method", "ps", "--json")
    assert json.loads(solved.stdout)["num_routes"] >= facts["least_routes"]


def test_turns_are_those_of_the_signs_unless_told_otherwise(tmp_path: Path) -> None:
    extract = maps_dir() / "raw_osm" / "herrenberg-minimal.osm.pbf"
    out = tmp_path / "scene.json"
    scene = ("scene", extract, "--capacity", 3000, "-o", out)
    ran = arcfleet(*scene)
    assert (
        "turns         U-turns at dead ends only; 35 of 40 restrictions obeyed for hgv "
        "(37 turns forbidden in the scene)\n"
        "not obeyed    5 between streets that are not read\n"
    ) in ran.stdout
    assert read(out).u_turns == "dead-ends"
    facts = json.loads(arcfleet(*scene, "--json").stdout)["turns"]
    assert facts["restrictions"] == {
        "obeyed": 35,
        "conditional": 0,
        "in_map": 40,
        "vehicle": "hgv",
        "skipped": {"not read": 5},
        "named": [],
    }
    assert (facts["u_turns"], facts["signed"], facts["with_penalty"]) == (
        "dead-ends",
        37,
        0,
    )
    instance = read(out)
    assert facts["forbidden"] == len(instance.turns) >= 37
    ran = arcfleet(*scene, "--turns", "free,left=15,u-turn-penalty=9")
    assert (
        "turns         U-turns everywhere (+9); left +15; none of 40 restrictions obeyed, "
        "as asked\n"
    ) in ran.stdout
    assert {turn.penalty for turn in read(out).turns} == {15}
    assert arcfleet(*scene, "--turns", "free").returncode == 0
    assert not read(out).has_turn_rules
    ran = arcfleet(*scene, "--vehicle", "bicycle", "--json")
    skipped = json.loads(ran.stdout)["turns"]["restrictions"]["skipped"]
    assert skipped["excepted"] > 0


def test_the_example_is_a_part_of_denver() -> None:
    instance = read("example:denver")
    check_example(instance)
    assert diagnose(instance) == ()
    places = dict(zip(instance.nodes, instance.coordinates, strict=True))
    for link in instance.links:
        assert link.cost == link.demand >= 1
        if link.geometry:
            assert link.geometry[0] == places[link.tail]
            assert link.geometry[-1] == places[link.head]


def check_example(instance: Instance) -> None:
    assert instance.comment == "downtown Denver as carried by nrel.routee.compass 0.19.5"
    assert instance.attribution == ATTRIBUTION
    assert 100 <= len(instance.links) <= 150
    assert 5 <= -(-instance.total_demand // instance.capacity) <= 8
    assert any(link.one_way for link in instance.links)
    assert not all(link.one_way for link in instance.links)
    assert any(len(link.geometry) > 2 for link in instance.links)
    assert sum(bool(link.name) for link in instance.links) > 0.9 * len(instance.links)


def test_the_example_is_made_by_the_command(tmp_path: Path) -> None:
    """How `example:denver` was made, from street data that nrel.routee.compass carries."""
    made = tmp_path / "denver.json"
    ran = arcfleet(
        *("scene", maps_dir() / "denver_downtown"),
        *("--bbox", "-104.992,39.744,-104.979,39.753", "--capacity", 2500),
        *("--margin", 0, "--turns", "free"),
        *("--name", "denver", "-o", made),
    )
    assert ran.returncode == 0, ran.stderr
    # Only the origin of the data was written by hand.
    comment = "downtown Denver as carried by nrel.routee.compass 0.19.5"
    write(replace(read(made), comment=comment), made)
    assert made.read_bytes() == DENVER.read_bytes()


def test_costs_of_time(town: Path, tmp_path: Path) -> None:
    out = tmp_path / "scene.json"
    options = (
        "--cost",
        "time",
        "--speed",
        "residential=20,primary=36",
        "--speed",
        "road=9",
    )
    service = ("--service-speed", 10, "--service-time", 5)
    text = succeeded("scene", town, *SQUARE, *options, *service, "-o", out)
    line = "costs         seconds, by maxspeed on 0 streets, by their kind on the others"
    assert line in text.splitlines()
    instance = read(out)
    assert instance.cost_unit == "seconds"
    north = instance.links[2]
    assert (north.cost, north.metres, north.seconds) == (83, 827, 83)
    assert north.service_cost == north.service_seconds == round(826.9 * 0.36 + 5)
    facts = json.loads(succeeded("scene", town, *SQUARE, *options, "-o", out, "--json"))
    assert (facts["cost_unit"], facts["streets_with_limit"]) == ("seconds", 0)
    succeeded("scene", town, *SQUARE, "-o", out)
    assert read(out).cost_unit == "metres"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--speed", "residential=0"), "expected the speed of residential in km/h between"),
        (("--speed", "resdential=30"), "did you mean 'residential'?"),
        (("--service-speed", "0"), "expected the service speed in km/h between 1 and 200"),
        (("--service-time", "-1"), "expected the service time in seconds between 0 and"),
    ],
)
def test_speeds_that_make_no_sense(
    town: Path, tmp_path: Path, options: tuple[str, str], message: str
) -> None:
    out = tmp_path / "scene.json"
    ran = arcfleet("scene", town, *SQUARE, *options, "-o", out)
    assert message in one_sentence(ran)
    assert not out.exists()


def test_speeds_are_written_with_their_kinds(town: Path, tmp_path: Path) -> None:
    out = tmp_path / "scene.json"
    ran = arcfleet("scene", town, *SQUARE, "--speed", "fast", "-o", out)
    assert ran.returncode == 2
    assert "as in residential=20,primary=50, got 'fast'" in ran.stderr


def test_kilometres_and_hours_in_all_commands(town: Path, tmp_path: Path) -> None:
    scene, plan = tmp_path / "scene.json", tmp_path / "plan.json"
    succeeded("scene", town, *SQUARE, "--cost", "time", "-o", scene)
    search = ("--iterations", 20, "--quiet", "--out", plan)
    text = succeeded("solve", scene, *search)
    names = [line[:12].strip() for line in text.splitlines()]
    assert names[3:8] == ["deadhead", "distance", "duration", "routes", "loads"]
    assert names[8:] == ["balance", "interleave", "time", "route 1", "route 2"]
    assert re.search(r"^cost +\d+ seconds$", text, re.M)
    facts = json.loads(succeeded("solve", scene, *search, "--json"))
    travel = facts["travel"]
    assert set(travel) == {"metres", "deadhead_metres", "seconds", "deadhead_seconds"}
    assert travel["seconds"] == facts["cost"]
    assert travel["metres"] == sum(route["travel"]["metres"] for route in facts["routes"])
    figures = f"{length_text(travel['metres'])}, {duration_text(travel['seconds'])}"
    cost = f"cost {facts['cost']}, 2 routes, {figures}"
    assert succeeded("check", scene, plan) == f"ok: {cost}\n"
    checked = json.loads(succeeded("check", scene, plan, "--json"))
    assert checked["travel"] == travel
    assert [r["travel"] for r in checked["routes"]] == [
        r["travel"] for r in facts["routes"]
    ]
    page = tmp_path / "plan.html"
    assert f"plan     {cost}\n" in succeeded("show", scene, plan, "--html", page)
    shown = json.loads(succeeded("show", scene, plan, "--html", page, "--json"))
    assert shown["travel"] == travel
    # The text form of a plan has no street paths: they are computed.
    succeeded("solve", scene, *search[:-1], tmp_path / "plan.sol")
    assert " km, " in succeeded("check", scene, tmp_path / "plan.sol")
    table = succeeded("compare", scene, "--methods", "ps,ps-random-rule", "--time", 1)
    header, _, *rows = table.splitlines()
    assert header.split()[:6] == [
        *("method", "cost", "deadhead", "routes", "distance", "duration"),
    ]
    assert all(" km " in row and " min" in row for row in rows)


def test_a_map_without_turn_restrictions(tmp_path: Path) -> None:
    extract, out = tmp_path / "lane.osm", tmp_path / "scene.json"
    extract.write_text(
        '<osm version="0.6"><node id="1" lon="8" lat="9"/><node id="2" lon="8.1" lat="9"/>'
        '<way id="3"><nd ref="1"/><nd ref="2"/><tag k="highway" v="residential"/></way>'
        "</osm>"
    )
    lines = succeeded("scene", extract, "--capacity", 99000, "-o", out).splitlines()
    rules = "U-turns at dead ends only; the map has no turn restrictions"
    assert f"turns         {rules}" in lines


def test_a_scene_with_depots_facilities_and_a_shift(town: Path, tmp_path: Path) -> None:
    out = tmp_path / "scene.json"
    text = succeeded(
        *("scene", town, *SQUARE, "--cost", "time", "--shift", "2h", "-o", out),
        *("--depot", "-71.0,42.0", "--depot", "-70.99,42.01"),
        *("--facility", "-71.0,42.01=60", "--fewest-routes"),
    )
    assert "operations    a longest route, vehicle types, facilities, fewest" in text
    instance = read(out)
    assert [x.start for x in instance.vehicles] == [1, 3]
    assert [x.max_route_cost for x in instance.vehicles] == [7200, 7200]
    assert [(x.node, x.cost) for x in instance.facilities] == [(4, 60)]
    assert diagnose(instance) == ()
    trips = -(-instance.total_demand // instance.capacity)
    assert trips > instance.least_routes
    assert f"least trips   {trips} of capacity {instance.capacity}" in text.splitlines()
    assert f"least trips   {trips}" in succeeded("info", out).splitlines()


def test_vehicle_types_of_a_scene_come_from_a_file(town: Path, tmp_path: Path) -> None:
    out, fleet = tmp_path / "scene.json", tmp_path / "fleet.toml"
    fleet.write_text('[[vehicle]]\nname = "small"\ncapacity = 1200\ncount = 4\n')
    words = ("scene", town, *SQUARE, "--vehicles", fleet, "--exact-fleet")
    succeeded(*words, "-o", out)
    assert (read(out).vehicles[0].count, read(out).exact_fleet) == (4, True)
    ran = arcfleet(*words, "--turns", "free", "-o", tmp_path / "scene.dat")
    assert "expected a .json file for a scene with facilities" in one_sentence(ran)
    ran = arcfleet(*words, "--fleet-limit", 3, "-o", out)
    line = one_sentence(ran)
    assert "expected no fleet_limit (--fleet-limit) beside vehicle types or" in line
    assert "got 3: give the count of each vehicle type (--vehicles)" in line
    ran = arcfleet("scene", town, *SQUARE, "--exact-fleet", "-o", out)
    line = one_sentence(ran)
    assert (
        "give fleet_limit (--fleet-limit), or count of every vehicle (--vehicles)" in line
    )
    for option, field in (
        ("--fleet-limit", "count"),
        ("--max-route-cost", "max_route_cost"),
    ):
        line = one_sentence(arcfleet("solve", out, option, 3))
        assert f"({option}) beside vehicle types, got 3 in instance 'town': give" in line
        assert f"give {field} of each type" in line
    ran = arcfleet("scene", town, *SQUARE, "--facility", "here", "-o", out)
    assert ran.returncode == 2


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        (
            ("--bbox", "41.99,-71.01,42.02,-70.98"),
            "the box 41.99,-71.01,42.02,-70.98 of map 'town', found none: its numbers look "
            "like LAT,LON: write LON,LAT; the map reaches from -71.0000,42.0000",
        ),
        (("--around", "42.0,-71.0,500"), "its numbers look like LAT,LON: write LON,LAT;"),
        (
            ("--depot", "42.001,-71.0"),
            "got 42.001,-71, which looks like LAT,LON: write LON,LAT as -71,42.001",
        ),
        (
            ("--facility", "42.001,-71.0"),
            "got 42.001,-71, which looks like LAT,LON: write LON,LAT as -71,42.001",
        ),
        (("--depot", "47.5,-122.6"), "got 47.5,-122.6, which looks like LAT,LON"),
        (("--bbox", "45.4,-122.7,45.6,-122.6"), "looks like LAT,LON: write LON,LAT as "),
    ],
)
def test_numbers_in_the_wrong_order_are_said_to_be(
    town: Path, tmp_path: Path, option: tuple[str, str], sentence: str
) -> None:
    out = tmp_path / "scene.json"
    ran = arcfleet("scene", town, "--capacity", 3000, *option, "-o", out)
    assert sentence in one_sentence(ran)
    assert not out.exists()


def test_a_place_that_is_wrong_in_either_order_is_not_said_to_be_swapped(
    town: Path, tmp_path: Path
) -> None:
    for option in (("--bbox", "10,50,11,51"), ("--depot", "10,50")):
        out = tmp_path / "scene.json"
        ran = arcfleet("scene", town, "--capacity", 3000, *option, "-o", out)
        assert "LAT,LON" not in one_sentence(ran)
