from pathlib import Path

import pytest

from arcfleet.errors import FileError
from arcfleet.instance.files import read
from arcfleet.instance.instance import Instance
from tests.helpers import MIXED, refused, street


def test_mixed_file_is_read() -> None:
    assert read(MIXED) == Instance(
        name="small_mixed.dat",
        nodes=(1, 2, 3, 4),
        links=(
            street(1, 2, 3, 4, service_cost=8),
            street(2, 3, 2, 5, service_cost=7),
            street(1, 3, 6),
            street(3, 4, 4, 3, service_cost=9, one_way=True),
            street(4, 1, 5, 2, service_cost=5, one_way=True),
            street(1, 4, 11, one_way=True),
        ),
        depot=1,
        capacity=9,
        route_cost=5,
        stated_vehicles=2,
        upper_bound=60,
    )


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("REQ_ARCS : 2", "REQ_ARCS : 3", 6, "links in LIST_REQ_ARCS, 2"),
        ("serv_cost 9", "cost 9", 17, "serv_cost 3 trav_cost 3 demand 3"),
        ("DUMPING_COST : 5\n", "", 20, "'DUMPING_COST : ...'"),
        ("DUMPING_COST : 5", "COMENTARIO : 5", 10, "a key of MCARP"),
        ("UPPER BOUND : 60", "UPPER BOUND : ?", 2, "UPPER_BOUND to be a whole number"),
        ("UPPER BOUND : 60", "UPPER BOUND : 6\nUPPER_BOUND : 6", 3, "UPPER_BOUND once"),
        ("LIST_REQ_ARCS", "EDGE_REQ_LIST", 16, "a key of MCARP"),
    ],
)
def test_mistake_is_an_error_with_its_line(
    tmp_path: Path, old: str, new: str, line: int, message: str
) -> None:
    text = MIXED.read_text()
    assert old in text
    file = tmp_path / "bad.txt"
    file.write_text(text.replace(old, new, 1))
    with refused(FileError, message, line):
        read(file)


def test_keys_that_two_formats_share_are_not_enough(tmp_path: Path) -> None:
    file = tmp_path / "some.txt"
    file.write_text("NAME : x\nNODES : 4\nCAPACITY : 3\nDEPOT : 1\n")
    with pytest.raises(FileError, match="English CARP or MCARP, EDGES_REQ or REQ_EDGES"):
        read(file)
