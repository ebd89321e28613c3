from dataclasses import replace
from pathlib import Path

import pytest

from arcfleet.errors import FileError, OptionError
from arcfleet.neural.strategies import STRATEGIES
from arcfleet.paper.rows import (
    MODELS,
    ROWS,
    TABLE_ROWS,
    full_name,
    parse_models,
    parse_rows,
    with_model,
)
from tests.tiny_model import tiny_model_file


def test_rows_with_numbers() -> None:
    rows = parse_rows(
        ["ps", "ps-alt1=20", "daam-po", "sample=8@0.5", "sample=4", "maens=700", "ps"],
        seed=3,
        temperature=1.5,
    )
    assert [row.label for row in rows] == [
        "PS",
        "PS-Alt1 (20 plans)",
        "DaAM + PO",
        "DaAM (best of 8 at 0.5)",
        "DaAM (best of 4 at 1.5)",
        "MAENS (700 iterations)",
    ]
    assert dict(rows[1].settings) == {"iterations": 20, "seed": 3}
    assert rows[2].settings == {}
    assert dict(rows[3].settings) == {"samples": 8, "seed": 3, "temperature": 0.5}
    assert dict(rows[4].settings)["temperature"] == 1.5
    assert [row.is_search for row in rows] == [False] * 5 + [True]
    assert rows[1].name == "ps-alt1=20"


def test_a_row_has_one_name_however_it_is_asked_for() -> None:
    texts = ["maens", "maens=90000", "sample=32", "sample", "sample=032@0.50", "ps", " ps"]
    rows = parse_rows(texts, temperature=0.5)
    assert [row.name for row in rows] == ["maens=90000", "sample=32@0.5", "ps"]
    assert [row.label for row in rows] == ["MAENS", "DaAM (best of 32 at 0.5)", "PS"]
    (usual,) = parse_rows(["sample", "sample=32"])
    assert (usual.name, usual.label) == ("sample=32", "DaAM (best of 32)")
    assert dict(usual.settings) == {"samples": 32, "seed": 0}
    # So it is in files that were written by the names that were given.
    old = {"samples": 32, "seed": 0, "temperature": 0.3}
    assert full_name("sample", old) == "sample=32@0.3"
    assert full_name("sample=32:big", old) == "sample=32@0.3:big"
    assert full_name("redraw=8", {"samples": 8}) == "daam-sample=8"
    assert full_name("daam-views", {}) == "daam"
    (lns,) = parse_rows(["redraw=8@0.7"])  # a name of old
    assert (lns.name, lns.label) == (
        "daam-sample=8@0.7",
        "DaAM (best of 8 at 0.7, neural LNS)",
    )
    assert dict(lns.settings) == {"samples": 8, "seed": 0, "temperature": 0.7}
    assert full_name("hybrid=7", {"iterations": 7}) == "hybrid=7"  # no longer made
    assert full_name("daam-sl-rl:gat", {"pretrain_steps": 3}) == "daam-sl-rl:gat"
    assert full_name("ps", {"iterations": 5}) == "ps"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ps-elipse", "did you mean 'ps-ellipse'"),
        ("zzz", "known are ps"),
        ("ps=7", "'ps' without a number"),
        ("daam-po=7", "'daam-po' without a number"),
        ("maens=0", "from 1 to 1e9"),
        ("maens=many", "from 1 to 1e9"),
        ("maens=7@1", "temperature where plans are sampled"),
        ("sample=7@-1", "temperature above 0"),
    ],
)
def test_wrong_rows(text: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        parse_rows([text])


def test_the_table_has_the_rows_of_the_paper_in_order() -> None:
    labels = [row.label for row in ROWS.values()]
    assert labels[:14] == [
        *("PS", "PS-Ellipse", "PS-Efficiency", "PS-Alt1", "PS-Alt2", "S2V-DQN", "VRP-DL"),
        *("DaAM SL", "DaAM SL+RL", "DaAM + PO", "DaAM SL, as published"),
        *("DaAM SL+RL, as published", "DaAM + PO, as published", "MAENS"),
    ]
    assert (
        *("s2v-dqn", "vrp-dl", "daam-sl", "daam", "published-sl", "published"),
    ) == MODELS
    assert set(TABLE_ROWS) < set(ROWS)
    assert "maens" not in TABLE_ROWS  # a newcomer's first table ends the same hour
    with pytest.raises(OptionError, match="at least one row"):
        parse_rows([])


def test_a_new_method_or_strategy_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    (row,) = parse_rows(["ps-random-arc=7"])
    assert (row.method, row.model, dict(row.settings)["iterations"]) == (
        *("ps-random-arc", None, 7),
    )
    eager = replace(STRATEGIES["greedy"], name="eager", method=None)
    monkeypatch.setitem(STRATEGIES, "eager", eager)
    (row,) = parse_rows(["eager"])
    assert (row.name, row.method, row.model) == ("eager", "eager", "daam")
    assert row.expected_seconds(100, "cpu") > 0


def test_rows_of_named_models() -> None:
    (row,) = parse_rows(["daam-po"])
    named = with_model(row, "task50", only_strategy=True)
    assert (named.name, named.label, named.model) == (
        "daam-po:task50",
        "task50",
        "task50",
    )
    assert with_model(row, "task50", only_strategy=False).label == "DaAM + PO by task50"
    with pytest.raises(OptionError, match="decode by a model"):
        with_model(parse_rows(["ps"])[0], "task50", only_strategy=True)


def test_models_by_name_and_scale() -> None:
    files = parse_models(["a.st", "daam-sl=b=c.st", "daam@task50=d.st"], names=MODELS)
    (po, sl, s2v) = (ROWS[name] for name in ("daam-po", "daam-sl", "s2v-dqn"))
    assert str(files.path(po, "task20")) == "a.st"
    assert str(files.path(po, "task50")) == "d.st"
    assert str(files.path(sl, "task50")) == "b=c.st"
    shipped = parse_models([])
    assert shipped.path(po, "task20").name == "daam.safetensors"
    assert shipped.path(s2v, "task20").name == "s2v-dqn.safetensors"
    with pytest.raises(OptionError, match=r"'daam-sl' on task20, found none.*--rows"):
        shipped.path(sl, "task20")
    with pytest.raises(OptionError, match="name among s2v-dqn"):
        parse_models(["magic=a.st"], names=MODELS)
    with pytest.raises(OptionError, match="one model file for 'daam'"):
        parse_models(["a.st", "daam=b.st"])


def test_a_file_is_loaded_once_for_each_type(tmp_path: Path) -> None:
    path = tiny_model_file(tmp_path)
    files = parse_models([f"daam={path}", f"s2v-dqn={path}"], "cpu")
    loaded = files.load(path, ROWS["daam-po"])
    assert files.load(path, ROWS["sample"]) is loaded
    with pytest.raises(FileError, match=r"type 's2v-dqn', found type 'daam'"):
        files.load(path, ROWS["s2v-dqn"])
