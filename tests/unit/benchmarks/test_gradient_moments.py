"""Gradients from few and from many moments."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("torch", reason="needs the extra neural")

from arcfleet.errors import OptionError
from benchmarks import gradient_moments
from tests.neural.labelled_towns import labelled_file
from tests.tiny_model import tiny_model_file

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    data, model = labelled_file(tmp_path, "few", count=4), tiny_model_file(tmp_path)
    files = ["--init", str(model), "--data", str(data), "--device", "cpu"]
    return ["gradient_moments", *files]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--gradients", "1"], "expected at least 2 gradients, which differ, got 1"),
        (["--instances", "5"], r"1 to 4 instances of each gradient.* got 5"),
        (["--instances", "0"], r"1 to 4 instances of each gradient.* got 0"),
    ],
)
def test_what_cannot_be_measured(
    command: list[str], monkeypatch: pytest.MonkeyPatch, options: list[str], expected: str
) -> None:
    monkeypatch.setattr(sys, "argv", [*command, *options])
    with pytest.raises(OptionError, match=expected):
        gradient_moments.main()


def test_more_moments_are_more_precise(
    command: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ["--instances", "2", "--gradients", "12", "--moments", "1", "16"]
    monkeypatch.setattr(sys, "argv", [*command, *options])
    gradient_moments.main()
    lines = capsys.readouterr().out.splitlines()
    cells = {(line.split()[0], line.split()[1]): line.split()[2:] for line in lines[3:]}
    assert cells.keys() == {(o, m) for o in ("ppo", "samples") for m in ("1", "16")}
    for objective in ("ppo", "samples"):
        assert cells[objective, "1"][1:] == ["1.000", "1.000"]
        assert 0 < float(cells[objective, "16"][1]) < 1
