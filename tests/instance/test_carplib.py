from pathlib import Path

import pytest

from arcfleet.errors import FileError, FormatWarning
from arcfleet.instance.files import read
from arcfleet.instance.instance import Instance
from tests.helpers import DATA, SMALL, refused, street

ENGLISH = (DATA / "ring.dat").read_text()


def parse(tmp_path: Path, text: str) -> Instance:
    file = tmp_path / "any.name"
    file.write_bytes(text.encode())
    return read(file)


def small(old: str = "", new: str = "") -> str:
    text = SMALL.read_text()
    assert old in text
    return text.replace(old, new, 1)


def test_spanish_file_is_read() -> None:
    assert read(SMALL) == Instance(
        name="small",
        comment="41 (made by hand)",
        nodes=(1, 2, 3, 4, 5),
        links=(
            street(1, 2, 3, 2),
            street(2, 3, 4, 3),
            street(3, 4, 5, 1),
            street(4, 1, 6, 4),
            street(2, 5, 7),
            street(5, 4, 1),
        ),
        depot=1,
        capacity=6,
        stated_vehicles=2,
    )


def test_english_file_counts_from_zero_unless_the_data_shows_otherwise(
    tmp_path: Path,
) -> None:
    instance = parse(tmp_path, ENGLISH)
    assert instance.nodes == (0, 1, 2, 3)
    assert instance.upper_bound == 99
    assert [link.cost for link in instance.links] == [47, 3, 8]
    assert parse(tmp_path, ENGLISH.replace("( 2, 3)", "( 2, 4)")).nodes == (1, 2, 3, 4)


def test_spanish_file_may_count_from_zero(tmp_path: Path) -> None:
    text = small().replace("5)", "0)").replace("( 5", "( 0")
    assert parse(tmp_path, text).nodes == (0, 1, 2, 3, 4)


def test_required_links_come_first_whatever_the_order_of_lists(tmp_path: Path) -> None:
    lines = SMALL.read_text().splitlines()
    swapped = "\n".join([*lines[:9], *lines[14:17], *lines[9:14], lines[17]])
    assert parse(tmp_path, swapped) == read(SMALL)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(small().replace("\n", "\r\n"), id="crlf"),
        pytest.param("\ufeff" + small(), id="byte order mark"),
        pytest.param(small().rstrip("\n"), id="no final newline"),
        pytest.param(small().replace("\n", "\n\n  \n"), id="blank lines"),
        pytest.param(small().replace(" :", ""), id="no colons"),
        pytest.param(small().replace(" : ", ":").replace(", ", ","), id="no space"),
        pytest.param(small().replace(" ", "\t  "), id="much space"),
        pytest.param(small("DEPOSITO", "-----\nDEPOSITO"), id="dashes"),
        pytest.param(small().lower(), id="lower case"),
    ],
)
def test_harmless_variations_do_not_matter(tmp_path: Path, text: str) -> None:
    # Space inside the comment is the comment's own.
    kept = "COMENTARIO : 41 (made by hand)"
    lines = [kept if "COMENTARIO" in line.upper() else line for line in text.split("\n")]
    assert parse(tmp_path, "\n".join(lines)) == read(SMALL)


def test_list_of_other_links_may_be_absent(tmp_path: Path) -> None:
    text = small("ARISTAS_NOREQ : 2", "ARISTAS_NOREQ : 0")
    text = text.replace("( 2, 5) coste 7\n( 5, 4) coste 1\n", "")
    assert len(parse(tmp_path, text).links) == 4
    assert len(parse(tmp_path, text.replace("LISTA_ARISTAS_NOREQ :\n", "")).links) == 4


def test_name_and_comment_may_look_like_keys(tmp_path: Path) -> None:
    instance = parse(tmp_path, small("NOMBRE : small", "NOMBRE : DEPOSITO : 3"))
    assert instance.name == "DEPOSITO : 3"
    assert instance.depot == 1


