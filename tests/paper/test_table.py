"""Tables, run times and the rest of what compares rows on test sets."""

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from arcfleet.datasets import Dataset, open_labels
from arcfleet.errors import ArcfleetError, FileError, FormatWarning, OptionError
from arcfleet.methods import solve
from arcfleet.paper import generalise, measure, pareto, reports, runtime, table
from arcfleet.paper.commands import Watch
from arcfleet.paper.measure import MeasureConfig, Selection
from arcfleet.paper.report import Report
from arcfleet.paper.rows import TABLE_ROWS
from arcfleet.search.stop import Stop
from arcfleet.workers import child_seed
from tests.neural.labelled_towns import labelled_file
from tests.tiny_model import tiny_model_file

ROWS = "ps,ps-alt1=10,daam-sl-rl,daam-po,daam-greedy,sample=2@0.5,maens=20"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("paper")
    tiny_model_file(folder)
    labelled_file(folder, "task20-test", count=6)
    labelled_file(folder, "task30-test", "task30", count=4)
    return folder


def config(
    folder: Path,
    out: Path,
    *rows: str,
    sets: tuple[str, ...] = ("task20-test", "task30-test"),
    models: tuple[str, ...] | None = None,
    workers: int = 1,
    batch: int | None = None,
    device: str = "cpu",
    **selection: Any,
) -> table.Config:
    files = (str(folder / "tiny.safetensors"),) if models is None else models
    return table.Config(
        sets=tuple(folder / f"{name}.npz" for name in sets),
        out=out,
        selection=Selection(rows=rows, models=files, **selection),
        measure=MeasureConfig(device=device, workers=workers, batch=batch, verify=3),
        figures=False,
    )


def made(what: table.Config, notes: list[str] | None = None) -> Report:
    return table.run(what, Watch() if notes is None else Watch(note=notes.append))


def lines(path: Path) -> list[dict[str, Any]]:
    _, *records = (json.loads(line) for line in path.read_text().splitlines())
    return records


def test_the_table_and_its_resumption(folder: Path, tmp_path: Path) -> None:
    out, notes = tmp_path / "results", list[str]()
    report = made(config(folder, out, ROWS, search_count=2), notes)
    found = lines(out / "runs.jsonl")
    assert len(found) == 2 * (7 + 1)  # one for the labels
    assert notes[0].startswith("rows: 7, test sets: 2, plans to make: 64; about ")
    assert len(notes) == 1 + 2 * 7

    dataset = Dataset.open(folder / "task20-test.npz")
    labels = open_labels(folder / "task20-test.labels.npz", dataset)
    by_row = {x["row"]: x for x in found if x["set_name"] == "task20-test"}
    assert by_row["labels"]["costs"] == labels.cost.tolist()
    counts = {row: len(x["costs"]) for row, x in by_row.items()}
    assert (counts["maens=20"], counts["ps"]) == (2, 6)
    for x in by_row.values():
        assert x["verified"] >= min(3, len(x["costs"]))
        assert x["seconds"] > 0 or x["row"] == "labels"
    assert by_row["ps"]["source_sha256"] is None
    alone = solve(dataset[4], "ps-alt1", stop=Stop(iterations=10), seed=child_seed(0, 4))
    assert by_row["ps-alt1=10"]["costs"][4] == alone.cost
    pairs = zip(by_row["daam-greedy"]["costs"], by_row["daam-sl-rl"]["costs"], strict=True)
    assert all(x <= y for x, y in pairs)

    text = report.text()
    assert "MAENS (20 iterations)" in text
    assert "95 % confidence interval" in text
    assert "Seed 0." in text
    assert [path.name for path in report.files] == ["table.md", "table.tex", "table.csv"]
    with (out / "table.csv").open() as stream:
        assert len(list(csv.DictReader(stream))) == 2 * 7

    # Again: nothing is made, the tables are the same.
    data, again = (out / "runs.jsonl").read_bytes(), list[str]()
    assert made(config(folder, out, ROWS, search_count=2), again).text() == text
    assert (again, (out / "runs.jsonl").read_bytes()) == ([], data)
    # A larger count reuses what is there; another command uses it, too.
    rows = config(folder, out, ROWS, search_count=3)
    records = pareto.run(pareto.Config(comparison=rows), Watch()).records
    added = lines(out / "runs.jsonl")[len(found) :]
    assert {x["row"] for x in added} == {"maens=20"}
    assert {(x["first"], len(x["costs"])) for x in added} == {(2, 1)}
    assert {record["scale"] for record in records} == {"task30"}


