"""How many instances are decoded at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from arcfleet.neural import decoding as rollout
from arcfleet.neural.decoding import default_chunk, fast_policy
from arcfleet.neural.model import Daam, DaamConfig
from tests.neural.batches import MDS, random_batch

if TYPE_CHECKING:
    import pytest
    from torch import Tensor

    from arcfleet.neural.batch import ArcBatch
    from arcfleet.neural.env import State

CONFIG = DaamConfig(layers=1, mds_dimensions=MDS)


class Indifferent:
    """A policy that says nothing of its memory."""

    def prepare(self, batch: ArcBatch) -> Any:
        return batch

    def __call__(self, prepared: Any, state: State, allowed: Tensor) -> Tensor:
        return torch.where(allowed, 0.0, -torch.inf)


def test_chunks_are_powers_of_two_that_fit() -> None:
    batch = random_batch([30])
    for samples in (1, 3, 1000):
        chunk = default_chunk(Indifferent(), batch, samples)
        assert chunk.bit_count() == 1
        bytes_each = 4 * samples * batch.num_arcs * (6 * batch.num_arcs + 2048)
        assert chunk == 1 or chunk * bytes_each <= rollout.CPU_BYTES
        assert 2 * chunk * bytes_each > rollout.CPU_BYTES


def test_larger_models_take_smaller_chunks() -> None:
    batch = random_batch([30])
    usual = default_chunk(Daam(CONFIG), batch, 1)
    assert usual == default_chunk(Indifferent(), batch, 1)
    assert usual == default_chunk(fast_policy(Daam(CONFIG)), batch, 1)
    wide = Daam(replace(CONFIG, width=512, feed_forward=2048))
    assert default_chunk(wide, batch, 1) <= usual // 2


def test_memory_that_torch_keeps_for_later_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    # So that a second call, which finds it kept, gets the same chunks as the first.
    numbers = {"mem_get_info": (600, 1000), "memory_reserved": 300, "memory_allocated": 100}
    for name, answer in numbers.items():
        monkeypatch.setattr(torch.cuda, name, lambda device, answer=answer: answer)
    assert rollout.free_bytes(torch.device("cuda:0")) == 800
