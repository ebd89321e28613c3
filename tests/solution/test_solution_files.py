import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from arcfleet import Instance, Stop, solve
from arcfleet.errors import FileError, FormatWarning, OptionError, SolutionError
from arcfleet.instance.operations import Facility, Vehicle
from arcfleet.solution.checker import check
from arcfleet.solution.files import check_holds_plans, read_solution, write_solution
from arcfleet.solution.json_solution import format_json_solution
from arcfleet.solution.solution import FacilityVisit, Route, Service, Solution
from arcfleet.solution.travel import Travel
from tests.helpers import make_instance, refused, steps, street

# The required links are 1, 2 and 3: in text files their ids are 1, 2 and 3 all the same
# only because link 0 is not required.
INSTANCE = make_instance(
    street(1, 3, 9),
    street(1, 2, 2, 1, service_cost=4, reverse_service_cost=5),
    street(2, 3, 3, 1, one_way=True, service_cost=7),
    street(3, 3, 1, 1),
    name="square",
    capacity=3,
    route_cost=10,
)

TEXT = """\
55
2
8.09
 0 1 1 2 30  4 (D 0,1,1) (S 1,1,2) (S 2,2,3) (D 0,1,1)
 0 1 2 1 25  3 (D 0,1,1) (S 3,3,3) (D 0,1,1)
"""

PLAN = Solution(
    routes=(
        Route(services=(Service(1), Service(2)), load=2, cost=30),
        Route(services=(Service(3),), load=1, cost=25),
    ),
    cost=55,
    deadhead=9 + (2 + 3) + 9,
    service_cost=12,
)


def parse(tmp_path: Path, text: str) -> Solution:
    file = tmp_path / "plan.sol"
    file.write_text(text)
    return read_solution(file, INSTANCE)


def test_text_is_read_with_a_fourth_header_line_too(tmp_path: Path) -> None:
    assert parse(tmp_path, TEXT) == PLAN
    assert parse(tmp_path, TEXT.replace("8.09\n", "8.09\n1.5e-01\n\n")) == PLAN


def test_text_survives(tmp_path: Path) -> None:
    write_solution(INSTANCE, PLAN, tmp_path / "plan.txt", seconds=8.09)
    assert read_solution(tmp_path / "plan.txt", INSTANCE) == PLAN
    words = [line.split() for line in (tmp_path / "plan.txt").read_text().splitlines()]
    assert words == [line.split() for line in TEXT.splitlines()]


def test_directions_follow_the_nodes(tmp_path: Path) -> None:
    plan = parse(tmp_path, TEXT.replace("S 1,1,2", "S 1,2,1"))
    assert plan.routes[0].services[0] == Service(1, reverse=True)
    assert plan.service_cost == 13
    assert plan.deadhead == PLAN.deadhead + 2 + 2


def test_wrong_way_is_kept_for_the_checker(tmp_path: Path) -> None:
    plan = parse(tmp_path, TEXT.replace("S 2,2,3", "S 2,3,2"))
    assert plan.routes[0].services[1] == Service(2, reverse=True)
    assert plan.service_cost == PLAN.service_cost


def test_repeated_services_overloads_and_wrong_costs_are_kept(tmp_path: Path) -> None:
    plan = parse(tmp_path, TEXT.replace("55", "5").replace("S 2,2,3", "S 1,1,2"))
    assert plan.routes[0].services == (Service(1), Service(1))
    assert (plan.cost, plan.deadhead) == (5, (2 + 2) + (5 + 9))


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("55\n", "55.5\n", 1, "the total cost as a whole number, found '55.5'"),
        ("\n2\n", "\n2.0\n", 2, "the number of routes as a whole number"),
        ("\n2\n", "\n3\n", 2, "expected 3 routes as stated here, found 2"),
        ("8.09", "-1", 3, "the seconds as a number, found '-1'"),
        ("8.09", "nan", 3, "the seconds as a number"),
        ("(S 1,1,2)", "(S 1,1,3)", 4, "nodes 1 and 2 of required link 1, found '(S 1,"),
        ("(S 1,1,2)", "(S 4,1,2)", 4, "a required link from 1 to 3"),
        ("(S 1,1,2)", "(S 0,1,2)", 4, "a required link from 1 to 3"),
        ("(S 1,1,2)", "(D 0,1,1)", 4, "a service like (S 12,5,11)"),
        ("(S 1,1,2)", "(S 1,1)", 4, "a service like"),
        ("(S 1,1,2)", "S 1,1,2", 4, "a route like"),
        ("(D 0,1,1) (S 1", "(D 0,2,2) (S 1", 4, "(D 0,1,1) for the depot"),
        ("(D 0,1,1) (S 1", "(S 1", 4, "as many visits as stated"),
        (" 4 (D", " 5 (D", 4, "as many visits as stated"),
        ("0 1 1 2 30", "0 1 2 30", 4, "a route like"),
        ("0 1 1 2 30", "0 1 1 -2 30", 4, "a route like"),
        ("0 1 1 2 30", f"0 1 1 2 {'9' * 5000}", 4, "load and cost up to"),
        ("3 (D 0,1,1) (S 3,3,3) (D 0,1,1)", "1 (D 0,1,1)", 5, "start and end"),
    ],
)
def test_mistake_is_an_error_with_its_line(
    tmp_path: Path, old: str, new: str, line: int, message: str
) -> None:
    assert old in TEXT
    with refused(FileError, message, line):
        parse(tmp_path, TEXT.replace(old, new, 1))


