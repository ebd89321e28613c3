"""Own data in all formats that are read, for tests."""

import csv
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import shapely
from pyogrio import raw

Rows = list[dict[str, Any]]

#: Formats that hold places as shapes.
SHAPED = {
    "GPKG": "rows.gpkg",
    "ESRI Shapefile": "rows.shp",
    "GeoJSON": "rows.geojson",
    "LIBKML": "rows.kml",
}


def write_csv(path: Path, rows: Rows, delimiter: str = ",") -> Path:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]), delimiter=delimiter, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    path.write_text(text.getvalue(), encoding="utf-8")
    return path


def write_layer(
    path: Path,
    driver: str,
    rows: Rows,
    shapes: list[Any] | None = None,
    *,
    layer: str = "rows",
    crs: str = "EPSG:4326",
) -> Path:
    """Write a layer or a sheet by the library that reads it."""
    columns = [_column([row[name] for row in rows]) for name in rows[0]]
    geometry, kind = None, None
    if shapes is not None:
        geometry = np.array(shapely.to_wkb(shapes), dtype=object)
        kind = shapes[0].geom_type
    raw.write(
        path,
        geometry=geometry,
        field_data=columns,
        fields=np.array(list(rows[0]), dtype=object),
        geometry_type=kind,
        crs=crs if shapes is not None else None,
        driver=driver,
        layer=layer,
    )
    return path


def _column(values: list[Any]) -> Any:
    if all(isinstance(value, int) for value in values):
        return np.array(values, dtype=np.int64)
    return np.array(values, dtype=object)


def write_geojson(path: Path, rows: Rows, shapes: list[Any]) -> Path:
    features = [
        {
            "type": "Feature",
            "properties": row,
            "geometry": json.loads(shapely.to_geojson(shape)),
        }
        for row, shape in zip(rows, shapes, strict=True)
    ]
    content = {"type": "FeatureCollection", "features": features}
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    return path


def zipped(path: Path) -> Path:
    """Pack a Shapefile and its companions."""
    packed = path.with_suffix(".zip")
    with zipfile.ZipFile(packed, "w") as archive:
        for part in sorted(path.parent.glob(f"{path.stem}.*")):
            if part != packed:
                archive.write(part, part.name)
    return packed
