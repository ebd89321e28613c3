import io
from types import SimpleNamespace

import pytest
from rich.console import Console

from arcfleet import Progress, Stop
from arcfleet.cli import progress
from arcfleet.cli.progress import (
    count_progress,
    describe,
    display,
    last_metrics,
    search_progress,
    training_lines,
    training_progress,
)
from arcfleet.neural.train.loop import Gaps, TrainingProgress


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that shows its only item."""
    now = [100.0]
    monkeypatch.setattr(progress, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    return now


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, str]]:
    """What a terminal is shown: fractions and lines."""
    shown: list[tuple[float, str]] = []

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    class Display:
        def __enter__(self) -> object:
            return self

        def __exit__(self, *error: object) -> None: ...

        def add_task(self, text: str, total: float | None) -> int:
            return 0

        def update(
            self, bar: int, *, completed: float, total: float, description: str
        ) -> None:
            shown.append((completed / total, description))

    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=Terminal()))
    monkeypatch.setattr(progress, "display", lambda console: Display())
    return shown


def test_a_search(screen: list[tuple[float, str]]) -> None:
    stop = Stop(seconds=10, iterations=1000)
    with search_progress(stop, hidden=False) as told:
        assert told is not None
        told(Progress(0.0, 0, None))
        told(Progress(2.0, 500, 77))
    assert screen == [
        (0.0, "no plan yet   0 iterations   0 s"),
        (0.5, "cost 77   500 iterations   2 s, 2 s left"),
    ]


def test_a_count(screen: list[tuple[float, str]], clock: list[float]) -> None:
    with count_progress("labels", hidden=False) as told:
        assert told is not None
        for done, seconds in ((20, 10), (45, 290), (70, 0)):
            told(done, 120)
            clock[0] += seconds
        told(70, 120, 0.25)  # runs of different lengths
    assert screen == [
        (0.0, "20 of 120 labels, 20 kept, 0 per s"),
        (0.25, "45 of 120 labels, 20 kept, 2.5 per s, 30 s left"),
        (0.5, "70 of 120 labels, 20 kept, 0.17 per s, 5:00 left"),
        (0.25, "70 of 120 labels, 20 kept, 0.17 per s, 15:00 left"),
    ]


def test_a_count_in_a_pipe(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with count_progress("plans", hidden=False) as told:
        assert told is None
    with count_progress("plans", hidden=False, lines=True) as told:
        assert told is not None
        for done in (0, 1, 2, 4):
            told(done, 4)
            clock[0] += 40
    assert capsys.readouterr().err.splitlines() == [
        "2 of 4 plans, 0.025 per s, 1:20 left",
    ]


def test_nothing_is_shown_where_it_is_hidden() -> None:
    with search_progress(Stop(seconds=1), hidden=True) as search:
        assert search is None
    with count_progress("plans", hidden=True, lines=True) as count:
        assert count is None
    with training_progress(hidden=True) as training:
        assert training is None


def running(*validated: str) -> TrainingProgress:
    """A quarter of a run that takes 400 seconds, with the gaps of some sets."""
    return TrainingProgress(
        activity="training",
        fraction=0.25,
        step=50,
        seconds=100.0,
        loss=1.25,
        states_per_second=3e4,
        gaps=dict.fromkeys(validated, Gaps(5.0, 4.25)),
    )


def test_the_line_of_training() -> None:
    started = TrainingProgress(activity="preparing a.npz", gaps={})
    assert describe(started, None) == "preparing a.npz"
    told = running("a")
    assert describe(told, told) == (
        "training, step 50, 5:00 left, loss 1.250, 30000 states/s, a 5.00/4.25 %"
    )


def test_training_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    """One line for each validation."""
    with training_progress(hidden=False) as told:
        assert told is not None
        for each in (running(), running("a"), running("a")):
            told(each)
    training_lines("first")(running("a"))
    line, named = capsys.readouterr().err.splitlines()
    assert line.startswith("training, step 50, 5:00 left, loss 1.250")
    assert named == f"first: {line}"


def test_the_bar_on_a_narrow_terminal() -> None:
    """The bar and the time left are seen however many gaps there are."""
    screen = io.StringIO()
    shown = display(Console(file=screen, width=80, force_terminal=True))
    told = running("20-validation", "50-validation", "100-validation")
    shown.add_task(describe(told, told), total=1.0)
    with shown:
        pass
    line = next(line for line in screen.getvalue().splitlines() if "training" in line)
    assert "━━━━" in line
    assert "step 50, 5:00 left" in line


def test_loss_and_speed_of_one_phase_are_not_those_of_the_next() -> None:
    trained = running()
    validating = TrainingProgress(activity="validating", step=50, gaps={})
    preparing = TrainingProgress(activity="preparing", gaps={})
    assert last_metrics(trained, None) is trained
    assert last_metrics(validating, trained) is trained
    assert last_metrics(preparing, trained) is None
    assert last_metrics(preparing, None) is None
