from pathlib import Path

import pytest

from arcfleet.errors import ArcfleetError
from arcfleet.paper.commands import Watch
from arcfleet.paper.convergence import Config, read_curves, run
from tests.tiny_model import tiny_model_file

GOOD = '{"step": 1, "seconds": 2, "gaps": {"a": {"greedy": 5}}}\n'


def test_a_quick_run_with_figures(tmp_path: Path) -> None:
    report = run(Config(out=tmp_path, quick=True), Watch())
    assert {path.suffix for path in report.files} == {
        *(".md", ".csv", ".tex", ".png", ".svg"),
    }
    (curve,) = read_curves([("quick", tmp_path / "inputs" / "run")])
    assert curve.steps[-1] == 2


def test_a_run_without_its_model(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text(GOOD)
    facts = '{"config": {"seed": 3}, "validation": [{"instances": 50}]}'
    (tmp_path / "config.json").write_text(facts)
    config = Config(runs=(f"a={tmp_path}",), out=tmp_path / "out", figures=False)
    caption = run(config, Watch()).caption
    assert "(50 instances each). Seed 3. Reported" in caption


def test_wrong_runs(tmp_path: Path) -> None:
    def error(*runs: str) -> str:
        with pytest.raises(ArcfleetError) as raised:
            run(Config(runs=runs, out=tmp_path / "out", figures=False), Watch())
        return str(raised.value)

    assert "at least one run" in error()
    assert "expected the metrics of a training run" in error(str(tmp_path / "no"))
    metrics = tmp_path / "metrics.jsonl"
    metrics.write_text('{"step": 1, "loss": 2.0}\n')
    assert "found none: train with --validation" in error(str(tmp_path))
    for damaged in (
        '{"gaps": {}}',
        '{"step": 1, "seconds": 2, "gaps": 5}',
        '{"step": 1, "seconds": 2, "gaps": {"a": 5}}',
        '{"step": 1, "seconds": "2", "gaps": {"a": {"greedy": 5}}}',
        '{"step": 1, "seconds": 2, "gaps": {"a": {"greedy": "5"}}}',
        "5",
    ):
        metrics.write_text(damaged + '\n{"step": 1}\n')
        assert "metrics.jsonl:1: expected a line of metrics" in error(str(tmp_path))
    assert "different names" in error("a=b", "a=c")
    metrics.write_text(GOOD)
    (tmp_path / "config.json").write_text('{"config": {}}')
    assert "config.json: expected the facts of a training run" in error(str(tmp_path))
    tiny_model_file(tmp_path).rename(tmp_path / "model.safetensors")
    found = error(str(tmp_path))
    assert "model.safetensors: expected the facts of a training run" in found