def test_a_kill_costs_one_line(folder: Path, tmp_path: Path) -> None:
    what, notes = config(folder, tmp_path, "ps,sample=2"), list[str]()
    made(what)
    runs = tmp_path / "runs.jsonl"
    whole = runs.read_bytes()
    runs.write_bytes(whole[:-30])
    with pytest.warns(FormatWarning, match="dropped a line"):
        made(what, notes)
    assert len(notes) == 2
    for x, before in zip(lines(runs), whole.splitlines()[1:], strict=True):
        assert x["costs"] == json.loads(before)["costs"]


def test_two_machines_make_one_table(folder: Path, tmp_path: Path) -> None:
    """The learned rows here, the searches there, and once all in one place."""
    one, two, both = (tmp_path / name for name in ("one", "two", "both"))
    rows = {one: "daam-po", two: "ps,maens=20", both: "ps,daam-po,maens=20"}
    for out, names in rows.items():
        made(config(folder, out, names))

    def costs(*folders: Path) -> str:  # times differ from run to run
        what = reports.Config(
            name="table", folders=folders, out=tmp_path / "joined", figures=False
        )
        return reports.run(what, Watch()).text().partition("Time per instance")[0]

    assert costs(one, two) == costs(both)
    assert "DaAM + PO" in costs(both)
    with pytest.raises(FileError, match=r"runs\.jsonl, found none"):
        costs(tmp_path)


def test_another_model_makes_learned_rows_anew(folder: Path, tmp_path: Path) -> None:
    from arcfleet.neural.checkpoint import load_model, save_model

    made(config(folder, tmp_path, "daam-sl-rl,ps"))
    model, _ = load_model(folder / "tiny.safetensors")
    other = tmp_path / "other.safetensors"
    save_model(model, other, {"another": True})
    for text in (str(other), f"daam@task20={other}"):
        what = config(
            folder, tmp_path, "daam-sl-rl", "ps", sets=("task20-test",), models=(text,)
        )
        made(what)
    rows = [x["row"] for x in lines(tmp_path / "runs.jsonl")]
    # Models first, then the searches.
    assert rows == ["labels"] * 2 + ["daam-sl-rl"] * 2 + ["ps"] * 2 + ["daam-sl-rl"]


def test_processes_change_no_cost(folder: Path, tmp_path: Path) -> None:
    costs = []
    for workers in (1, 2):
        out = tmp_path / str(workers)
        what = config(
            folder, out, "ps-ellipse=5,maens=5", sets=("task20-test",), workers=workers
        )
        made(what)
        found = sorted(lines(out / "runs.jsonl"), key=lambda x: (x["row"], x["first"]))
        costs.append([x["costs"] for x in found])
        assert {x["parallel"] for x in found if x["row"] != "labels"} == {workers}
    assert costs[0] == costs[1]


def test_samples_do_not_depend_on_how_a_run_is_cut(folder: Path, tmp_path: Path) -> None:
    costs = []
    for name, cuts in (("whole", [(64, 0)]), ("cut", [(1, 1), (1, 5), (None, 0)])):
        for batch, count in cuts:
            made(config(folder, tmp_path / name, "sample=2@3", batch=batch, count=count))
        found: dict[str, list[int]] = {}
        for x in lines(tmp_path / name / "runs.jsonl"):
            found.setdefault(x["set_name"] + x["row"], []).extend(x["costs"])
        costs.append(found)
    assert costs[0] == costs[1]


def test_samples_without_a_temperature_have_the_default_one(
    folder: Path, tmp_path: Path
) -> None:
    made(config(folder, tmp_path, "sample=4,sample=4@1,sample=4@30"))
    costs: dict[str, list[int]] = {}
    for x in lines(tmp_path / "runs.jsonl"):
        costs.setdefault(x["row"], []).extend(x["costs"])
    assert costs["sample=4"] == costs["sample=4@1"] != costs["sample=4@30"]


