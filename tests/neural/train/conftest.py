import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from arcfleet.neural.train.config import changed
from tests.neural.labelled_towns import joined_file, labelled_file
from tests.neural.train.quick import QUICK, TINY, TINY_PUBLISHED, run


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make data sets, and models that are better than random ones."""
    folder = tmp_path_factory.mktemp("data")
    labelled_file(folder, "small", "task20", count=8)
    labelled_file(folder, "mixed", "task30", count=8, one_way=0.3)
    labelled_file(folder, "test", "task20", count=4, seed=1)
    labelled_file(folder, "ruled", "task20", count=6, one_way=0.3, turn_rules=True)
    labelled_file(folder, "few", "task20", count=3)
    shutil.copy(folder / "mixed.npz", folder / "unlabelled.npz")
    joined_file(folder, "unequal", [folder / "few.npz", folder / "mixed.npz"])
    learning = {"steps": 3, "tokens": 41 * 64, "decision_steps": 8, "validations": 0}
    for name, sizes in (("weak", TINY_PUBLISHED), ("weak-daam", TINY)):
        config = changed(
            QUICK, model=sizes, learning_rate=5e-3, warm_up_steps=5, **learning
        )
        files = {"data": [folder / "small.npz"], "validation": []}
        model = run(folder, folder / name, config, **files).model_file
        model.rename(folder / f"{name}.safetensors")
    return folder


@pytest.fixture
def graph_counters(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Counters of torch.compile, which only traces: that is quick."""
    from torch._dynamo import reset
    from torch._dynamo.utils import counters

    compiled = partial(torch.compile, backend="eager")
    monkeypatch.setattr(torch, "compile", compiled)
    reset()
    counters.clear()
    return counters
