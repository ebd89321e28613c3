import os
from pathlib import Path
from typing import Any

import pytest

from arcfleet._files import write_text_atomically
from arcfleet.errors import FileError, FormatWarning, InstanceError, OptionError
from arcfleet.instance.files import check_holds, read, write
from arcfleet.instance.formats import FORMATS, Format
from arcfleet.instance.instance import Instance, Link
from arcfleet.instance.operations import Facility
from tests.helpers import MIXED, SMALL, make_instance, refused


def lane(**changes: Any) -> Link:
    return Link(**({"tail": 1, "head": 2, "cost": 3, "required": True} | changes))


def instance_of(*links: Link, **more: Any) -> Instance:
    return make_instance(*links, **({"name": "x", "nodes": (1, 2)} | more))


@pytest.mark.parametrize(
    ("instance", "name"),
    [
        (read(SMALL), "x.dat"),
        (read(SMALL), "x.json"),
        (read(MIXED), "x.txt"),
        (read(MIXED), "x.json"),
        # What looks like a key is none.
        (instance_of(name=": DEPOSITO : 2", comment="LISTA_ARISTAS_REQ :"), "x.dat"),
    ],
)
def test_what_is_written_reads_back_equal(
    tmp_path: Path, instance: Instance, name: str
) -> None:
    write(instance, tmp_path / name)
    assert read(tmp_path / name) == instance


def test_format_goes_by_content_when_reading(tmp_path: Path) -> None:
    instance = read(SMALL)
    write(instance, tmp_path / "x.json", file_format="carplib")
    assert (tmp_path / "x.json").read_text().startswith("NOMBRE : small\n")
    assert read(tmp_path / "x.json") == instance


def test_unknown_suffix_and_format_are_errors_with_a_suggestion(tmp_path: Path) -> None:
    instance = instance_of(lane())
    with pytest.raises(OptionError, match=r"got 'x\.jsn'; did you mean \.json\?"):
        write(instance, tmp_path / "x.jsn")
    with pytest.raises(OptionError, match="got 'carplb'; did you mean carplib"):
        write(instance, tmp_path / "x.dat", file_format="carplb")
    # The English dialect is read and not written.
    formats = "expected file_format json, carplib, mcarp or mcarptif"
    with pytest.raises(OptionError, match=formats):
        write(instance, tmp_path / "x", file_format="carplib-english")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("instance", "obstacle", "remedy"),
    [
        (instance_of(lane(one_way=True)), "one-way street of link 0", "MCARP"),
        (instance_of(lane(service_cost=9)), "service cost 9 unlike cost 3", "MCARP"),
        (instance_of(lane(reverse_cost=9)), "costs 3 and 9 by direction", "JSON"),
        (instance_of(lane(reverse_service_cost=9)), "costs 3 and 9", "JSON"),
        (instance_of(lane(), route_cost=1), "route cost 1", "MCARP"),
        (instance_of(lane(), fleet_limit=1), "fleet limit 1", "JSON"),
        (instance_of(lane(), nodes=(1, 2, 4)), "nodes that are not", "JSON"),
        (instance_of(lane(), nodes=(0, 1, 2)), "no link shows node 0", "JSON"),
    ],
)
def test_what_the_text_cannot_hold_is_refused(
    tmp_path: Path, instance: Instance, obstacle: str, remedy: str
) -> None:
    suffix = r"\.txt file \(MCARP\)" if remedy == "MCARP" else r"\.json file"
    with pytest.raises(InstanceError, match=f"{obstacle}.*; write a {suffix} instead"):
        write(instance, tmp_path / "x.dat")
    assert list(tmp_path.iterdir()) == []
    if remedy == "MCARP":
        write(instance, tmp_path / "x.txt")
        assert read(tmp_path / "x.txt") == instance
    else:
        with pytest.raises(InstanceError, match=r"write a \.json file instead"):
            write(instance, tmp_path / "x.txt")


@pytest.mark.parametrize(
    ("instance", "loss"),
    [
        (instance_of(lane(name="High Street")), "street names"),
        (instance_of(coordinates=((0.0, 1.0), (2.0, 3.0))), "coordinates"),
        (instance_of(upper_bound=3), "the upper bound"),
        (instance_of(name="a\nDEPOSITO : 2"), "space around.* in the name"),
        (instance_of(comment=" a "), "space around or line ends in the comment"),
        (instance_of(lane(required=False), lane()), "the order of the links"),
    ],
)
def test_what_the_text_loses_is_a_warning(
    tmp_path: Path, instance: Instance, loss: str
) -> None:
    with pytest.warns(FormatWarning, match=rf"x\.dat: Spanish CARPLIB cannot keep {loss};"):
        write(instance, tmp_path / "x.dat")
    again = read(tmp_path / "x.dat")
    assert again.depot == instance.depot
    assert len(again.links) == len(instance.links)
    assert again.name == " ".join(instance.name.split())


@pytest.mark.parametrize(
    ("data", "line", "message"),
    [
        (b"", None, "found no key"),
        (b"\n\n", None, "found no key"),
        (b"NOMBRE : a\nCOMENTARIO : \xf1\n", 2, "the byte 0xf1; convert the file to UTF-8"),
        (b"NOMBRE : a\r\n\0", 2, "a NUL byte"),
        ("NOMBRE : a".encode("utf-16"), 1, "expected UTF-8 text"),
        (b"import os\n", 1, "found 'import os'"),
    ],
)
def test_what_is_no_instance_is_an_error(
    tmp_path: Path, data: bytes, line: int | None, message: str
) -> None:
    file = tmp_path / "x.dat"
    file.write_bytes(data)
    with refused(FileError, message, line):
        read(file)


