"""The shipped model and its successor once more, slow and word by word.

One row at a time, no padding, loops over arcs, explicit concatenations. From `Daam` it
takes the weights and nothing else. The literal published model shares the public parts.
"""

import math

import torch
from torch import Tensor
from torch.nn import functional

from arcfleet.neural.batch import ArcBatch
from arcfleet.neural.env import State
from arcfleet.neural.model import AttentionModel, Daam


def literal_logits(model: Daam, batch: ArcBatch, state: State, mask: Tensor) -> Tensor:
    """Logits of every arc, (batch, samples, arcs); -inf for padding, too."""
    logits = torch.full(mask.shape, -math.inf, dtype=torch.float64)
    for b in range(len(batch)):
        for c in range(state.previous.shape[1]):
            row = _initial(model, batch, state, b, c)
            arcs = _arcs(batch, state, b, c)
            for number in range(model.config.layers):
                bias = _bias(model, number, batch, b, arcs)
                row = _layer(model, number, row, bias)
            found = pointer(model, batch, state, b, c, dict(zip(arcs, row, strict=True)))
            for arc, logit in found.items():
                if mask[b, c, arc]:
                    logits[b, c, arc] = logit
    return logits


def edge(batch: ArcBatch, b: int, i: int, j: int) -> float:
    """|e_ij|: from the end of arc i to the start of arc j, scaled."""
    return float(batch.distance[b, batch.end[b, i], batch.start[b, j]]) / float(
        batch.scale[b]
    )


def _arcs(batch: ArcBatch, state: State, b: int, c: int) -> list[int]:
    """The arcs that there are for the model in this state."""
    kept = (0, int(state.previous[b, c]))
    real = range(int(batch.real[b].sum()))
    return [arc for arc in real if arc in kept or state.unserved[b, c, arc]]


def _features(batch: ArcBatch, state: State, b: int, c: int, i: int) -> Tensor:
    """Every column of one arc: those of the batch, then the derived ones in their order."""
    previous = int(state.previous[b, c])
    capacity, remaining = int(batch.capacity[b]), int(state.remaining[b, c])
    demand_left, slack = _slack(batch, state, b, c)
    derived = [
        edge(batch, b, 0, i),
        edge(batch, b, i, 0),
        edge(batch, b, previous, i),
        float(state.unserved[b, c, i]),
        remaining / capacity,
        float(int(batch.demand[b, i]) <= remaining),
        demand_left / capacity,
        slack / capacity,
        float(remaining > slack),
    ]
    return torch.cat(
        [batch.features[b, i].double(), torch.tensor(derived, dtype=torch.float64)]
    )


def _slack(batch: ArcBatch, state: State, b: int, c: int) -> tuple[int, int]:
    """Demand of all unserved tasks, and the capacity that may stay unused."""
    demand_left = 0
    for arc in range(batch.num_arcs):
        first = min(arc, int(batch.inverse[b, arc]))
        if state.unserved[b, c, arc] and arc == first:
            demand_left += int(batch.demand[b, arc])
    slack = int(state.remaining[b, c]) - demand_left
    while slack < 0:
        slack += int(batch.capacity[b])
    return demand_left, slack


def _initial(model: Daam, batch: ArcBatch, state: State, b: int, c: int) -> Tensor:
    """h^0 of one row, (its arcs, width)."""
    weights = model.state_dict()
    matrix = torch.cat([weights["static.weight"], weights["changing.weight"]], dim=1)
    arcs = _arcs(batch, state, b, c)
    hidden = {arc: matrix @ _features(batch, state, b, c, arc) for arc in arcs}
    if model.config.cost_bias:
        return torch.stack(list(hidden.values()))
    attended = graph_attention(weights, batch, b, hidden)
    return torch.stack([attended[arc] + hidden[arc] for arc in arcs])


