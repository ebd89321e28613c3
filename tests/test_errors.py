import pickle
from pathlib import Path

from arcfleet.errors import FileError


def test_file_errors_come_back_from_other_processes() -> None:
    error = pickle.loads(pickle.dumps(FileError("town.dat", "expected a depot", 3)))
    assert isinstance(error, FileError)
    assert str(error) == "town.dat:3: expected a depot"
    assert (error.path, error.line) == (Path("town.dat"), 3)
