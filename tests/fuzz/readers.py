"""Every reader of files: how to make valid ones, how to damage them, how to read them."""

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np

from tests.fuzz.mutate import (
    BINARY,
    JSON,
    TEXT,
    TOML,
    Mutator,
    change_value,
    damaged,
    in_bzip2,
    in_gzip,
    in_json_line,
    in_pbf,
    in_zip,
)
from tests.helpers import DATA

ROOT = Path(__file__).parents[2]
Kinds = tuple[Mutator, ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """A valid input: its files, which of them is named, and how each may be damaged."""

    files: dict[str, bytes]
    named: str
    kinds: dict[str, Kinds]

    def mutant(self, random: Random) -> dict[str, bytes]:
        """Return the files with one of them damaged."""
        name = random.choice(sorted(self.kinds))
        return {**self.files, name: damaged(random, self.files[name], self.kinds[name])}


@dataclass(frozen=True, slots=True)
class Reader:
    """A reader: `make` writes valid files into a folder, `read` takes the named one."""

    name: str
    make: Callable[[Path], list[Sample]]
    read: Callable[[Path], object]

    def samples(self) -> list[Sample]:
        """Return the valid inputs."""
        with TemporaryDirectory() as folder:
            return self.make(Path(folder))


def one(name: str, data: bytes | str, kinds: Kinds) -> Sample:
    data = data.encode() if isinstance(data, str) else data
    return Sample({name: data}, name, {name: kinds})


def from_folder(folder: Path, named: str, kinds: Kinds) -> Sample:
    """Return all files of a folder as one sample, any of which is damaged; empties it."""
    files = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
    for path in folder.iterdir():
        path.unlink()
    return Sample(files, named, dict.fromkeys(files, kinds))


# --- Instances and plans ------------------------------------------------------------------


def _instances(folder: Path) -> list[Sample]:
    names = ("small.dat", "small_mixed.txt", "ring.dat")
    samples = [one(name, (DATA / name).read_bytes(), TEXT) for name in names]
    return [
        *samples,
        one("village.json", (ROOT / "examples/village.json").read_bytes(), JSON),
        one("own.json", json.dumps(_own_instance().to_dict()), JSON),
    ]


def _own_instance() -> Any:
    """Return an instance whose links have ids and attributes of their owner."""
    from dataclasses import replace

    from arcfleet.instance.files import read

    instance = read(DATA / "small.dat")
    own: dict[str, Any] = {
        "surface": "gravel",
        "lanes": 2,
        "width": 2.5,
        "lit": True,
        "owner": None,
    }
    links = tuple(
        replace(link, ids=(number, f"B-{number}"), attributes=own)
        for number, link in enumerate(instance.links)
    )
    return replace(instance, links=links)


def _read_instance(path: Path) -> object:
    from arcfleet.instance.files import read

    return read(path)


def _plans(folder: Path) -> list[Sample]:
    from arcfleet.instance.files import read
    from arcfleet.methods import solve
    from arcfleet.search.stop import Stop
    from arcfleet.solution.files import write_solution

    instance = read(DATA / "small.dat")
    solution = solve(instance, stop=Stop(iterations=10)).solution
    samples = []
    for name, kinds in (("plan.json", JSON), ("plan.sol", TEXT)):
        write_solution(instance, solution, folder / name)
        samples.append(one(name, (folder / name).read_bytes(), kinds))
    own = json.dumps(solution.to_dict(_own_instance()))
    return [*samples, one("own-plan.json", own, JSON)]


def _read_plan(path: Path) -> object:
    from arcfleet.instance.files import read
    from arcfleet.solution.files import read_solution

    has_ids = path.name == "own-plan.json"
    return read_solution(path, _own_instance() if has_ids else read(DATA / "small.dat"))


# --- Maps ---------------------------------------------------------------------------------

_OSM = """<?xml version="1.0" encoding="UTF-8"?>
<osm version="0.6">
<bounds minlat="48" minlon="8" maxlat="49" maxlon="9"/>
<node id="1" lat="48.1" lon="8.1" version="1" timestamp="2020-01-01T00:00:00Z"/>
<node id="2" lat="48.2" lon="8.1" version="1" uid="3" user="x" changeset="7"/>
<node id="3" lat="48.2" lon="8.2" version="2"/><node id="-4" lat="48.3" lon="8.25"/>
<way id="7" version="1"><nd ref="1"/><nd ref="2"/><nd ref="3"/>
<tag k="highway" v="residential"/><tag k="name" v="Lange Straße"/>
<tag k="maxspeed" v="50"/></way>
<way id="8" version="1"><nd ref="3"/><nd ref="-4"/><nd ref="1"/>
<tag k="highway" v="primary"/><tag k="oneway" v="yes"/><tag k="width" v="2.5 m"/></way>
<relation id="5" version="1"><member type="way" ref="7" role="from"/>
<member type="node" ref="3" role="via"/><member type="way" ref="8" role="to"/>
<tag k="type" v="restriction"/><tag k="restriction" v="no_left_turn"/></relation>
</osm>
"""
_NODES = "id,lon,lat\n12,8.0,48.0\n40,8.001,48.0\n"
_EDGES = (
    "u,v,length_m,oneway,highway,name,geometry\n"
    '12,40,74.5,1,residential,"Lange Straße, ""Ost""",\n'
    "40,12,80,0,,,8.001 48.0;8.0005 48.0001;8.0 48.0\n"
)
_LINES = {
    "type": "FeatureCollection",
    "features": [
        {
            "type": "Feature",
            "properties": {
                **{"highway": "residential", "name": "A", "maxspeed": 30},
                "segment": "A-7",
            },
            "geometry": {"type": "LineString", "coordinates": [[8.1, 48], [8.2, 48.1]]},
        },
        {
            "type": "Feature",
            "properties": {
                **{"highway": ["primary"], "oneway": True, "lanes": 2.0},
                "segment": 17,
            },
            "geometry": {
                "type": "MultiLineString",
                "coordinates": [[[8.2, 48.1], [8.1, 48.2], [8.1, 48]]],
            },
        },
    ],
}
_GPX = (
    '<?xml version="1.0"?><gpx version="1.1" creator="x" '
    'xmlns="http://www.topografix.com/GPX/1/1"><trk><name>A</name><trkseg>'
    '<trkpt lat="48.1" lon="8.1"/><trkpt lat="48.2" lon="8.1"/>'
    '<trkpt lat="48.2" lon="8.2"/><trkpt lat="48.1" lon="8.1"/></trkseg></trk></gpx>'
)
_KML = (
    '<?xml version="1.0"?><kml xmlns="http://www.opengis.net/kml/2.2"><Document>'
    "<Placemark><name>A</name><ExtendedData><Data name='demand'><value>3</value></Data>"
    "</ExtendedData><Polygon><outerBoundaryIs><LinearRing><coordinates>8,48 8.1,48 "
    "8.1,48.1 8,48</coordinates></LinearRing></outerBoundaryIs></Polygon></Placemark>"
    "<Placemark><LineString><coordinates>8,48 8.1,48 8,48.1 8,48</coordinates></LineString>"
    "</Placemark></Document></kml>"
)


def _osm_xml(folder: Path) -> list[Sample]:
    import bz2
    import gzip

    data = _OSM.encode()
    return [
        one("town.osm", data, TEXT),
        one("town.osm.gz", gzip.compress(data, mtime=0), (in_gzip(TEXT), *BINARY)),
        one("town.osm.bz2", bz2.compress(data), (in_bzip2(TEXT), *BINARY)),
    ]


def _osm_pbf(folder: Path) -> list[Sample]:
    import osmium

    (folder / "town.osm").write_text(_OSM, encoding="utf-8")
    with osmium.SimpleWriter(str(folder / "town.pbf")) as writer:
        for thing in osmium.FileProcessor(str(folder / "town.osm")):
            writer.add(thing)
    data = (folder / "town.pbf").read_bytes()
    return [one("town.pbf", data, (in_pbf, in_pbf, in_pbf, *BINARY))]


def _csv_pair(folder: Path) -> list[Sample]:
    import gzip

    names = ("town.nodes.csv", "town.edges.csv")
    plain = dict(zip(names, (_NODES.encode(), _EDGES.encode()), strict=True))
    packed = {f"{name}.gz": gzip.compress(plain[name], mtime=0) for name in names}
    return [
        Sample(plain, "town", dict.fromkeys(plain, TEXT)),
        Sample(packed, "town", dict.fromkeys(packed, (in_gzip(TEXT), *BINARY))),
    ]


def _geojson(folder: Path) -> list[Sample]:
    import bz2
    import gzip

    data = json.dumps(_LINES).encode()
    return [
        one("town.geojson", data, JSON),
        one("town.geojson.gz", gzip.compress(data, mtime=0), (in_gzip(JSON), *BINARY)),
        one("town.geojson.bz2", bz2.compress(data), (in_bzip2(JSON), *BINARY)),
    ]


def _map_layers(folder: Path) -> list[Sample]:
    from shapely import LineString

    rows = [{"highway": "residential", "name": "A", "other_tags": '"a"=>"b"'}] * 2
    shapes = [LineString([(8, 48), (8.1, 48)]), LineString([(8.1, 48), (8.1, 48.1)])]
    return [
        one("a.gpx", _GPX, TEXT),
        one("a.kml", _KML, TEXT),
        *_shaped(folder, rows, shapes),
    ]


def _shaped(folder: Path, rows: list[dict[str, Any]], shapes: list[Any]) -> list[Sample]:
    """Return a GeoPackage, a Shapefile and the same packed."""
    from tests.fuzz.mutate import zip_of
    from tests.streets.own_files import write_layer

    write_layer(folder / "rows.gpkg", "GPKG", rows, shapes)
    package = from_folder(folder, "rows.gpkg", BINARY)
    write_layer(folder / "rows.shp", "ESRI Shapefile", rows, shapes)
    shape = from_folder(folder, "rows.shp", (*BINARY, *BINARY, *TEXT))
    packed = zip_of(list(shape.files.items()))
    kmz = zip_of([("doc.kml", _KML.encode())])
    return [
        *(package, shape, one("rows.zip", packed, (in_zip(BINARY + TEXT), *BINARY))),
        one("rows.kmz", kmz, (in_zip(TEXT), *BINARY)),
    ]


def _read_map(path: Path) -> object:
    from arcfleet.streets.files import read_map

    return read_map(path)


def _read_own_map(path: Path) -> object:
    from arcfleet.streets.files import read_map

    return read_map(path, id="segment", merge_chains=False)


# --- Own data, areas, vehicles, tiles -----------------------------------------------------

_ROWS = [
    {
        "street": "Lange Straße",
        "demand": 3,
        "lon": "8.1",
        "lat": "48.1",
        "when": "2020-01-01",
    },
    {"street": "B", "demand": 5, "lon": "8.2", "lat": "48.2", "when": "-"},
]


def _tables(folder: Path) -> list[Sample]:
    import gzip

    from shapely import Point

    from tests.streets.own_files import write_csv, write_geojson

    text = write_csv(folder / "rows.csv", _ROWS).read_bytes()
    shapes = [Point(8.1, 48.1), Point(8.2, 48.2)]
    document = write_geojson(folder / "rows.geojson", _ROWS, shapes).read_bytes()
    for path in folder.iterdir():
        path.unlink()
    return [
        one("rows.csv", text, TEXT),
        one("rows.csv.gz", gzip.compress(text, mtime=0), (in_gzip(TEXT), *BINARY)),
        one("rows.geojson", document, JSON),
        *(one("a.gpx", _GPX, TEXT), one("a.kml", _KML, TEXT)),
    ]


def _sheets(folder: Path) -> list[Sample]:
    from tests.streets.own_files import write_layer

    samples = []
    for name, driver in (("rows.xlsx", "XLSX"), ("rows.ods", "ODS")):
        data = write_layer(folder / name, driver, _ROWS).read_bytes()
        samples.append(one(name, data, (in_zip(TEXT), in_zip(TEXT), *BINARY)))
    return samples


def _table_layers(folder: Path) -> list[Sample]:
    from shapely import Point

    return _shaped(folder, _ROWS, [Point(8.1, 48.1), Point(8.2, 48.2)])


def _read_table(path: Path) -> object:
    from arcfleet.streets.tables import read_table

    return read_table(path)


def _areas(folder: Path) -> list[Sample]:
    from shapely import Polygon

    ring = [[8.0, 48.0], [8.1, 48.0], [8.1, 48.1], [8.0, 48.0]]
    hole = [[8.05, 48.01], [8.06, 48.01], [8.06, 48.02], [8.05, 48.01]]
    features = [
        {"type": "Feature", "properties": {}, "geometry": {"type": kind, "coordinates": of}}
        for kind, of in (("Polygon", [ring, hole]), ("MultiPolygon", [[ring]]))
    ]
    document = {"type": "FeatureCollection", "features": features}
    return [
        one("area.geojson", json.dumps(document), JSON),
        *(one("area.gpx", _GPX, TEXT), one("area.kml", _KML, TEXT)),
        *_shaped(folder, [{"name": "A"}], [Polygon(ring)]),
    ]


def _read_area(path: Path) -> object:
    from arcfleet.streets.area import Polygons

    return Polygons(path).grown(10.0).holds([(8.05, 48.05)])


def _vehicles(folder: Path) -> list[Sample]:
    text = (ROOT / "examples/two-yards.toml").read_text()
    more = '[[vehicle]]\nname = "x"\nend = [8.0, 48.0]\nshift = "8 h"\nfixed_cost = 3\n'
    more += 'forbidden_kinds = ["track"]\nforbidden_names = ["A", "B"]\n'
    return [one("vehicles.toml", text, TOML), one("vehicles.toml", more, TOML)]


def _read_vehicles(path: Path) -> object:
    from arcfleet.streets.fleet import read_vehicles

    return read_vehicles(path)


def _tiles(folder: Path) -> list[Sample]:
    from tests.report.pmtiles_files import pmtiles, png

    tiles = {
        (0, 0, 0): png("#ff0000"),
        **{(1, x, y): png("#00ff00") for x in (0, 1) for y in (0, 1)},
    }
    options = (
        {"packing": 1},
        {"packing": 2},
        {"packing": 1, "leaves": 2},
        {"tile_packing": 2},
    )
    return [
        one("tiles.pmtiles", pmtiles(tiles, attribution="©", **some), BINARY)
        for some in options
    ]


def _read_tiles(path: Path) -> object:
    from arcfleet.report.pmtiles import PMTiles

    with PMTiles(path) as tiles:
        found = [tiles.tile(z, x, 0) for z in (0, 1, 2) for x in range(1 << z)]
        return tiles.attribution(), found


# --- Data sets and labels -----------------------------------------------------------------


def _change_array(random: Random, header: Any, arrays: dict[str, Any], name: str) -> Any:
    """Change one array in place, or return another header."""
    what = random.randrange(8)
    if what == 0:
        header = change_value(random, header)
    elif what == 1:
        del arrays[name]
    elif what == 2:
        kinds = "<f8", "<f4", "<i8", "<i1", "<u8", "?", "<c16", "<U3", "S2", "<M8[s]", "<f2"
        with np.errstate(all="ignore"):
            arrays[name] = arrays[name].astype(np.dtype(random.choice(kinds)))
    elif what == 3:
        shapes = ((-1, 1), (1, -1), (-1, 1, 1))
        arrays[name] = arrays[name].reshape(random.choice(shapes))
    elif what == 4:
        arrays[name] = np.resize(arrays[name], random.choice((0, 1, arrays[name].size + 1)))
    elif arrays[name].size and arrays[name].dtype.kind in "fiub":
        wide = np.float64 if arrays[name].dtype.kind == "f" else np.int64
        values = arrays[name].astype(wide).reshape(-1)
        odd: tuple[float, ...] = (
            -1,
            0,
            1,
            255,
            2**15,
            2**31 - 1,
            2**31,
            2**40,
            2**62,
            -(2**63),
        )
        odd = (*odd, np.nan, np.inf, -np.inf, 1e300) if wide is np.float64 else odd
        values[random.randrange(values.size)] = random.choice(odd)
        arrays[name] = values
    return header


def change_arrays(random: Random, data: bytes) -> bytes:
    """Damage the header or an array of a data set, whose checksums stay right."""
    import io

    from arcfleet.datasets.array_file import write_array_file

    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as stored:
            arrays = {name: np.asarray(stored[name]) for name in stored.files}
        header = json.loads(arrays.pop("header").tobytes())
        version, form = header.pop("version"), header.pop("format")
        header.pop("sha256")
        name = random.choice(sorted(arrays))
    except Exception:  # whatever numpy makes of a file that is damaged already
        return damaged(random, data, BINARY)
    try:
        header = _change_array(random, header, arrays, name)
    except (TypeError, ValueError, RuntimeError):  # no numbers, of a file changed before
        return damaged(random, data, BINARY)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.npz"
        try:
            facts = header if isinstance(header, dict) else {}
            write_array_file(path, form, version, facts, arrays)
        except Exception:  # a lone surrogate in the header
            return data
        return path.read_bytes()


_ARRAYS: Kinds = (change_arrays, change_arrays, in_zip(BINARY), *BINARY)


def _small_dataset(path: Path) -> Any:
    from arcfleet.datasets.dataset import Dataset, pieces_to_arrays, write_dataset
    from arcfleet.streets.street_arrays import to_arrays
    from arcfleet.streets.tasks import TASK_SETS, PieceCutter
    from tests.towns import town

    cutter = PieceCutter(to_arrays(town(2, one_way=0.4), mixed=True), TASK_SETS["task20"])
    pieces = [cutter.cut(np.random.default_rng(number)) for number in range(2)]
    facts = {"name": "some", "capacity": 100, "credit": ""}
    write_dataset(path, pieces_to_arrays(pieces), facts)
    return Dataset.open(path)


def _datasets(folder: Path) -> list[Sample]:
    from arcfleet.datasets.dataset import Dataset
    from arcfleet.instance import Turn
    from arcfleet.instance.files import read

    _small_dataset(folder / "some.npz")
    made = from_folder(folder, "some.npz", _ARRAYS)
    small = read(DATA / "small.dat")
    Dataset.from_instances([small] * 2, folder / "own.npz")
    own = from_folder(folder, "own.npz", _ARRAYS)
    # From the first link, two-way, back onto it.
    turn = Turn(link_in=0, reverse_in=False, link_out=0, reverse_out=True, penalty=5)
    ruled = replace(small, u_turn_penalty=3, turns=(turn,))
    Dataset.from_instances([small, ruled], folder / "ruled.npz")
    return [made, own, from_folder(folder, "ruled.npz", _ARRAYS)]


def _read_dataset(path: Path) -> object:
    from arcfleet.datasets.dataset import Dataset

    dataset = Dataset.open(path)
    return dataset.padded(range(min(2, len(dataset)))), dataset[:2]


def _labels(folder: Path) -> list[Sample]:
    from arcfleet.datasets.labels import label_dataset

    label_dataset(_small_dataset(folder / "some.npz"), iterations=10)
    sample = from_folder(folder, "some.labels.npz", _ARRAYS)
    return [Sample(sample.files, sample.named, {sample.named: _ARRAYS})]


def _read_labels(path: Path) -> object:
    from arcfleet.datasets.dataset import Dataset
    from arcfleet.datasets.labels import open_labels

    labels = open_labels(path, Dataset.open(path.with_name("some.npz")))
    return [labels[index] for index in range(len(labels))]


# --- JSON lines ---------------------------------------------------------------------------

_STORED: Kinds = (in_json_line, in_json_line, *TEXT)


def _stored(folder: Path, form: Any, *records: Any) -> list[Sample]:
    from arcfleet.datasets.store import Store

    with Store(folder / "lines.jsonl", form) as store:
        for record in records:
            store.add(record)
    data = (folder / "lines.jsonl").read_bytes()
    (folder / "lines.jsonl").unlink()
    lines = data.splitlines()[1:]
    name = json.dumps(form.name)
    old = [b'{"format": %s, %s' % (name.encode(), line[1:]) for line in lines]
    return [
        one("lines.jsonl", data, _STORED),
        one("lines.jsonl", b"\n".join(old) + b"\n", (in_json_line, *TEXT)),
    ]


def _runs(folder: Path) -> list[Sample]:
    from arcfleet.bench.run import RUNS, Record

    facts: dict[str, Any] = {"set_name": "s", "instance": "i", "method": "ruin-recreate"}
    facts |= {"seed": 0, "time_limit": 1.0, "stop_at_reference": False, "machine": "m"}
    good: dict[str, Any] = {"reference": 10, "cost": 11, "gap_percent": 10.0, "routes": 2}
    good |= {"seconds": 1.0, "seconds_to_best": 0.5, "iterations": 9, "stopped_by": "time"}
    good["history"] = ((0.1, 12), (0.5, 11))
    first = Record(**facts, commit="c", **good)
    facts["method"] = "maens"
    return _stored(
        folder, RUNS, first, Record(**facts, commit="c", reference=10, error="x")
    )


def _read_runs(path: Path) -> object:
    from arcfleet.bench.run import RUNS, latest
    from arcfleet.bench.summary import anytime_curves, summarise
    from arcfleet.datasets.store import read_records

    records = latest(read_records(path, RUNS)).values()
    return summarise(records), anytime_curves(records)


def _series(folder: Path) -> list[Sample]:
    from arcfleet.paper.series import COSTS
    from tests.paper.some_series import line

    lines = (
        line("labels", (3, 4)),
        line("maens", (3, 5), iterations=9),
        line("daam-greedy", (3, 5), first=2),
    )
    return _stored(folder, COSTS, *lines)


def _read_series(path: Path) -> object:
    from arcfleet.paper.series import read_series

    return read_series([path.parent], path.stem)


def _plan_lines(folder: Path) -> list[Sample]:
    from arcfleet.batch import setup
    from arcfleet.batch_file import solve_to_file
    from arcfleet.datasets.shards import Shard
    from arcfleet.search.stop import Stop

    files = [DATA / "small.dat", folder / "none.dat", DATA / "ring.dat"]
    how = setup(stop=Stop(iterations=5))
    solve_to_file(files, folder / "lines.jsonl", how, shard=Shard(1, 1))
    return [from_folder(folder, "lines.jsonl", _STORED)]


def _label_lines(folder: Path) -> list[Sample]:
    from arcfleet.datasets.labels import label_part
    from arcfleet.datasets.make import make_dataset
    from arcfleet.datasets.shards import Shard

    dataset = make_dataset(folder / "some.npz", "task20", count=3)
    label_part(
        dataset,
        folder / "lines.jsonl",
        Shard(1, 1),
        method="ruin-recreate",
        iterations=200_000,
        seed=0,
        workers=1,
        executor="processes",
        progress=None,
    )
    (folder / "some.npz").unlink()
    return [from_folder(folder, "lines.jsonl", _STORED)]


def _read_part(path: Path) -> object:
    from arcfleet.batch_file import PLAN_PARTS
    from arcfleet.datasets.labels import LABEL_PARTS, write_merged_labels
    from arcfleet.datasets.shards import merge
    from arcfleet.datasets.store import format_in, write_store

    out = path.with_name("out.npz")
    if format_in(path) == LABEL_PARTS.form.name:
        return write_merged_labels(out, merge([path], LABEL_PARTS))
    merged = merge([path], PLAN_PARTS)
    write_store(out, PLAN_PARTS.form, merged.identity, merged.records)
    return merged


def _metrics(folder: Path) -> list[Sample]:
    from arcfleet.neural.train.run import METRICS, MetricLine

    steps: list[tuple[int, dict[str, dict[str, float]]]] = [
        (1, {}),
        (2, {"val": {"greedy": 3.5}}),
        (3, {"val": {"greedy": 3}}),
    ]
    lines = [
        MetricLine(step=step, seconds=1.5, values={"loss": 0.5}, gaps=gaps)
        for step, gaps in steps
    ]
    samples = _stored(folder, METRICS, *lines)
    return [
        Sample({"metrics.jsonl": data}, "metrics.jsonl", {"metrics.jsonl": kinds})
        for x in samples
        for data, kinds in ((x.files["lines.jsonl"], x.kinds["lines.jsonl"]),)
    ]


def _read_metrics(path: Path) -> object:
    from arcfleet.datasets.store import read_records
    from arcfleet.neural.train.run import METRICS
    from arcfleet.paper.convergence import read_curves

    read_records(path, METRICS)
    return read_curves([("run", path.parent)])


# --- Suites, configs, recipes -------------------------------------------------------------


def _suites(folder: Path) -> list[Sample]:
    text = 'summary = "x"\nfolder = "."\nreferences = "best.csv"\n'
    text += '[[sets]]\nname = "some"\nfiles = ["small.dat", "r*.dat"]\n'
    files = {
        "suite.toml": text.encode(),
        "best.csv": b"name,lower_bound,upper_bound\nsmall,10,12\nring,7,7\n",
        **{name: (DATA / name).read_bytes() for name in ("small.dat", "ring.dat")},
    }
    return [Sample(files, "suite.toml", {"suite.toml": TOML, "best.csv": TEXT})]


def _read_suite(path: Path) -> object:
    from arcfleet.bench.suite import read_suite

    # A suite that names no folder is about the public instances, wherever the tests run.
    with patch.dict(os.environ, {"ARCFLEET_SHARED": str(path.parent)}):
        return read_suite(str(path))


def _configs(folder: Path) -> list[Sample]:
    text = "steps = 10\nminutes = 1.5\nseed = 3\nweights = [1, 2.5]\nlearning_rate = 1e-4\n"
    text += 'precision = "auto"\ncompile = false\n[model]\n'
    text += 'type = "daam"\nwidth = 16\nheads = 2\n'
    return [one("config.toml", text, TOML)]


def _read_config(path: Path) -> object:
    from arcfleet.neural.train.config import FinetuneConfig
    from arcfleet.neural.train.run import resolve_config

    return resolve_config(FinetuneConfig, {}, file=path, device="cpu")


def _recipes(folder: Path) -> list[Sample]:
    text = (ROOT / "src/arcfleet/neural/train/recipe.toml").read_text()
    short = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    return [one("recipe.toml", short, TOML)]


def _read_recipe(path: Path) -> object:
    from arcfleet.neural.train.recipe import load_recipe

    return load_recipe(path)


# --- Models -------------------------------------------------------------------------------


def change_model(random: Random, data: bytes) -> bytes:
    """Damage the header of a model, whose checksum stays right."""
    size = int.from_bytes(data[:8], "little")
    try:
        header = json.loads(data[8 : 8 + size])
        entry, text = next(iter(header["__metadata__"].items()))
        facts = json.loads(text)
        facts["sha256"] = "0" * 64
        if random.random() < 0.6:
            facts = change_value(random, facts)
            header["__metadata__"][entry] = json.dumps(facts)
        else:
            tensors = {x: y for x, y in header.items() if x != "__metadata__"}
            header = {"__metadata__": {entry: json.dumps(facts)}} | change_value(
                random, tensors
            )
        new = json.dumps(header).encode()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, StopIteration):
        return damaged(random, data, BINARY)
    whole = len(new).to_bytes(8, "little") + new + data[8 + size :]
    return whole.replace(b"0" * 64, hashlib.sha256(whole).hexdigest().encode(), 1)


