from pathlib import Path

import pytest
import torch

from tests.tiny_model import tiny_model_file


def pytest_configure() -> None:
    # The models are tiny; several workers would only take each other's cores.
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model_file(tmp_path_factory.mktemp("model"))