def test_a_faulty_plan_ends_it(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from arcfleet.solution.plan import from_plan

    def shorter(*arguments: Any) -> Any:
        from dataclasses import replace

        plan = from_plan(*arguments)
        return replace(plan, routes=plan.routes[1:])

    monkeypatch.setattr(measure, "from_plan", shorter)
    with pytest.raises(ArcfleetError, match="0 of task20-test by daam-po, found a"):
        made(config(folder, tmp_path, "daam-po"))
    assert [x["row"] for x in lines(tmp_path / "runs.jsonl")] == ["labels"] * 2


def test_wrong_inputs_are_named_before_anything_is_made(
    folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "results"
    tiny = str(folder / "tiny.safetensors")
    for message, what in (
        ("name of a row, got 'magic'", {"rows": ("magic",)}),
        ("'daam-sl' on task20, found none", {"rows": ("ps,daam-sl",)}),
        ("CUDA devices", {"rows": ("daam-po",), "device": "cuda:4000"}),
        ("one model file", {"rows": ("ps",), "models": (tiny, tiny)}),
        ("at least one test set", {"rows": ("ps",), "sets": ()}),
    ):
        rows: Any = what.pop("rows")
        with pytest.raises(OptionError, match=message):
            made(config(folder, out, *rows, **what))
    bad = (str(folder / "task20-test.npz"),)
    with pytest.raises(FileError, match="model file"):
        made(config(folder, out, "daam-po", models=bad))
    for wrong in ({"workers": 0}, {"verify": 0}, {"seed": -1}, {"batch": 0}):
        with pytest.raises(OptionError, match="whole number"):
            MeasureConfig(**wrong)  # type: ignore[arg-type]
    assert not out.exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot be made"):
        made(config(folder, tmp_path / "file", "ps"))
    bare = tmp_path / "bare.npz"
    shutil.copy(folder / "task20-test.npz", bare)
    unlabelled = table.Config(sets=(bare,), out=out, figures=False)
    with pytest.raises(FileError, match="expected labels to compare with, found none"):
        generalise.run(generalise.Config(comparison=unlabelled), Watch())
    assert not out.exists()


def test_default_rows_are_those_with_a_model(folder: Path, tmp_path: Path) -> None:
    # For one of the scales, which is not enough.
    model = f"daam-sl@task20={tiny_model_file(tmp_path)}"
    notes: list[str] = []
    tiny = str(folder / "tiny.safetensors")
    made(config(folder, tmp_path, models=(tiny, model), count=1), notes)
    assert notes[0] == "left out, without a model: daam-sl"
    rows = {x["row"].partition("=")[0] for x in lines(tmp_path / "runs.jsonl")}
    assert rows == set(TABLE_ROWS) - {"daam-sl"} | {"labels"}


def test_labels_name_the_training_of_a_model(folder: Path, tmp_path: Path) -> None:
    from arcfleet.neural.checkpoint import load_model, save_model

    model, _ = load_model(folder / "tiny.safetensors")
    for training in ("pretrain", "finetune"):
        save_model(model, tmp_path / f"{training}.safetensors", {"kind": training})

    def labels(sl: str, rl: str) -> list[str]:
        files = (f"daam-sl={tmp_path / sl}.safetensors", f"{tmp_path / rl}.safetensors")
        rows = ("daam-sl", "daam-sl-rl", "daam-po")
        what = config(folder, tmp_path / f"{sl}-{rl}", *rows, models=files, count=2)
        text = made(what).text().partition("Mean gap")[0]
        return [x[: x.index("  ")] for x in text.splitlines() if "DaAM" in x]

    assert labels("pretrain", "finetune") == ["DaAM SL", "DaAM SL+RL", "DaAM + PO"]
    assert labels("pretrain", "pretrain") == [
        "DaAM SL (daam-sl)",
        "DaAM SL (daam-sl-rl)",
        "DaAM + PO",
    ]


def test_quick_comparisons_with_figures(tmp_path: Path) -> None:
    """Every command that compares rows, from nothing but synthetic streets."""
    rows = table.Config(out=tmp_path, quick=True, measure=MeasureConfig(device="cpu"))
    done = {
        "table": table.run(rows, Watch()),
        "runtime": runtime.run(rows, Watch()),
        "pareto": pareto.run(pareto.Config(comparison=rows), Watch()),
        "generalise": generalise.run(
            generalise.Config(comparison=rows, seen=("synthetic",)), Watch()
        ),
    }
    for name, report in done.items():
        assert {path.suffix for path in report.files} == {
            *(".md", ".csv", ".tex", ".png", ".svg"),
        }
        for path in report.files:
            assert path.stem == name
            assert path.stat().st_size > 100
        assert len(report.facts()["files"]) == 5  # type: ignore[arg-type]
    assert "Which method when, without a GPU" in done["pareto"].text()
    alone = [x for x in lines(tmp_path / "runs.jsonl") if x["alone"]]
    assert {len(x["costs"]) for x in alone} == {4}
    markdown = (tmp_path / "table.md").read_text()
    for label in ("S2V-DQN", "VRP-DL", "DaAM SL+RL", "MAENS (20 iterations)"):
        assert f"| {label} | " in markdown
