import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from arcfleet.errors import OptionError
from arcfleet.paper.gaps import columns_of, gaps_to
from arcfleet.paper.report import seconds_text, write_report
from arcfleet.paper.reports import report_of
from arcfleet.paper.rows import OLD_NAMES
from arcfleet.paper.series import Costs, read_series
from tests.paper.some_series import line, series

# Labels of two instances, MAENS on three, path scanning on four.
MEASURED = (
    line("ps", [110, 120, 130, 200], seed=0),
    line("labels", [100, 100], model="l"),
    line("maens", [100, 99, 130], seconds=30.0, parallel=4, seed=0, label="MAENS"),
    line("daam-po", [105, 105, 105], model="m", device="H200", seconds=0.003),
    line("daam-po", [105, 105, 106, 107], model="m", seconds=0.4),
    line("daam-po", [105, 105], model="m", device="H200", alone=True, seconds=0.02),
)
OTHER_SEED = (MEASURED[0], line("ps", [1], seed=1))


def test_references_and_paired_gaps() -> None:
    (table,) = columns_of(series(*MEASURED))
    assert table.name == "Task20"
    assert list(table.rows) == ["ps", "daam-po", "maens"]  # as in the paper
    best = table.best_known
    assert best == {0: 100, 1: 99}
    assert table.rows["daam-po"].of.device == "cpu"  # which has more instances
    compared = gaps_to(table.rows["ps"], table.paper_reference)
    assert compared is not None
    gaps, count = compared
    assert count == 3
    assert gaps.gap_percent == pytest.approx((10 + 100 * (120 / 99 - 1) + 0) / 3)
    assert gaps_to(table.rows["ps"], None) is None


def test_best_known_without_labels() -> None:
    (table,) = columns_of(series(*(x for x in MEASURED if x.row != "labels")))
    assert table.best_known == {0: 100, 1: 99, 2: 106}
    (bare,) = columns_of(series(MEASURED[0], line("ps-alt1", [9, 9], first=1)))
    assert list(bare.best_known) == [1, 2]
    # The longest run of MAENS is the paper's reference.
    runs = (line("maens=5", [9], iterations=5), line("maens=7", [8], iterations=7))
    (table,) = columns_of(series(*runs))
    assert table.paper_reference == {0: 8}


@pytest.mark.parametrize(
    ("message", "name", "measured", "options"),
    [
        ("one model and one setting of the row 'ps'", "table", OTHER_SEED, {}),
        ("one model and one setting of the row 'ps'", "runtime", OTHER_SEED, {}),
        (
            *("one model and one setting of the row 'daam-po'", "runtime"),
            *((*MEASURED, line("daam-po", [1], model="n", alone=True)), {}),
        ),
        (
            *("one set of labels", "table"),
            *((*MEASURED, line("labels", [1], model="others")), {}),
        ),
        ("found none: run them first", "table", [line("labels", [1], model="l")], {}),
        ("found none: run them first", "runtime", [], {}),
        ("--scale for pareto only", "table", MEASURED, {"scale": "task20"}),
        ("--seen for generalise only", "table", MEASURED, {"seen": ("town",)}),
        ("scale 'task90', found 0", "pareto", MEASURED, {"scale": "task90"}),
        ("expected labels of Task20", "generalise", MEASURED[:1], {}),
    ],
)
def test_what_does_not_belong_together_is_refused(
    message: str, name: str, measured: Sequence[Costs], options: dict[str, Any]
) -> None:
    with pytest.raises(OptionError, match=message):
        report_of(name, series(*measured), **options)


def test_the_table_as_files(tmp_path: Path) -> None:
    report = report_of(
        "table", series(*MEASURED, line("ps", [7, 8], scale="task100", seed=0))
    )
    files = write_report(report, tmp_path / "new", figures=False).files
    assert [path.name for path in files] == ["table.md", "table.tex", "table.csv"]
    text = files[0].read_text()
    assert "| method | Task20 | Task100 |" in text
    assert "| PS | 140.0 | 7.5 |" in text
    assert "| MAENS | 109.7 (n=3) | - |" in text
    assert "| instances | n=3 | n=0 |" in text  # of the gaps to MAENS
    assert "Seed 0. Measured on here. Commit c0ffee." in text
    assert "4 for DAAM-PO; 3 for MAENS" in text
    assert "- model of DAAM-PO: m" in text
    latex = files[1].read_text()
    assert latex.count(r"\begin{tabular}{@{}lrr@{}}") == 5
    assert r"$\pm$" in latex
    assert "95 \\% confidence" in latex
    with files[2].open() as stream:
        records = list(csv.DictReader(stream))
    maens = next(record for record in records if record["row"] == "maens")
    assert (maens["instances"], maens["instances_to_best_known"]) == ("3", "2")
    assert float(maens["gap_percent_to_best_known"]) == pytest.approx(0)
    scanned = next(record for record in records if record["row"] == "ps")
    assert scanned["instances_to_labels"] == "2"
    assert float(scanned["gap_percent_to_labels"]) == pytest.approx((10 + 20) / 2)


