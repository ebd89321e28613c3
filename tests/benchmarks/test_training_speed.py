"""The table of how fast pre-training is."""

import sys

import pytest

pytest.importorskip("torch", reason="needs the extra neural")

from arcfleet.neural.model import DaamConfig
from benchmarks import training_speed


def test_a_row_for_each_scale_and_size(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    few = ("--scales", "20", "--tokens", "400", "800", "--steps", "1", "--instances", "3")
    arguments = ["training_speed", "--device", "cpu", *few]
    monkeypatch.setattr(sys, "argv", arguments)
    training_speed.main()
    lines = capsys.readouterr().out.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("---"))
    rows = [line.split() for line in lines[start + 1 :] if line.strip()]
    assert [row[:2] for row in rows] == [["Task20", "400"], ["Task20", "800"]]
    for row in rows:
        figures = [float(cell.replace(",", "")) for cell in row[2:]]
        assert len(figures) == 8
        assert min(figures[:2]) > 0
        # 41 arcs, 8 moments: of 400 arcs one plan, of 800 two.
        states = 8 if row[1] == "400" else 16
        rate, milliseconds = figures[:2]
        assert rate * milliseconds / 1e3 == pytest.approx(states, rel=0.1)


def test_bytes_of_a_state() -> None:
    """Counted by hand: inputs and outputs of four products and one attention."""
    config = DaamConfig(width=4, heads=1, feed_forward=8, layers=2)
    into_attention, out_of_it, widening, narrowing = 4 + 12, 4 + 4, 4 + 8, 8 + 4
    attention = 3 * 4 + 4
    once = into_attention + out_of_it + widening + narrowing + attention
    assert training_speed.least_bytes(config, arcs=5, size=2) == 2 * 5 * 3 * once * 2