_MODELS: Kinds = (change_model, change_model, *BINARY)


def _models(folder: Path) -> list[Sample]:
    from tests.tiny_model import tiny_model_file

    tiny_model_file(folder)
    return [from_folder(folder, "tiny.safetensors", _MODELS)]


def _read_model(path: Path) -> object:
    from arcfleet.neural.checkpoint import load_model

    return load_model(path)


def _run_folders(folder: Path) -> list[Sample]:
    from arcfleet.neural.train.config import FinetuneConfig, config_from, settings_of

    config = settings_of(config_from(FinetuneConfig, {"steps": 10}))
    return [one("config.json", json.dumps({"config": config, "data": []}), JSON)]


def _read_run_folder(path: Path) -> object:
    from arcfleet.neural.train.config import FinetuneConfig
    from arcfleet.neural.train.run import resolve_config

    return resolve_config(FinetuneConfig, {}, out=path.parent, device="cpu")


READERS = {
    reader.name: reader
    for reader in (
        Reader("instances", _instances, _read_instance),
        Reader("plans", _plans, _read_plan),
        Reader("osm-xml", _osm_xml, _read_map),
        Reader("osm-pbf", _osm_pbf, _read_map),
        Reader("csv-pairs", _csv_pair, _read_map),
        Reader("geojson-maps", _geojson, _read_map),
        Reader("maps-with-ids", _geojson, _read_own_map),
        Reader("layer-maps", _map_layers, _read_map),
        Reader("tables", _tables, _read_table),
        Reader("sheets", _sheets, _read_table),
        Reader("layer-tables", _table_layers, _read_table),
        Reader("areas", _areas, _read_area),
        Reader("vehicles", _vehicles, _read_vehicles),
        Reader("tiles", _tiles, _read_tiles),
        Reader("datasets", _datasets, _read_dataset),
        Reader("labels", _labels, _read_labels),
        Reader("bench-lines", _runs, _read_runs),
        Reader("series-lines", _series, _read_series),
        Reader("plan-lines", _plan_lines, _read_part),
        Reader("label-lines", _label_lines, _read_part),
        Reader("metrics-lines", _metrics, _read_metrics),
        Reader("suites", _suites, _read_suite),
        Reader("configs", _configs, _read_config),
        Reader("recipes", _recipes, _read_recipe),
        Reader("models", _models, _read_model),
        Reader("run-folders", _run_folders, _read_run_folder),
    )
}
