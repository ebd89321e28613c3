"""S2V-DQN and VRP-DL as methods: solve, many, compare, bench, tables, the command line."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from arcfleet import Stop, check, read, solve, solve_many
from arcfleet.datasets import Dataset
from arcfleet.errors import (
    FileError,
    OptionError,
    UnsolvableError,
    WithoutLearnedPlanWarning,
)
from arcfleet.instance import Instance
from arcfleet.methods import METHODS, load_for_method, usable_methods
from arcfleet.network import Network
from arcfleet.neural import decoding_run, windows
from arcfleet.neural.checkpoint import MODEL_TYPES
from arcfleet.neural.solver import decode_dataset, load_for_solving
from arcfleet.neural.train.run import resolve_config, run_training
from arcfleet.neural.windows import windowed_rollout
from arcfleet.paper.strategies import BEAMS
from arcfleet.paper.train import PAPER_PHASES
from arcfleet.search.result import Result
from arcfleet.solution.plan import from_plan
from tests.cli.running import arcfleet, one_sentence, succeeded
from tests.helpers import MIXED, SMALL, VILLAGE, make_instance, solved, street, unpackable
from tests.neural.labelled_towns import labelled_file
from tests.tiny_model import tiny_model_file

BASELINES = ("s2v-dqn", "vrp-dl")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    return {kind: tiny_model_file(folder, kind) for kind in ("daam", *BASELINES)}


@pytest.mark.parametrize("method", BASELINES)
def test_one_plan_whatever_the_stop_rule(
    method: str, village: Instance, models: dict[str, Path]
) -> None:
    first = solve(village, method, stop=Stop(iterations=3), seed=5, model=models[method])
    assert check(village, first.solution).ok
    assert (first.method, first.seed, first.iterations) == (method, 5, 1)
    for stop in (None, Stop(seconds=600.0), Stop(no_improvement=4)):
        again = solve(village, method, stop=stop, model=models[method], device="cpu")
        assert again.solution == first.solution
    with pytest.warns(WithoutLearnedPlanWarning, match=f"{method} goes without"):
        hurried = solve(village, method, stop=Stop(seconds=0.0), model=models[method])
    assert check(village, hurried.solution).ok
    target = Stop(iterations=1, target_cost=first.cost)
    assert solve(village, method, stop=target, model=models[method]).stopped_by == (
        "target_cost"
    )
    with pytest.raises(OptionError, match="warm-starts from a plan"):
        solve(village, method, start=first.solution, model=models[method])


@pytest.mark.parametrize("method", BASELINES)
def test_many_are_solved_as_alone(method: str, models: dict[str, Path]) -> None:
    given = [VILLAGE, SMALL, MIXED, SMALL]
    outcomes = solve_many(given, method, model=models[method])
    for path, outcome in zip(given, outcomes, strict=True):
        assert isinstance(outcome, Result)
        assert check(read(path), outcome.solution).ok
        assert outcome.cost == solve(read(path), method, model=models[method]).cost


@pytest.mark.parametrize("method", BASELINES)
def test_large_instances_go_through_windows(
    method: str,
    village: Instance,
    models: dict[str, Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nothing: dict[str, Any] = {
        "demand": 0,
        "service_cost": None,
        "reverse_service_cost": None,
    }
    some = tuple(
        link if i % 3 == 0 else replace(link, required=False, **nothing)
        for i, link in enumerate(village.links)
    )
    instance = replace(village, links=some)
    seen = 0

    def narrow(*arguments: Any, **options: Any) -> torch.Tensor:
        nonlocal seen
        seen += 1
        return windowed_rollout(*arguments, tasks=8, **options)

    monkeypatch.setattr(windows, "MOST_TASKS_AT_ONCE", 10)
    monkeypatch.setattr(decoding_run, "windowed_rollout", narrow)
    result = solve(instance, method, model=models[method])
    assert check(instance, result.solution).ok
    assert seen == 1


@pytest.mark.parametrize("method", BASELINES)
def test_limits_of_the_instance(method: str, models: dict[str, Path]) -> None:
    assert solved(make_instance(street(1, 2, 3)), method, model=models[method]).cost == 0
    with pytest.raises(UnsolvableError, match=rf"at most 2 routes .* of {method}: "):
        solve(unpackable(), method, model=models[method])


@pytest.mark.parametrize("decoding", ["as-decoded", "greedy", BEAMS.name, "sampling"])
@pytest.mark.parametrize("kind", BASELINES)
def test_tables_can_be_made(
    kind: str, decoding: str, models: dict[str, Path], dataset: Dataset
) -> None:
    loaded = load_for_solving(models[kind], "cpu", kind)
    decoded = decode_dataset(loaded, dataset, 5, decoding, samples=3, keep=range(5))
    for position, plan in decoded.plans.items():
        instance = dataset[position]
        report = check(instance, from_plan(Network(instance), *plan))
        assert (report.ok, report.cost) == (True, decoded.costs[position])


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    folder = tmp_path_factory.mktemp("data")
    return Dataset.open(labelled_file(folder, "test", count=5, one_way=0.3, iterations=20))


def test_a_model_is_for_the_methods_of_its_kind(
    village: Instance, models: dict[str, Path]
) -> None:
    for method, kind in (("s2v-dqn", "daam"), ("daam", "vrp-dl"), ("vrp-dl", "s2v-dqn")):
        wanted = METHODS[method].model_type
        message = f"expected a model of type '{wanted}', found type '{kind}': name a file"
        with pytest.raises(FileError, match=message):
            solve(village, method, model=models[kind])
        words = ("solve", VILLAGE, "--method", method, "--model", models[kind])
        assert message in one_sentence(arcfleet(*words))
        loaded = load_for_method(kind, models[kind], "cpu")
        with pytest.raises(OptionError, match=f"of type '{wanted}', got one of type"):
            solve(village, method, model=loaded)


def test_without_a_shipped_model_one_sentence_says_so(
    village: Instance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in BASELINES:
        none = replace(MODEL_TYPES[name], weights=tmp_path / "none.safetensors")
        monkeypatch.setitem(MODEL_TYPES, name, none)
    for method in BASELINES:
        message = f"expected a model file of type '{method}', got none, and none comes"
        with pytest.raises(OptionError, match=message):
            solve(village, method)
        assert message in one_sentence(arcfleet("solve", VILLAGE, "--method", method))
    names = {method.name for method in usable_methods(None, "auto")}
    assert not names & set(BASELINES)


def test_compare_takes_the_model_of_any_kind(models: dict[str, Path]) -> None:
    command = ("compare", SMALL, "--time", 0.05, "--device", "cpu", "--json")
    for kind in BASELINES:
        options = ("--methods", f"ps,{kind}", "--model", models[kind])
        facts = json.loads(succeeded(*command, *options))
        assert [row["method"] for row in facts["methods"]] == ["ps", kind]
        assert all(row["ok"] for row in facts["methods"])
        names = {method.name for method in usable_methods(models[kind], "auto")}
        assert kind in names
    # DaAM's is the shipped one then.
    # Both end by themselves, so a busy machine may take its time.
    options = ("--methods", "daam-greedy,vrp-dl", "--model", models["vrp-dl"])
    succeeded(*command, *options, "--time", 600)
    options = ("--methods", "daam-greedy,vrp-dl", "--model", models["s2v-dqn"])
    line = one_sentence(arcfleet(*command, *options))
    assert "expected a model of one of the types daam, vrp-dl" in line


def test_bench_and_info(models: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "runs.jsonl"
    suite = tmp_path / "tiny.toml"
    (tmp_path / "small.dat").write_bytes(SMALL.read_bytes())
    suite.write_text('folder = "."\n[[sets]]\nname = "hand"\nfiles = ["small*"]\n')
    for kind in BASELINES:
        command = ("bench", suite, "--time", 0.05, "--out", out, "--quiet")
        options = ("--methods", f"ps,{kind}", "--model", models[kind], "--device", "cpu")
        for _ in range(2):  # the second has nothing left to do
            assert arcfleet(*command, *options).returncode == 0
        assert (
            json.loads(succeeded("model", "info", models[kind], "--json"))["kind"] == kind
        )
    _, *lines = out.read_text().splitlines()
    records = [json.loads(line) for line in lines]
    assert all(record["error"] is None for record in records)
    assert {record["method"] for record in records} == {"ps", *BASELINES}


@pytest.mark.parametrize("kind", BASELINES)
def test_train_then_solve(kind: str, tmp_path: Path, dataset: Dataset) -> None:
    out, data = tmp_path / "run", dataset.path
    alone = tmp_path / "unlabelled.npz"
    alone.write_bytes(Path(data).read_bytes())
    small = {"model": {"width": 8}, "tokens": 400, "decision_steps": 2, "steps": 2}
    phase = PAPER_PHASES[kind]
    config = resolve_config(phase.config, small, device="cpu", on_cpu=phase.on_cpu)
    files: dict[str, Any] = {"data": [alone], "validation": [data], "device": "cpu"}
    trained = run_training(phase.trainer, out, config, **files)
    assert trained.text().startswith("test: greedy ")
    assert f"{out / 'model.safetensors'}: 2 steps in " in trained.text()
    assert run_training(phase.trainer, out, config, resume=True, **files).steps == 2
    solved = ("solve", SMALL, "--method", kind, "--model", out / "model.safetensors")
    assert arcfleet(*solved, "--device", "cpu", "--quiet").returncode == 0
    with pytest.raises(OptionError, match=r"got model\.feed_forward: see the docum"):
        resolve_config(phase.config, {"model": {"feed_forward": 3}}, device="cpu")
    with pytest.raises(OptionError, match="expected the model to start from to have"):
        run_training(
            phase.trainer, tmp_path / "c", config, init=tiny_model_file(tmp_path), **files
        )
