import pytest

from arcfleet.bench.run import Record, gap_percent
from arcfleet.bench.summary import anytime_curves, summarise


def record(
    instance: str,
    seed: int,
    *history: tuple[float, int],
    reference: int | None = 100,
    seconds: float = 2.0,
    time_limit: float = 2.0,
) -> Record:
    cost = history[-1][1]
    return Record(
        set_name="s",
        instance=instance,
        method="m",
        seed=seed,
        time_limit=time_limit,
        stop_at_reference=False,
        machine="",
        commit="",
        reference=reference,
        cost=cost,
        gap_percent=gap_percent(cost, reference),
        seconds=seconds,
        seconds_to_best=history[-1][0],
        iterations=1,
        routes=1,
        stopped_by="seconds",
        history=history,
    )


def test_means_are_over_seeds_first() -> None:
    rows = summarise(
        [
            record("a", 0, (0.1, 120), (0.5, 100)),
            record("a", 1, (0.1, 110), seconds=1.0),
            record("b", 0, (0.3, 104)),
            record("b", 0, (0.2, 90), time_limit=5.0),
        ]
    )
    first, second = rows
    assert (first.set_name, first.method, first.time_limit, first.runs) == (
        "s",
        "m",
        2.0,
        3,
    )
    assert first.gap_percent == pytest.approx(((0 + 10) / 2 + 4) / 2)
    assert first.seconds == pytest.approx((1.5 + 2.0) / 2)
    assert first.seconds_to_best == pytest.approx((0.3 + 0.3) / 2)
    assert first.reached_percent == pytest.approx(25.0)
    assert first.seconds_to_reference == pytest.approx(0.5)
    assert second.gap_percent == pytest.approx(-10.0)


def test_without_reference_there_is_no_gap() -> None:
    (row,) = summarise([record("a", 0, (0.1, 120), reference=None)])
    assert (row.gap_percent, row.reached_percent, row.seconds_to_reference) == (None,) * 3
    assert anytime_curves([record("a", 0, (0.1, 120), reference=None)]) == {}


def test_curves_are_means_of_steps() -> None:
    (curve,) = anytime_curves(
        [record("a", 0, (0.1, 120), (1.0, 100)), record("b", 0, (0.2, 110), seconds=0.5)]
    )["s"]
    assert curve.label == "m, 2 s"
    assert (curve.x[0], curve.x[-1]) == pytest.approx((0.2, 2.0))
    for seconds, gap in zip(curve.x, curve.y, strict=True):
        assert gap == pytest.approx(15.0 if seconds < 1.0 else 5.0)