def test_times_alone_and_together() -> None:
    alone, together = report_of("runtime", series(*MEASURED)).sections
    assert alone.rows == [
        ["PS, CPU", "250 ms"],
        ["DAAM-PO, H200", "10 ms"],
        ["MAENS, CPU", "10 s"],
    ]
    assert ["MAENS, CPU", "2.5 s"] in together.rows  # 4 at once
    assert ["DAAM-PO, CPU", "100 ms"] in together.rows
    assert ["DAAM-PO, H200", "1 ms"] in together.rows


def test_captions_say_what_the_best_known_is() -> None:
    bare = line("ps", [7, 8], scale="task100", seed=0)
    for name in ("table", "ablation", "pareto"):
        assert (
            "cheapest of label and all rows"
            in report_of(
                name, series(*MEASURED), scale="task20" if name == "pareto" else None
            ).caption
        )
        caption = report_of(name, series(bare)).caption
        assert (
            "In Task100, which has neither labels nor MAENS, the best known is but"
            in caption
        )
    assert "In Task100" in report_of("table", series(*MEASURED, bare)).caption
    assert "In Task" not in report_of("table", series(*MEASURED)).caption


def test_which_method_when() -> None:
    without, with_gpu, every = report_of("pareto", series(*MEASURED)).sections
    assert [row[1] for row in without.rows] == ["DAAM-PO", "MAENS"]
    assert without.rows[0][0] == "any"
    assert without.rows[1][0] == "at least 2.5 s"
    assert [row[2] for row in with_gpu.rows] == ["H200", "cpu"]
    assert len(every.rows) == 4


def test_scales_and_cities() -> None:
    measured = [
        line("labels", [100, 100], scale=scale, place=place, model="l")
        for scale in ("task20", "task100")
        for place in ("rome", "reno")
    ]
    measured += [
        line(f"daam-po:{x}", [110, 120], scale=s, place=p, model=x, label=x)
        for x in ("task100", "task20")
        for s, p in (("task20", "rome"), ("task20", "reno"), ("task100", "rome"))
    ]
    (section,) = report_of("generalise", series(*measured), seen=("rome",)).sections
    assert section.header[1:] == ["Task20", "Task100"]
    assert [row[0] for row in section.rows] == [
        *("task20, reno (unseen)", "task20, rome (seen)"),
        *("task100, reno (unseen)", "task100, rome (seen)"),
    ]
    with pytest.raises(OptionError, match="maps of the test sets, reno, rome, got 'paris'"):
        report_of("generalise", series(*measured), seen=("rome", "paris"))
    assert section.rows[0][1] == "15.00 ± 63.53 (n=2)"
    assert section.rows[0][2] is None


def test_a_set_of_several_cities_is_seen_by_its_maps() -> None:
    places = ("rome, reno", "rome, paris", "paris, reno, oslo")
    measured = [
        line(row, [100], place=place, model="m", scale=f"task{20 + 10 * i}")
        for row in ("labels", "daam-po:daam")
        for i, place in enumerate(places)
    ]
    report = report_of("generalise", series(*measured), seen=("rome", "reno"))
    assert [row[0] for row in report.sections[0].rows] == [
        "rome, reno (seen)",
        "rome, paris (partly seen)",
        "3 maps (partly seen)",
    ]
    assert [x["seen"] for x in report.records] == ["seen", "partly seen", "partly seen"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(2e-5, "20 µs"), (0.0123, "12.3 ms"), (1.5, "1.5 s"), (12345.6, "12346 s")],
)
def test_times_in_words(seconds: float, text: str) -> None:
    assert seconds_text(seconds) == text


ROOT = Path(__file__).parents[2]
FOLDERS = sorted(
    {path.parent for path in (ROOT / "benchmarks" / "results").rglob("runs.jsonl")}
)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_results_of_the_repository_stay_readable(folder: Path) -> None:
    if not (folder / "runs.jsonl").read_bytes().startswith(b'{"format": "arcfleet-ser'):
        pytest.skip("runs of a suite")
    found = read_series([folder], "runs")
    assert found
    assert not OLD_NAMES.keys() & {x.row.partition("=")[0] for x in found}
    assert report_of("table", found).sections
