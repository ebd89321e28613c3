"""The published model once more, slow and word by word as the specification has it.

One row at a time, no padding, loops over arcs, explicit concatenations. From
`PublishedDaam` it takes the weights and nothing else.
"""

import math

import torch
from torch import Tensor
from torch.nn import functional

from arcfleet.neural.batch import NUM_PLAIN, ArcBatch
from arcfleet.neural.env import State
from arcfleet.paper.model import PublishedDaam
from tests.neural.literal_daam import (
    attention,
    edge,
    feed_forward,
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
    own = torch.cat([weights["static.weight"], weights["changing.weight"]], dim=1)
    arcs = range(int(batch.real[b].sum()))
    features = {arc: _features(model, batch, state, b, c, arc) for arc in arcs}
    if model.config.inputs == "mds":
        return torch.stack([own @ f + weights["static.bias"] for f in features.values()])
    # W of Eq. 5, for [F_i || F_j || e_ji].
    names = ("other_static.weight", "other_changing.weight")
    other = torch.cat([weights[name] for name in names], dim=1)
    matrix = torch.cat([own, other, weights["edge"][:, None]], dim=1)
    results = []
    for i in arcs:
        products, scores = [], []
        for j in arcs:
            way = torch.tensor([edge(batch, b, j, i)], dtype=torch.float64)
            product = matrix @ torch.cat([features[i], features[j], way])
            score = weights["attend"][0] @ product
            products.append(product)
            scores.append(score if score > 0 else 0.2 * score)
        shares = torch.stack(scores).softmax(0)
        mixed = sum(
            (share * product for share, product in zip(shares, products, strict=True)),
            torch.zeros_like(products[0]),
        )
        results.append(functional.elu(mixed))
    return torch.stack(results)


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
