"""The three times to what the reference reached."""

import pytest

from benchmarks.maens_reference import Run, line, seconds_to_mean_gap, seconds_to_reference


def make_run(
    history: list[tuple[float, float]], *, seconds: float, name: str = "a", gap: float = 1.0
) -> Run:
    """A run whose reference ended at `gap`, found after 10 of 20 seconds."""
    return Run(
        set_name="set",
        name=name,
        gap=history[-1][1],
        seconds=seconds,
        history=tuple(history),
        reference_gap=gap,
        reference_seconds=20.0,
        reference_seconds_to_best=10.0,
    )


def test_all_runs_count_for_the_mean_gap() -> None:
    easy = make_run([(0.1, 3.0), (0.5, 0.0)], seconds=0.5)
    # It misses the reference's cost, and the other makes up for it after 2 seconds.
    hard = make_run([(0.2, 4.0), (2.0, 2.0), (9.0, 1.5)], seconds=12.0, name="b")
    assert seconds_to_mean_gap([easy, hard]) == pytest.approx((0.5 + 2.0) / 2)


def test_a_mean_gap_that_is_not_reached() -> None:
    assert seconds_to_mean_gap([make_run([(1.0, 1.1)], seconds=3.0)]) is None


def test_before_its_first_plan_a_run_has_no_gap() -> None:
    late = make_run([(5.0, 0.0)], seconds=5.0, name="b")
    early = make_run([(1.0, 0.0)], seconds=1.0)
    assert seconds_to_mean_gap([early, late]) == pytest.approx(3.0)


def test_misses_cost_their_time() -> None:
    hit = make_run([(1.0, 2.0), (3.0, 1.0)], seconds=8.0)
    miss = make_run([(1.0, 2.0)], seconds=7.0)
    assert miss.seconds_to_reference is None
    assert seconds_to_reference([hit, miss], count_misses=False) == pytest.approx(3.0)
    assert seconds_to_reference([hit, miss], count_misses=True) == pytest.approx(10.0)


def test_the_line_of_a_set() -> None:
    hit = make_run([(2.0, 1.0), (4.0, 0.0)], seconds=4.0)
    miss = make_run([(1.0, 3.0), (4.0, 2.0)], seconds=6.0, name="b")
    found = line("set", [hit, miss])
    assert found == (
        *("set", "1.000", "5.00", "1.000", "20.00", "10.000", "4.000", "2.5"),
        *("1 of 2", "10.000", "2.000", "5.0", "2.000", "5.0"),
    )
    assert line("b", [miss])[6:] == ("-", "-", "0 of 1", "-", "-", "-", "-", "-")