@pytest.mark.parametrize("text", ["", "60\n", "60\n2\n"])
def test_cut_header_is_an_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(FileError, match="found the end of the file"):
        parse(tmp_path, text)


def test_json_survives_with_paths(tmp_path: Path) -> None:
    first, second = PLAN.routes
    plan = replace(
        PLAN,
        routes=(
            replace(first, path=steps("1! 2! -0")),
            replace(second, path=steps("1 2 3! -0")),
        ),
    )
    write_solution(INSTANCE, plan, tmp_path / "plan.json", seconds=0.25)
    assert read_solution(tmp_path / "plan.json", INSTANCE) == plan
    # Paths that the plan does not have are worked out.
    write_solution(INSTANCE, PLAN, tmp_path / "bare.json")
    assert read_solution(tmp_path / "bare.json", INSTANCE) == plan
    assert '"seconds": 0.25' in (tmp_path / "plan.json").read_text()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"link": 3', '"link": 4', "integer from 0 to 3 at routes[1].services[0].link"),
        ('"reverse": false', '"reverse": 0', "at routes[0].services[0].reverse, found 0"),
        ('"load": 2', '"weight": 2', "found routes[0].weight"),
        ('"cost": 55', '"cost": 55.0', "at cost, found 55.0"),
        ('"seconds": 0.0', '"seconds": "fast"', "at seconds, found 'fast'"),
        ('"version": 1', '"version": 6', "update arcfleet"),
        ("arcfleet-solution", "arcfleet-instance", "expected format 'arcfleet-solution'"),
    ],
)
def test_json_mistake_is_an_error_with_its_place(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    file = tmp_path / "plan.json"
    write_solution(INSTANCE, PLAN, file)
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new, 1))
    with refused(FileError, message):
        read_solution(file, INSTANCE)


def test_json_of_another_instance_is_a_warning(tmp_path: Path) -> None:
    write_solution(INSTANCE, PLAN, tmp_path / "plan.json")
    with pytest.warns(FormatWarning, match="of instance 'circle', found one of 'square'"):
        read_solution(tmp_path / "plan.json", replace(INSTANCE, name="circle"))


@pytest.mark.parametrize("name", ["x.txt", "x.json"])
def test_solution_of_other_links_is_refused(tmp_path: Path, name: str) -> None:
    route = Route(services=(Service(4),), load=1, cost=1)
    plan = Solution(routes=(route,), cost=1, deadhead=0, service_cost=1)
    with pytest.raises(SolutionError, match="got link 4"):
        write_solution(INSTANCE, plan, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_reverse_of_an_uneven_loop_cannot_be_told_in_text(tmp_path: Path) -> None:
    instance = make_instance(street(1, 1, 1, 0, reverse_cost=2))
    route = Route(services=(Service(0, reverse=True),), load=0, cost=2)
    plan = Solution(routes=(route,), cost=2, deadhead=0, service_cost=2)
    with pytest.warns(FormatWarning, match="loop 1-1 is served in reverse in route 1"):
        write_solution(instance, plan, tmp_path / "plan.txt")


@pytest.mark.parametrize("seconds", [-1.0, math.nan, math.inf])
def test_seconds_must_be_a_time(tmp_path: Path, seconds: float) -> None:
    with pytest.raises(OptionError, match="seconds"):
        write_solution(INSTANCE, PLAN, tmp_path / "x.json", seconds=seconds)


def test_unknown_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="did you mean json"):
        write_solution(INSTANCE, PLAN, tmp_path / "x", file_format="jsn")


