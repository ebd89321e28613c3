"""Tables of what drawn plans are worth."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("torch", reason="needs the extra neural")

from benchmarks import draw_settings
from tests.neural.labelled_towns import labelled_file
from tests.tiny_model import tiny_model_file

if TYPE_CHECKING:
    from pathlib import Path


def rows_of(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    *arguments: str | Path,
) -> list[list[str]]:
    """Run the command; give the cells of its rows."""
    monkeypatch.setattr(sys, "argv", ["draw_settings", *map(str, arguments)])
    draw_settings.main()
    lines = capsys.readouterr().out.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("---"))
    return [line.split() for line in lines[start + 1 :] if line.strip()]


def test_gaps_are_means_over_seeds_and_fall_with_more_plans(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = labelled_file(tmp_path, "some")
    common = (data, "--model", tiny_model_file(tmp_path), "--temperatures", "1", "2")
    few = (*common, "--copies", "4", "--views", "2")
    first = rows_of(capsys, monkeypatch, *few, "--seeds", "0")
    second = rows_of(capsys, monkeypatch, *few, "--seeds", "1")
    both = rows_of(capsys, monkeypatch, *few, "--seeds", "0", "1")
    assert [row[:3] for row in both] == [["1.0", "2", "0.5"], ["2.0", "2", "0.5"]]
    for one, other, mean in zip(first, second, both, strict=True):
        wanted = (float(one[3]) + float(other[3])) / 2
        assert float(mean[3]) == pytest.approx(wanted, abs=0.001)
    many = rows_of(capsys, monkeypatch, *common, "--copies", "40", "--views", "2")
    for row, better in zip(first, many, strict=True):
        assert float(better[3]) < float(row[3])
