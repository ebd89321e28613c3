import csv
from pathlib import Path

from arcfleet.instance.files import read, write
from tests.shared_data import shared_dir


def test_every_file_of_the_collection_is_read(tmp_path: Path) -> None:
    folder = shared_dir() / "carplib"
    with (folder / "best_known.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 241
    for row in rows:
        (file,) = (folder / row["set"]).glob(f"{row['name']}.*")
        instance = read(file)
        sizes = {
            "nodes": len(instance.nodes),
            "edges": len(instance.links),
            "required": len(instance.required),
            "capacity": instance.capacity,
        }
        assert sizes == {key: int(row[key]) for key in sizes}, row["name"]
        assert instance.nodes[0] == (0 if row["set"] == "hefei" else 1)
        for file_format in ("json", "mcarp" if row["set"] == "mval" else "carplib"):
            write(instance, tmp_path / "copy", file_format)
            assert read(tmp_path / "copy") == instance, row["name"]
