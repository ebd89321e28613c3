"""Gradients of a loss as CUDA graphs: recorded once for each shape, then replayed.

Both passes of a training step are some hundred short kernels. Started one by one they keep
the GPU waiting for the host half of the time (research/log/edge-attention-trials.md).
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from arcfleet.neural.batch import ArcBatch
from arcfleet.neural.env import State
from arcfleet.neural.kernels.cuda_graph import Recorder
from arcfleet.neural.train.steps import Minibatch

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor


class RecordedGradients:
    """A loss whose gradients are replayed on minibatches of known shapes.

    Parameters
    ----------
    loss
        Function of a minibatch; it must not wait for the device.
    weights
        Weights that get the gradients, all on one CUDA device.
    """

    def __init__(self, loss: Callable[[Minibatch], Tensor], weights: list[Tensor]) -> None:
        self._loss = loss
        self._weights = weights
        self._recordings: dict[Any, _Recording] = {}
        self._recorder = Recorder(weights[0].device)

    def __call__(self, minibatch: Minibatch) -> Tensor:
        """Set the gradients of the weights, and return the loss."""
        tensors = _tensors(minibatch)
        key = (minibatch.capacity_mask, *(tensor.shape for tensor in tensors))
        recording = self._recordings.get(key)
        if recording is None:
            recording = self._recordings[key] = self._record(minibatch)
        torch._foreach_copy_(_tensors(recording.minibatch), tensors)
        recording.graph.replay()
        for weight, gradient in zip(self._weights, recording.gradients, strict=True):
            weight.grad = gradient
        return recording.loss

    def _record(self, minibatch: Minibatch) -> _Recording:
        minibatch = _cloned(minibatch)
        loss: Any = None

        def work() -> None:
            nonlocal loss
            for weight in self._weights:
                weight.grad = None
            found = self._loss(minibatch)
            found.backward()  # type: ignore[no-untyped-call]
            loss = found.detach()

        graph = self._recorder.record(work)
        return _Recording(graph, minibatch, loss, [x.grad for x in self._weights])


class _Recording(NamedTuple):
    graph: torch.cuda.CUDAGraph
    # Tensors that the graph reads and writes.
    minibatch: Minibatch
    loss: Tensor
    gradients: list[Tensor | None]


def _tensors(minibatch: Minibatch) -> list[Tensor]:
    batch = [getattr(minibatch.batch, each.name) for each in fields(ArcBatch)]
    return [*batch, *minibatch.state, minibatch.choice, minibatch.weight]


def _cloned(minibatch: Minibatch) -> Minibatch:
    batch = minibatch.batch
    copies = {each.name: getattr(batch, each.name).clone() for each in fields(ArcBatch)}
    return Minibatch(
        batch=ArcBatch(**copies),
        state=State(*(part.clone() for part in minibatch.state)),
        choice=minibatch.choice.clone(),
        weight=minibatch.weight.clone(),
        capacity_mask=minibatch.capacity_mask,
    )
