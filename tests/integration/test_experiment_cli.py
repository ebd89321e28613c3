from __future__ import annotations

import csv
import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from arcfleet.cli.main import main
from arcfleet.datasets import Dataset, open_labels
from arcfleet.methods import solve
from arcfleet.paper import measure as chunk_makers
from arcfleet.paper.rows import TABLE_ROWS
from arcfleet.search.stop import Stop
from arcfleet.workers import child_seed
from tests.neural.labelled_towns import labelled_file
from tests.tiny_model import tiny_model_file

if TYPE_CHECKING:
    from pathlib import Path

QUICK = ("--judge", 3, "--device", "cpu", "--no-figures")
ROWS = "ps,ps-alt1=10,daam-sl-rl,daam-po,daam-directions,sample=2@0.5,maens=20,hybrid=20"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("experiment")
    tiny_model_file(folder)
    labelled_file(folder, "task20-test", count=6)
    labelled_file(folder, "task30-test", "task30", count=4)
    return folder


def experiment(name: str, folder: Path, *arguments: object) -> int:
    # In this process: importing torch anew for each call would take seconds.
    sets = [folder / "task20-test.npz", folder / "task30-test.npz"]
    every = ["experiment", name, *sets, "--model", folder / "tiny.safetensors"]
    return main([str(argument) for argument in (*every, *QUICK, *arguments)])


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_table_and_its_resumption(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "results"
    command = ("--out", out, "--rows", ROWS)
    assert experiment("table", folder, *command, "--search-count", 2) == 0
    shown = capsys.readouterr()
    chunks = lines(out / "runs.jsonl")
    assert len(chunks) == 2 * (8 + 1)  # one for the labels
    assert len(shown.err.splitlines()) == 2 * 8

    dataset = Dataset.open(folder / "task20-test.npz")
    labels = open_labels(folder / "task20-test.labels.npz", dataset)
    by_row = {x["row"]: x for x in chunks if x["set_name"] == "task20-test"}
    assert by_row["labels"]["costs"] == labels.cost.tolist()
    counts = {row: len(x["costs"]) for row, x in by_row.items()}
    assert (counts["maens=20"], counts["hybrid=20"], counts["ps"]) == (2, 2, 6)
    for chunk in by_row.values():
        assert chunk["judged"] >= min(3, len(chunk["costs"]))
        assert chunk["seconds"] > 0 or chunk["row"] == "labels"
    assert by_row["ps"]["source_sha256"] is None
    alone = solve(dataset[4], "ps-alt1", stop=Stop(iterations=10), seed=child_seed(0, 4))
    assert by_row["ps-alt1=10"]["costs"][4] == alone.cost
    assert all(
        x <= y
        for x, y in zip(
            by_row["daam-directions"]["costs"], by_row["daam-sl-rl"]["costs"], strict=True
        )
    )

    assert "MAENS (20 iterations)" in shown.out
    assert "95 % confidence interval" in shown.out
    assert "Seed 0." in shown.out
    with (out / "table.csv").open() as stream:
        records = list(csv.DictReader(stream))
    assert len(records) == 2 * 8
    assert (out / "table.tex").is_file()
    assert not (out / "table.png").exists()

    # Again: nothing is made, the tables are the same.
    data = (out / "runs.jsonl").read_bytes()
    assert experiment("table", folder, *command, "--search-count", 2) == 0
    again = capsys.readouterr()
    assert (again.out, again.err) == (shown.out, "")
    assert (out / "runs.jsonl").read_bytes() == data
    # A larger count keeps what is there; another experiment uses it, too.
    assert experiment("pareto", folder, *command, "--search-count", 3, "--json") == 0
    added = lines(out / "runs.jsonl")[len(chunks) :]
    assert {x["row"] for x in added} == {"maens=20", "hybrid=20"}
    assert {(x["first"], len(x["costs"])) for x in added} == {(2, 1)}
    facts = json.loads(capsys.readouterr().out)
    assert {record["scale"] for record in facts["records"]} == {"task30"}


def test_a_kill_costs_one_chunk(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ("--out", tmp_path, "--rows", "ps,sample=2", "--quiet")
    assert experiment("table", folder, *command) == 0
    runs = tmp_path / "runs.jsonl"
    whole = runs.read_bytes()
    runs.write_bytes(whole[:-30])
    capsys.readouterr()
    assert experiment("table", folder, *command[:-1]) == 0
    shown = capsys.readouterr()
    assert "dropped a line" in shown.err
    assert sum("instances" in line for line in shown.err.splitlines()) == 1
    for chunk, before in zip(lines(runs), whole.splitlines(), strict=True):
        assert chunk["costs"] == json.loads(before)["costs"]


def test_two_machines_make_one_table(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The learned rows here, the searches there, and once all in one place."""
    one, two, both, joined = (tmp_path / name for name in ("one", "two", "both", "joined"))
    for out, rows in (
        (one, "daam-po"),
        (two, "ps,maens=20"),
        (both, "ps,daam-po,maens=20"),
    ):
        command = ("--out", out, "--rows", rows, "--quiet")
        assert experiment("table", folder, *command) == 0
    capsys.readouterr()
    report = ["experiment", "report", "table", str(one), str(two), "--no-figures"]
    assert main([*report, "--out", str(joined)]) == 0
    first = capsys.readouterr().out
    assert main([*report[:3], str(both), "--no-figures", "--out", str(joined)]) == 0
    second = capsys.readouterr().out

    def costs(text: str) -> str:  # times differ from run to run
        return text.partition("Time per instance")[0]

    assert costs(first) == costs(second)
    assert "DaAM + PO" in costs(first)
    assert main([*report[:3], str(tmp_path), "--out", str(joined)]) == 1
    assert "runs.jsonl, found none" in capsys.readouterr().err


def test_another_model_makes_learned_rows_anew(folder: Path, tmp_path: Path) -> None:
    from arcfleet.neural.checkpoint import load_model, save_model

    command = ("--out", tmp_path, "--rows", "daam-sl-rl,ps", "--quiet")
    assert experiment("table", folder, *command) == 0
    model, _ = load_model(folder / "tiny.safetensors")
    other = tmp_path / "other.safetensors"
    save_model(model, other, {"another": True})
    every = ["experiment", "table", str(folder / "task20-test.npz")]
    for text in (other, f"daam@task20={other}"):
        arguments = [*every, "--model", text, *QUICK, *command]
        assert main([str(argument) for argument in arguments]) == 0
    rows = [chunk["row"] for chunk in lines(tmp_path / "runs.jsonl")]
    # Models first, then the searches.
    assert rows == ["labels"] * 2 + ["daam-sl-rl"] * 2 + ["ps"] * 2 + ["daam-sl-rl"]


def test_processes_change_no_cost(folder: Path, tmp_path: Path) -> None:
    rules = ["--rows", "ps-ellipse=5,maens=5", "--quiet", "--no-figures"]
    command = ["experiment", "table", str(folder / "task20-test.npz"), *rules]
    costs = []
    for workers in ("1", "2"):
        out = tmp_path / workers
        assert main([*command, "--workers", workers, "--out", str(out)]) == 0
        chunks = sorted(lines(out / "runs.jsonl"), key=lambda x: (x["row"], x["first"]))
        costs.append([x["costs"] for x in chunks])
        assert {x["parallel"] for x in chunks if x["row"] != "labels"} == {int(workers)}
    assert costs[0] == costs[1]


def test_draws_do_not_depend_on_how_a_run_is_cut(folder: Path, tmp_path: Path) -> None:
    rows = ("--rows", "sample=2@3,hybrid=40", "--quiet")
    costs = []
    for name, cuts in (
        ("whole", [("--batch", 64)]),
        ("cut", [("--batch", 1, "--count", 1), ("--batch", 1, "--count", 5), ()]),
    ):
        out = tmp_path / name
        for cut in cuts:
            assert experiment("table", folder, "--out", out, *rows, *cut) == 0
        found: dict[tuple[str, str], list[int]] = {}
        for chunk in lines(out / "runs.jsonl"):
            found.setdefault((chunk["set_name"], chunk["row"]), []).extend(chunk["costs"])
        costs.append(found)
    assert costs[0] == costs[1]


def test_samples_without_a_temperature_have_the_usual_one(
    folder: Path, tmp_path: Path
) -> None:
    rows = ("--rows", "sample=4,sample=4@0.7,sample=4@30", "--quiet")
    assert experiment("table", folder, "--out", tmp_path, *rows) == 0
    costs: dict[str, list[int]] = {}
    for chunk in lines(tmp_path / "runs.jsonl"):
        costs.setdefault(chunk["row"], []).extend(chunk["costs"])
    assert costs["sample=4"] == costs["sample=4@0.7"] != costs["sample=4@30"]


def test_times_are_those_of_the_processes_that_ran(folder: Path, tmp_path: Path) -> None:
    command = ("--out", tmp_path, "--workers", 3, "--quiet", "--search-count", 2)
    assert experiment("table", folder, *command, "--rows", "ps-ellipse=5,hybrid=5") == 0
    parallel = {(x["row"], x["parallel"]) for x in lines(tmp_path / "runs.jsonl")}
    # A chunk of each of the two test sets; two instances of the hybrid at a time.
    assert parallel == {("labels", 1), ("ps-ellipse=5", 2), ("hybrid=5", 2)}


def test_a_faulty_plan_ends_it(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from arcfleet.solution.plan import from_plan

    def dearer(*arguments: Any) -> Any:
        from dataclasses import replace

        plan = from_plan(*arguments)
        return replace(plan, routes=plan.routes[1:])

    monkeypatch.setattr(chunk_makers, "from_plan", dearer)
    assert experiment("table", folder, "--out", tmp_path, "--rows", "daam-po") == 1
    error = capsys.readouterr().err
    assert "instance 0 of task20-test by daam-po, found a fault" in error
    assert [x["row"] for x in lines(tmp_path / "runs.jsonl")] == ["labels"] * 2


def test_wrong_usage(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ("--out", tmp_path / "results")

    def error(*arguments: object) -> str:
        assert experiment("table", folder, *arguments) == 1
        (line,) = capsys.readouterr().err.splitlines()
        return line

    assert "name of a row, got 'magic'" in error(*out, "--rows", "magic")
    assert "'daam-sl' on task20, found none" in error(*out, "--rows", "ps,daam-sl")
    assert "CUDA devices" in error(*out, "--rows", "daam-po", "--device", "cuda:4000")
    assert "one model file" in error(*out, "--model", folder / "tiny.safetensors")
    (tmp_path / "file").write_text("")
    assert "cannot be made" in error("--out", tmp_path / "file", "--rows", "ps")
    bad = ["experiment", "table", str(folder / "task20-test.npz"), "--rows", "daam-po"]
    model = ["--model", str(folder / "task20-test.npz")]
    assert main([*bad, *model, *map(str, out)]) == 1
    assert "model file" in capsys.readouterr().err
    assert not (tmp_path / "results").exists()
    with pytest.raises(SystemExit):
        main(["experiment", "nothing-like-it"])


def test_folders_and_labels_are_looked_for_first(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert main(["experiment", "all", "--quick", "--out", str(tmp_path / "file/x")]) == 1
    assert "cannot be made" in capsys.readouterr().err
    bare = tmp_path / "bare.npz"
    shutil.copy(folder / "task20-test.npz", bare)
    out = tmp_path / "out"
    assert main(["experiment", "generalise", str(bare), "--out", str(out)]) == 1
    assert "expected labels to compare with, found none" in capsys.readouterr().err
    assert not out.exists()


def test_default_rows_are_those_with_a_model(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # For one of the scales, which is not enough.
    some = ("--model", f"daam-sl@task20={tiny_model_file(tmp_path)}")
    command = ("--out", tmp_path, "--count", 1, "--quiet", *some)
    assert experiment("table", folder, *command) == 0
    shown = capsys.readouterr()
    assert shown.err == "left out, without a model: daam-sl\n"
    rows = {x["row"].partition("=")[0] for x in lines(tmp_path / "runs.jsonl")}
    assert rows == set(TABLE_ROWS) - {"daam-sl"} | {"labels"}


def test_labels_say_how_a_model_was_trained(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from arcfleet.neural.checkpoint import load_model, save_model

    model, _ = load_model(folder / "tiny.safetensors")
    for kind in ("pretrain", "finetune"):
        save_model(model, tmp_path / f"{kind}.safetensors", {"kind": kind})
    every = ["experiment", "table", folder / "task20-test.npz", *QUICK, "--quiet"]
    every += ["--count", 2, "--rows", "daam-sl,daam-sl-rl,daam-po"]

    def labels(sl: str, rl: str) -> list[str]:
        files = [f"daam-sl={tmp_path / sl}.safetensors", tmp_path / f"{rl}.safetensors"]
        given = ["--model", files[0], "--model", files[1], "--out", tmp_path / f"{sl}-{rl}"]
        assert main([str(x) for x in (*every, *given)]) == 0
        text = capsys.readouterr().out.partition("Mean gap")[0]
        return [x.rpartition("  ")[0].strip() for x in text.splitlines() if "DaAM" in x]

    assert labels("pretrain", "finetune") == ["DaAM SL", "DaAM SL+RL", "DaAM + PO"]
    assert labels("pretrain", "pretrain") == [
        "DaAM SL (daam-sl)",
        "DaAM SL (daam-sl-rl)",
        "DaAM + PO",
    ]


def test_the_whole_chain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every experiment with its figures, from nothing but synthetic streets."""
    out = tmp_path / "all"
    command = ["experiment", "all", "--quick", "--out", str(out)]
    assert main(command) == 0
    shown = capsys.readouterr()
    names = ("table", "runtime", "pareto", "generalise", "ablation", "scenes")
    for name in (*names, "ablation-convergence", "convergence"):
        for suffix in (".md", ".csv", ".tex", ".png", ".svg"):
            assert (out / f"{name}{suffix}").stat().st_size > 100
    assert "Which method when, without a GPU" in shown.out
    table = (out / "table.md").read_text()
    for label in ("S2V-DQN", "VRP-DL", "DaAM SL"):
        assert f"| {label} | " in table
    assert "(n=6)" not in table.partition("Mean gap")[0]  # costs are of all ten
    # The gaps to the best known are those of the labelled beginning.
    assert "| instances | n=6 | n=6 |" in table
    assert "pretrain steps 3" in (out / "ablation.md").read_text()
    alone = [x for x in lines(out / "runs.jsonl") if x["alone"]]
    assert {len(x["costs"]) for x in alone} == {3}

    # Again: all is there, nothing is solved or trained.
    stores = ("runs", "generalise", "ablation", "scenes")
    before = {name: (out / f"{name}.jsonl").read_bytes() for name in stores}
    models = {path: path.stat().st_mtime_ns for path in out.rglob("model.safetensors")}
    assert len(models) == 4 + 2 * 3
    assert main([*command, "--no-figures"]) == 0
    assert {name: (out / f"{name}.jsonl").read_bytes() for name in stores} == before
    assert {path: path.stat().st_mtime_ns for path in models} == models
