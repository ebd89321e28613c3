"""PPO with a self-critical baseline: its loss, its test of the baseline, its runs."""

import math
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from scipy import stats

from arcfleet.errors import OptionError
from arcfleet.network import Network
from arcfleet.neural.batch import batch_from_networks
from arcfleet.neural.checkpoint import sizes_of
from arcfleet.neural.decoding import greedy, sample
from arcfleet.neural.env import State, step
from arcfleet.neural.train.config import changed, config_from
from arcfleet.neural.train.data import InstanceSet
from arcfleet.neural.train.run import RunFolder
from arcfleet.neural.train.steps import states_at
from arcfleet.paper.model import PublishedDaam
from arcfleet.paper.ppo import (
    PpoConfig,
    PpoTrainer,
    clipped_loss,
    compare_costs,
    ppo,
)
from tests.neural.batches import network_batch, ring, toy_model
from tests.neural.train.quick import (
    TINY_PUBLISHED,
    TUNING,
    assert_resumes,
    expected_cost,
    metrics,
    tune,
)

QUICK = PpoConfig(
    model=TUNING.model,
    run=TUNING.run,
    optimiser=TUNING.optimiser,
    samples=3,
    epochs=2,
    baseline_steps=2,
    decision_steps=2,
    tokens=2000,
    rollout_tokens=1000,
)