HAULING = replace(
    INSTANCE,
    route_cost=0,
    vehicles=(
        Vehicle(name="van", start=1, capacity=3, fixed_cost=10),
        Vehicle(name="truck", start=1, end=3, capacity=3),
    ),
    facilities=(Facility(node=3, cost=6),),
    empty_at_end=False,
)


def hauling_plan() -> Solution:
    """Link 3 by the truck, which empties at 3 and ends there; the others by the van."""
    first, second = PLAN.routes
    visit = FacilityVisit(facility=0, services=1, steps=3)
    truck = replace(
        second,
        cost=12,
        path=steps("1 2 3!"),
        vehicle=1,
        number=7,
        visits=(visit,),
    )
    return Solution(
        routes=(replace(first, path=steps("1! 2! -0")), truck),
        cost=42,
        deadhead=14,
        service_cost=12,
        visit_cost=6,
    )


def test_json_holds_vehicles_visits_and_numbers(tmp_path: Path) -> None:
    plan = hauling_plan()
    assert check(HAULING, plan).faults == ()
    text = format_json_solution(plan, HAULING, 0.0)
    assert '"version": 3' in text
    (tmp_path / "plan.json").write_text(text)
    assert read_solution(tmp_path / "plan.json", HAULING) == plan
    bare = replace(plan.routes[1].visits[0], steps=None)
    plan = replace(plan, routes=(plan.routes[0], replace(plan.routes[1], visits=(bare,))))
    (tmp_path / "plan.json").write_text(format_json_solution(plan, HAULING, 0.0))
    assert read_solution(tmp_path / "plan.json", HAULING) == plan


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"vehicle": 1', '"vehicle": 2', "from 0 to 1 at routes[1].vehicle, found 2"),
        ('"facility": 0', '"facility": 1', "at routes[1].visits[0].facility, found 1"),
        ('"services": 1', '"services": 1.5', "at routes[1].visits[0].services, found 1.5"),
        ('"steps": 3', '"step": 3', "found routes[1].visits[0].step; did you mean steps?"),
        ('"number": 7', '"number": "7"', "at routes[1].number, found '7'"),
        ('"visit_cost": 6', '"visit_cost": null', "at visit_cost, found null"),
    ],
)
def test_json_mistake_in_vehicles_and_visits(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    text = format_json_solution(hauling_plan(), HAULING, 0.0)
    assert old in text
    (tmp_path / "plan.json").write_text(text.replace(old, new, 1))
    with refused(FileError, message):
        read_solution(tmp_path / "plan.json", HAULING)


def test_json_names_the_streets_and_their_ends(village: Instance, tmp_path: Path) -> None:
    plan = solve(village, stop=Stop(iterations=1)).solution
    file = tmp_path / "plan.json"
    write_solution(village, plan, file)
    assert read_solution(file, village).routes[0].services == plan.routes[0].services
    document = json.loads(file.read_text())
    assert document["version"] == 4
    stated = document["routes"][0]["services"][0]
    service = plan.routes[0].services[0]
    link = village.links[service.link]
    assert (stated["from"], stated["to"]) == link.ends(service.reverse)
    assert stated.get("name", "") == link.name
    # A scene that was cut anew has other links at these positions.
    moved = replace(village, links=(*village.links[1:], village.links[0]))
    with refused(FileError, "where link") as caught:
        read_solution(file, moved)
    assert "of instance 'village' starts, at routes[0].services[0].from" in str(
        caught.value
    )
    # Files without names are read as before.
    for route in document["routes"]:
        for one in route["services"]:
            for key in ("name", "from", "to"):
                one.pop(key, None)
    file.write_text(json.dumps(document | {"version": 1}))
    assert read_solution(file, village).routes[0].services == plan.routes[0].services


def test_json_visits_need_facilities(tmp_path: Path) -> None:
    text = format_json_solution(hauling_plan(), HAULING, 0.0)
    (tmp_path / "plan.json").write_text(text)
    with refused(FileError, "expected no visits, as there are no facilities, at routes[1]"):
        read_solution(tmp_path / "plan.json", replace(HAULING, facilities=()))


@pytest.mark.parametrize(
    ("changes", "obstacle"),
    [
        (
            {"vehicle": 1},
            "vehicle type 1 on route 2 of the plan; write a .json file instead",
        ),
        ({"visits": hauling_plan().routes[1].visits}, "got 1 facility visits on route 2"),
    ],
)
def test_text_refuses_what_it_cannot_hold(
    tmp_path: Path, changes: dict[str, Any], obstacle: str
) -> None:
    routes = (PLAN.routes[0], replace(PLAN.routes[1], **changes))
    with refused(SolutionError, obstacle):
        write_solution(HAULING, replace(PLAN, routes=routes), tmp_path / "plan.txt")
    assert not (tmp_path / "plan.txt").exists()


def test_text_refuses_other_ends(tmp_path: Path) -> None:
    swapped = replace(HAULING, vehicles=HAULING.vehicles[::-1])
    with refused(SolutionError, "got depot 1 at the start and 3 at the end on route 1"):
        write_solution(swapped, PLAN, tmp_path / "plan.txt")


def test_text_holds_negative_nodes_and_one_type(tmp_path: Path) -> None:
    links = tuple(replace(x, tail=-x.tail, head=-x.head) for x in INSTANCE.links)
    instance = replace(
        INSTANCE,
        nodes=(-3, -2, -1),
        links=links,
        depot=-1,
        route_cost=0,
        vehicles=(Vehicle(name="van", start=-1, capacity=3, fixed_cost=10),),
    )
    write_solution(instance, PLAN, tmp_path / "plan.txt")
    assert "(S 1,-1,-2)" in (tmp_path / "plan.txt").read_text()
    assert read_solution(tmp_path / "plan.txt", instance) == PLAN


def test_json_names_every_end_that_is_another(village: Instance, tmp_path: Path) -> None:
    plan = solve(village, stop=Stop(iterations=1)).solution
    file = tmp_path / "plan.json"
    write_solution(village, plan, file)
    document = json.loads(file.read_text())
    first = document["routes"][0]["services"][0]
    link = first["link"]
    for key, verb in (("from", "starts"), ("to", "ends")):
        wrong = json.loads(json.dumps(document))
        wrong["routes"][0]["services"][0][key] = 987_654
        file.write_text(json.dumps(wrong))
        place = f"where link {link} of instance 'village' {verb}, at routes[0].services[0]"
        with refused(FileError, f"{place}.{key}, found 987654"):
            read_solution(file, village)
    first["name"] = 7
    file.write_text(json.dumps(document))
    with refused(FileError, "expected a string at routes[0].services[0].name, found 7"):
        read_solution(file, village)


@pytest.mark.parametrize("whose", ["the plan", "a route"])
def test_json_holds_length_and_time_since_version_2(tmp_path: Path, whose: str) -> None:
    travel = Travel(metres=9, seconds=0)
    file = tmp_path / "plan.json"
    file.write_text(format_json_solution(PLAN, INSTANCE, 0.0))
    assert json.loads(file.read_text())["version"] == 1
    if whose == "the plan":
        plan = replace(PLAN, travel=travel)
    else:
        plan = replace(
            PLAN, routes=(PLAN.routes[0], replace(PLAN.routes[1], travel=travel))
        )
    file.write_text(format_json_solution(plan, INSTANCE, 0.0))
    assert json.loads(file.read_text())["version"] == 2
    assert read_solution(file, INSTANCE) == plan


def test_json_keeps_statements_however_wrong(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    plan = replace(PLAN, cost=-7, routes=(replace(PLAN.routes[0], load=-1, number=-2),))
    file.write_text(format_json_solution(plan, INSTANCE, 0.0))
    assert read_solution(file, INSTANCE) == plan


def test_a_text_is_refused_before_the_search(tmp_path: Path) -> None:
    check_holds_plans(INSTANCE, tmp_path / "plan.txt")
    check_holds_plans(HAULING, tmp_path / "plan.JSON")
    with refused(OptionError, "for a plan with several vehicle types, which a text cannot"):
        check_holds_plans(HAULING, tmp_path / "plan.txt")
    one = replace(HAULING, vehicles=HAULING.vehicles[:1])
    with refused(OptionError, "for a plan with"):
        check_holds_plans(one, tmp_path / "plan.txt")


def test_a_route_of_depot_visits_alone_serves_nothing(tmp_path: Path) -> None:
    text = TEXT.replace("3 (D 0,1,1) (S 3,3,3) (D 0,1,1)", "2 (D 0,1,1) (D 0,1,1)")
    assert parse(tmp_path, text).routes[1].services == ()


def test_a_text_may_say_zero(tmp_path: Path) -> None:
    plan = parse(tmp_path, TEXT.replace("0 1 2 1 25", "0 1 2 0 0").replace("55", "0"))
    assert (plan.cost, plan.routes[1].load, plan.routes[1].cost) == (0, 0, 0)


def test_a_text_without_routes_ends_after_its_header(tmp_path: Path) -> None:
    assert parse(tmp_path, "0\n0\n8.09\n").routes == ()
