import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arcfleet.datasets.array_file import ArrayFile, small_integers, write_array_file
from arcfleet.datasets.dataset import Dataset, pieces_to_arrays, write_dataset
from arcfleet.errors import FileError
from arcfleet.streets.street_arrays import to_arrays
from arcfleet.streets.tasks import TASK_SETS, Piece, PieceCutter
from tests.towns import town

FACTS: dict[str, object] = {"name": "some", "capacity": 100, "credit": ""}


@pytest.fixture(scope="module")
def pieces() -> list[Piece]:
    streets = to_arrays(town(2, one_way=0.4), mixed=True)
    cutters = [PieceCutter(streets, TASK_SETS[name]) for name in ("task20", "task50")]
    return [cutters[n % 2].cut(np.random.default_rng(n)) for n in range(12)]


@pytest.fixture(scope="module")
def file(pieces: list[Piece], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "some.npz"
    write_dataset(path, pieces_to_arrays(pieces), FACTS)
    return path


def test_what_is_read_is_what_was_written(file: Path, pieces: list[Piece]) -> None:
    dataset = Dataset.open(file)
    assert len(dataset) == 12
    expected = [piece.instance(f"some-{n}") for n, piece in enumerate(pieces)]
    assert list(dataset) == expected
    assert dataset[-1] == expected[-1]
    assert dataset[3:5] == expected[3:5]
    with pytest.raises(IndexError, match="below 12, got 12"):
        dataset[12]


def test_types_are_small(file: Path) -> None:
    arrays = Dataset.open(file).arrays
    kinds = {name: values.dtype.name for name, values in arrays.items()}
    assert kinds["longitude"] == kinds["latitude"] == "float32"
    assert {kinds[n] for n in ("tail", "head", "demand", "one_way", "depot")} == {"uint8"}
    assert kinds["cost"] == "uint16"


def test_padded_arrays_hold_the_same(file: Path, pieces: list[Piece]) -> None:
    chosen = [5, 0, -1]
    padded = Dataset.open(file).padded(chosen)
    assert padded.tail.shape == (3, max(len(pieces[n].tail) for n in chosen))
    for row, n in enumerate(chosen):
        piece = pieces[n]
        nodes, links = padded.num_nodes[row], padded.num_links[row]
        assert (nodes, links) == (len(piece.longitude), len(piece.tail))
        for name in ("tail", "head", "cost", "one_way", "demand"):
            values = getattr(padded, name)[row]
            assert (values[:links] == getattr(piece, name)).all()
            assert not values[links:].any()
        assert (padded.longitude[row, :nodes] == piece.longitude).all()
        assert padded.required[row].sum() == (piece.demand > 0).sum()
        assert (padded.depot[row], padded.capacity[row]) == (piece.depot, 100)
    assert Dataset.open(file).padded([]).tail.shape == (0, 0)


def test_numpy_reads_it_without_pickle(file: Path) -> None:
    with np.load(file, allow_pickle=False) as archive:
        assert archive["num_nodes"].tolist() == [
            len(instance.nodes) for instance in Dataset.open(file)
        ]


def test_the_same_arrays_give_the_same_bytes(file: Path, tmp_path: Path) -> None:
    dataset = Dataset.open(file)
    again = tmp_path / "again.npz"
    write_dataset(again, dataset.arrays, FACTS)
    assert again.read_bytes() == file.read_bytes()


@settings(max_examples=40)
@given(st.floats(0, 1))
def test_a_file_cut_short_is_named(file: Path, share: float) -> None:
    data = file.read_bytes()
    cut = file.with_name("cut.npz")
    cut.write_bytes(data[: min(len(data) - 1, int(share * len(data)))])
    with pytest.raises(FileError, match=r"cut short or damaged|made by .*, found another"):
        Dataset.open(cut)


@settings(max_examples=60)
@given(st.floats(0, 1, exclude_max=True), st.integers(0, 7))
def test_a_flipped_bit_is_found_or_harmless(file: Path, share: float, bit: int) -> None:
    data = bytearray(file.read_bytes())
    data[int(share * len(data))] ^= 1 << bit
    flipped = file.with_name("flipped.npz")
    flipped.write_bytes(data)
    try:
        found = list(Dataset.open(flipped))
    except FileError:
        return
    # The bit is in a field of the archive that carries nothing.
    assert found == list(Dataset.open(file))


def test_an_array_that_claims_to_be_encrypted_is_damaged(file: Path) -> None:
    data = bytearray(file.read_bytes())
    mark = b"PK\x01\x02"
    second = data.index(mark, data.index(mark) + 1)
    data[second + 8] ^= 1  # the flags come eight bytes after the mark
    flipped = file.with_name("encrypted.npz")
    flipped.write_bytes(data)
    with pytest.raises(FileError, match="cut short or damaged"):
        list(Dataset.open(flipped))


def test_opening_reads_no_array(file: Path, tmp_path: Path) -> None:
    changed = tmp_path / "changed.npz"
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            data = bytearray(old.read(name))
            data[-1] ^= name == "cost.npy"
            new.writestr(name, bytes(data))
    dataset = Dataset.open(changed)
    assert len(dataset) == 12
    with pytest.raises(FileError, match="'cost' to have the checksum in the header"):
        dataset[0]


def test_other_files_are_refused_in_one_sentence(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.npz"
    write_array_file(other, "arcfleet-dataset", 9, {}, {})
    with pytest.raises(FileError, match="or older, found version 9"):
        Dataset.open(other)
    write_array_file(other, "arcfleet-labels", 1, {}, {})
    with pytest.raises(
        FileError, match="made by `arcfleet dataset make`, found one of format"
    ):
        Dataset.open(other)
    np.savez(other, a=np.zeros(3))
    with pytest.raises(FileError, match="made by `arcfleet dataset make`, found another"):
        Dataset.open(other)
    write_array_file(other, "arcfleet-dataset", 1, {"name": "x", "count": 1}, {})
    with pytest.raises(FileError, match="header with 'capacity' as int, found None"):
        Dataset.open(other)
    other.write_text("hello")
    with pytest.raises(FileError, match="found another"):
        Dataset.open(other)
    with pytest.raises(FileError, match="cannot be read"):
        Dataset.open(tmp_path / "missing.npz")
    with pytest.raises(FileError, match="cannot be read"):
        Dataset.open(tmp_path)


def test_arrays_that_do_not_fit_together_are_refused(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.npz"
    shutil.copy(file, other)
    arrays = dict(Dataset.open(file).arrays)
    arrays["tail"] = arrays["tail"][1:]
    write_dataset(other, arrays, FACTS)
    with pytest.raises(FileError, match=r"expected \d+ entries of 'tail', found"):
        Dataset.open(other)[0]


def test_pickled_objects_are_never_loaded(tmp_path: Path) -> None:
    other = tmp_path / "other.npz"
    np.savez(other, header=np.array([{"a": 1}], dtype=object))
    with pytest.raises(FileError, match="damaged"):
        ArrayFile(other, "x", 1, "make")


@given(st.lists(st.integers(0, 2**40), max_size=5))
def test_small_integers_keep_their_values(values: list[int]) -> None:
    assert small_integers(np.array(values, dtype=np.int64)).tolist() == values
