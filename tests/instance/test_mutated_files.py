"""A damaged file is refused in one line, or it is read as what it now says.

What it says is found out a second time here, by regular expressions that know nothing
of the readers.
"""

import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arcfleet.errors import FileError
from arcfleet.instance.files import read, write
from arcfleet.instance.instance import Instance, Link
from tests.helpers import DATA
from tests.instance.test_json_format import OPERATIONS
from tests.instance.test_mcarptif import TEXT as HAULING

SPANISH = (DATA / "small.dat").read_bytes()
MIXED = (DATA / "small_mixed.txt").read_bytes()
FROM_ZERO = SPANISH.replace(b"5)", b"0)").replace(b"( 5", b"( 0")
ENGLISH = (DATA / "ring.dat").read_bytes()
JSON = b"""{"format": "arcfleet-instance", "version": 1, "name": "two",
"depot": 1, "capacity": 7, "route_cost": 3,
"nodes": [1, 2, 4],
"coordinates": [[0.5, 1], [2.25, 3], [4, 5]],
"links": [
{"tail": 1, "head": 2, "cost": 3, "required": true, "demand": 2, "service_cost": 5},
{"tail": 2, "head": 4, "cost": 4, "reverse_cost": 6},
{"tail": 4, "head": 1, "cost": 8, "one_way": true, "name": "Ring"}
]}
"""

OWN = b"""{"format": "arcfleet-instance", "version": 5, "name": "own",
"depot": 1, "capacity": 7, "nodes": [1, 2],
"links": [
{"tail": 1, "head": 2, "cost": 3, "required": true, "demand": 2, "ids": [17, "B-3"]},
{"tail": 2, "head": 1, "cost": 4, "ids": ["a"],
"attributes": {"surface": "gravel", "lanes": 2, "width": 2.5, "lit": true, "owner": null}}
]}
"""

ODD_NUMBERS = [b"0", b"1", b"5", b"00", b"-1", b"+1", b"1.0", b"1e3", b"1_0", b"", b" "]
ODD_NUMBERS += [b"2147483647", b"2147483648", b"9" * 30, b"9" * 5000, b"NaN", b"true"]
ODD_NUMBERS += ["\u0661".encode(), "\uff11".encode(), b"0x1", b"1 1", b"1,1"]
ODD_BYTES = [b"\0", b"\xff", b"\xf1", b"\xef\xbb\xbf", b"\r", b"\n", b"\x0b", b"\x1a"]
ODD_BYTES += ["\u0085".encode(), "\u2028".encode(), *(bytes([c]) for c in b' :()"{#')]
ODD_LINES = [b"", b"  ", b"-----", b"garbage", b"( 1, 2)", b"( 1, 2) coste 3 demanda 1"]
ODD_LINES += [b"( 1, 2) cost 3", b"DEPOT : 1", b"DEPOSITO 2", b"CAPACITY : 3", b"{", b"]"]
ODD_LINES += [b'"capacity": 9,', b"COMENTARIO : ( 1, 2) coste 3", b"LISTA_ARISTAS_REQ"]

Damage = Callable[[st.DrawFn, bytes], bytes]


def cut(draw: st.DrawFn, data: bytes) -> bytes:
    return data[: draw(st.integers(0, len(data)))]


def change_number(draw: st.DrawFn, data: bytes) -> bytes:
    places = list(re.finditer(rb"[0-9]+", data))
    if not places:
        return data
    place = draw(st.sampled_from(places))
    new = draw(st.sampled_from(ODD_NUMBERS) | st.integers(0, 9).map(lambda n: b"%d" % n))
    return data[: place.start()] + new + data[place.end() :]


def change_bytes(draw: st.DrawFn, data: bytes) -> bytes:
    at = draw(st.integers(0, len(data)))
    new = draw(st.sampled_from(ODD_BYTES) | st.binary(max_size=3))
    return data[:at] + new + data[at + draw(st.integers(0, 2)) :]


def change_lines(draw: st.DrawFn, data: bytes) -> bytes:
    lines = data.split(b"\n")
    one = draw(st.integers(0, len(lines) - 1))
    two = draw(st.integers(0, len(lines) - 1))
    what = draw(st.sampled_from(["swap", "repeat", "drop", "insert"]))
    if what == "swap":
        lines[one], lines[two] = lines[two], lines[one]
    elif what == "repeat":
        lines.insert(two, lines[one])
    elif what == "drop":
        del lines[one]
    else:
        lines.insert(one, draw(st.sampled_from(ODD_LINES)))
    return b"\n".join(lines)


def change_all(draw: st.DrawFn, data: bytes) -> bytes:
    changed = [data.replace(b"\n", b"\r\n"), data.lower(), data.replace(b" :", b"")]
    changed += [b"\xef\xbb\xbf" + data, data.decode("latin-1").encode("utf-16")]
    return draw(st.sampled_from(changed))


@st.composite
def damaged(draw: st.DrawFn, originals: tuple[bytes, ...]) -> bytes:
    data = draw(st.sampled_from(originals))
    kinds: list[Damage] = [cut, change_number, change_bytes, change_lines, change_all]
    # Plain cuts are soon all tried; the changes that may pass unseen come more often.
    weighted = [*kinds, change_number, change_lines, change_number, change_lines]
    for damage in draw(st.lists(st.sampled_from(weighted), min_size=1, max_size=3)):
        data = damage(draw, data)
    return data


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mutated") / "file.dat"