def test_missing_files_and_directories_are_errors(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"none\.dat: expected a file, found nothing"):
        read(tmp_path / "none.dat")
    with pytest.raises(FileError, match="found a directory"):
        read(tmp_path)
    with pytest.raises(FileError, match="cannot be read"):
        read("a\0b")
    with pytest.raises(FileError, match="create it first"):
        write(instance_of(), tmp_path / "none" / "x.dat")
    with pytest.raises(FileError, match="found a directory"):
        write(instance_of(), tmp_path, file_format="json")


def test_failed_write_leaves_the_old_file_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    file = tmp_path / "x.dat"
    file.write_text("old")
    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(FileError, match=r"No space left.*choose another place"):
        write_text_atomically(file, "new")
    assert [path.name for path in tmp_path.iterdir()] == ["x.dat"]
    assert file.read_text() == "old"
    with pytest.raises(FileError, match="UTF-8 can hold"):
        write_text_atomically(tmp_path / "x.json", "\ud800")
    assert list(tmp_path.iterdir()) == [file]


def test_written_file_has_usual_permissions_and_links_stay(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("")
    target, link = tmp_path / "target", tmp_path / "link"
    write_text_atomically(target, "first")
    assert target.stat().st_mode == plain.stat().st_mode
    target.chmod(0o640)
    link.symlink_to(target)
    write_text_atomically(link, "second\n")
    assert os.path.islink(link)  # noqa: PTH114
    assert target.read_bytes() == b"second\n"
    assert target.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    "name",
    ["town.osm.pbf", "a.pbf", "town.OSM", "town.osm.gz", "town.osm.bz2", "a.geojson"],
)
def test_a_street_map_is_sent_to_scene(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_bytes(b"\x00\x00\x00\rOSMHeader")
    with pytest.raises(FileError, match=r"found a street map; .*`arcfleet scene`"):
        read(file)


def test_a_format_is_one_entry_of_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_list(path: Path | str, text: str) -> Instance:
        costs = text.split()[1:]
        return instance_of(*(lane(cost=int(cost)) for cost in costs))

    def write_list(path: Path | str, instance: Instance) -> str:
        return "COSTS " + " ".join(str(link.cost) for link in instance.links)

    costs = Format(
        name="costs",
        suffixes=(".costs",),
        recognise=lambda text: text.startswith("COSTS"),
        read=read_list,
        write=write_list,
    )
    monkeypatch.setitem(FORMATS, "costs", costs)
    instance = instance_of(lane(cost=7), lane(cost=9))
    write(instance, tmp_path / "x.costs")
    assert (tmp_path / "x.costs").read_text() == "COSTS 7 9"
    assert read(tmp_path / "x.costs") == instance
    write(instance, tmp_path / "x.txt", file_format="costs")
    assert read(tmp_path / "x.txt") == instance
    with pytest.raises(OptionError, match="did you mean costs"):
        write(instance, tmp_path / "x.txt", file_format="cost")
    with pytest.raises(OptionError, match=r"\.costs \(costs\), got 'x\.xml'"):
        write(instance, tmp_path / "x.xml")


def test_examples_have_names() -> None:
    denver = read("example:denver")
    assert denver.name == "denver"
    assert denver.required
    with refused(OptionError, "expected example:denver, got 'example:denvr'"):
        read("example:denvr")


def test_what_a_file_cannot_hold_is_known_before_it_is_written(tmp_path: Path) -> None:
    hauling = instance_of(lane(demand=1), facilities=(Facility(node=2),))
    located = instance_of(lane(demand=1), coordinates=((0.0, 0.0), (0.0, 0.1)))
    check_holds(hauling, tmp_path / "x.json")
    with refused(InstanceError, "expected an instance that"):
        check_holds(hauling, tmp_path / "x.dat")
    # What is lost without changing the problem is said when it is written.
    check_holds(located, tmp_path / "x.dat")
    with pytest.warns(FormatWarning, match="coordinates"):
        write(located, tmp_path / "x.dat")


def test_a_suffix_of_two_formats_takes_the_first_that_can_hold(tmp_path: Path) -> None:
    plain = instance_of(lane(demand=1))
    hauling = instance_of(
        lane(demand=1),
        facilities=(Facility(node=2),),
        max_route_cost=99,
        fewest_routes=True,
    )
    for instance, has_dumping_sites in ((plain, False), (hauling, True)):
        write(instance, tmp_path / "x.txt")
        assert ("DUMPING_SITES" in (tmp_path / "x.txt").read_text()) == has_dumping_sites
        assert read(tmp_path / "x.txt") == instance
    # What is refused names the file that can hold it.
    with refused(InstanceError, "write a .txt file (MCARP"):
        write(instance_of(lane(demand=1, one_way=True)), tmp_path / "x.dat")
    with refused(InstanceError, "write a .json file instead"):
        write(instance_of(lane(demand=1), compactness=3), tmp_path / "x.dat")
