import json
from pathlib import Path

import pytest

from arcfleet import check, read, read_solution
from arcfleet.neural.checkpoint import load_model, save_model
from arcfleet.neural.strategies import method_strategies
from tests.cli.running import SMALL, VILLAGE, arcfleet, one_sentence, succeeded
from tests.tiny_model import tiny_model_file


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model_file(tmp_path_factory.mktemp("model"))


def test_model_info(model: Path) -> None:
    text = succeeded("model", "info", model)
    facts = json.loads(succeeded("model", "info", model, "--json"))
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


def test_the_phase_of_an_old_model_file(tmp_path: Path) -> None:
    model, _ = load_model(tiny_model_file(tmp_path))
    save_model(model, tmp_path / "old.safetensors", {"kind": "pretrain"})
    text = succeeded("model", "info", tmp_path / "old.safetensors")
    assert "fact phase" in text
    assert "fact kind" not in text


@pytest.mark.parametrize("method", method_strategies())
def test_solve(method: str, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "plan.json"
    options = ("--method", method, "--model", model, "--device", "cpu", "--iterations", 6)
    ran = arcfleet("solve", VILLAGE, *options, "--out", out, "--json")
    facts = json.loads(ran.stdout)
    assert facts["method"] == method
    instance = read(VILLAGE)
    plan = read_solution(out, instance)
    assert check(instance, plan).ok
    assert plan.cost == facts["cost"]


def test_compare(model: Path) -> None:
    ran = arcfleet("compare", SMALL, "--time", 0.05, "--model", model, "--json")
    assert ran.returncode == 0, ran.stderr
    facts = json.loads(ran.stdout)
    assert all(row["ok"] for row in facts["methods"])
    assert {row["method"] for row in facts["methods"]} >= set(method_strategies())
    options = ("--methods", "ps,daam", "--model", model, "--device", "cpu")
    ran = arcfleet("compare", SMALL, "--time", 0.05, *options, "--json")
    assert ran.returncode == 0, ran.stderr  # on a busy machine it warns of the short time
    facts = json.loads(ran.stdout)
    assert [row["method"] for row in facts["methods"]] == ["ps", "daam"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("model", "info", SMALL), "expected a model file (safetensors), found another"),
        (("model", "info", "none"), "none: cannot be read (No such file"),
        (("solve", SMALL, "--model", "x"), "expected model for a learned method only"),
        (("solve", SMALL, "--device", "cpu"), "expected device for a learned method only"),
        (("solve", SMALL, "--method", "daam", "--model", SMALL), "found another kind"),
        (
            ("compare", SMALL, "--methods", "ps", "--model", "x"),
            "expected model for",
        ),
        (
            ("compare", SMALL, "--methods", "ps", "--device", "cpu"),
            "expected device for",
        ),
        (("compare", SMALL, "--model", "x"), "x: cannot be read"),
    ],
)
def test_mistakes_are_one_sentence(arguments: tuple[object, ...], message: str) -> None:
    assert message in one_sentence(arcfleet(*arguments))
