"""The form of a model that losses are computed with: in parts, compiled if asked.

As one graph a deep model would take minutes to compile for each shape; its layers are
alike and share their graphs. Decoding, whose shapes are many, uses the model itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from arcfleet.neural.arc_batch import ArcBatch
    from arcfleet.neural.daam import Daam
    from arcfleet.neural.pretrain_config import PretrainConfig
    from arcfleet.neural.state import State

    Function = TypeVar("Function", bound=Callable[..., Tensor])

# Of a set, at most: lengths of states, and what differs beside them.
_SHAPES = 16


class LearningForm:
    """A model that learns.

    Parameters
    ----------
    model
        In the precision to work in.
    compiled
        Whether to use torch.compile.
    """

    def __init__(self, model: Daam, *, compiled: bool = False) -> None:
        self._begin, self._point = model.begin, model.point
        self._layers: list[Callable[..., Tensor]] = list(model.encoder)
        if compiled:
            self._begin = torch.compile(model.begin, dynamic=False)
            self._point = torch.compile(model.point, dynamic=False)
            self._layers = [torch.compile(layer, dynamic=False) for layer in model.encoder]

    def logits(
        self, batch: ArcBatch, state: State, allowed: Tensor, *, padded: bool
    ) -> Tensor:
        """Give the logits of each arc, (batch, copies, arcs), -inf where not allowed.

        Parameters
        ----------
        batch, padded
            As `Daam.prepare` takes them.
        state, allowed
            As `Daam.forward` does.
        """
        prepared, embedding, present = self._begin(batch, state, padded)
        real = None
        if present is not None:
            real = present.expand(embedding.shape[:3]).flatten(0, 1)  # (rows, arcs)
        flat = embedding.flatten(0, 1)  # (rows, arcs, width)
        for layer in self._layers:
            flat = layer(flat, real)
        return self._point(flat.view(embedding.shape), prepared, state, allowed)


def learning_form(model: Daam, config: PretrainConfig, sets: int) -> LearningForm:
    """Give the form of a model to learn from so many sets, compiled if it shall be."""
    if config.compile:
        allow_graphs(_SHAPES * sets)
    return LearningForm(model, compiled=config.compile)


def compiled_by_scale(function: Function, shapes: int) -> Function:
    """Compile what is called with so many kinds of shapes, each a graph of its own."""
    allow_graphs(2 * shapes)
    compiled: Any = torch.compile(function, dynamic=False)
    return compiled  # type: ignore[no-any-return]


def allow_graphs(count: int) -> None:
    """Let torch.compile make so many graphs of one function.

    Sizes that vary within a graph would make it slower, and giving up after some graphs
    would be silent.
    """
    from torch._dynamo import config as compiler

    compiler.recompile_limit = max(compiler.recompile_limit, count)