def test_clipping_by_hand() -> None:
    """Better choices gain up to a ratio of 1.1, worse ones lose down to 0.9."""
    ratio = torch.tensor([1.0, 1.05, 1.3, 0.5, 1.3, 0.95, 0.5])
    advantage = torch.tensor([2.0, 2.0, 2.0, 2.0, -2.0, -2.0, -2.0])
    expected = torch.tensor([2.0, 2.1, 2.2, 1.0, -2.6, -1.9, -1.8])
    slope = torch.tensor([1.0, 1.05, 0.0, 0.5, -1.3, -0.95, 0.0]) * 2
    old = torch.full_like(ratio, -0.7)
    for each in range(len(ratio)):
        one = slice(each, each + 1)
        chosen = (ratio.log() + old)[one].requires_grad_()
        loss = clipped_loss(chosen, old[one], advantage[one], torch.tensor([3.0]), 0.1)
        loss.backward()  # type: ignore[no-untyped-call]
        assert loss.item() == pytest.approx(-3 * expected[each].item(), rel=1e-5)
        assert chosen.grad is not None
        found = chosen.grad.item()
        assert found == pytest.approx(-3 * slope[each].item(), rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("shift", [-0.2, 0.0, 0.02, 0.05, 0.2])
def test_paired_test_decides_as_scipy_does(shift: float) -> None:
    for seed in range(10):
        generator = torch.Generator().manual_seed(seed)
        old = 5 + torch.rand(50, generator=generator)
        new = old - shift + 0.2 * torch.randn(50, generator=generator)
        result = compare_costs(old, new)
        expected = stats.ttest_rel(old.double(), new.double(), alternative="greater")
        assert result.better == (expected.pvalue < 0.05)
        assert result.gain == pytest.approx((old - new).mean().item(), abs=1e-5)


def test_equal_costs_are_not_better() -> None:
    costs = torch.tensor([3.0, 4.0, 5.0, 6.0])
    assert compare_costs(costs, costs) == (False, 0.0)
    assert compare_costs(costs, costs - 1).better
    assert not compare_costs(costs, costs + 1).better
    assert math.isfinite(compare_costs(costs, costs + 1).gain)


def test_a_resumed_run_comes_to_the_same_weights(folder: Path, tmp_path: Path) -> None:
    train = partial(tune, folder, config=QUICK, train=ppo)
    _, lines = assert_resumes(train, tmp_path, 4, "baseline_gain advantage")
    assert [line["step"] for line in lines if "baseline_gain" in line] == [2, 4]


def test_a_weak_model_gets_better(folder: Path, tmp_path: Path) -> None:
    """By much less than it does, since chance has a part in it."""
    config = replace(
        QUICK,
        run=replace(QUICK.run, steps=6, validations=1),
        optimiser=replace(QUICK.optimiser, learning_rate=5e-3, ema_decay=0.5),
        normalise_advantages=True,
        samples=4,
        decision_steps=4,
        rollout_tokens=41 * 128,
        tokens=41 * 64,
        epochs=3,
        flip_axes=False,
    )
    out = tmp_path / "run"
    result = tune(folder, out, config, ppo, data=[folder / "small.npz"])
    lines = metrics(out)
    before = next(line["gaps"]["small"]["greedy"] for line in lines if "gaps" in line)
    assert result.gaps["small"].greedy < 0.9 * before
    first = expected_cost(folder, folder / "weak.safetensors")
    assert expected_cost(folder, result.model_file) < 0.92 * first
    tests = [line for line in lines if "baseline_gain" in line]
    replaced = [line["baseline_gain"] for line in tests if line["baseline_replaced"]]
    assert replaced
    assert min(replaced) > 0


@pytest.mark.parametrize("literal", [False, True])
def test_an_advantage_is_that_of_its_own_decision(literal: bool, tmp_path: Path) -> None:
    """The rollout starts with it; the baseline's is greedy, from the same state.

    In the literal form of Algorithm 1 it starts anew from the state.
    """
    batch = network_batch([Network(ring([2, 3, 1, 1, 2])), Network(ring([1, 1, 2]))])
    data = InstanceSet(name="toy", batch=batch, full=False, facts={})
    settings: dict[str, Any] = {"steps": 1, "flip_axes": False}
    settings |= {"samples": 2, "decision_steps": 3, "literal_advantages": literal}
    config = config_from(PpoConfig, settings)
    files = RunFolder(tmp_path / "toy", {"config": {}}, resume=False)
    made = PpoTrainer(config, toy_model().float(), [data], [], files)
    other = toy_model(3).float()
    made.learner.working.load_state_dict(other.state_dict())  # not the baseline's weights
    arcs = sample(toy_model(), batch, 2, generator=torch.Generator().manual_seed(4)).arcs
    state, choice = states_at(batch, arcs, torch.tensor([0, 1, 2]).expand(2, 2, 3))
    advantage = made.advantages(batch, state, choice)
    # The same again, by single plans; the seeds are those of the generator's beginning.
    generator = torch.Generator().manual_seed(made.config.run.seed + 1)
    first = state if literal else step(batch, state, choice)
    rolled = sample(other, batch, 6, generator=generator, initial=first).arcs
    for row in range(2):
        for copy in range(6):
            here = State(*(t[row : row + 1, copy : copy + 1] for t in state))
            one = batch.select(torch.tensor([row]))
            usual = greedy(toy_model().float(), one, initial=here).arcs[0, 0].tolist()
            decision = [] if literal else [int(choice[row, copy])]
            own = [*decision, *rolled[row, copy].tolist()]
            costs = []
            for tail in (own, usual):
                way, at = 0, int(here.previous)
                for arc in tail:
                    ends = batch.end[row, at], batch.start[row, arc]
                    way += int(batch.distance[row, ends[0], ends[1]])
                    at = arc
                costs.append(way)
            expected = (costs[1] - costs[0]) / batch.scale[row].item()
            assert advantage[row, copy].item() == pytest.approx(expected, rel=1e-5)


def test_batch_norm_moves_no_ratio_before_the_first_update(tmp_path: Path) -> None:
    """Policy and baseline have the same statistics, whatever is in the batch."""
    torch.manual_seed(2)
    model = PublishedDaam(replace(TINY_PUBLISHED, norm="batch"))
    for name, buffer in model.named_buffers():
        torch.nn.init.uniform_(buffer, 0.5 if name.endswith("variance") else -0.5, 1.5)
    networks = [Network(ring(demands)) for demands in ([2, 3, 1, 1, 2], [1, 1, 2])]
    dimensions = model.config.mds_dimensions
    batch = batch_from_networks(networks, device="cpu", mds_dimensions=dimensions)
    data = InstanceSet(name="toy", batch=batch, full=False, facts={})
    settings: dict[str, Any] = {"steps": 1, "samples": 3, "decision_steps": 2}
    settings["model"] = sizes_of(model.config)
    files = RunFolder(tmp_path / "toy", {"config": {}}, resume=False)
    made = PpoTrainer(config_from(PpoConfig, settings), model, [data], [], files)
    statistics = [buffer.clone() for buffer in model.buffers()]
    decisions = made.collect(batch, data, part=2)
    for rows in (torch.tensor([0, 1]), torch.tensor([1])):
        state, choice, old, _, _ = decisions.rows(rows)
        chosen = made.chosen(batch.select(rows), state, choice, data)
        torch.testing.assert_close(chosen, old, rtol=0, atol=1e-5)
        chosen.sum().backward()  # type: ignore[no-untyped-call]
    assert made.learner.working.training
    gradient = made.learner.working.encoder[0].attention_norm.weight.grad
    assert gradient.abs().max() > 0
    assert all(map(torch.equal, statistics, model.buffers()))


def test_wrong_use(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OptionError, match=r"at least 4 instances to validate on.*got 0"):
        tune(folder, tmp_path / "a", QUICK, ppo, validation=[])
    with pytest.raises(OptionError, match="normalise_advantages to be true or false"):
        changed(QUICK, normalise_advantages=1)
    with pytest.raises(OptionError, match="the setting normalise_advantages, got standard"):
        config_from(PpoConfig, {"steps": 1, "standardise": True})
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(OptionError, match="expected one process for ppo, got 2"):
        tune(folder, tmp_path / "a", QUICK, ppo)
    assert not (tmp_path / "a").exists()
