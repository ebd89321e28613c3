"""Training of S2V-DQN and VRP-DL: what they learn from, and that they learn."""

from dataclasses import replace
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from arcfleet.errors import OptionError
from arcfleet.neural import env as process
from arcfleet.neural.checkpoint import find_model_type, load_model
from arcfleet.neural.decoding import Policy, greedy
from arcfleet.neural.train import loop as loop_module
from arcfleet.neural.train.config import changed, config_from
from arcfleet.neural.train.data import open_instances
from arcfleet.neural.train.loop import Gaps, Trained
from arcfleet.neural.train.run import run_training
from arcfleet.paper.baselines.s2v_dqn import S2vDqn, S2vDqnConfig
from arcfleet.paper.baselines.train import (
    EpsilonGreedy,
    Replay,
    S2vDqnTraining,
    VrpDlTraining,
    n_step_returns,
)
from arcfleet.paper.baselines.vrp_dl import Critic, VrpDlConfig
from arcfleet.paper.train import PAPER_PHASES
from tests.neural.batches import MDS, random_batch, random_rollout
from tests.neural.labelled_towns import labelled_file
from tests.neural.nearest_policy import Nearest
from tests.neural.train.quick import assert_resumes, stop_at

Training = S2vDqnTraining | VrpDlTraining

ARCS = 41  # of a Task20 instance of two-way streets
_ONCE = {"steps": 4, "validations": 2, "log_steps": 1}
QUICK: dict[str, Any] = {
    "s2v-dqn": config_from(
        S2vDqnTraining,
        {
            **{**_ONCE, "model": {"width": 8, "layers": 1, "mds_dimensions": 4}},
            **{"rollout_tokens": ARCS * 4, "tokens": ARCS * 8, "decision_steps": 2},
            **{"updates": 2, "n_steps": 3, "replay_plans": 6, "target_updates": 3},
        },
    ),
    "vrp-dl": config_from(
        VrpDlTraining,
        {
            **{**_ONCE, "model": {"width": 8, "mds_dimensions": 4}},
            **{"tokens": ARCS * 4 * 4, "decision_steps": 4},
        },
    ),
}


@pytest.fixture(scope="module")
def towns(tmp_path_factory: pytest.TempPathFactory) -> Path:
    towns = tmp_path_factory.mktemp("data")
    labelled_file(towns, "few", "task20", count=24, iterations=100)
    labelled_file(towns, "mixed", "task30", count=6, one_way=0.3, iterations=1)
    (towns / "mixed.labels.npz").unlink()  # they are not needed
    return towns


def run(towns: Path, out: Path, config: Training, **options: Any) -> Trained:
    options = {
        "data": [towns / "few.npz", towns / "mixed.npz"],
        "validation": [towns / "few.npz"],
        "device": "cpu",
        **options,
    }
    (trainer,) = (
        each.trainer for each in PAPER_PHASES.values() if each.config is type(config)
    )
    return run_training(trainer, out, config, **options)


@pytest.mark.parametrize("kind", QUICK)
def test_a_resumed_run_comes_to_the_same_weights(
    towns: Path, tmp_path: Path, kind: str
) -> None:
    config = QUICK[kind]
    train = partial(run, towns, config=config)
    whole, lines = assert_resumes(train, tmp_path, 4, "sampled")
    assert [line["step"] for line in lines if "loss" in line] == [1, 2, 3, 4]
    assert [line["step"] for line in lines if "gaps" in line] == [2, 4]
    assert all(line["sampled"] > 0 for line in lines if "loss" in line)
    model, facts = load_model(whole.model_file)
    assert model.config == config.model
    assert facts["phase"] == kind
    assert set(whole.gaps) == {"few"}


