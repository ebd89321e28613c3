"""S2V-DQN and VRP-DL as policies: against their formulas, and under every decoding."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from arcfleet.errors import OptionError
from arcfleet.neural import env as process
from arcfleet.neural.batch import ArcBatch
from arcfleet.neural.decoding import Advance, beam, greedy, sample
from arcfleet.neural.env import State
from arcfleet.neural.plans import as_decoded
from arcfleet.paper.baselines.s2v_dqn import S2vDqn, S2vDqnConfig
from arcfleet.paper.baselines.vrp_dl import VrpDl, VrpDlConfig
from arcfleet.paper.model import table_1_features
from tests.neural.batches import MDS, join, random_batch, random_rollout

Baseline = S2vDqn | VrpDl


def s2v_dqn() -> S2vDqn:
    torch.manual_seed(2)
    config = S2vDqnConfig(width=8, layers=2, heads=2, mds_dimensions=MDS)
    model = S2vDqn(config).double().eval()
    for rounds in model.rounds:
        nn.init.constant_(rounds.get_parameter("attend_edge"), -0.7)
    return model


def vrp_dl() -> VrpDl:
    torch.manual_seed(3)
    model = VrpDl(VrpDlConfig(width=8, mds_dimensions=MDS)).double().eval()
    with torch.no_grad():
        model.point_score.weight *= 5  # far from indifferent
    return model


MODELS = pytest.mark.parametrize("make", [s2v_dqn, vrp_dl])


def changing(batch: ArcBatch, state: State, arc: int) -> list[float]:
    """What one plan of one instance shows of an arc: way, to be served, room, half."""
    last = int(state.previous[0, 0])
    way = batch.distance[0, int(batch.end[0, last]), int(batch.start[0, arc])]
    share = float(state.remaining[0, 0]) / float(batch.capacity[0])
    served = float(state.unserved[0, 0, arc])
    return [float(way / batch.scale[0]), served, share, float(share > 0.5)]


def literal_values(model: S2vDqn, batch: ArcBatch, state: State) -> Tensor:
    """Values of all arcs, arc by arc."""
    seen = torch.tensor([changing(batch, state, a) for a in range(batch.num_arcs)]).double()
    own = model.static(table_1_features(batch)[0].double()) + model.changing(seen[:, :2])
    hidden = own.relu()
    for layer in model.rounds:
        mixed = hidden @ layer.get_parameter("mix.weight").T
        new = []
        for i in range(batch.num_arcs):
            heads = []
            for head in range(2):
                columns = slice(4 * head, 4 * head + 4)
                scores = []
                for j in range(batch.num_arcs):
                    way = batch.distance[0, int(batch.end[0, j]), int(batch.start[0, i])]
                    score = mixed[i, columns] @ layer.get_parameter("attend_to")[head]
                    score = (
                        score + mixed[j, columns] @ layer.get_parameter("attend_from")[head]
                    )
                    edge = layer.get_parameter("attend_edge")[head]
                    score = score + edge * float(way / batch.scale[0])
                    scores.append(functional.leaky_relu(score, 0.2))
                weight = torch.stack(scores).softmax(0)
                heads.append(weight @ mixed[:, columns])
            new.append((own[i] + torch.cat(heads)).relu())
        hidden = torch.stack(new)
    graph = model.of_graph(hidden.sum(0) / 64) + model.of_room(seen[0, 2:])
    values: Tensor = model.value((model.of_arc(hidden) + graph).relu())[:, 0]
    return values


def literal_logits(
    model: VrpDl, batch: ArcBatch, state: State, chosen: list[int]
) -> Tensor:
    """Logits of all arcs: the equations of Nazari et al. on whole elements."""
    static = model.static(table_1_features(batch)[0].double())
    seen = torch.tensor([changing(batch, state, a) for a in range(batch.num_arcs)]).double()
    element = torch.cat([static, model.changing(seen)], dim=-1)  # (arcs, 2 width)
    cell = model.decoder
    decoder = nn.LSTM(8, 8).double()
    decoder.load_state_dict({f"{name}_l0": w for name, w in cell.state_dict().items()})
    outputs, _ = decoder(static[[0, *chosen]][:, None])
    mixed = (model.glimpse_static, model.glimpse_changing, model.glimpse_decoder)
    output = outputs[-1, 0].expand(batch.num_arcs, -1)
    glimpse_weight = torch.cat([mix.weight for mix in mixed], dim=1)
    inner = (torch.cat([element, output], dim=1) @ glimpse_weight.T).tanh()
    weight = model.glimpse_score(inner)[:, 0].softmax(0)
    glimpse = (weight @ element).expand(batch.num_arcs, -1)
    mixed = (model.point_static, model.point_changing, model.point_glimpse)
    point_weight = torch.cat([mix.weight for mix in mixed], dim=1)
    inner = (torch.cat([element, glimpse], dim=1) @ point_weight.T).tanh()
    logits: Tensor = model.point_score(inner)[:, 0]
    return logits


@MODELS
@torch.no_grad()
def test_logits_follow_the_formula(make: Callable[[], Baseline]) -> None:
    batch, model = random_batch([4], mixed=True), make()
    generator = torch.Generator().manual_seed(0)
    states, arcs = random_rollout(batch, capacity_mask=True, generator=generator)
    prepared: Any = model.prepare(batch)
    start = prepared
    for step, state in enumerate(states[:-1]):
        allowed = process.action_mask(batch, state)
        if isinstance(model, VrpDl):
            prepared = model.remember(prepared, state)
            expected = literal_logits(model, batch, state, arcs[0, 0, :step].tolist())
            # In training the decoder runs along the whole plan at once.
            outputs = model.remember_all(start, arcs[:, 0])
            torch.testing.assert_close(prepared.memory[0, 0, :8], outputs[0, step])
        else:
            expected = literal_values(model, batch, state)
        logits = model(prepared, state, allowed)[0, 0]
        assert torch.equal(logits == -math.inf, ~allowed[0, 0])
        torch.testing.assert_close(logits[allowed[0, 0]], expected[allowed[0, 0]])


@MODELS
def test_padding_and_chunks_change_nothing(make: Callable[[], Baseline]) -> None:
    model = make()
    alone = [random_batch([tasks], seed=tasks) for tasks in (3, 5, 4)]
    together = join(alone, padding=3)
    for options in ({}, {"chunk": 2}):
        rollout = greedy(model, together, **options)  # type: ignore[arg-type]
        assert (as_decoded(together, rollout).costs >= 0).all()
        for row, batch in enumerate(alone):
            arcs = greedy(model, batch).arcs[0, 0]
            assert torch.equal(rollout.arcs[row, 0, : len(arcs)], arcs)
            assert not rollout.arcs[row, 0, len(arcs) :].any()


def log_probability(model: Baseline, batch: ArcBatch, arcs: Tensor) -> Tensor:
    """That of one plan of one instance, step by step from its beginning."""
    state, total = process.reset(batch), torch.zeros(()).double()
    prepared = model.prepare(batch)
    for arc in arcs:
        if bool(process.finished(state).all()) and bool(state.unserved.sum() == 0):
            break
        if isinstance(model, VrpDl):
            prepared = model.remember(prepared, state)  # type: ignore[arg-type]
        logits = model(prepared, state, process.action_mask(batch, state))
        total = total + logits.log_softmax(-1)[0, 0, arc]
        state = process.step(batch, state, arc.view(1, 1))
    return total


@MODELS
@torch.no_grad()
def test_beams_and_samples_keep_the_memory_of_each_plan(
    make: Callable[[], Baseline],
) -> None:
    model, batch = make(), random_batch([5])
    wide = beam(model, batch, 6)
    assert len({tuple(arcs.tolist()) for arcs in wide.arcs[0]}) == 6
    drawn = sample(model, batch, 4, generator=torch.Generator().manual_seed(1))
    for rollout in (wide, drawn):
        for copy, arcs in enumerate(rollout.arcs[0]):
            expected = log_probability(model, batch, arcs)
            torch.testing.assert_close(rollout.log_probability[0, copy], expected)
    assert torch.equal(beam(model, batch, 1).arcs, greedy(model, batch).arcs)


@MODELS
def test_a_step_is_one_graph_of_tensors(make: Callable[[], Baseline]) -> None:
    # With fullgraph, whatever asks the device for a value is an error.
    model, batch = make(), random_batch([4, 3])

    def wrap(advance: Advance) -> Advance:
        compiled: Advance = torch.compile(advance, backend="eager", fullgraph=True)
        return compiled

    assert torch.equal(greedy(model, batch).arcs, greedy(model, batch, wrap=wrap).arcs)
    assert torch.equal(beam(model, batch, 2).arcs, beam(model, batch, 2, wrap=wrap).arcs)
    torch.compiler.reset()


def test_a_policy_with_a_memory_begins_at_the_beginning() -> None:
    batch = random_batch([3])
    with pytest.raises(OptionError, match="one that remembers their beginning"):
        greedy(vrp_dl(), batch, initial=process.reset(batch))


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"width": 0}, "expected width to be at least 1, got 0"),
        ({"width": 2.5}, "expected width to be a whole number, got 2.5"),
        ({"mds_dimensions": True}, "expected mds_dimensions to be a whole number"),
    ],
)
def test_wrong_sizes_are_refused(sizes: dict[str, int], message: str) -> None:
    for config in (S2vDqnConfig, VrpDlConfig):
        with pytest.raises(OptionError, match=message):
            config(**sizes)
    with pytest.raises(OptionError, match="a width that heads divides"):
        S2vDqnConfig(width=8, heads=3)
