"""The same policy, as fast as the device allows: in bfloat16, compiled if asked."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import torch

from arcfleet.neural.daam import Daam
from arcfleet.neural.device import has_bfloat16

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from arcfleet.neural.arc_batch import ArcBatch
    from arcfleet.neural.daam import Prepared
    from arcfleet.neural.kinds import AnyModel
    from arcfleet.neural.state import State

_MOST_SHAPES = 64


class FastPolicy:
    """A model that is only decoded, never trained.

    Parameters
    ----------
    model
        In the precision to decode in.
    compiled
        Whether torch.compile makes the step faster; it takes some ten seconds for each
        shape of batches, which pays for thousands of plans.
    """

    def __init__(self, model: Daam, *, compiled: bool) -> None:
        self.model = model
        self.step_numbers = model.step_numbers
        # A view with fewer arcs would have to be compiled anew.
        self.hides_served = model.hides_served and not compiled
        self._call: Callable[..., Tensor] = model
        self.encode, self.point = model.encode, model.point
        if compiled:
            # Importing it takes seconds. One graph for each shape; giving up after some
            # would be silent.
            from torch._dynamo import config as compiler

            compiler.recompile_limit = max(compiler.recompile_limit, _MOST_SHAPES)
            self._call = torch.compile(model, dynamic=False)
            self.encode = torch.compile(model.encode, dynamic=False)
            self.point = torch.compile(model.point, dynamic=False)

    def prepare(self, batch: ArcBatch) -> Prepared:
        """Work out what stays the same at every step."""
        return self.model.prepare(batch)

    def __call__(self, prepared: Prepared, state: State, allowed: Tensor) -> Tensor:
        """Give the logits of each arc, (batch, copies, arcs), -inf where not allowed."""
        return self._call(prepared, state, allowed)


def decoding_model(model: AnyModel) -> AnyModel:
    """Give the model in the precision to decode in: a bfloat16 copy on a recent GPU.

    Of DaAM only: the values of S2V-DQN differ too little from arc to arc.
    """
    if isinstance(model, Daam) and has_bfloat16(next(model.parameters()).device):
        model = copy.deepcopy(model).to(torch.bfloat16)
    return model.eval()


def fast_policy(model: Daam, *, compiled: bool = False) -> FastPolicy:
    """Make the fast form of a model, where the model is."""
    return FastPolicy(decoding_model(model), compiled=compiled)