def test_wrong_cost_sum_is_a_warning_that_names_the_line(tmp_path: Path) -> None:
    with pytest.warns(FormatWarning, match=r"any\.name:9: .* 18, .*COSTE_TOTAL_REQ : 19"):
        instance = parse(tmp_path, small("REQ : 18", "REQ : 19"))
    assert instance == read(SMALL)


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("ARISTAS_REQ : 4", "ARISTAS_REQ : 5", 4, "ARISTAS_REQ to be the number of links"),
        ("ARISTAS_NOREQ : 2", "ARISTAS_NOREQ : 0", 5, "links in LISTA_ARISTAS_NOREQ, 2"),
        ("( 3, 4)", "( 3, 6)", 13, "nodes up to 5 (VERTICES), found node 6"),
        ("( 3, 4)", "( 3, 0)", 16, "node 5 in '( 2, 5) coste 7' and node 0 on line 13"),
        ("DEPOSITO : 1\n", "", 17, "'DEPOSITO : ...'"),
        ("CAPACIDAD : 6\n", "", 17, "'CAPACIDAD : ...'"),
        ("CAPACIDAD : 6", "CAPACIDAD : 0", 7, "whole number from 1 to 2147483647"),
        ("CAPACIDAD : 6", "CAPACIDAD : 6 7", 7, "'CAPACIDAD : 6 7'"),
        ("CAPACIDAD : 6", "CAPACIDAD :", 7, "CAPACIDAD to be a whole number"),
        ("coste 3", "coste -3", 11, "found '-3' in"),
        ("coste 3", "coste 3.0", 11, "found '3.0' in"),
        ("coste 3", "coste +3", 11, "found '+3' in"),
        ("coste 3", "coste 1_0", 11, "found '1_0' in"),
        ("coste 3", "coste 1e3", 11, "found '1e3' in"),
        ("coste 3", "coste \u0663", 11, "found '\u0663' in"),
        ("coste 3", "coste 2147483648", 11, "from 0 to 2147483647"),
        ("coste 3", f"coste {'9' * 5000}", 11, "from 0 to 2147483647"),
        ("coste 3", "cost 3", 11, "a line like '( 1, 2) coste 3 demanda 3'"),
        ("demanda 2", "", 11, "a line like"),
        ("coste 7", "coste 7 demanda 0", 16, "'( 1, 2) coste 3' in LISTA_ARISTAS_NOREQ"),
        ("( 1, 2)", "1 2", 11, "a known key"),
        ("CAPACIDAD", "CAPACIDADES", 7, "found 'CAPACIDADES : 6'"),
        ("CAPACIDAD", "CAPACITY", 7, "a key of Spanish CARPLIB like the lines before"),
        ("VEHICULOS : 2", "CAPACIDAD : 6", 7, "CAPACIDAD once, found it on line 6"),
        ("DEPOSITO", "LISTA_ARISTAS_REQ :\nDEPOSITO", 18, "once, found it on line 10"),
        ("LISTA_ARISTAS_REQ :\n", "", 10, "links only in a list"),
        ("LISTA_ARISTAS_REQ :", "LISTA_ARISTAS_REQ : 4", 10, "nothing after"),
        ("EXPLICITOS", "IMPLICITOS", 8, "TIPO_COSTES_ARISTAS : EXPLICITOS"),
        ("VERTICES : 5", "VERTICES : 0", 3, "VERTICES to be a whole number from 1"),
        ("VERTICES : 5", "VERTICES : 2000000000", 3, "fits 6 links"),
        ("VERTICES : 5", "VERTICES : 1000014", 3, "fits 6 links"),
        ("DEPOSITO : 1", "DEPOSITO : 7", 18, "found node 7"),
    ],
)
def test_mistake_is_an_error_with_its_line(
    tmp_path: Path, old: str, new: str, line: int, message: str
) -> None:
    with refused(FileError, message, line):
        parse(tmp_path, small(old, new))


def test_a_million_nodes_may_have_no_link(tmp_path: Path) -> None:
    # And the file names nodes 13 times: two ends of each of six links, and the depot.
    instance = parse(tmp_path, small("VERTICES : 5", "VERTICES : 1000013"))
    assert (len(instance.nodes), instance.links) == (1_000_013, read(SMALL).links)


def test_quoted_line_is_shortened(tmp_path: Path) -> None:
    with pytest.raises(FileError) as caught:
        parse(tmp_path, small("DEPOSITO : 1", "x" * 1000))
    assert "x" * 50 in str(caught.value)
    assert "x" * 61 not in str(caught.value)


def test_a_missing_key_names_the_line_where_the_file_ends(tmp_path: Path) -> None:
    with refused(FileError, "CAPACIDAD", 4):
        parse(tmp_path, "NOMBRE : x\nVERTICES : 2\nARISTAS_REQ : 0\nDEPOSITO : 1\n")
