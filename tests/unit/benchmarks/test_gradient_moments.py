"""Gradients from few and from many moments."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("torch", reason="needs the extra neural")

from benchmarks import gradient_moments
from tests.neural.labelled_towns import labelled_file
from tests.tiny_model import tiny_model_file

if TYPE_CHECKING:
    from pathlib import Path


def test_more_moments_are_more_precise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data, model = labelled_file(tmp_path, "few", count=4), tiny_model_file(tmp_path)
    options = ["--instances", "2", "--gradients", "12", "--moments", "1", "16"]
    files = ["--init", str(model), "--data", str(data), "--device", "cpu"]
    monkeypatch.setattr(sys, "argv", ["gradient_moments", *files, *options])
    gradient_moments.main()
    lines = capsys.readouterr().out.splitlines()
    cells = {(line.split()[0], line.split()[1]): line.split()[2:] for line in lines[3:]}
    assert cells.keys() == {(o, m) for o in ("ppo", "samples") for m in ("1", "16")}
    for objective in ("ppo", "samples"):
        assert cells[objective, "1"][1:] == ["1.000", "1.000"]
        assert 0 < float(cells[objective, "16"][1]) < 1
