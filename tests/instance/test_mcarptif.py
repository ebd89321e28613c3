"""MCARPTIF files: longest routes, facilities, and node numbers that are labels."""

from dataclasses import replace
from pathlib import Path

import pytest

from arcfleet.errors import FileError, FormatWarning, InstanceError
from arcfleet.instance.files import format_of, read, write
from arcfleet.instance.instance import Instance
from arcfleet.instance.operations import Facility, Vehicle
from tests.helpers import make_instance, refused, star, street
from tests.shared_data import shared_dir

TEXT = """\
NAME : hauling.txt
NODES : 4
REQ_EDGES : 2
NOREQ_EDGES : 1
REQ_ARCS : 0
NOREQ_ARCS : 0
VEHICLES : 3
CAPACITY : 9
DUMPING_COST : 30
MAX_TRIP : 400
LIST_REQ_EDGES :
(-12,-7)  serv_cost 8  trav_cost 3 demand 4
(-7,5)  serb_cost 7  trav_cost 2 demand 5
LIST_NOREQ_EDGES :
(5,40)  cost 6
DEPOT : -12
DUMPING_SITES : 40,-7
"""
INSTANCE = make_instance(
    street(-12, -7, 3, 4, service_cost=8),
    street(-7, 5, 2, 5, service_cost=7),
    street(5, 40, 6),
    name="hauling.txt",
    depot=-12,
    capacity=9,
    stated_vehicles=3,
    max_route_cost=400,
    facilities=(Facility(node=40, cost=30), Facility(node=-7, cost=30)),
    fewest_routes=True,
)


def parse(tmp_path: Path, text: str) -> Instance:
    file = tmp_path / "file.txt"
    file.write_text(text)
    return read(file)


def test_file_is_read_and_written(tmp_path: Path) -> None:
    assert parse(tmp_path, TEXT) == INSTANCE
    write(INSTANCE, tmp_path / "copy.txt", "mcarptif")
    assert "DUMPING_SITES : 40,-7\n" in (tmp_path / "copy.txt").read_text()
    assert read(tmp_path / "copy.txt") == INSTANCE
    write(INSTANCE, tmp_path / "copy.json")
    assert '"version": 3' in (tmp_path / "copy.json").read_text()
    assert read(tmp_path / "copy.json") == INSTANCE


def test_file_without_sites_has_no_facility(tmp_path: Path) -> None:
    text = TEXT.replace("DUMPING_SITES : 40,-7\n", "")
    bare = replace(INSTANCE, facilities=())
    assert parse(tmp_path, text) == bare
    write(bare, tmp_path / "copy.txt", "mcarptif")
    assert read(tmp_path / "copy.txt") == bare


def test_file_without_a_longest_route(tmp_path: Path) -> None:
    text = TEXT.replace("MAX_TRIP : 400\n", "")
    assert parse(tmp_path, text) == replace(INSTANCE, max_route_cost=None)


def test_dumping_cost_is_a_route_cost_without_limit_and_sites(tmp_path: Path) -> None:
    text = TEXT.replace("MAX_TRIP : 400\n", "").replace("DUMPING_SITES : 40,-7\n", "")
    for old, new in (("-12", "1"), ("-7", "2"), ("(5", "(3"), (",5", ",3"), ("40", "4")):
        text = text.replace(old, new)
    text = text.replace("serb_cost", "serv_cost")
    instance = parse(tmp_path, text)
    assert instance.route_cost == 30
    assert not instance.operations


def test_nodes_that_count_need_not_be_touched(tmp_path: Path) -> None:
    counted = make_instance(
        street(1, 2, 3, 4),
        nodes=(1, 2, 3),
        max_route_cost=5,
        fewest_routes=True,
    )
    write(counted, tmp_path / "copy.txt", "mcarptif")
    assert read(tmp_path / "copy.txt") == counted


