import pytest

from arcfleet.report.tables import latex_table, markdown_table, table


def test_numbers_go_right_and_words_left() -> None:
    text = table(
        [("gdb1", 316, "0.0 %"), ("egl-e1-A", 3548, "12.5 %")], ("name", "cost", "gap")
    )
    assert text.splitlines() == [
        "name      cost     gap",
        "--------  ----  ------",
        "gdb1       316   0.0 %",
        "egl-e1-A  3548  12.5 %",
    ]


def test_missing_cells_do_not_turn_a_column_into_words() -> None:
    assert table([(None,), (1000,)], ("cost",)).splitlines()[2:] == ["   -", "1000"]


def test_no_rows() -> None:
    assert table([], ("a", "bc")) == "a  bc\n-  --"


def test_ragged_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="expected 2 cells per row, got 1"):
        table([(1,)], ("a", "b"))


def test_markdown() -> None:
    rows = [("a|b", 1), (None, "2 ± 1")]
    assert markdown_table(rows, ("method", "gap")).splitlines() == [
        "| method | gap |",
        "| --- | ---: |",
        "| a\\|b | 1 |",
        "| - | 2 ± 1 |",
    ]


def test_latex_table() -> None:
    text = latex_table(
        [["A_b", "1 ± 2"], ["c", None]], ["x & y", "5 %"], caption="#1", label="t"
    )
    lines = text.splitlines()
    assert r"\begin{tabular}{@{}lr@{}}" in lines
    assert r"x \& y & 5 \% \\" in lines
    assert r"A\_b & 1 $\pm$ 2 \\" in lines
    assert r"c & - \\" in lines
    assert r"\caption{\#1}" in lines
    assert r"\label{t}" in lines
