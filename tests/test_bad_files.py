"""Files found by mutation, each of which once ended in another error than one sentence."""

import bz2
import gzip
import json
import zipfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from arcfleet import _files
from arcfleet._files import read_toml, read_unpacked
from arcfleet.bench.run import RUNS
from arcfleet.bench.suite import read_suite
from arcfleet.datasets.array_file import write_array_file
from arcfleet.datasets.dataset import FORMAT, Dataset
from arcfleet.datasets.store import read_records
from arcfleet.errors import ArcfleetError, FileError, OptionError
from arcfleet.neural.train.recipe import load_recipe
from arcfleet.paper.convergence import read_curves
from arcfleet.report.pmtiles import PMTiles
from arcfleet.streets.area import Polygons
from arcfleet.streets.files import read_map
from arcfleet.streets.fleet import read_vehicles
from arcfleet.streets.tables import read_table
from tests.fuzz.readers import READERS, Reader
from tests.report.pmtiles_files import pmtiles

OSM = next(iter(READERS["osm-xml"].samples())).files["town.osm"]


def refuse(read: Callable[[Any], object], path: Path, message: str) -> None:
    with pytest.raises(FileError, match=message) as caught:
        read(path)
    said = str(caught.value)
    assert said.startswith(str(path.parent))
    assert len(said.splitlines()) == 1
    assert len(said) < len(str(path)) + 400


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'lat="48.1"', b'lat="+1"'),
        (b'lat="48.1"', b'lat="4294967296"'),
        (b'id="1"', b'id="9223372036854775808"'),
        (b'id="1"', b'id="1.5"'),
        (b'version="1"', b'version="nan"'),
        (b'version="0.6"', b'version="' + b"9" * 5000 + b'"'),
        (b"2020-01-01T", b"2020-01nullT"),
        (b'changeset="7"', b'changeset="1e-400"'),
    ],
)
def test_numbers_of_an_extract(tmp_path: Path, old: bytes, new: bytes) -> None:
    path = tmp_path / "town.osm"
    assert old in OSM
    path.write_bytes(OSM.replace(old, new, 1))
    refuse(read_map, path, "expected an OpenStreetMap extract")


@pytest.mark.parametrize("text", ["residential", "Lange", "no_left_turn", "via"])
def test_broken_texts_in_pbf(tmp_path: Path, text: str) -> None:
    import osmium

    (tmp_path / "town.osm").write_bytes(OSM)
    path = tmp_path / "town.pbf"
    with osmium.SimpleWriter(
        osmium.io.File(str(path), "pbf,pbf_compression=none")
    ) as writer:
        for thing in osmium.FileProcessor(str(tmp_path / "town.osm")):
            writer.add(thing)
    data = path.read_bytes()
    assert text.encode() in data
    path.write_bytes(data.replace(text.encode(), b"\xff" * len(text)))
    refuse(read_map, path, "expected")


@pytest.mark.parametrize("name", ["a.gz", "a.bz2", "a.osm.gz", "a.osm.bz2"])
def test_what_unpacks_to_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(_files, "UNPACKED_LIMIT", 5 << 20)
    pack = gzip.compress if name.endswith("gz") else bz2.compress
    path = tmp_path / name
    start = b"<osm>" if "osm" in name else b""
    path.write_bytes(pack(start + bytes(4 << 20)))
    if not start:
        assert read_unpacked(path) == bytes(4 << 20)
    path.write_bytes(pack(start + bytes(5 << 20) + b" "))
    refuse(
        read_map if start else read_unpacked, path, "expected at most 5 MiB when unpacked"
    )


@pytest.mark.parametrize("name", ["a.gz", "a.bz2", "a.zip"])
def test_large_files_that_are_packed_as_maps_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(_files, "UNPACKED_LIMIT", 1 << 10)
    path = tmp_path / name
    text = b"".join(b"%d," % (number * 7919 % 65_537) for number in range(20_000))
    if name.endswith("zip"):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a.csv", text)
        with zipfile.ZipFile(path) as archive:
            _files.check_zip_size(path, archive)
        return
    path.write_bytes((gzip.compress if name.endswith("gz") else bz2.compress)(text))
    assert read_unpacked(path) == text


def test_zip_files_that_unpack_to_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_files, "UNPACKED_LIMIT", 1 << 20)
    for name in ("a.xlsx", "a.ods", "a.zip", "a.kmz", "a.npz"):
        path = tmp_path / name
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("doc.kml", bytes(2 << 20))
            archive.writestr("header.npy", b"")
        read = Dataset.open if name.endswith("npz") else read_table
        refuse(read, path, "expected at most 1 MiB when unpacked")


