"""The form of a model that losses are computed with: in parts, compiled if asked.

As one graph a deep model would take minutes to compile for each shape; its layers are
alike and share their graphs. Decoding, whose shapes are many, uses the model itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from arcfleet.neural.arc_batch import ArcBatch
    from arcfleet.neural.daam import Daam
    from arcfleet.neural.state import State


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
