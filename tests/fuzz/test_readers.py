"""A short run of the fuzzer; `make fuzz` is the long one."""

import os
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from arcfleet.errors import FileError
from tests.fuzz.__main__ import guided
from tests.fuzz.mutate import in_json_line, put_bytes
from tests.fuzz.readers import READERS, Reader, one
from tests.fuzz.run import MEMORY, Finding, fuzz, mutant, read_one, write_files

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


def end_the_process(data: bytes) -> None:
    os._exit(3)


def take_time(data: bytes) -> None:
    while True:
        pass


def take_memory(data: bytes) -> None:
    bytearray(4 * MEMORY)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize(
    ("fault", "found"),
    [
        (end_the_process, "ended the process (exit code 3)"),
        (take_memory, "MemoryError at"),
        (take_time, "took more than 0.1 s"),
    ],
)
def test_the_child_process_has_limits(
    monkeypatch: pytest.MonkeyPatch, fault: Callable[[bytes], None], found: str
) -> None:
    def read(path: Path) -> None:
        data = path.read_bytes()
        if data != b"valid":
            fault(data)

    reader = Reader("some", lambda folder: [one("a", b"valid", (put_bytes,))], read)
    monkeypatch.setitem(READERS, "some", reader)
    monkeypatch.setattr("tests.fuzz.run.SECONDS", 0.1)
    findings = [x for x in fuzz("some", 1, 4, 600) if isinstance(x, Finding)]
    assert len(findings) >= 3  # a mutant may be what it was
    assert all(finding.said.startswith(found) for finding in findings)
    assert all(finding.files["a"] != b"valid" for finding in findings)


def test_lines_that_are_no_objects_are_damaged_on() -> None:
    for number in range(200):
        in_json_line(Random(number), b'[1]\n"a"\n3\nnull')


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_mutator_that_fails_is_a_finding_and_the_run_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail_at_times(random: Random, data: bytes) -> bytes:
        if random.random() < 0.3:
            raise TypeError("pop")
        return data

    reader = Reader("some", lambda folder: [one("a", b"x", (fail_at_times,))], Path.stat)
    monkeypatch.setitem(READERS, "some", reader)
    events = list(fuzz("some", 1, 20, 600))
    said = {event.said for event in events if isinstance(event, Finding)}
    assert [event for event in events if not isinstance(event, Finding)] == list(range(20))
    assert said == {"a mutator that fails: TypeError('pop')"}


def test_atheris_finds_its_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("atheris", reason="atheris is for `make fuzz` alone")
    tried, said = guided("vehicles", 1, 2, tmp_path)
    assert (tried > 1, said) == (True, "")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "sitecustomize.py").write_text(
        "import tomllib\n"
        "true = tomllib.loads\n"
        "tomllib.loads = lambda text: (1 // (text.count('[') < 9), true(text))[1]\n"
    )
    tried, said = guided("vehicles", 1, 20, tmp_path)
    assert "AssertionError: ZeroDivisionError at" in said
    assert list(tmp_path.glob("vehicles-guided-1/*"))
