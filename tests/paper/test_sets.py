from pathlib import Path

import pytest

from arcfleet.datasets import make_dataset
from arcfleet.errors import FileError, OptionError
from arcfleet.paper.sets import open_test_sets
from tests.neural.labelled_towns import labelled_file


def test_labels_of_a_beginning(tmp_path: Path) -> None:
    small = labelled_file(tmp_path, "small", count=3)
    whole = tmp_path / "whole.npz"
    make_dataset(whole, "task20", count=5, maps=[tmp_path / "small-town"])
    (bare,) = open_test_sets([whole])
    assert bare.labels is None
    (found,) = open_test_sets([whole], [small])
    assert found.labels is not None
    assert len(found.labels) == 3
    assert (found.name, found.scale, found.place) == ("whole", "task20", "small-town")
    (own,) = open_test_sets([small])  # labels beside it
    assert own.labels is not None

    other = tmp_path / "other.npz"
    make_dataset(other, "task20", count=5, maps=[tmp_path / "small-town"], seed=1)
    with pytest.raises(FileError, match="expected the beginning of a test set"):
        open_test_sets([other], [small])
    with pytest.raises(FileError, match=r"other\.labels\.npz"):
        open_test_sets([other], [other])
    with pytest.raises(OptionError, match="different names, got 'whole' twice"):
        open_test_sets([whole, whole])
