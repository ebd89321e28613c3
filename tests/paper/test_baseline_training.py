"""Training of S2V-DQN and VRP-DL: what they learn from, and that they learn."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import torch
from safetensors.torch import load_file

from arcfleet.errors import FileError, OptionError
from arcfleet.neural import env as process
from arcfleet.neural.checkpoint import KINDS, load_model_of
from arcfleet.neural.decoding import greedy
from arcfleet.neural.train.data import open_instances
from arcfleet.paper.baselines.config import S2vDqnTraining, VrpDlTraining
from arcfleet.paper.baselines.critic import Critic
from arcfleet.paper.baselines.q_learning import EpsilonGreedy
from arcfleet.paper.baselines.replay import Replay
from arcfleet.paper.baselines.s2v_dqn import S2vDqn, S2vDqnConfig
from arcfleet.paper.baselines.targets import n_step_gains
from arcfleet.paper.baselines.train import train_baseline
from arcfleet.paper.baselines.vrp_dl import VrpDlConfig
from tests.neural.batches import MDS, random_batch, random_rollout
from tests.neural.labelled_towns import labelled_file
from tests.neural.nearest_policy import Nearest

if TYPE_CHECKING:
    from pathlib import Path

    from arcfleet.neural.decoding import Policy
    from arcfleet.neural.train.loop import Trained, TrainingProgress

    Training = S2vDqnTraining | VrpDlTraining

ARCS = 41  # of a Task20 instance of two-way streets
# Any: what may be replaced depends on the kind.
QUICK: dict[str, Any] = {
    "s2v-dqn": S2vDqnTraining(
        model=S2vDqnConfig(width=8, layers=1, mds_dimensions=4),
        steps=4,
        rollout_tokens=ARCS * 4,
        tokens=ARCS * 8,
        moments=2,
        updates=2,
        n_steps=3,
        replay_plans=6,
        target_updates=3,
        validations=2,
        pictures=0,
        log_steps=1,
    ),
    "vrp-dl": VrpDlTraining(
        model=VrpDlConfig(width=8, mds_dimensions=4),
        steps=4,
        tokens=ARCS * 4 * 4,
        moments=4,
        validations=2,
        pictures=0,
        log_steps=1,
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    labelled_file(folder, "few", "task20", count=24, iterations=100)
    labelled_file(folder, "mixed", "task30", count=6, one_way=0.3, iterations=1)
    (folder / "mixed.labels.npz").unlink()  # they are not needed
    return folder


def run(folder: Path, out: Path, config: Training, **options: Any) -> Trained:
    options = {
        "data": [folder / "few.npz", folder / "mixed.npz"],
        "validation": [folder / "few.npz"],
        "device": "cpu",
        **options,
    }
    return train_baseline(out, config, **options)


@pytest.mark.parametrize("kind", QUICK)
def test_a_resumed_run_comes_to_the_same_weights(
    folder: Path, tmp_path: Path, kind: str
) -> None:
    def stop(told: TrainingProgress) -> None:
        if told.doing == "training" and told.step == 3:
            os.kill(os.getpid(), signal.SIGTERM)

    config = QUICK[kind]
    whole = run(folder, tmp_path / "whole", config)
    part = run(folder, tmp_path / "part", config, progress=stop)
    assert (part.finished, part.steps) == (False, 3)
    rest = run(folder, tmp_path / "part", config, resume=True)
    assert (rest.finished, rest.steps) == (True, 4)
    one, other = (
        load_file(tmp_path / name / "checkpoint.safetensors") for name in ("whole", "part")
    )
    assert one.keys() == other.keys()
    for name in one:
        assert torch.equal(one[name], other[name]), name
    lines = [
        json.loads(x)
        for x in (tmp_path / "whole" / "metrics.jsonl").read_text().split("\n")[:-1]
    ]
    assert [line["step"] for line in lines if "loss" in line] == [1, 2, 3, 4]
    assert [line["step"] for line in lines if "gaps" in line] == [2, 4]
    assert all(line["sampled"] > 0 for line in lines if "loss" in line)
    model, facts = load_model_of(KINDS[kind].model, whole.model_file)
    assert model.config == config.model
    assert facts["kind"] == kind
    assert set(whole.gaps) == {"few"}


def cost(model: Policy | None, folder: Path) -> float:
    """Mean deadhead of greedy plans, of random ones without a model."""
    batch = open_instances(folder / "few.npz", "cpu", mds_dimensions=4).batch
    if model is None:
        generator = torch.Generator().manual_seed(0)
        _, arcs = random_rollout(batch, capacity_mask=True, generator=generator)
    else:
        arcs = greedy(model, batch).arcs
    return float((batch.deadheads(arcs) / batch.scale[:, None]).mean())


LONGER: dict[str, dict[str, Any]] = {
    "s2v-dqn": {
        "steps": 100,
        "rollout_tokens": ARCS * 16,
        "tokens": ARCS * 64,
        "moments": 4,
        "updates": 4,
        "target_updates": 20,
        "replay_plans": 200,
        "epsilon_share": 0.3,
        "learning_rate": 3e-3,
    },
    "vrp-dl": {"steps": 60, "tokens": ARCS * 24 * 8, "moments": 8, "learning_rate": 3e-3},
}


@pytest.mark.parametrize("kind", LONGER)
def test_it_learns_to_beat_random_plans_and_the_nearest_arc(
    folder: Path, tmp_path: Path, kind: str
) -> None:
    of_model: Any = KINDS[kind].config
    settings = {"model": of_model(width=32, mds_dimensions=4), **LONGER[kind]}
    config = replace(QUICK[kind], validations=0, **settings)
    trained = run(folder, tmp_path / "run", config, data=[folder / "few.npz"])
    model, _ = load_model_of(KINDS[kind].model, trained.model_file)
    found = cost(model, folder)
    assert found < 0.4 * cost(None, folder)
    assert found < cost(Nearest(), folder)


def test_gains_are_the_driving_of_the_next_choices() -> None:
    batch = random_batch([5, 3], mixed=True)
    generator = torch.Generator().manual_seed(4)
    states, arcs = random_rollout(batch, capacity_mask=True, generator=generator, samples=2)
    for n_steps in (1, 2, 100):
        for row in range(2):
            for copy in range(2):
                plan = arcs[row, copy].tolist()
                choices = max(i for i, arc in enumerate(plan) if arc) + 1
                for moment in range(choices):
                    moments = torch.zeros(2, 2, 1, dtype=torch.int64)
                    moments[row, copy] = moment
                    gains = n_step_gains(batch, arcs, moments, n_steps)
                    over = moment + n_steps >= choices
                    assert bool(gains.over[row, copy]) == over
                    end = len(plan) if over else moment + n_steps
                    along = [0, *plan]
                    driven = sum(
                        int(batch.distance[row, batch.end[row, i], batch.start[row, j]])
                        for i, j in zip(
                            along[moment:end], along[moment + 1 : end + 1], strict=True
                        )
                    )
                    expected = -driven / float(batch.scale[row])
                    assert float(gains.gained[row, copy]) == pytest.approx(
                        expected, rel=1e-5
                    )
                    if not over:
                        assert int(gains.later[row, copy, 0]) == moment + n_steps
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


def test_wrong_use(folder: Path, tmp_path: Path) -> None:
    for name, value in (("directions", "keep"), ("precision", "bfloat16")):
        with pytest.raises(OptionError, match=f"expected (no setting {name}|{name} to be)"):
            replace(QUICK["vrp-dl"], **{name: value})
    with pytest.raises(OptionError, match="expected epsilon_end to be a number from 0"):
        replace(QUICK["s2v-dqn"], epsilon_end=2)
    trained = run(folder, tmp_path / "one", QUICK["vrp-dl"], validation=[])
    with pytest.raises(FileError, match="a model of kind 's2v-dqn', found kind 'vrp-dl'"):
        run(folder, tmp_path / "two", QUICK["s2v-dqn"], init=trained.model_file)
    more = run(folder, tmp_path / "two", QUICK["vrp-dl"], init=trained.model_file)
    assert more.finished
    wider = replace(QUICK["vrp-dl"], model=VrpDlConfig(width=16, mds_dimensions=4))
    with pytest.raises(OptionError, match="expected the model to start from"):
        run(folder, tmp_path / "three", wider, init=trained.model_file)
