from pathlib import Path

import pytest

from arcfleet.bench import suite as suite_module
from arcfleet.bench.suite import read_suite
from arcfleet.errors import FileError, OptionError
from tests.shared_data import shared_dir

SUITES = sorted((Path(suite_module.__file__).parent / "suites").glob("*.toml"))


@pytest.mark.parametrize("path", SUITES, ids=lambda path: path.stem)
def test_every_suite_of_the_package_has_its_files_and_references(path: Path) -> None:
    shared_dir()
    suite = read_suite(path.stem)
    assert suite == read_suite(str(path))
    assert suite.instances
    assert all(x.path.is_file() and x.reference for x in suite.instances)


def test_sets_sizes_order_and_proven_optima() -> None:
    shared_dir()
    suite = read_suite("classical")
    assert len(suite.instances) == 197
    gdb = [x for x in suite.instances if x.set_name == "gdb"]
    assert [x.name for x in gdb][:2] == ["gdb1", "gdb2"]
    assert gdb[-1].name == "gdb23"
    assert gdb[0].reference == 316
    assert gdb[0].proven
    assert not any(x.proven for x in read_suite("mval").instances)


def write_suite(folder: Path, text: str) -> str:
    path = folder / "own.toml"
    path.write_text(text)
    return str(path)


SET = '[[sets]]\nname = "a"\nfiles = ["*.dat"]\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sets = 3", "at least one"),
        ("sets = [", "expected a TOML file"),
        ('folder = "nowhere"\n' + SET, "directory"),
        ('folder = "."\nfile = 3\n' + SET, "did you mean"),
        ('folder = "."\n[[sets]]\nname = "a"\nfiles = ["*.txt"]\n', "found none"),
        ('folder = "."\n[[sets]]\nname = "a"\nfiles = ["/x.dat"]\n', "relative"),
        ('folder = "."\n[[sets]]\nname = "a"\nfiles = "x.dat"\n', "list of files"),
        ('folder = "."\n[[sets]]\nfiles = ["*.dat"]\n', "a name for each set"),
        ('folder = "."\n' + SET + SET, "once per set"),
        ('folder = "."\nreferences = "no.csv"\n' + SET, "no.csv"),
        ('folder = "."\nreferences = "bad.csv"\n' + SET, "bad.csv:2"),
        ('folder = "."\nreferences = "long.csv"\n' + SET, "long.csv:1: expected CSV"),
    ],
)
def test_bad_suites(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "x.dat").write_text("")
    (tmp_path / "bad.csv").write_text("name,upper_bound\nx,many\n")
    (tmp_path / "long.csv").write_text(f"name,upper_bound\n{'x' * 200_000},3\n")
    with pytest.raises(FileError, match=message):
        read_suite(write_suite(tmp_path, text))


def test_unknown_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="did you mean 'quick'"):
        read_suite("quik")
    monkeypatch.setenv("ARCFLEET_SHARED", str(tmp_path))
    with pytest.raises(OptionError, match="ARCFLEET_SHARED"):
        read_suite("gdb")


def test_a_file_name_that_is_too_long(tmp_path: Path) -> None:
    text = f'folder = "."\n[[sets]]\nname = "a"\nfiles = ["{"x" * 5000}/*.dat"]\n'
    with pytest.raises(FileError, match="expected files"):
        read_suite(write_suite(tmp_path, text))
