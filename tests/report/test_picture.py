from pathlib import Path

import pytest

from arcfleet.report.charts import Line, plot_anytime
from arcfleet.report.picture import SUFFIXES
from arcfleet.report.plot import plot
from tests.report.test_plot import INSTANCE, PLAN

CURVES = {"gdb": [Line(label="ps", x=(0.1, 1.0), y=(3.0, 2.0))]}


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("drawing", ["plan", "curves"])
def test_the_same_drawing_gives_the_same_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drawing: str, suffix: str
) -> None:
    paths = [tmp_path / f"{name}{suffix}" for name in ("first", "second")]
    for path, moment in zip(paths, ("0", "1000000000"), strict=True):
        # What matplotlib takes for the present.
        monkeypatch.setenv("SOURCE_DATE_EPOCH", moment)
        if drawing == "plan":
            plot(INSTANCE, PLAN, path)
        else:
            plot_anytime(CURVES, path)
    first, second = (path.read_bytes() for path in paths)
    assert first == second