def test_wrong_number_of_nodes_is_a_warning(tmp_path: Path) -> None:
    with pytest.warns(FormatWarning, match="expected NODES to be 4, the number of nodes"):
        assert parse(tmp_path, TEXT.replace("NODES : 4", "NODES : 6")) == INSTANCE


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("40,-7", "40,x", 17, "DUMPING_SITES to be node numbers with commas, as in"),
        ("40,-7", "", 17, "DUMPING_SITES to be node numbers with commas, as in"),
        ("40,-7", "40,40", None, "one facility per node, got two at one node"),
        ("DEPOT : -12", "DEPOT : a", 16, "DEPOT to be a node number"),
        ("(-12,-7)", "(-12,--7)", 12, "found '--7' in '(-12,--7)"),
        ("demand 4", "demand -4", 12, "from 0 to 2147483647, found '-4'"),
        ("serv_cost 8  trav", "8 trav", 12, "a line like '( 1, 2) serv_cost 3 trav_cost"),
        ("MAX_TRIP : 400", "MAX_TRIP : 0", 10, "MAX_TRIP to be a whole number from 1"),
        ("DUMPING_COST : 30\n", "", 16, "'DUMPING_COST : ...' (MCARPTIF)"),
    ],
)
def test_mistake_is_an_error_with_its_line(
    tmp_path: Path, old: str, new: str, line: int | None, message: str
) -> None:
    assert old in TEXT
    with refused(FileError, message, line):
        parse(tmp_path, TEXT.replace(old, new, 1))


TYPE = Vehicle(name="truck", start=-12, capacity=9)


@pytest.mark.parametrize(
    ("instance", "obstacle"),
    [
        (replace(INSTANCE, fewest_routes=False), "got least cost, not fewest routes"),
        (replace(INSTANCE, empty_at_end=False), "got vehicles that need not be empty"),
        (
            replace(INSTANCE, facilities=(Facility(node=5), Facility(node=40, cost=4))),
            "got facility visits of different costs, 0 and 4",
        ),
        (
            replace(INSTANCE, facilities=(), max_route_cost=None),
            "got neither a longest route nor facilities",
        ),
        (replace(INSTANCE, route_cost=3), "got the route cost 3"),
        (replace(INSTANCE, max_route_cost=None, vehicles=(TYPE,)), "got vehicle types"),
        (replace(INSTANCE, balance=1), "got balance"),
        (replace(INSTANCE, nodes=(*INSTANCE.nodes, 99)), "got nodes that no link touches"),
    ],
)
def test_refuses_what_it_cannot_hold(
    tmp_path: Path, instance: Instance, obstacle: str
) -> None:
    with refused(InstanceError, obstacle):
        write(instance, tmp_path / "x.txt", "mcarptif")
    assert not (tmp_path / "x.txt").exists()


def test_mcarp_and_carplib_name_the_format_that_can(tmp_path: Path) -> None:
    for name, file_format in (("mcarp", "MCARP"), ("carplib", "Spanish CARPLIB")):
        message = f"{file_format} can hold, got a longest route in instance"
        with refused(InstanceError, message) as caught:
            write(INSTANCE, tmp_path / "x", name)
        assert "write a .txt file (MCARPTIF) instead" in str(caught.value)


def test_a_txt_file_is_in_the_format_that_can(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    write(INSTANCE, path)
    assert read(path) == INSTANCE
    assert format_of(path, INSTANCE) == "mcarptif"
    assert format_of(path, star(1)) == format_of(path) == "mcarp"
    with refused(InstanceError, "MCARP can hold, got a longest route"):
        write(replace(INSTANCE, balance=1), path)
    assert read(path) == INSTANCE


def test_every_file_of_the_collection_is_read_and_written(tmp_path: Path) -> None:
    files = sorted((shared_dir() / "carplib" / "mcarptif").glob("*.txt"))
    if not files:
        pytest.skip("no MCARPTIF files in the shared folder")
    assert len(files) == 14
    for file in files:
        instance = read(file)
        assert instance.max_route_cost == 28_800
        assert instance.fewest_routes
        sites = {"Act-a": 0, "Act-b": 0, "Act-IF-a": 1, "Act-IF-b": 1}.get(file.stem, 2)
        assert [facility.cost for facility in instance.facilities] == [300] * sites
        for file_format in ("mcarptif", "json"):
            write(instance, tmp_path / "copy", file_format)
            assert read(tmp_path / "copy") == instance, file.name
