"""Gaps of models on test sets, and gaps against seconds, on a tiny set."""

import json
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs the extra neural")

from arcfleet.datasets import Dataset
from arcfleet.datasets.labels import labels_path, open_labels
from arcfleet.errors import OptionError
from arcfleet.neural.checkpoint import SHIPPED_MODEL
from benchmarks import cpu_encoder, neural_gaps, neural_time
from tests.helpers import refused

TINY = neural_gaps.TestSet("task20", 4, 300, 1, "test", [], mixed=True)


def command(monkeypatch: pytest.MonkeyPatch, module: object, *words: object) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmark", *map(str, words)])
    module.main()  # type: ignore[attr-defined]


def test_models_are_compared_instance_by_instance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(neural_gaps, "SETS", {"tiny": TINY})
    monkeypatch.setattr(neural_time, "SETS", {"tiny": TINY})
    command(monkeypatch, neural_gaps, "make", tmp_path, "--maps", tmp_path)
    labels = open_labels(
        labels_path(tmp_path / "tiny.npz"), Dataset.open(tmp_path / "tiny.npz")
    )
    lines = tmp_path / "gaps.jsonl"
    again = f"again={SHIPPED_MODEL}"
    words: tuple[object, ...] = ("run", tmp_path, lines, "--models", "daam", again)
    words += ("--device", "cpu")
    words += ("--strategies", "as-decoded", "greedy")
    for _ in range(2):  # what is there is not measured again
        command(monkeypatch, neural_gaps, *words)
    with refused(OptionError, "with the same model and 3 instances, found others"):
        command(monkeypatch, neural_gaps, *words, "--count", 3)
    with pytest.raises(SystemExit):
        command(monkeypatch, neural_gaps, "run", tmp_path, lines, "--models", "x.npz")
    assert "expected NAME=FILE or daam, got 'x.npz'" in capsys.readouterr().err
    found = neural_gaps.read(lines)
    assert len(found) == 4
    for line in found:
        assert line["labels"] == labels.cost.tolist()
        assert len(line["costs"]) == 4
        # Labels of 300 iterations may be beaten, but not by much.
        assert -5 < neural_gaps.gaps(line).mean() < 60
    capsys.readouterr()
    command(monkeypatch, neural_gaps, "report", lines)
    shown = capsys.readouterr().out
    assert "as-decoded" in shown
    assert shown.count("0.00 ± 0.00") >= 2  # of the same model twice

    times = tmp_path / "times.jsonl"
    monkeypatch.setattr(neural_time, "ITERATIONS", (5, 300))
    monkeypatch.setattr(neural_time, "LEARNED", {"as-decoded": (0, 300)})
    command(
        monkeypatch,
        neural_time,
        "run",
        tmp_path,
        times,
        "--sets",
        "tiny",
        "--device",
        "cpu",
    )
    rows = [json.loads(line) for line in times.read_text().splitlines()]
    assert [(x["strategy"], x["iterations"]) for x in rows] == [
        *(("", 5), ("", 300)),
        *(("as-decoded", 0), ("as-decoded", 300)),
    ]
    few, many, decoded, both = (sum(x["costs"]) for x in rows)
    assert many <= few
    assert both <= decoded
    assert decoded == sum(found[0]["costs"])
    picture = tmp_path / "picture.png"
    command(
        monkeypatch, neural_time, "report", times, "--set", "tiny", "--picture", picture
    )
    assert picture.stat().st_size > 1000
    assert "as-decoded" in capsys.readouterr().out


def test_the_core_is_compared_with_torch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in (neural_gaps, cpu_encoder):
        monkeypatch.setattr(module, "SETS", {"tiny": TINY})
    command(monkeypatch, neural_gaps, "make", tmp_path, "--maps", tmp_path)
    out = tmp_path / "lines.jsonl"
    words = ("--sets", "tiny", "--count", 2, "--rounds", 1, "--out", out)
    command(monkeypatch, cpu_encoder, tmp_path, *words)
    (line,) = map(json.loads, out.read_text().splitlines())
    assert (line["set"], line["count"], line["same"]) == ("tiny", 2, 2)
    assert min(line["torch"], line["core"]) > 0
    assert "2 of 2" in capsys.readouterr().out
