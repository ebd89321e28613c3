"""The encoder on a CPU: all of its layers at once in the C++ core.

There a layer takes a third of the time that torch takes, mostly since what lies between two
products never leaves the cache.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from arcfleet import _core

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from arcfleet.neural.kernels.biased_attention import Pairs

# Numbers that the core computes at once; the widths of heads and nets are multiples of it.
_LANES = 16


class CoreEncoder(nn.Module):
    """All layers of an encoder as one layer. It has no gradients.

    Parameters
    ----------
    layers
        Layers that the core has, of class `model.EncoderLayer`.
    """

    def __init__(self, layers: Sequence[Any]) -> None:
        super().__init__()
        first = layers[0]
        width, hidden = first.out.in_features, first.widen.out_features
        self._encoder = _core.Encoder(width, first.heads, hidden)
        for layer in layers:
            weights = (
                layer.query_key_value.weight,
                layer.out.weight,
                layer.attention_norm.weight,
                layer.widen.weight,
                layer.widen.bias,
                layer.narrow.weight,
                layer.narrow.bias,
                layer.feed_forward_norm.weight,
                layer.bias_slopes,
            )
            self._encoder.add_layer(*map(_numbers, weights))

    def __deepcopy__(self, memo: dict[int, Any]) -> CoreEncoder:
        """Return itself: it never changes."""
        return self

    def forward(self, hidden: Tensor, visible: Tensor, pairs: Pairs) -> Tensor:
        """Compute the last embeddings from the first, (rows, arcs, width).

        `visible` and `pairs` are those of `EncoderLayer`. The embeddings of arcs that are
        not visible are 0.
        """
        found = np.empty(hidden.shape, np.float32)
        self._encoder.run(
            _numbers(hidden),
            _numbers(pairs.incoming),
            visible.contiguous().numpy(),
            found,
            torch.get_num_threads(),
        )
        return torch.from_numpy(found)


def _numbers(values: Tensor) -> NDArray[np.float32]:
    found: NDArray[np.float32] = values.detach().contiguous().numpy()
    return found


def core_has(layer: Any) -> bool:
    """Return whether the core has such a layer: biased, in float32 on the CPU.

    And whether it is fast: on Linux with AVX2 or more. Elsewhere torch knows the processor
    better; the compiler of Windows has no vectors at all.
    """
    encoder = getattr(_core, "Encoder", None)
    if not hasattr(layer, "slopes") or encoder is None or not encoder.is_fast_here():
        return False
    weight: Tensor = layer.out.weight
    sizes = layer.out.in_features // layer.heads, layer.widen.out_features
    fits = not any(size % _LANES for size in sizes)
    return fits and weight.is_cpu and weight.dtype == torch.float32