def test_tiles_that_unpack_to_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_files, "UNPACKED_LIMIT", 1 << 20)
    path = tmp_path / "a.pmtiles"
    path.write_bytes(pmtiles({(0, 0, 0): bytes(2 << 20)}, tile_packing=2))

    def read(path: Path) -> object:
        with PMTiles(path) as tiles:
            return tiles.tile(0, 0, 0)

    refuse(read, path, "expected at most 1 MiB when unpacked")


_LAUGHS = "".join(
    f'<!ENTITY {name} "{f"&{of};" * 10}">' for of, name in pairwise("abcdefghijk")
)


@pytest.mark.parametrize("name", ["a.osm", "a.kml", "a.gpx"])
def test_entities_that_grow(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    sample = {
        "a.osm": OSM.decode(),
        **{x.named: x.files[x.named].decode() for x in READERS["layer-maps"].samples()[:2]},
    }[name]
    start, declaration, rest = sample.partition("?>")
    root = name.removeprefix("a.")
    bomb = f'<!DOCTYPE {root} [<!ENTITY a "lol">{_LAUGHS}]>'
    old = "residential" if root == "osm" else ">A<"
    assert old in rest
    rest = rest.replace(old, "&k;" if root == "osm" else ">&k;<")
    path.write_text(start + declaration + bomb + rest, encoding="utf-8")
    refuse(read_map, path, "expected")


def test_rings_that_are_open(tmp_path: Path) -> None:
    path = tmp_path / "a.kml"
    path.write_text(
        '<kml xmlns="http://www.opengis.net/kml/2.2"><Placemark><Polygon><outerBoundaryIs>'
        "<LinearRing><coordinates>8,48 8.1,48 8.1,48.1 8,48.2</coordinates></LinearRing>"
        "</outerBoundaryIs></Polygon></Placemark></kml>"
    )
    refuse(read_table, path, "cut or broken")
    refuse(Polygons, path, "cut or broken")


def test_places_that_are_no_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.kml"
    path.write_text(
        '<kml xmlns="http://www.opengis.net/kml/2.2"><Placemark><LineString><coordinates>'
        "8,48 nan,48 8.1,48.1 8,48</coordinates></LineString></Placemark></kml>"
    )
    refuse(read_table, path, "expected longitude and latitude in degrees, found nan,48")
    refuse(Polygons, path, "expected longitude and latitude in degrees, found nan,48")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"a = " + b"9" * 5000, "too many digits"),
        (b"a = 0x" + b"f" * 5000, "64 bits at most"),
        (b"a = [[1, {b = 9223372036854775808}]]", "64 bits at most"),
        (b"a = " + b"[" * 5000, "nested too deeply"),
        (b"a = 1\nb = '\xff'", r"some.toml:2: expected UTF-8 text"),
    ],
)
def test_settings(tmp_path: Path, text: bytes, message: str) -> None:
    path = tmp_path / "some.toml"
    path.write_bytes(text)
    for read in (read_toml, read_vehicles, load_recipe, lambda x: read_suite(str(x))):
        refuse(read, path, message)


def test_messages_are_short(tmp_path: Path) -> None:
    path = tmp_path / "some.toml"
    path.write_text(f"[[vehicle]]\n{'9' * 5000} = 1\n")
    refuse(read_vehicles, path, "expected a key of a vehicle")
    path.write_text(f'[[stage]]\nname = "a"\nphase = "{"p" * 5000}"\n')
    refuse(load_recipe, path, "expected phase")
    path.write_text(f'folder = "{"f" * 5000}"\n[[sets]]\nname = "a"\nfiles = ["b"]\n')
    refuse(lambda x: read_suite(str(x)), path, "expected folder to be a directory")


@pytest.mark.parametrize("bound", ["9" * 5000, "1" * 20, "\u0663", "-1"])
def test_references_of_a_suite(tmp_path: Path, bound: str) -> None:
    (tmp_path / "best.csv").write_text(f"name,upper_bound\na,{bound}\n", encoding="utf-8")
    path = tmp_path / "some.toml"
    path.write_text(
        'folder = "."\nreferences = "best.csv"\n[[sets]]\nname = "a"\nfiles = ["*"]'
    )
    refuse(
        lambda x: read_suite(str(x)), path, "best.csv:2: expected whole numbers as bounds"
    )


