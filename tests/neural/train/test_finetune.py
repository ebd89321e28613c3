from __future__ import annotations

import json
import os
import signal
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from arcfleet.neural.train.trials import BestPlans
from safetensors.torch import load_file

from arcfleet.errors import FileError, OptionError
from arcfleet.network import Network
from arcfleet.neural.checkpoint import load_model, save_model
from arcfleet.neural.decoding import Rollout, greedy, sample
from arcfleet.neural.device import OutOfMemoryError
from arcfleet.neural.env import State, step
from arcfleet.neural.model import Daam, DaamConfig
from arcfleet.neural.plans import NO_PLAN, Plans, best, split_plans
from arcfleet.neural.train.config import (
    OBJECTIVES,
    FinetuneConfig,
    PretrainConfig,
    config_of,
)
from arcfleet.neural.train.data import InstanceSet, open_instances, plan_costs
from arcfleet.neural.train.finetune import Reinforce, finetune, rollout_costs
from arcfleet.neural.train.pretrain import pretrain
from arcfleet.neural.train.run import RunFolder
from arcfleet.neural.train.steps import leave_one_out, states_at
from arcfleet.paper.ppo import Proximal
from tests.neural.batches import MDS, network_batch, ring, toy_model
from tests.neural.labelled_towns import joined_file, labelled_file

if TYPE_CHECKING:
    from pathlib import Path

    from arcfleet.neural.train.config import Objective
    from arcfleet.neural.train.loop import Trained, TrainingProgress

TINY = DaamConfig(
    width=16, layers=1, heads=2, feed_forward=16, mds_dimensions=4, inputs="mds"
)
HIDDEN = replace(TINY, served="hidden")
#: Steps that take milliseconds.
QUICK = FinetuneConfig(
    model=TINY,
    objective="imitate-best",
    temperature=1.0,
    learning_rate=1e-4,
    steps=4,
    tokens=2000,
    rollout_tokens=1000,
    copies=3,
    moments=2,
    lessons=2,
    epochs=2,
    baseline_steps=2,
    validations=2,
    pictures=0,
)


