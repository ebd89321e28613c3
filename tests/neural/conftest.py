from __future__ import annotations

import torch


def pytest_configure() -> None:
    # The models are tiny; several workers would only take each other's cores.
    torch.set_num_threads(1)