@pytest.mark.parametrize("kind", QUICK)
def test_the_model_of_the_best_validation_is_kept(
    towns: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    found = iter([Gaps(9.0, 5.0), Gaps(7.0, 6.0), Gaps(8.0, 4.0), Gaps(7.5, 3.0)])
    monkeypatch.setattr(loop_module, "validate", lambda *_, **__: next(found))
    config = changed(QUICK[kind], validations=4)
    train = partial(run, towns, tmp_path / "run", config)
    part = train(progress=stop_at(3))
    assert not part.finished
    trained = train(resume=True)
    assert trained.gaps == {"few": Gaps(7.5, 3.0)}
    model, facts = load_model(trained.model_file)
    assert facts["best_step"] == 2
    assert facts["gaps"] == {"few": {"greedy": 7.0, "optimised": 6.0}}
    saved = load_file(tmp_path / "run" / "checkpoint.safetensors")
    weights: dict[str, torch.Tensor] = model.state_dict()
    assert all(torch.equal(saved[f"best.{name}"], each) for name, each in weights.items())
    assert any(not torch.equal(saved[f"ema.{x}"], each) for x, each in weights.items())


def cost(model: Policy | None, towns: Path) -> float:
    """Mean deadhead of greedy plans, of random ones without a model."""
    batch = open_instances(towns / "few.npz", "cpu", mds_dimensions=4).batch
    if model is None:
        generator = torch.Generator().manual_seed(0)
        _, arcs = random_rollout(batch, capacity_mask=True, generator=generator)
    else:
        arcs = greedy(model, batch).arcs
    return float((batch.deadheads(arcs) / batch.scale[:, None]).mean())


LONGER: dict[str, dict[str, Any]] = {
    "s2v-dqn": {
        **{"steps": 100, "rollout_tokens": ARCS * 16, "tokens": ARCS * 64, "updates": 4},
        **{"decision_steps": 4, "target_updates": 20, "replay_plans": 200},
        **{"epsilon_share": 0.3, "learning_rate": 3e-3},
    },
    "vrp-dl": {
        **{"steps": 60, "tokens": ARCS * 24 * 8, "decision_steps": 8},
        "learning_rate": 3e-3,
    },
}


@pytest.mark.parametrize("kind", LONGER)
def test_it_learns_to_beat_random_plans_and_the_nearest_arc(
    towns: Path, tmp_path: Path, kind: str
) -> None:
    of_model = find_model_type(kind).config_class
    settings = {"model": of_model(width=32, mds_dimensions=4), **LONGER[kind]}
    config = changed(QUICK[kind], validations=0, **settings)
    trained = run(towns, tmp_path / "run", config, data=[towns / "few.npz"])
    model, _ = load_model(trained.model_file)
    found = cost(model, towns)
    assert found < 0.4 * cost(None, towns)
    assert found < cost(Nearest(), towns)


def test_returns_are_the_driving_of_the_next_choices() -> None:
    batch = random_batch([5, 3], mixed=True)
    generator = torch.Generator().manual_seed(4)
    states, arcs = random_rollout(batch, capacity_mask=True, generator=generator, samples=2)
    for n_steps, row, copy in product((1, 2, 100), range(2), range(2)):
        plan = arcs[row, copy].tolist()
        along = [0, *plan]
        choices = max(i for i, arc in enumerate(plan) if arc) + 1
        for now in range(choices):
            decision_steps = torch.zeros(2, 2, 1, dtype=torch.int64)
            decision_steps[row, copy] = now
            returns = n_step_returns(batch, arcs, decision_steps, n_steps)
            over = now + n_steps >= choices
            assert bool(returns.over[row, copy]) == over
            end = len(plan) if over else now + n_steps
            driven = sum(
                int(batch.distance[row, batch.end[row, i], batch.start[row, j]])
                for i, j in pairwise(along[now : end + 1])
            )
            expected = -driven / float(batch.scale[row])
            assert float(returns.reward[row, copy]) == pytest.approx(expected, rel=1e-5)
            if not over:
                assert int(returns.later[row, copy, 0]) == now + n_steps
    assert len(states) > 1


def test_the_replay_holds_the_last_plans() -> None:
    replay = Replay(4, 6, torch.device("cpu"))
    generator = torch.Generator().manual_seed(0)
    replay.add(torch.tensor([1, 2]), torch.tensor([[1, 0], [2, 0]]))
    rows, arcs = replay.draw(50, generator)
    assert set(rows.tolist()) == {1, 2}
    assert torch.equal(arcs[:, 0], rows)
    replay.add(torch.tensor([3, 4, 5]), torch.tensor([[3, 1, 0], [4, 1, 0], [5, 1, 0]]))
    rows, arcs = replay.draw(100, generator)
    assert set(rows.tolist()) == {2, 3, 4, 5}
    assert torch.equal(arcs[:, 0], rows)
    assert arcs.shape == (100, 6)
    many = torch.arange(10, 20)
    replay.add(many, many[:, None])
    assert set(replay.draw(100, generator)[0].tolist()) == {16, 17, 18, 19}


@torch.no_grad()
def test_the_critic_weighs_arcs_by_the_first_chances() -> None:
    torch.manual_seed(0)
    critic = Critic(MDS, 8)
    batch = random_batch([4, 2], mixed=True)
    chances = torch.rand(2, batch.num_arcs) * batch.real
    chances = chances / chances.sum(1, keepdim=True)
    found = critic(batch, chances)
    for row, tasks in enumerate((4, 2)):
        arcs = range(batch.num_arcs)
        element = sum(chances[row, i] * critic.embed(batch.features[row, i]) for i in arcs)
        # Each task once: by the first of its arcs.
        once = [i for i in arcs if int(batch.inverse[row, i]) >= i]
        load = sum(int(batch.demand[row, i]) for i in once) / int(batch.capacity[row])
        sizes = torch.tensor([tasks / 50, load / 5])
        assert isinstance(element, torch.Tensor)
        per_task = critic.value(critic.hidden(torch.cat([element, sizes])).relu())
        torch.testing.assert_close(found[row], tasks * per_task)


@torch.no_grad()
def test_chances_of_any_arc_and_of_the_best() -> None:
    torch.manual_seed(0)
    model = S2vDqn(S2vDqnConfig(width=8, layers=1, mds_dimensions=MDS)).eval()
    batch = random_batch([4])
    state = process.reset(batch)
    allowed = process.action_mask(batch, state)
    prepared = model.prepare(batch)
    best = int(model(prepared, state, allowed).argmax())
    for epsilon in (0.0, 0.25, 1.0):
        chances = EpsilonGreedy(model, epsilon)(prepared, state, allowed).exp()[0, 0]
        expected = epsilon * allowed[0, 0] / allowed.sum()
        expected[best] += 1 - epsilon
        torch.testing.assert_close(chances, expected)
    config = replace(QUICK["s2v-dqn"], epsilon_share=0.5, epsilon_end=0.2)
    shares = [config.epsilon(share) for share in (0.0, 0.25, 0.5, 1.0)]
    assert shares == pytest.approx([1.0, 0.6, 0.2, 0.2])


def test_wrong_use(towns: Path, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="got label_order: see the documentation"):
        changed(QUICK["vrp-dl"], label_order="farthest")
    with pytest.raises(OptionError, match="precision float32 for a baseline, got bfloat16"):
        changed(QUICK["vrp-dl"], precision="bfloat16")
    with pytest.raises(OptionError, match="expected epsilon_end to be a number from 0"):
        replace(QUICK["s2v-dqn"], epsilon_end=2)
    trained = run(towns, tmp_path / "one", QUICK["vrp-dl"], validation=[])
    with pytest.raises(OptionError, match=r"the sizes S2vDqnConfig.*found VrpDlConfig"):
        run(towns, tmp_path / "two", QUICK["s2v-dqn"], init=trained.model_file)
    more = run(towns, tmp_path / "two", QUICK["vrp-dl"], init=trained.model_file)
    assert more.finished
    wider = replace(QUICK["vrp-dl"], model=VrpDlConfig(width=16, mds_dimensions=4))
    with pytest.raises(OptionError, match="expected the model to start from"):
        run(towns, tmp_path / "three", wider, init=trained.model_file)
