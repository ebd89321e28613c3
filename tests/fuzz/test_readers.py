"""A short run of the fuzzer; `make fuzz` is the long one."""

from pathlib import Path

import pytest

from arcfleet.errors import FileError
from tests.fuzz.readers import READERS, Reader, one
from tests.fuzz.run import mutant, read_one, write_files

MUTANTS = 25


@pytest.mark.parametrize("name", READERS)
def test_valid_files_are_read_and_damaged_ones_refused(name: str, tmp_path: Path) -> None:
    reader = READERS[name]
    samples = reader.samples()
    for sample in samples:
        write_files(tmp_path, sample.files)
        reader.read(tmp_path / sample.named)
    for number in range(MUTANTS):
        sample, files = mutant(name, samples, 0, number)
        write_files(tmp_path, files)
        assert read_one(reader, tmp_path, sample.named) is None, f"{name} 0 {number}"


def test_the_same_numbers_give_the_same_files() -> None:
    for name in ("tables", "vehicles", "tiles"):
        samples = READERS[name].samples()
        first, again = ([mutant(name, samples, 3, n)[1] for n in range(20)] for _ in "ab")
        assert first == again
        assert any(files != samples[0].files for files in first)


def refusal(message: str) -> Reader:
    def read(path: Path) -> None:
        if message == "bug":
            raise KeyError(message)
        raise FileError(path, message)

    return Reader("some", lambda folder: [one("a", b"1", ())], read)


@pytest.mark.parametrize(
    ("message", "found"),
    [
        ("expected b, found c; write b", None),
        ("bug", "KeyError at"),
        ("two\nlines", "a message of several lines"),
        ("x" * 1000, "a message of 10"),
    ],
)
def test_what_is_a_finding(tmp_path: Path, message: str, found: str | None) -> None:
    said = read_one(refusal(message), tmp_path, "a")
    assert (said or "").startswith(found or "")
    assert (said is None) == (found is None)
