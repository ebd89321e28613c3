"""Decision steps as CUDA graphs: recorded once, replayed without asking the host.

A step is some fifty short kernels, and starting them takes longer than running them unless
the batch is large.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from arcfleet.neural.decoding import Carry
from arcfleet.neural.device import working_on
from arcfleet.neural.env import State

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from arcfleet.neural.decoding import Advance, Wrap


# Before the recording: libraries choose their kernels, and torch.compile compiles.
_WARM_UPS = 2


def fastest_wrap(device: torch.device) -> Wrap | None:
    """Return what makes steps on a device fast, for `decoding.greedy` and the others."""
    return graphed if device.type == "cuda" else None


def graphed(advance: Advance) -> Advance:
    """Return a step that replays a recording of `advance`; for a CUDA device.

    The carry that it returns is always the same tensors, overwritten by the next step.
    """
    recording: _Recording | None = None

    def replay(carry: Carry) -> Carry:
        nonlocal recording
        if recording is None:
            recording = _Recording(advance, carry)
        return recording.replay(carry)

    return replay


class Recorder:
    """Records what calls start on a GPU.

    Graphs of one recorder share their memory, so no two of them may run at the same time.

    Parameters
    ----------
    device
        Device that the calls work on.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        # One stream for all: what was allocated on another is not used again.
        with working_on(device):
            self._side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        self._pool: Any = None

    def record(self, work: Callable[[], object]) -> torch.cuda.CUDAGraph:
        """Return a graph whose replay does the work again on the same tensors.

        Before the recording the call is made twice, to warm up.
        """
        with working_on(self._device):
            side = self._side
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(_WARM_UPS):
                    work()
            torch.cuda.current_stream().wait_stream(side)
            graph = torch.cuda.CUDAGraph()
            # By default it would be a stream of the GPU of the first recording ever.
            with torch.cuda.graph(graph, pool=self._pool, stream=side):
                work()
        self._pool = graph.pool()
        return graph


class _Recording:
    def __init__(self, advance: Advance, carry: Carry) -> None:
        self.carry = _map(carry, torch.clone)
        self.graph = Recorder(carry.steps.device).record(
            lambda: _overwrite(self.carry, advance(self.carry))
        )

    def replay(self, carry: Carry) -> Carry:
        if carry is not self.carry:
            _overwrite(self.carry, carry)
        self.graph.replay()
        return self.carry


def _tensors(carry: Carry) -> list[Tensor]:
    others = [part for part in (carry.parent, carry.memory) if part is not None]
    return [*carry.state, carry.log_probability, carry.steps, *others]


def _overwrite(target: Carry, source: Carry) -> None:
    for old, new in zip(_tensors(target), _tensors(source), strict=True):
        if old is not new:
            old.copy_(new)


def _map(carry: Carry, change: Callable[[Tensor], Tensor]) -> Carry:
    return Carry(
        state=State(*(change(tensor) for tensor in carry.state)),
        log_probability=change(carry.log_probability),
        parent=None if carry.parent is None else change(carry.parent),
        steps=change(carry.steps),
        memory=None if carry.memory is None else change(carry.memory),
    )
