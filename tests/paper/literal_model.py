"""The published model once more, slow and word by word as the specification has it.

One row at a time, no padding, loops over arcs, explicit concatenations. From
`PublishedDaam` it takes the weights and nothing else.
"""

import math

import torch
from torch import Tensor

from arcfleet.neural.batch import NUM_PLAIN, ArcBatch
from arcfleet.neural.env import State
from arcfleet.paper.model import PublishedDaam
from tests.neural.literal_daam import (
    attention,
    edge,
    feed_forward,
    graph_attention,
    layer_weights,
    pointer,
    rms_norm,
)


def literal_logits(
    model: PublishedDaam, batch: ArcBatch, state: State, mask: Tensor
) -> Tensor:
    """Logits of every arc, (batch, samples, arcs); -inf for padding, too."""
    samples = state.previous.shape[1]
    places = [(b, c) for b in range(len(batch)) for c in range(samples)]
    rows = [_initial(model, batch, state, b, c) for b, c in places]
    for number in range(model.config.layers):
        rows = _layer(model, number, rows)
    logits = torch.full(mask.shape, -math.inf, dtype=torch.float64)
    for (b, c), row in zip(places, rows, strict=True):
        for arc, logit in pointer(model, batch, state, b, c, dict(enumerate(row))).items():
            if mask[b, c, arc]:
                logits[b, c, arc] = logit
    return logits


def _features(
    model: PublishedDaam, batch: ArcBatch, state: State, b: int, c: int, i: int
) -> Tensor:
    """F_t of arc i, Table 1: is_depot, cost, demand, MDS, |e|, allow_serve."""
    static, mds = batch.features[b, i, :3], batch.features[b, i, NUM_PLAIN:]
    if model.config.inputs == "gat":
        mds = torch.zeros_like(mds)
    way = edge(batch, b, int(state.previous[b, c]), i)
    changing = [way, float(state.unserved[b, c, i])]
    return torch.cat([static.double(), mds, torch.tensor(changing, dtype=torch.float64)])


def _initial(model: PublishedDaam, batch: ArcBatch, state: State, b: int, c: int) -> Tensor:
    """h^0 of one row, (its arcs, width)."""
    weights = model.state_dict()
    matrix = torch.cat([weights["static.weight"], weights["changing.weight"]], dim=1)
    hidden = {
        arc: matrix @ _features(model, batch, state, b, c, arc)
        for arc in range(int(batch.real[b].sum()))
    }
    if model.config.inputs == "mds":
        return torch.stack([h + weights["static.bias"] for h in hidden.values()])
    return torch.stack(list(graph_attention(weights, batch, b, hidden).values()))


def _layer(model: PublishedDaam, number: int, rows: list[Tensor]) -> list[Tensor]:
    weights = layer_weights(model, number)
    rows = [row + attention(row, weights, model.config.heads) for row in rows]
    rows = _norm(model, rows, weights, "attention_norm.")
    rows = [row + feed_forward(row, weights) for row in rows]
    return _norm(model, rows, weights, "feed_forward_norm.")


def _norm(
    model: PublishedDaam, rows: list[Tensor], weights: dict[str, Tensor], name: str
) -> list[Tensor]:
    weight = weights[name + "weight"]
    if model.config.norm == "rms":
        return [rms_norm(row, weight) for row in rows]
    mean, variance = weights[name + "mean"], weights[name + "variance"]
    if model.training:
        every = torch.cat(rows)
        mean = every.mean(0)
        variance = (every - mean).square().mean(0)
    bias = weights[name + "bias"]
    return [(row - mean) / (variance + 1e-5).sqrt() * weight + bias for row in rows]
