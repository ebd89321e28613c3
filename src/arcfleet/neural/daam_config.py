"""Sizes of DaAM, and which of its inputs and forms; every number checked."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Literal

from arcfleet.errors import OptionError
from arcfleet.neural.norms import NORMS, NormName
from arcfleet.neural.sizes import require_divisors, require_sizes

# Table 1 of the paper: is_depot, cost and demand stand before the MDS coordinates; two
# features change from step to step: the way from the previous arc, and allow_serve.
NUM_PLAIN = 3
NUM_CHANGING = 2
# Ours: the ways from the depot and to it; the capacity left, and whether the arc fits in;
# the demand left, what may stay empty, and whether going home leaves more than that.
NUM_MORE_STATIC = 2
NUM_MORE_CHANGING = 2
NUM_SPARE = 3

Inputs = Literal["mds+gat", "gat", "mds", "mds+gat+skip"]
INPUTS: tuple[Inputs, ...] = ("mds+gat", "gat", "mds", "mds+gat+skip")
Features = Literal["paper", "more", "more+spare"]
#: Each has all columns of those before it, and its own after them.
FEATURES: tuple[Features, ...] = ("paper", "more", "more+spare")
Served = Literal["seen", "hidden"]
SERVED: tuple[Served, ...] = ("seen", "hidden")


@dataclass(frozen=True, slots=True, kw_only=True)
class DaamConfig:
    """Every size of the model.

    Parameters
    ----------
    width
        Of the embeddings.
    layers, heads, feed_forward
        Of the attention encoder.
    gat_heads
        Scalar attentions of the graph attention layer; the paper has one.
    mds_dimensions
        Coordinates of a node.
    norm
        One of `NORMS`, after each half of an encoder layer.
    clip
        Logits lie between plus and minus this.
    inputs
        "mds+gat" is the paper's model, "gat" leaves the MDS columns out, "mds" has a
        plain linear layer instead of the graph attention. "mds+gat+skip", ours, adds an
        arc's own features to what it gathered: a mean over all arcs blurs them.
    features
        "paper" for those of its Table 1. "more", ours, adds the exact ways from the depot
        to an arc and back, the capacity left, and whether the arc fits into it: in the
        paper's model only the pointer knows the capacity. "more+spare" also says how much
        demand is left, how much room may stay empty before a route more is needed, and
        whether going home now would leave more than that: whole vehicles are hard to count.
    served
        "seen" keeps all arcs in every step, as the paper does. "hidden", ours, lets no arc
        attend to those that are done, the previous one and the depot excepted: a plan half
        built is a smaller instance, and its served arcs need not be computed.
    """

    width: int = 128
    layers: int = 3
    heads: int = 8
    feed_forward: int = 512
    gat_heads: int = 1
    mds_dimensions: int = 8
    norm: NormName = "rms"
    clip: float = 10.0
    inputs: Inputs = "mds+gat"
    features: Features = "paper"
    served: Served = "seen"

    def __post_init__(self) -> None:
        """Check every number, and make `clip` a float."""
        sizes = dict.fromkeys(("width", "layers", "heads", "feed_forward", "gat_heads"), 1)
        require_sizes(self, **sizes, mds_dimensions=0)
        require_divisors(self.width, heads=self.heads, gat_heads=self.gat_heads)
        if type(self.clip) not in (int, float):
            raise OptionError(f"expected clip to be a number, got {self.clip!r:.40}")
        if not 0 < self.clip <= sys.float_info.max:
            raise OptionError(
                f"expected clip to be above 0 and finite, got {self.clip!r:.40}"
            )
        object.__setattr__(self, "clip", float(self.clip))
        words = {"norm": NORMS, "inputs": INPUTS, "features": FEATURES, "served": SERVED}
        for name, known in words.items():
            if getattr(self, name) not in known:
                raise OptionError(
                    f"expected {name} to be one of {', '.join(known)}, got "
                    f"{getattr(self, name)!r:.40}"
                )

    @property
    def num_static(self) -> int:
        """Features that stay the same while a plan is built."""
        more = 0 if self.features == "paper" else NUM_MORE_STATIC
        return NUM_PLAIN + 2 * self.mds_dimensions + more

    @property
    def num_changing(self) -> int:
        """Features that change from step to step."""
        more = 0 if self.features == "paper" else NUM_MORE_CHANGING
        return NUM_CHANGING + more + (NUM_SPARE if self.features == "more+spare" else 0)