def arrays() -> dict[str, Any]:
    """An instance of two nodes and a link."""
    one = {"num_nodes": 2, "num_links": 1, "depot": 0, "source": 0, "tail": 0, "head": 1}
    one |= {"cost": 3, "one_way": 0, "demand": 1}
    found: dict[str, Any] = {name: np.array([value]) for name, value in one.items()}
    return found | {name: np.array([8.0, 8.5]) for name in ("longitude", "latitude")}


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("cost", np.array([3.0])),
        ("cost", np.array(["3"])),
        ("cost", np.array([3 + 1j])),
        ("cost", np.array([3], dtype="M8[s]")),
        ("cost", np.array([2**31])),
        ("demand", np.array([-1])),
        ("num_links", np.array([-1])),
        ("num_nodes", np.array(["2"])),
        ("depot", np.array([7])),
        ("head", np.array([7])),
        ("latitude", np.array([8.0, np.nan])),
        ("latitude", np.array([8, 9])),
        ("latitude", np.array([8.0, 1e300])),
    ],
)
def test_arrays_of_a_data_set(tmp_path: Path, name: str, values: Any) -> None:
    path = tmp_path / "some.npz"
    facts = {"name": "some", "capacity": 9, "credit": "", "count": 1}

    def read(path: Path) -> object:
        dataset = Dataset.open(path)
        return dataset[0], dataset.padded([0])

    write_array_file(path, FORMAT, 1, facts, arrays())
    read(path)
    write_array_file(path, FORMAT, 1, facts, arrays() | {name: values})
    refuse(read, path, "make it again")


@pytest.mark.parametrize("change", [{"capacity": 2**40}, {"count": -1}, {"count": 2**70}])
def test_numbers_in_the_header_of_a_data_set(
    tmp_path: Path, change: dict[str, int]
) -> None:
    facts = {"name": "some", "capacity": 9, "credit": "", "count": 1}
    write_array_file(tmp_path / "some.npz", FORMAT, 1, facts | change, arrays())
    refuse(Dataset.open, tmp_path / "some.npz", "expected a header with")


@pytest.mark.parametrize("limit", [10**400, float("inf"), float("nan")])
def test_numbers_of_a_run_that_are_not_finite(tmp_path: Path, limit: float) -> None:
    path = tmp_path / "runs.jsonl"
    facts: dict[str, Any] = {"format": RUNS.name, "set_name": "s", "instance": "i"}
    facts |= {"method": "m", "seed": 0, "time_limit": limit, "stop_at_reference": False}
    facts |= {"machine": "", "commit": "", "reference": 1, "error": "x"}
    path.write_text(json.dumps(facts) + "\n")
    refuse(lambda x: read_records(x, RUNS), path, "jsonl:1: expected a run")


@pytest.mark.parametrize(
    "line",
    [
        b'{"gaps": {"val": {"greedy": "\xff"}}}',
        b'{"step": 1, "seconds": 1%s, "gaps": {}}' % (b"0" * 400),
        b'{"step": Infinity, "seconds": 1, "gaps": {}}',
        b'{"step": 1, "seconds": 1, "gaps": {"val": {"greedy": NaN}}}',
        b'{"a":' * 5000,
    ],
)
def test_metrics(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(line + b"\n{}\n")
    refuse(lambda x: read_curves([("run", x.parent)]), path, "jsonl:1: expected")


@pytest.mark.parametrize(
    "name",
    ["x" * 5000, "a\0b", "\ud800", "x" * 300 + ".nodes.csv"],
    ids=["long", "nul", "surrogate", "long part of a pair"],
)
@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_names_that_no_file_can_have(tmp_path: Path, reader: Reader, name: str) -> None:
    with pytest.raises(ArcfleetError):
        reader.read(tmp_path / name)


@pytest.mark.parametrize(
    ("group", "message"),
    [
        ("file = 1.5", "expected data.a.file"),
        ("seeds = 3", "expected data.a.seeds"),
        ("seeds = []", "expected data.a.tasks and seeds to name data sets"),
        ('file = "{tasks:999999999999}"', None),
    ],
)
def test_names_of_data_sets(tmp_path: Path, group: str, message: str | None) -> None:
    path = tmp_path / "some.toml"
    text = f"[data.a]\ntasks = [20]\ncount = 5\n{group}\n"
    text += '[[stage]]\nname = "a"\nphase = "pretrain"\nsteps = 1\ndata = ["a"]\n'
    path.write_text(text)
    if message is not None:
        refuse(load_recipe, path, message)
    else:
        files = [file.path.name for file in load_recipe(path).stages[0].data]
        assert files == ["{tasks:999999999999}.npz"]


@pytest.mark.parametrize(
    "text", ["vehicle = [1]", "vehicle = [[[]]]", 'vehicle = ["a", {}]']
)
def test_vehicles_that_are_no_tables(tmp_path: Path, text: str) -> None:
    path = tmp_path / "some.toml"
    path.write_text(text)
    refuse(read_vehicles, path, "expected tables")


@pytest.mark.parametrize("name", ["x" * 5000, "/none.csv", ".."])
def test_references_that_are_no_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / "some.toml"
    text = f'folder = "."\nreferences = "{name}"\n[[sets]]\nname = "a"\nfiles = ["*"]'
    path.write_text(text)
    refuse(lambda x: read_suite(str(x)), path, "some.toml: expected references in")


def test_data_sets_with_names_that_no_file_has() -> None:
    from arcfleet.neural.train.data import require_distinct

    with pytest.raises(OptionError, match="names of files as data sets to train on"):
        require_distinct(["a\0b"], "to train on")
