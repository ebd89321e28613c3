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
        for arc, logit in enumerate(_pointer(model, batch, state, b, c, row)):
            if mask[b, c, arc]:
                logits[b, c, arc] = logit
    return logits


def _edge(batch: ArcBatch, b: int, i: int, j: int) -> float:
    """|e_ij|: from the end of arc i to the start of arc j, scaled."""
    return float(batch.distance[b, batch.end[b, i], batch.start[b, j]]) / float(
        batch.scale[b]
    )


def _features(
    model: PublishedDaam, batch: ArcBatch, state: State, b: int, c: int, i: int
) -> Tensor:
    """F_t of arc i, Table 1: is_depot, cost, demand, MDS, |e|, allow_serve."""
    static, mds = batch.features[b, i, :3], batch.features[b, i, NUM_PLAIN:]
    if model.config.inputs == "gat":
        mds = torch.zeros_like(mds)
    way = _edge(batch, b, int(state.previous[b, c]), i)
    changing = [way, float(state.unserved[b, c, i])]
    return torch.cat([static.double(), mds, torch.tensor(changing, dtype=torch.float64)])


def _initial(model: PublishedDaam, batch: ArcBatch, state: State, b: int, c: int) -> Tensor:
    """h^0 of one row, (its arcs, width)."""
    weights = model.state_dict()
    matrix = torch.cat([weights["static.weight"], weights["changing.weight"]], dim=1)
    arcs = range(int(batch.real[b].sum()))
    hidden = [matrix @ _features(model, batch, state, b, c, arc) for arc in arcs]
    if model.config.inputs == "mds":
        return torch.stack([h + weights["static.bias"] for h in hidden])
    vector = torch.cat(
        [weights["attend_to"][0], weights["attend_from"][0], weights["attend_edge"]]
    )
    results = []
    for i in arcs:
        scores = []
        for j in arcs:
            edge = torch.tensor([_edge(batch, b, j, i)], dtype=torch.float64)
            score = vector @ torch.cat([hidden[i], hidden[j], edge])
            scores.append(score if score > 0 else 0.2 * score)
        mixed = torch.zeros_like(hidden[i])
        for share, h in zip(torch.stack(scores).softmax(0), hidden, strict=True):
            mixed = mixed + share * h
        results.append(functional.elu(mixed))
    return torch.stack(results)


def _layer(model: PublishedDaam, number: int, rows: list[Tensor]) -> list[Tensor]:
    config = model.config
    start = f"encoder.{number}."
    weights = {
        name.removeprefix(start): value
        for name, value in model.state_dict().items()
        if name.startswith(start)
    }
    attended = [row + _attention(row, weights, config.heads) for row in rows]
    rows = _norm(model, attended, weights, "attention_norm.")
    fed = []
    for row in rows:
        spread = row @ weights["widen.weight"].T + weights["widen.bias"]
        spread = torch.where(spread > 0, spread, torch.zeros_like(spread))
        fed.append(row + spread @ weights["narrow.weight"].T + weights["narrow.bias"])
    return _norm(model, fed, weights, "feed_forward_norm.")


def _attention(row: Tensor, weights: dict[str, Tensor], heads: int) -> Tensor:
    width = row.shape[1]
    size = width // heads
    query, key, value = (
        (row @ weights["query_key_value.weight"].T).view(-1, 3, width).unbind(1)
    )
    results = []
    for i in range(len(row)):
        mixed = []
        for head in range(heads):
            part = slice(head * size, (head + 1) * size)
            scores = [query[i, part] @ key[j, part] for j in range(len(row))]
            shares = (torch.stack(scores) / math.sqrt(size)).softmax(0)
            mixed.append(
                sum(
                    (shares[j] * value[j, part] for j in range(len(row))), torch.zeros(size)
                )
            )
        results.append(weights["out.weight"] @ torch.cat(mixed))
    return torch.stack(results)


def _norm(
    model: PublishedDaam, rows: list[Tensor], weights: dict[str, Tensor], name: str
) -> list[Tensor]:
    weight = weights[name + "weight"]
    if model.config.norm == "rms":
        return [
            row / (row.square().mean(1, keepdim=True) + 1e-6).sqrt() * weight
            for row in rows
        ]
    mean, variance = weights[name + "mean"], weights[name + "variance"]
    if model.training:
        every = torch.cat(rows)
        mean = every.mean(0)
        variance = (every - mean).square().mean(0)
    bias = weights[name + "bias"]
    return [(row - mean) / (variance + 1e-5).sqrt() * weight + bias for row in rows]


def _pointer(
    model: PublishedDaam, batch: ArcBatch, state: State, b: int, c: int, row: Tensor
) -> list[Tensor]:
    weights = model.state_dict()
    capacity, remaining = int(batch.capacity[b]), int(state.remaining[b, c])
    numbers = [remaining / capacity, 1.0 if remaining > capacity / 2 else 0.0]
    context = torch.cat(
        [
            row.mean(0),
            row[int(state.previous[b, c])],
            torch.tensor(numbers, dtype=torch.float64),
        ]
    )
    query = weights["context.weight"] @ context
    keys = [weights["key.weight"] @ arc for arc in row]
    scale = math.sqrt(model.config.width)
    return [model.config.clip * torch.tanh(query @ key / scale) for key in keys]
