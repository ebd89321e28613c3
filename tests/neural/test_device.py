"""Which devices do what; the devices themselves are feigned."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch

from arcfleet.errors import OptionError
from arcfleet.neural import decoding as fast_policy
from arcfleet.neural.device import has_bfloat16, working_on, working_type
from arcfleet.neural.model import Daam
from tests.tiny_model import tiny_config


@pytest.mark.parametrize(
    ("capability", "expected"), [((7, 5), False), ((8, 0), True), ((12, 1), True)]
)
def test_bfloat16_needs_a_recent_gpu(
    capability: tuple[int, int], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[torch.device] = []

    def answer(device: torch.device) -> tuple[int, int]:
        asked.append(device)
        return capability

    monkeypatch.setattr(torch.cuda, "get_device_capability", answer)
    assert has_bfloat16(torch.device("cuda:3")) is expected
    assert asked == [torch.device("cuda:3")]
    assert not has_bfloat16(torch.device("cpu"))
    assert len(asked) == 1


def test_training_in_bfloat16_needs_a_recent_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    old, recent = torch.device("cuda:0"), torch.device("cuda:1")
    capabilities = {old: (7, 5), recent: (9, 0)}
    monkeypatch.setattr(torch.cuda, "get_device_capability", capabilities.__getitem__)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "Tesla T4")
    assert working_type("auto", old) == working_type("float32", recent) == torch.float32
    assert working_type("auto", recent) == torch.bfloat16
    assert working_type("bfloat16", recent) == torch.bfloat16
    assert working_type("bfloat16", torch.device("cpu")) == torch.bfloat16
    with pytest.raises(OptionError, match="found Tesla T4: use precision 'auto'"):
        working_type("bfloat16", old)


@pytest.mark.parametrize("recent", [True, False])
def test_models_are_decoded_in_bfloat16_where_the_device_can(
    recent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fast_policy, "has_bfloat16", lambda device: recent)
    model = Daam(tiny_config())
    found = fast_policy.decoding_model(model)
    dtype = torch.bfloat16 if recent else torch.float32
    assert {weights.dtype for weights in found.parameters()} == {dtype}
    assert {weights.dtype for weights in model.parameters()} == {torch.float32}
    assert not found.training


def test_working_on_the_cpu_needs_nothing() -> None:
    with working_on(torch.device("cpu")):
        assert torch.zeros(1).is_cpu


def test_a_gpu_is_the_current_one_while_it_works(monkeypatch: pytest.MonkeyPatch) -> None:
    entered: list[torch.device] = []

    @contextmanager
    def enter(device: torch.device) -> Iterator[None]:
        entered.append(device)
        yield
        entered.remove(device)

    monkeypatch.setattr(torch.cuda, "device", enter)
    with working_on(torch.device("cuda:1")):
        assert entered == [torch.device("cuda:1")]
    assert not entered
