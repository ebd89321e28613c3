from __future__ import annotations

import json
from pathlib import Path

import pytest

from arcfleet import check, read, read_solution
from arcfleet.cli.main import main
from arcfleet.methods import DAAM_METHODS
from tests.tiny_model import tiny_model_file

ROOT = Path(__file__).parents[2]
VILLAGE = ROOT / "examples" / "village.json"
SMALL = ROOT / "tests" / "data" / "small.dat"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model_file(tmp_path_factory.mktemp("model"))


def arcfleet(*arguments: object) -> int:
    # In this process: importing torch anew for each call would take seconds.
    return main([str(argument) for argument in arguments])


def test_model_info(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert arcfleet("model", "info", model) == 0
    text = capsys.readouterr().out
    assert arcfleet("model", "info", model, "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["file"], facts["kind"], facts["dtype"]) == (str(model), "daam", "float32")
    assert facts["bytes"] == model.stat().st_size
    assert facts["config"]["width"] == 16
    assert facts["facts"] == {"trained_on": "nothing"}
    lines = dict(line.split(maxsplit=1) for line in text.splitlines()[1:5])
    assert lines == {
        "kind": "daam",
        "parameters": str(facts["parameters"]),
        "bytes": str(facts["bytes"]),
        "dtype": "float32",
    }
    assert "fact trained on  nothing" in text


@pytest.mark.parametrize("method", DAAM_METHODS)
def test_solve(
    method: str, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "plan.json"
    options = ("--method", method, "--model", model, "--device", "cpu", "--iterations", 6)
    assert arcfleet("solve", VILLAGE, *options, "--out", out, "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["method"] == method
    instance = read(VILLAGE)
    plan = read_solution(out, instance)
    assert check(instance, plan).ok
    assert plan.cost == facts["cost"]


def test_compare(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert arcfleet("compare", SMALL, "--time", 0.05, "--model", model, "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert all(row["ok"] for row in facts["methods"])
    assert {row["method"] for row in facts["methods"]} >= set(DAAM_METHODS)
    options = ("--methods", "ps,daam", "--model", model, "--device", "cpu")
    assert arcfleet("compare", SMALL, "--time", 0.05, *options, "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert [row["method"] for row in facts["methods"]] == ["ps", "daam"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("model", "info", SMALL), "expected a model file (safetensors), found another"),
        (("model", "info", "none"), "none: cannot be read (No such file"),
        (("solve", SMALL, "--model", "x"), "expected model for a learned method only"),
        (("solve", SMALL, "--device", "cpu"), "expected device for a learned method only"),
        (("solve", SMALL, "--method", "daam", "--model", SMALL), "found another kind"),
        (("compare", SMALL, "--methods", "ps", "--model", "x"), "expected --model for"),
        (("compare", SMALL, "--methods", "ps", "--device", "cpu"), "expected --device for"),
        (("compare", SMALL, "--model", "x"), "x: cannot be read"),
    ],
)
def test_mistakes_are_one_sentence(
    arguments: tuple[object, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert arcfleet(*arguments) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert message in shown.err
    assert len(shown.err.splitlines()) == 1
