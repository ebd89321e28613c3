"""The table of how decisions of fine-tuning are sampled."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs the extra neural")

import torch

from arcfleet.datasets import make_dataset
from arcfleet.neural.checkpoint import save_model
from arcfleet.neural.model import Daam, DaamConfig
from benchmarks import gradient_variance


def test_all_decisions_sampled_are_the_whole_gradient(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "few.npz"
    make_dataset(path, "task20", count=2, seed=3)
    torch.manual_seed(0)
    model = Daam(DaamConfig(width=16, layers=1, heads=2, feed_forward=16))
    save_model(model, tmp_path / "tiny.safetensors", {})
    options = ["--model", str(tmp_path / "tiny.safetensors"), "--instances", "1"]
    options += ["--decisions", "1", "400", "--seeds", "0", "1"]
    monkeypatch.setattr(sys, "argv", ["gradient_variance", str(path), *options])
    gradient_variance.main()
    lines = capsys.readouterr().out.splitlines()
    rows = [line.split() for line in lines[2:] if line.strip()]
    names = [" ".join(row[1:-3]) for row in rows]
    assert names == ["all", "even 1", "importance 1", "even 400", "importance 400"]
    moment = {
        name: [float(x) for x in row[-3:]] for name, row in zip(names, rows, strict=True)
    }
    assert moment["all"] == [1, 1, 1]
    # So many hit every decision about as often as it should be.
    assert moment["even 400"] == pytest.approx([1, 1, 1], abs=0.1)
    assert moment["importance 400"] == pytest.approx([1, 1, 1], abs=0.1)
    assert min(moment["even 1"] + moment["importance 1"]) > 0
