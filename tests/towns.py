"""Small street maps for tests of what is made from maps."""

from pathlib import Path

from arcfleet.streets import StreetMap
from arcfleet.streets.synthetic import SyntheticSettings, synthetic_streets


def town(seed: int = 0, *, one_way: float = 0.0, blocks: int = 20) -> StreetMap:
    return synthetic_streets(
        SyntheticSettings(columns=blocks, rows=blocks, one_way=one_way), seed=seed
    )


def write_csv_map(street_map: StreetMap, prefix: Path) -> Path:
    """Write a map as the pair of CSV files that `read_map` knows."""
    nodes = [f"{n},{x!r},{y!r}" for n, (x, y) in street_map.junctions.items()]
    edges = [
        f"{s.tail},{s.head},{s.metres!r},{int(s.one_way)},{s.kind},,"
        + ";".join(f"{x!r} {y!r}" for x, y in s.geometry)
        for s in street_map.streets
    ]
    header = "u,v,length_m,oneway,highway,name,geometry"
    for part, lines in (("nodes", ["id,lon,lat", *nodes]), ("edges", [header, *edges])):
        prefix.with_name(f"{prefix.name}.{part}.csv").write_text("\n".join(lines) + "\n")
    return prefix