def read_or_refuse(file: Path, data: bytes) -> Instance | None:
    """Return the instance; None after a proper refusal."""
    file.write_bytes(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return read(file)
        except FileError as error:
            message = str(error)
    assert message.startswith(str(file))
    assert len(message.splitlines()) == 1
    assert len(message) < len(str(file)) + 400
    return None


def stated(text: str, *keys: str) -> list[int]:
    """Return the numbers that follow any of the keys."""
    spellings = "|".join(keys).replace("_", r"[ _\t]+")
    pattern = rf"(?:{spellings})[\s:]*(\S+)"
    lines = re.split(r"[\r\n]+", text)
    found = [re.fullmatch(pattern, line.strip(), re.IGNORECASE) for line in lines]
    return [int(match[1]) for match in found if match]


def listed(text: str) -> dict[tuple[bool, bool], list[tuple[int, ...]]]:
    """Return the numbers of all bracket lines by (required, one-way)."""
    lists: dict[tuple[bool, bool], list[tuple[int, ...]]] = {}
    kind = (False, False)
    for line in re.split(r"[\r\n]+", text):
        content = line.strip().upper()
        if re.match(r"(LISTA?|EDGE)[_\s]", content):
            kind = (re.search("NOREQ", content) is None, "ARCS" in content)
        elif content.startswith("("):
            numbers = re.findall(r"[-+]?\w*\d[\w.]*", content)
            assert all(re.fullmatch("[0-9]+", number) for number in numbers), line
            lists.setdefault(kind, []).append(tuple(map(int, numbers)))
    return lists


def spelled(link: Link, mixed: bool) -> tuple[int, ...]:
    if not link.required:
        return (link.tail, link.head, link.cost)
    service = (link.service_cost or 0,) if mixed else ()
    return (link.tail, link.head, *service, link.cost, link.demand)


@settings(max_examples=600)
@given(data=damaged((SPANISH, FROM_ZERO, ENGLISH, MIXED)))
def test_damaged_text(file: Path, data: bytes) -> None:
    instance = read_or_refuse(file, data)
    if instance is None:
        return
    text = data.decode("utf-8-sig")
    mixed = bool(stated(text, "DUMPING_COST"))
    lists: dict[tuple[bool, bool], list[tuple[int, ...]]] = {}
    for link in instance.links:
        lists.setdefault((link.required, link.one_way), []).append(spelled(link, mixed))
    assert lists == listed(text)
    assert [instance.capacity] == stated(text, "CAPACIDAD", "CAPACITY")
    assert [instance.depot] == stated(text, "DEPOSITO", "DEPOT")
    assert [len(instance.nodes)] == stated(text, "VERTICES", "NODES")
    assert [instance.route_cost] == (stated(text, "DUMPING_COST") or [0])
    vehicles = [] if instance.stated_vehicles is None else [instance.stated_vehicles]
    assert vehicles == stated(text, "VEHICULOS", "VEHICLES")
    for (required, one_way), links in lists.items():
        keys = ["ARISTAS_REQ", "EDGES_REQ", "REQ_EDGES"]
        keys = ["REQ_ARCS"] if one_way else keys
        keys = keys if required else [key.replace("REQ", "NOREQ") for key in keys]
        assert [len(links)] == stated(text, *keys)
    ends = {instance.depot}.union(*((link.tail, link.head) for link in instance.links))
    english = bool(stated(text, "EDGES_REQ"))
    from_zero = 0 in ends or (english and len(instance.nodes) not in ends)
    assert (0 in instance.nodes) == from_zero


@settings(max_examples=300)
@given(data=damaged((HAULING.encode(), OPERATIONS.encode(), OWN)))
def test_damaged_operations_and_own_data(file: Path, data: bytes) -> None:
    instance = read_or_refuse(file, data)
    if instance is not None:
        write(instance, file, "json")
        assert read(file) == instance


@settings(max_examples=600)
@given(data=damaged((JSON,)))
def test_damaged_json(file: Path, data: bytes) -> None:
    instance = read_or_refuse(file, data)
    if instance is None:
        return

    def members(pairs: list[tuple[str, object]]) -> dict[str, object]:
        assert len(dict(pairs)) == len(pairs)
        return dict(pairs)

    found = json.loads(data.decode("utf-8-sig"), object_pairs_hook=members)
    assert found.pop("format") == "arcfleet-instance"
    assert found.pop("version") in (1, 2, 3, 4, 5)  # a damaged 1 may be a 2
    assert list(instance.nodes) == found.pop("nodes")
    points = [(float(x), float(y)) for x, y in found.pop("coordinates", [])]
    assert list(instance.coordinates) == points
    links = found.pop("links")
    assert len(links) == len(instance.links)
    for link, said in zip(instance.links, links, strict=True):
        for key, value in said.items():
            assert getattr(link, key) == value
            assert type(getattr(link, key)) is type(value)
        assert link.required == said.get("required", False)
        assert link.one_way == said.get("one_way", False)
        assert link.demand == said.get("demand", 0)
        assert link.cost == said["cost"]
    for key, value in found.items():
        assert getattr(instance, key) == value
        assert type(getattr(instance, key)) is type(value)
    assert instance.route_cost == found.get("route_cost", 0)
    assert {"name", "depot", "capacity"} <= found.keys()


def test_undamaged_files_are_read(file: Path) -> None:
    for data in (SPANISH, FROM_ZERO, ENGLISH, MIXED, JSON, OWN):
        assert read_or_refuse(file, data) is not None
