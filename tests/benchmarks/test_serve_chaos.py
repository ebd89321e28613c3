from benchmarks.drivable import drivable_report
from benchmarks.serve_chaos import SERVE_RUNS, ServeRun


def test_the_table_has_a_row_for_each_measurement() -> None:
    record = ServeRun(
        measure="20 kills",
        found="0 lost",
        seconds=61.2,
        machine="m",
        commit="c",
        load=0.5,
        seed=1,
    )
    report = drivable_report(SERVE_RUNS, [record])
    (section,) = report.sections
    assert list(section.rows) == [("20 kills", "0 lost", "61 s", "0.5")]
    assert "Seed 1." in report.caption