#: Better than random weights, whose greedy plans are worse than most samples.
WEAK = PretrainConfig(
    model=TINY, steps=3, tokens=41 * 64, learning_rate=5e-3, warm_up_steps=5
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    labelled_file(folder, "few", "task20", count=8)
    labelled_file(folder, "mixed", "task30", count=6, one_way=0.3)
    (folder / "mixed.labels.npz").unlink()  # they are not needed
    weak = pretrain(folder / "weak", WEAK, data=[folder / "few.npz"], device="cpu")
    weak.model_file.rename(folder / "start.safetensors")
    # The same weights, for a model that looks away from served arcs.
    hidden = Daam(HIDDEN)
    hidden.load_state_dict(load_model(folder / "start.safetensors")[0].state_dict())
    save_model(hidden, folder / "hidden.safetensors", {})
    return folder


def run(folder: Path, out: Path, config: FinetuneConfig = QUICK, **options: Any) -> Trained:
    options = {
        "init": folder / "start.safetensors",
        "data": [folder / "few.npz", folder / "mixed.npz"],
        "validation": [folder / "few.npz"],
        "device": "cpu",
        **options,
    }
    return finetune(out, config, **options)


def metrics(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("sizes", [TINY, HIDDEN], ids=["seen", "hidden"])
def test_a_resumed_run_comes_to_the_same_weights(
    folder: Path, tmp_path: Path, objective: Objective, sizes: DaamConfig
) -> None:
    start = folder / ("hidden.safetensors" if sizes == HIDDEN else "start.safetensors")

    def stop(told: TrainingProgress) -> None:
        if told.doing == "training" and told.step == 3:
            os.kill(os.getpid(), signal.SIGTERM)

    config = replace(QUICK, objective=objective, model=sizes)
    whole = run(folder, tmp_path / "whole", config, init=start)
    part = run(folder, tmp_path / "part", config, init=start, progress=stop)
    assert (part.finished, part.steps) == (False, 3)
    rest = run(folder, tmp_path / "part", config, init=start, resume=True)
    assert (rest.finished, rest.steps) == (True, 4)
    one, other = (
        load_file(tmp_path / name / "checkpoint.safetensors") for name in ("whole", "part")
    )
    assert one.keys() == other.keys()
    for name in one:
        assert torch.equal(one[name], other[name]), name
    lines = metrics(tmp_path / "whole")
    for both in zip(lines, metrics(tmp_path / "part"), strict=True):
        for name in ("step", "loss", "gaps", "baseline", "sampled", "improved"):
            assert both[0].get(name) == both[1].get(name)
    assert [line["step"] for line in lines if "gaps" in line] == [0, 2, 4]
    assert [line["step"] for line in lines if "loss" in line] == [1, 2, 3, 4]
    tests = [line["step"] for line in lines if "baseline" in line]
    assert tests == ([2, 4] if objective == "ppo" else [])
    model, facts = load_model(whole.model_file)
    assert model.config == sizes
    assert facts["kind"] == "finetune"
    assert facts["config"]["objective"] == objective  # type: ignore[index]
    first = load_file(start)
    last = load_file(whole.model_file)
    assert any(not torch.equal(first[name], last[name]) for name in first)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_instances_of_a_set_may_differ_in_size(
    folder: Path, tmp_path: Path, objective: Objective
) -> None:
    parts = [folder / "few.npz", folder / "mixed.npz"]
    data = joined_file(tmp_path, "unequal", parts)
    # One instance at a time: most are not among the largest.
    config = replace(QUICK, objective=objective, rollout_tokens=1)
    assert run(folder, tmp_path / "run", config, data=[data]).finished


def expected_cost(folder: Path, model_file: Path, *, capacity_mask: bool = True) -> float:
    """Mean cost of sampled plans: what reinforcement is to lower."""
    batch = open_instances(folder / "few.npz", "cpu", mds_dimensions=4).batch
    model, _ = load_model(model_file)
    generator = torch.Generator().manual_seed(0)
    rollout = sample(model, batch, 16, generator=generator, capacity_mask=capacity_mask)
    if capacity_mask:
        return float((batch.deadheads(rollout.arcs) / batch.scale[:, None]).mean())
    costs = split_plans(batch, rollout, choose_directions=False).costs
    return float((costs / batch.scale[:, None].numpy()).mean())


@pytest.mark.parametrize(
    ("settings", "factor"),
    [({"objective": "samples"}, 0.93), ({"objective": "self-critical"}, 0.95)],
)
def test_tours_of_a_weak_model_get_better(
    folder: Path, tmp_path: Path, settings: dict[str, Any], factor: float
) -> None:
    """What is not learned, serving, is most of the cost."""
    config = replace(
        QUICK,
        steps=10,
        unbound=1.0,
        learning_rate=5e-3,
        copies=8,
        rollout_tokens=41 * 64,
        tokens=41 * 128,
        flip_axes=False,
        average_decay=0.5,
        **settings,
    )
    result = run(folder, tmp_path / "run", config, data=[folder / "few.npz"])
    first = expected_cost(folder, folder / "start.safetensors", capacity_mask=False)
    last = expected_cost(folder, result.model_file, capacity_mask=False)
    assert last < factor * first


@pytest.mark.parametrize(
    ("settings", "factor"),
    [
        ({"objective": "imitate-best", "steps": 5, "lessons": 8}, 0.85),
        ({"objective": "samples", "steps": 10}, 0.75),
        ({"objective": "samples", "steps": 10, "best_of": 4}, 0.8),
        ({"objective": "self-critical", "steps": 10}, 0.85),
        ({"objective": "ppo", "steps": 10, "standardise": True, "moments": 4}, 0.92),
    ],
)
def test_a_weak_model_gets_better(
    folder: Path, tmp_path: Path, settings: dict[str, Any], factor: float
) -> None:
    """Of every objective by much less than it does, since chance has a part in it."""
    ppo = settings["objective"] == "ppo"
    learning: dict[str, Any] = {
        "learning_rate": 5e-3,
        "copies": 4 if ppo else 8,
        "rollout_tokens": 41 * (128 if ppo else 64),
        "tokens": 41 * (64 if ppo else 128),
        "epochs": 3,
        "flip_axes": False,
        "average_decay": 0.5,
    }
    config = replace(QUICK, **{**learning, **settings})
    files = {"data": [folder / "few.npz"], "validation": [folder / "few.npz"]}
    result = run(folder, tmp_path / "run", config, **files)
    lines = metrics(tmp_path / "run")
    before = next(line["gaps"]["few"]["greedy"] for line in lines if "gaps" in line)
    assert result.gaps["few"].greedy < 0.9 * before
    first = expected_cost(folder, folder / "start.safetensors")
    assert expected_cost(folder, result.model_file) < factor * first
    tests = [line["baseline"] for line in lines if "baseline" in line]
    if ppo:
        assert any(test["replaced"] for test in tests)
        assert all(test["gain"] > 0 for test in tests if test["replaced"])


def test_samples_are_worth_what_they_add_to_the_best_of_some(
    folder: Path, tmp_path: Path
) -> None:
    costs: list[list[float]] = [[3.0, 1.0, 2.0, 7.0]]
    worth = []

    def stop(told: TrainingProgress) -> None:
        if told.doing == "training":
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.MonkeyPatch.context() as patch:
        learn = Reinforce.learn

        def asked(self: Reinforce, rate: float) -> None:
            worth.append(self.advantages(self.sets[0].batch, torch.tensor(costs)))
            learn(self, rate)

        patch.setattr(Reinforce, "learn", asked)
        for best_of in (1, 3):
            config = replace(QUICK, objective="samples", best_of=best_of, copies=4)
            run(folder, tmp_path / f"{best_of}", config, progress=stop)
    for best_of, found in zip((1, 3), worth, strict=True):
        assert torch.equal(found, leave_one_out(torch.tensor(costs), best_of))
    assert not torch.equal(*worth)


def test_an_anchor_holds_the_policy(folder: Path, tmp_path: Path) -> None:
    learning: dict[str, Any] = {
        "objective": "samples",
        "steps": 10,
        "learning_rate": 5e-3,
        "copies": 8,
        "rollout_tokens": 41 * 64,
        "tokens": 41 * 128,
        "average_decay": 0.5,
    }
    costs, left = [], []
    for anchor in (1e-9, 3.0):
        config = replace(QUICK, **learning, anchor=anchor)
        out = tmp_path / f"run{anchor}"
        result = run(folder, out, config, data=[folder / "few.npz"])
        costs.append(expected_cost(folder, result.model_file))
        left.append([line["left"] for line in metrics(out) if "left" in line])
    for nats in left:
        assert len(nats) == 10
        assert min(nats) >= 0
    assert sum(left[1]) < 0.5 * sum(left[0])
    assert costs[0] < costs[1] < expected_cost(folder, folder / "start.safetensors")


def test_by_default_samples_are_anchored(folder: Path, tmp_path: Path) -> None:
    usual = FinetuneConfig(steps=1)
    assert (usual.objective, usual.temperature, usual.learning_rate) == (
        "samples",
        0.5,
        3e-5,
    )
    assert usual.cost_per_nat == 0.02
    assert FinetuneConfig(steps=1, objective="ppo").cost_per_nat == 0
    for anchor, anchored in ((None, True), (0.0, False)):
        config = replace(QUICK, objective="samples", steps=1, anchor=anchor)
        run(folder, tmp_path / f"{anchor}", config, data=[folder / "few.npz"])
        lines = [line for line in metrics(tmp_path / f"{anchor}") if "loss" in line]
        assert lines
        assert all(("left" in line) is anchored for line in lines)


def toy_run(kind: Any, tmp_path: Path, **settings: Any) -> tuple[Any, InstanceSet]:
    """A run on two rings with a model in float64, whose parts can be looked at."""
    batch = network_batch([Network(ring([2, 3, 1, 1, 2])), Network(ring([1, 1, 2]))])
    data = InstanceSet(name="toy", batch=batch, full=False, facts={})
    sizes = DaamConfig(width=16, layers=1, heads=2, feed_forward=16, mds_dimensions=MDS)
    config = FinetuneConfig(model=sizes, steps=1, flip_axes=False, **settings)
    folder = RunFolder(tmp_path / "toy", {"config": {}}, resume=False)
    model = toy_model().float()
    made = kind(config, model, [data], [], folder, 1, lambda _: None)
    return made, data


def test_an_advantage_is_that_of_its_own_decision(tmp_path: Path) -> None:
    """The rollout starts with it; the baseline's is greedy, from the same state."""
    made, data = toy_run(Proximal, tmp_path, objective="ppo", copies=2, moments=3)
    batch = data.batch
    other = toy_model(3).float()
    made.learner.working.load_state_dict(other.state_dict())  # not the baseline's weights
    arcs = sample(toy_model(), batch, 2, generator=torch.Generator().manual_seed(4)).arcs
    moments = torch.tensor([0, 1, 2]).expand(2, 2, 3)
    state, choice = states_at(batch, arcs, moments)
    advantage = made.advantages(batch, state, choice)
    # The same again, by single plans; the seeds are those of the generator's beginning.
    generator = torch.Generator().manual_seed(made.config.seed + 1)
    after = step(batch, state, choice)
    rolled = sample(other, batch, 6, generator=generator, initial=after).arcs
    for row in range(2):
        for copy in range(6):
            here = State(*(t[row : row + 1, copy : copy + 1] for t in state))
            one = batch.select(torch.tensor([row]))
            usual = greedy(toy_model().float(), one, initial=here).arcs[0, 0].tolist()
            own = [int(choice[row, copy]), *rolled[row, copy].tolist()]
            costs = []
            for tail in (own, usual):
                way, at = 0, int(here.previous)
                for arc in tail:
                    way += int(
                        batch.distance[row, batch.end[row, at], batch.start[row, arc]]
                    )
                    at = arc
                costs.append(way)
            expected = (costs[1] - costs[0]) / batch.scale[row].item()
            assert advantage[row, copy].item() == pytest.approx(expected, rel=1e-5)


def test_samples_and_the_greedy_plan_as_baselines(tmp_path: Path) -> None:
    made, data = toy_run(Reinforce, tmp_path, objective="self-critical")
    costs = torch.tensor([[3.0, 5.0], [4.0, 2.0]])
    plan = greedy(toy_model().float(), data.batch).arcs
    usual = data.batch.deadheads(plan) / data.batch.scale[:, None]
    assert torch.allclose(made.advantages(data.batch, costs), usual - costs)
    assert made.learner.working.training  # as it was before


def test_best_plans_are_plans_and_only_get_better() -> None:
    batch = network_batch([Network(ring([2, 3, 1, 1, 2])), Network(ring([1, 1, 2]))])
    kept = BestPlans(batch)
    assert len(kept.known) == 0
    found = []
    for seed in range(6):
        rollout = sample(
            toy_model(), batch, 1, generator=torch.Generator().manual_seed(seed)
        )
        plans = best(split_plans(batch, rollout, choose_directions=True))
        rows = torch.tensor([1, 0]) if seed % 2 else torch.tensor([0, 1])
        turned = Plans(*(array[rows.numpy()] for array in plans))
        kept.improve(rows, turned)
        found.append(plans.costs[:, 0])
        assert kept.costs.tolist() == np.min(found, axis=0).tolist()
    assert kept.known.tolist() == [0, 1]
    rows = torch.tensor([1, 0, 1])
    labels = kept.labels(rows)
    costs = plan_costs(batch.select(rows), labels.arcs)
    assert costs.tolist() == kept.costs[rows.numpy()].tolist()
    again = BestPlans(batch)
    again.restore(kept.tensors())
    assert torch.equal(again.labels(rows).arcs, labels.arcs)
    assert torch.equal(again.labels(rows).reversible, labels.reversible)
    # What is no plan is never kept.
    none = Plans(turned.arcs, turned.starts_route, np.full_like(turned.costs, NO_PLAN))
    assert kept.improve(torch.tensor([0, 1]), none) == 0


def test_wrong_arguments(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"at least 4 instances to validate on.*got 0"):
        run(folder, tmp_path / "a", replace(QUICK, objective="ppo"), validation=[])
    assert not (tmp_path / "a").exists()
    with pytest.raises(OptionError, match="expected the model to start from to have"):
        run(folder, tmp_path / "a", replace(QUICK, model=replace(TINY, width=32)))
    with pytest.raises(FileError, match="arcfleet dataset label"):
        run(folder, tmp_path / "a", validation=[folder / "mixed.npz"])
    with pytest.raises(OptionError, match="a weight for each of 2 data sets, got 1"):
        run(folder, tmp_path / "a", replace(QUICK, weights=(1.0,)))
    for settings, message in (
        ({"objective": "best"}, "objective to be one of imitate-best, samples"),
        ({"objective": "samples", "copies": 1}, "at least 2 copies for the objective"),
        ({"temperature": 0}, "temperature to be a number from"),
        ({"copies": 4, "best_of": 4}, r"best_of to be below copies \(4\), got 4"),
        ({"objective": "ppo", "best_of": 2}, "best_of to be 1 for the objective ppo"),
        ({"anchor": -1}, "anchor to be a number from 0"),
        ({"objective": "ppo", "unbound": 0.5}, "unbound to be 0 for the objective ppo"),
        ({"objective": "ppo", "anchor": 0.1}, "no anchor for the objective ppo, got 0.1"),
        ({"standardise": 1}, "standardise to be true or false"),
        ({"copies": 0}, "copies to be a whole number from 1 to"),
        ({"learning_rate": 2}, "learning_rate to be a number from 0 to 1"),
        ({"objektive": "ppo"}, "did you mean objective"),
        ({"steps": None}, "expected steps or minutes"),
    ):
        with pytest.raises(OptionError, match=message):
            config_of(FinetuneConfig, {"steps": 1, **settings})


def test_too_little_memory_for_a_step(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def large(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(Reinforce, "learn", large)
    with pytest.raises(OutOfMemoryError, match="for tokens 2000 and rollout_tokens 1000: "):
        run(folder, tmp_path / "run", replace(QUICK, objective="samples"))


def test_a_step_holds_whole_updates() -> None:
    config = FinetuneConfig(
        steps=1, copies=4, moments=2, tokens=41 * 8 * 3, rollout_tokens=41 * 4 * 8
    )
    assert config.instances(41, 4, 100) == (6, 3)
    assert config.instances(41, 4, 2) == (2, 2)
    assert config.instances(10**6, 4, 100) == (1, 1)
    assert config_of(FinetuneConfig, json.loads(json.dumps(config.as_facts()))) == config


def test_data_without_labels(folder: Path) -> None:
    data = open_instances(folder / "mixed.npz", "cpu", mds_dimensions=4)
    assert len(data) == 6
    assert data.facts["instances"] == 6


# torch looks at gradients of what passes from part to part, and warns itself.
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_compiled_run_learns_the_same(
    folder: Path, tmp_path: Path, objective: Objective, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every break in a graph would cost a GPU much of its speed."""
    from torch._dynamo import reset
    from torch._dynamo.utils import counters

    compile_ = torch.compile

    def traced(function: Any, **options: Any) -> Any:
        return compile_(function, backend="eager", **options)  # tracing alone is quick

    monkeypatch.setattr(torch, "compile", traced)
    files = {"data": [folder / "few.npz"]}
    config = replace(QUICK, objective=objective, steps=2, validations=1)
    plain = run(folder, tmp_path / "plain", config, **files)
    reset()
    counters.clear()
    graphs = run(folder, tmp_path / "graphs", replace(config, compile=True), **files)
    assert not counters["graph_break"]
    one, other = (load_file(result.model_file) for result in (plain, graphs))
    for name in one:
        torch.testing.assert_close(one[name], other[name], atol=1e-5, rtol=1e-4)


def test_tours_cost_what_the_same_routes_do() -> None:
    """One that is best cut where a plan returns costs the same, whatever a route costs."""
    for route_cost in (0, 1000):
        # Two streets fill a vehicle: with dear routes it is never sent home earlier.
        network = Network(ring([2] * 6, capacity=4, route_cost=route_cost))
        batch = network_batch([network])
        first = [a for a in range(1, network.num_arcs) if network.arc_inverse[a] > a]
        returning = [first[0], first[1], 0, first[2], first[3], 0, first[4], first[5], 0]
        tour = [*first, 0]
        costs = [
            rollout_costs(
                batch,
                Rollout(torch.tensor([[arcs]]), torch.zeros((1, 1))),
                capacity_mask=capacity_mask,
            )
            for arcs, capacity_mask in ((returning, True), (tour, False))
        ]
        assert float(costs[1]) <= float(costs[0])
        if route_cost:
            assert float(costs[1]) == pytest.approx(float(costs[0]))
