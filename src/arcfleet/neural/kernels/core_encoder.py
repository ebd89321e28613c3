"""The encoder on a CPU: all of its layers at once in the C++ core.

There a layer takes a third of the time that torch takes, mostly since what lies between two
products never leaves the cache.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from arcfleet import _core

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from arcfleet.neural.kernels.biased_attention import Pairs

    Weights = tuple[NDArray[np.float32], ...]

# Numbers that the core computes at once; the widths of heads and nets are multiples of it.
_LANES = 16


class CoreEncoder:
    """All layers of an encoder as one layer, with the weights that they have now.

    Parameters
    ----------
    heads
        Number of attention heads.
    weights
        Weights of each layer, as `weights_of` returns them.
    """

    def __init__(self, heads: int, weights: Sequence[Weights]) -> None:
        self._heads, self._weights = heads, weights
        out, widen = weights[0][1], weights[0][3]
        self._encoder = _core.Encoder(len(out), heads, len(widen))
        for each in weights:
            self._encoder.add_layer(*each)

    @classmethod
    def of(cls, layers: Sequence[Any]) -> CoreEncoder:
        """Return the form of layers that the core has."""
        return cls(layers[0].heads, [weights_of(layer) for layer in layers])

    def __reduce__(self) -> tuple[Any, ...]:
        """Be pickled by the weights."""
        return CoreEncoder, (self._heads, self._weights)

    def __deepcopy__(self, memo: dict[int, Any]) -> None:
        """Return None: the copy of a model may learn, and its layers be others then."""

    def takes(self, hidden: Tensor) -> bool:
        """Return whether it computes from such embeddings what the layers would."""
        learns = torch.is_grad_enabled() and hidden.requires_grad
        fits = hidden.is_cpu and hidden.dtype == torch.float32
        return fits and not learns and not torch.compiler.is_compiling()

    def __call__(self, hidden: Tensor, visible: Tensor, pairs: Pairs) -> Tensor:
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


def weights_of(layer: Any) -> Weights:
    """Return the weights of a layer in the order of the core."""
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
    return tuple(_numbers(each).copy() for each in weights)


def _numbers(values: Tensor) -> NDArray[np.float32]:
    found: NDArray[np.float32] = values.detach().contiguous().numpy()
    return found


def core_has(layers: Sequence[Any]) -> bool:
    """Return whether the core has such layers: alike, biased, in float32 on the CPU."""
    if not layers or not all(hasattr(layer, "slopes") for layer in layers):
        return False
    sizes = {(x.heads, x.out.in_features, x.widen.out_features) for x in layers}
    heads, width, hidden = next(iter(sizes))
    alike = len(sizes) == 1 and not any(x % _LANES for x in (width // heads, hidden))
    weights = [layer.out.weight for layer in layers]
    return alike and all(x.is_cpu and x.dtype == torch.float32 for x in weights)


def is_fast_here() -> bool:
    """Return whether the core is faster than torch: on Linux with AVX-512.

    It has no vectors of other processors; the compiler of Windows has none at all.
    """
    encoder = getattr(_core, "Encoder", None)
    return encoder is not None and encoder.is_fast_here()
