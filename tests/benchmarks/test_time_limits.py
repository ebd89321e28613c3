from benchmarks.drivable import drivable_report
from benchmarks.time_limits import LIMITED_RUNS, LimitedRun, run


def line(elapsed: float, iterations: int | None) -> LimitedRun:
    return LimitedRun(
        instance="town",
        time_limit=2.0,
        options="--out",
        machine="m",
        commit="c",
        tasks=9,
        load=0.5,
        elapsed=elapsed,
        processor_seconds=1.0,
        repetitions=3,
        iterations=iterations,
        said="",
    )


def test_the_table_says_how_late_a_command_was() -> None:
    report = drivable_report(LIMITED_RUNS, [line(2.1, 7), line(0.5, None)])
    (section,) = report.sections
    shown = [dict(zip(section.header, row, strict=True)) for row in section.rows]
    assert [row["over"] for row in shown] == ["+5 %", "-75 %"]
    assert [row["iterations"] for row in shown] == ["7", "refused"]


def test_a_command_is_run_and_timed() -> None:
    elapsed, spent, out, err = run(["--version"])
    assert elapsed > 0
    assert spent > 0
    assert out.startswith("arcfleet ")
    assert err == ""
