"""The model once more, slow and word by word as the specification has it.

One row at a time, no padding, loops over arcs, explicit concatenations. From `Daam` it
takes the weights and nothing else.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

if TYPE_CHECKING:
    from torch import Tensor

    from arcfleet.neural.batch import ArcBatch
    from arcfleet.neural.env import State
    from arcfleet.neural.model import Daam


def literal_logits(model: Daam, batch: ArcBatch, state: State, allowed: Tensor) -> Tensor:
    """Logits of every arc, (batch, copies, arcs); -inf for padding, too."""
    copies = state.previous.shape[1]
    places = [(b, c) for b in range(len(batch)) for c in range(copies)]
    rows = [_initial(model, batch, state, b, c) for b, c in places]
    for number in range(model.config.layers):
        rows = _layer(model, number, rows)
    logits = torch.full(allowed.shape, -math.inf, dtype=torch.float64)
    for (b, c), row in zip(places, rows, strict=True):
        arcs = _arcs(model, batch, state, b, c)
        for arc, logit in zip(arcs, _pointer(model, batch, state, b, c, row), strict=True):
            if allowed[b, c, arc]:
                logits[b, c, arc] = logit
    return logits


def _edge(batch: ArcBatch, b: int, i: int, j: int) -> float:
    """|e_ij|: from the end of arc i to the start of arc j, scaled."""
    return float(batch.distance[b, batch.end[b, i], batch.start[b, j]]) / float(
        batch.scale[b]
    )


def _arcs(model: Daam, batch: ArcBatch, state: State, b: int, c: int) -> list[int]:
    """The arcs that there are for the model in this state."""
    real = range(int(batch.real[b].sum()))
    if model.config.served == "seen":
        return list(real)
    kept = (0, int(state.previous[b, c]))
    return [arc for arc in real if arc in kept or state.unserved[b, c, arc]]


def _initial(model: Daam, batch: ArcBatch, state: State, b: int, c: int) -> Tensor:
    """h^0 of one row, (its arcs, width)."""
    config = model.config
    weights = model.state_dict()
    matrix = torch.cat([weights["static.weight"], weights["changing.weight"]], dim=1)
    arcs = _arcs(model, batch, state, b, c)
    previous = int(state.previous[b, c])
    features = []
    for i in arcs:
        static = batch.features[b, i].double()
        if config.inputs == "gat":
            static = torch.cat([static[:3], torch.zeros(2 * config.mds_dimensions)])
        way = torch.tensor([_edge(batch, b, previous, i)], dtype=torch.float64)
        allow_serve = state.unserved[b, c, i].double()[None]
        if config.features != "paper":
            capacity, remaining = int(batch.capacity[b]), int(state.remaining[b, c])
            fits = int(batch.demand[b, i]) <= remaining
            depot = [_edge(batch, b, 0, i), _edge(batch, b, i, 0)]
            static = torch.cat([static, torch.tensor(depot, dtype=torch.float64)])
            room = torch.tensor([remaining / capacity, fits], dtype=torch.float64)
            allow_serve = torch.cat([allow_serve, room])
        if config.features == "more+spare":
            spare = torch.tensor(_spare(batch, state, b, c), dtype=torch.float64)
            allow_serve = torch.cat([allow_serve, spare])
        features.append(torch.cat([static, way, allow_serve]).double())
    hidden = {arc: matrix @ feature for arc, feature in zip(arcs, features, strict=True)}
    if config.inputs == "mds":
        return torch.stack([h + weights["static.bias"] for h in hidden.values()])
    size = config.width // config.gat_heads
    results = []
    for i in arcs:
        heads = []
        for head in range(config.gat_heads):
            part = slice(head * size, (head + 1) * size)
            vector = torch.cat(
                [
                    weights["attend_to"][head],
                    weights["attend_from"][head],
                    weights["attend_edge"][head][None],
                ]
            )
            scores = []
            for j in arcs:
                edge = torch.tensor([_edge(batch, b, j, i)], dtype=torch.float64)
                score = vector @ torch.cat([hidden[i][part], hidden[j][part], edge])
                scores.append(score if score > 0 else 0.2 * score)
            shares = torch.stack(scores).softmax(0)
            mixed = sum(
                (share * hidden[j][part] for share, j in zip(shares, arcs, strict=True)),
                torch.zeros(size),
            )
            heads.append(functional.elu(mixed))
        gathered = torch.cat(heads)
        skips = config.inputs == "mds+gat+skip"
        results.append(gathered + hidden[i] if skips else gathered)
    return torch.stack(results)


def _spare(batch: ArcBatch, state: State, b: int, c: int) -> list[float]:
    """Demand left, room that may stay empty, and whether going home now leaves more."""
    capacity, room = int(batch.capacity[b]), int(state.remaining[b, c])
    left = 0
    for arc in range(batch.num_arcs):
        first = min(arc, int(batch.inverse[b, arc]))
        if state.unserved[b, c, arc] and arc == first:
            left += int(batch.demand[b, arc])
    spare = room - left
    while spare < 0:
        spare += capacity
    return [left / capacity, spare / capacity, float(room > spare)]


def _layer(model: Daam, number: int, rows: list[Tensor]) -> list[Tensor]:
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
    model: Daam, rows: list[Tensor], weights: dict[str, Tensor], name: str
) -> list[Tensor]:
    kind = model.config.norm
    if kind == "rms":
        weight = weights[name + "norm.weight"]
        return [
            row / (row.square().mean(1, keepdim=True) + 1e-6).sqrt() * weight
            for row in rows
        ]
    if kind == "layer":
        weight, bias = weights[name + "norm.weight"], weights[name + "norm.bias"]
        return [_standard(row, row, 1) * weight + bias for row in rows]
    weight, bias = weights[name + "weight"], weights[name + "bias"]
    if kind == "instance":
        return [_standard(row, row, 0) * weight + bias for row in rows]
    if model.training:
        every = torch.cat(rows)
        return [_standard(row, every, 0) * weight + bias for row in rows]
    mean, variance = weights[name + "mean"], weights[name + "variance"]
    return [(row - mean) / (variance + 1e-5).sqrt() * weight + bias for row in rows]


def _standard(row: Tensor, every: Tensor, dim: int) -> Tensor:
    mean = every.mean(dim, keepdim=True)
    variance = (every - mean).square().mean(dim, keepdim=True)
    return (row - mean) / (variance + 1e-5).sqrt()


def _pointer(
    model: Daam, batch: ArcBatch, state: State, b: int, c: int, row: Tensor
) -> list[Tensor]:
    weights = model.state_dict()
    capacity, remaining = int(batch.capacity[b]), int(state.remaining[b, c])
    numbers = [remaining / capacity, 1.0 if remaining > capacity / 2 else 0.0]
    context = torch.cat(
        [
            row.mean(0),
            row[_arcs(model, batch, state, b, c).index(int(state.previous[b, c]))],
            torch.tensor(numbers, dtype=torch.float64),
        ]
    )
    query = weights["context.weight"] @ context
    keys = [weights["key.weight"] @ arc for arc in row]
    scale = math.sqrt(model.config.width)
    return [model.config.clip * torch.tanh(query @ key / scale) for key in keys]