def graph_attention(
    weights: dict[str, Tensor], batch: ArcBatch, b: int, hidden: dict[int, Tensor]
) -> dict[int, Tensor]:
    """What every arc of one row takes from all of them."""
    vector = torch.cat(
        [weights["attend_to"][0], weights["attend_from"][0], weights["attend_edge"]]
    )
    results = {}
    for i in hidden:
        scores = []
        for j in hidden:
            way = torch.tensor([edge(batch, b, j, i)], dtype=torch.float64)
            score = vector @ torch.cat([hidden[i], hidden[j], way])
            scores.append(score if score > 0 else 0.2 * score)
        mixed = torch.zeros_like(hidden[i])
        for share, h in zip(torch.stack(scores).softmax(0), hidden.values(), strict=True):
            mixed = mixed + share * h
        results[i] = functional.elu(mixed)
    return results


def _bias(model: Daam, number: int, batch: ArcBatch, b: int, arcs: list[int]) -> Tensor:
    """What each head adds to the score of arc i for arc j, (heads, arcs i, arcs j)."""
    heads = model.config.heads
    bias = torch.zeros(heads, len(arcs), len(arcs), dtype=torch.float64)
    if model.config.cost_bias:
        # They are stored divided by ten.
        slopes = 10 * layer_weights(model, number)["slopes"]
        for head in range(heads):
            for row, i in enumerate(arcs):
                for column, j in enumerate(arcs):
                    from_j, to_j = edge(batch, b, j, i), edge(batch, b, i, j)
                    bias[head, row, column] = (
                        slopes[head, 0] * from_j + slopes[head, 1] * to_j
                    )
    return bias


def _layer(model: Daam, number: int, row: Tensor, bias: Tensor) -> Tensor:
    weights = layer_weights(model, number)
    row = row + attention(row, weights, model.config.heads, bias)
    row = rms_norm(row, weights["attention_norm.weight"])
    row = row + feed_forward(row, weights)
    return rms_norm(row, weights["feed_forward_norm.weight"])


def layer_weights(model: AttentionModel, number: int) -> dict[str, Tensor]:
    """Weights of one encoder layer, by their names within it."""
    start = f"encoder.{number}."
    return {
        name.removeprefix(start): value
        for name, value in model.state_dict().items()
        if name.startswith(start)
    }


def feed_forward(row: Tensor, weights: dict[str, Tensor]) -> Tensor:
    """The feed-forward net of a layer, with ReLU between."""
    wide = row @ weights["widen.weight"].T + weights["widen.bias"]
    wide = torch.where(wide > 0, wide, torch.zeros_like(wide))
    return wide @ weights["narrow.weight"].T + weights["narrow.bias"]


def attention(
    row: Tensor, weights: dict[str, Tensor], heads: int, bias: Tensor | None = None
) -> Tensor:
    """Multi-head attention of a layer, arc by arc and head by head."""
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
            scaled = torch.stack(scores) / math.sqrt(size)
            if bias is not None:
                scaled = scaled + bias[head, i]
            shares = scaled.softmax(0)
            mixed.append(
                sum(
                    (shares[j] * value[j, part] for j in range(len(row))), torch.zeros(size)
                )
            )
        results.append(weights["out.weight"] @ torch.cat(mixed))
    return torch.stack(results)


def rms_norm(row: Tensor, weight: Tensor) -> Tensor:
    """Each arc divided by its root mean square."""
    return row / (row.square().mean(1, keepdim=True) + 1e-6).sqrt() * weight


def pointer(
    model: AttentionModel,
    batch: ArcBatch,
    state: State,
    b: int,
    c: int,
    row: dict[int, Tensor],
) -> dict[int, Tensor]:
    """Logits of the arcs of one row."""
    weights = model.state_dict()
    capacity, remaining = int(batch.capacity[b]), int(state.remaining[b, c])
    numbers = [remaining / capacity, 1.0 if remaining > capacity / 2 else 0.0]
    context = torch.cat(
        [
            torch.stack(list(row.values())).mean(0),
            row[int(state.previous[b, c])],
            torch.tensor(numbers, dtype=torch.float64),
        ]
    )
    query = weights["context.weight"] @ context
    scale = math.sqrt(model.config.width)
    return {
        arc: model.config.clip * torch.tanh(query @ (weights["key.weight"] @ h) / scale)
        for arc, h in row.items()
    }
