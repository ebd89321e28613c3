import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from arcfleet import Stop, check, read, solve
from arcfleet.batch_file import PLANS
from arcfleet.datasets.dataset import Dataset
from arcfleet.datasets.store import read_records
from arcfleet.solution.files import read_solution
from arcfleet.workers import child_seed
from tests.cli.running import VILLAGE, arcfleet, on_a_terminal, one_sentence, succeeded
from tests.helpers import MIXED, SMALL
from tests.tiny_model import tiny_model_file

LIMIT = ("--iterations", 200)


@pytest.fixture
def towns(tmp_path: Path) -> list[Path]:
    """Seven files, of three towns."""
    folder = tmp_path / "towns"
    folder.mkdir()
    for number, source in enumerate([SMALL, MIXED, VILLAGE] * 2 + [SMALL]):
        shutil.copy(source, folder / f"town{number}{source.suffix}")
    return sorted(folder.iterdir())


def solve_many(*words: object) -> str:
    return succeeded("solve-many", *words, "--quiet")


def lines(path: Path) -> list[dict[str, Any]]:
    """Return what the lines state but for their times."""
    header, *records = (json.loads(line) for line in path.read_text().splitlines())
    assert header["format"] == "arcfleet-plans-1"
    return [
        {name: x for name, x in record.items() if name not in ("seconds", "crc32")}
        for record in records
    ]


def test_every_plan_is_that_of_its_child_seed_and_is_valid(
    towns: list[Path], tmp_path: Path
) -> None:
    out = tmp_path / "plans.jsonl"
    shown = solve_many(*towns, *LIMIT, "--seed", 5, "--workers", 2, "--out", out)
    assert "7 plans, mean cost " in shown
    for line in read_records(out, PLANS):
        instance = read(towns[line.position])
        expected = solve(
            instance, stop=Stop(iterations=200), seed=child_seed(5, line.position)
        )
        assert (line.instance, line.cost) == (instance.name, expected.cost)
        assert line.source == towns[line.position].name
        file = tmp_path / "plan.json"
        file.write_text(json.dumps(line.plan))
        report = check(instance, read_solution(file, instance))
        assert (report.ok, report.cost) == (True, line.cost)
        succeeded("check", towns[line.position], file)


@pytest.mark.parametrize("of", [1, 3, 10])
def test_merged_parts_are_the_file_of_all(
    towns: list[Path], tmp_path: Path, of: int
) -> None:
    whole, merged = tmp_path / "whole.jsonl", tmp_path / "merged.jsonl"
    solve_many(*towns, *LIMIT, "--out", whole)
    parts = [tmp_path / f"part{number}.jsonl" for number in range(1, of + 1)]
    for number, part in enumerate(parts, start=1):
        solve_many(*towns, *LIMIT, "--shard", f"{number}/{of}", "--out", part)
    shown = succeeded("merge", merged, *reversed(parts))
    assert shown == f"{merged}: 7 instances of {of} part{'s' * (of > 1)}\n"
    assert lines(merged) == sorted(lines(whole), key=lambda x: x["position"])
    assert merged.read_text().splitlines()[0] == whole.read_text().splitlines()[0]
    data = merged.read_bytes()
    solve_many(*towns, *LIMIT, "--out", merged)
    assert merged.read_bytes() == data  # all of it was reused
    refused = one_sentence(arcfleet("merge", merged, *parts))
    assert "no file of that name yet" in refused
    assert merged.read_bytes() == data


def test_a_cut_file_is_resumed(towns: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "plans.jsonl"
    command = ("solve-many", *towns, *LIMIT, "--out", out, "--quiet")
    succeeded(*command)
    data, expected = out.read_bytes(), lines(out)
    out.write_bytes(data[:-50])
    ran = arcfleet(*command)
    assert (ran.returncode, "dropped a line" in ran.stderr) == (0, True)
    assert lines(out) == expected


def test_changed_and_failed_instances_are_solved_again(
    towns: list[Path], tmp_path: Path
) -> None:
    out = tmp_path / "plans.jsonl"
    command = ("solve-many", *towns, *LIMIT, "--out", out, "--quiet")
    good = towns[3].read_bytes()
    towns[3].write_text("NOMBRE : bad\n")
    towns[4].unlink()
    ran = arcfleet(*command, "--json")
    assert ran.returncode == 1
    facts = json.loads(ran.stdout)
    assert (facts["instances"], facts["plans"], len(facts["failed"])) == (7, 5, 2)
    assert all(towns[x].name in ran.stderr for x in (3, 4))
    towns[3].write_bytes(good)
    shutil.copy(MIXED, towns[4])
    shutil.copy(VILLAGE, towns[2].with_name("other.json"))
    text = towns[2].read_text().replace('"capacity": ', '"capacity": 1')
    towns[2].write_text(text)
    succeeded(*command)
    latest = {x["position"]: x for x in lines(out)}
    assert all(x["error"] is None for x in latest.values())
    assert [x["position"] for x in lines(out)] == [*range(7), 2, 3, 4]
    assert check(read(towns[2]), _plan(out, 2, towns[2], tmp_path)).ok


def _plan(out: Path, position: int, town: Path, folder: Path) -> Any:
    line = [x for x in read_records(out, PLANS) if x.position == position][-1]
    (folder / "p.json").write_text(json.dumps(line.plan))
    return read_solution(folder / "p.json", read(town))


def test_a_failure_is_an_outcome_for_merge(towns: list[Path], tmp_path: Path) -> None:
    towns[3].write_text("NOMBRE : bad\n")
    parts = [tmp_path / f"{number}.jsonl" for number in (1, 2)]
    codes = [
        arcfleet(
            *("solve-many", *towns, *LIMIT, "--out", part, "--quiet"),
            *("--shard", f"{number}/2"),
        ).returncode
        for number, part in enumerate(parts, start=1)
    ]
    assert sorted(codes) == [0, 1]
    shown = succeeded("merge", tmp_path / "all.jsonl", *parts)
    assert "7 instances of 2 parts, 1 of them without a plan" in shown


def test_other_settings_are_refused(towns: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "plans.jsonl"
    solve_many(*towns, *LIMIT, "--out", out)
    data = out.read_bytes()
    for words, what in (
        (("--iterations", 201), "stop_rule"),
        ((*LIMIT, "--seed", 1), "seed"),
        ((*LIMIT, "--method", "ps"), "method"),
        ((*LIMIT, "--set", "blink_rate=0.02"), "settings"),
        ((*LIMIT, "--shard", "1/2"), "shard"),
    ):
        ran = arcfleet("solve-many", *towns, *words, "--out", out, "--quiet")
        assert what in one_sentence(ran)
    ran = arcfleet("solve-many", *towns[1:], *LIMIT, "--out", out, "--quiet")
    assert "the same instances" in one_sentence(ran)
    for name in ("plans.jsonl", "town0.dat"):
        part = out if name == "plans.jsonl" else towns[0]
        refused = one_sentence(arcfleet("merge", tmp_path / "m.jsonl", part))
        assert "--shard, found" in refused
    assert out.read_bytes() == data
    assert not (tmp_path / "m.jsonl").exists()


def test_data_sets_and_files_together(towns: list[Path], tmp_path: Path) -> None:
    data, out = tmp_path / "d.npz", tmp_path / "plans.jsonl"
    succeeded("dataset", "make", "task20", "--count", 5, "-o", data, "--quiet")
    solve_many(towns[0], data, *LIMIT, "--out", out)
    found = read_records(out, PLANS)
    assert [x.source for x in found] == ["town0.dat", *(f"d.npz#{i}" for i in range(5))]
    dataset = Dataset.open(data)
    expected = solve(dataset[2], stop=Stop(iterations=200), seed=child_seed(0, 3))
    assert found[3].cost == expected.cost


def test_learned_methods_solve_their_part_in_batches(tmp_path: Path) -> None:
    data, model = tmp_path / "d.npz", tiny_model_file(tmp_path)
    succeeded("dataset", "make", "task20", "--count", 6, "-o", data, "--quiet")
    words = (data, "--method", "daam-greedy", "--model", model, "--device", "cpu")
    parts = [tmp_path / f"{number}.jsonl" for number in (1, 2)]
    for number, part in enumerate(parts, start=1):
        solve_many(*words, "--shard", f"{number}/2", "--out", part)
    shown = succeeded("merge", tmp_path / "all.jsonl", *parts)
    assert "6 instances" in shown


def test_ctrl_c_keeps_what_is_finished(towns: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "plans.jsonl"
    command = ["solve-many", *towns, "--out", out]
    code, shown, told = on_a_terminal(
        *command, "--time", 0.5, interrupt_at=b"1 of 7 instances"
    )
    assert code == 1
    assert b"the same command resumes from" in told
    kept = len(read_records(out, PLANS))
    assert 1 <= kept < 7
    assert f"{kept} plan" in shown
    succeeded(*command, "--time", 0.5, "--quiet")
    assert sorted(x.position for x in read_records(out, PLANS)) == list(range(7))


def test_labels_of_parts_are_the_labels(tmp_path: Path) -> None:
    data = tmp_path / "d.npz"
    succeeded("dataset", "make", "task20", "--count", 40, "-o", data, "--quiet")
    label = ("dataset", "label", data, "--iterations", 25_000, "--quiet")
    parts = [tmp_path / f"{number}.jsonl" for number in range(1, 4)]
    for number, part in enumerate(parts, start=1):
        words = (*label, "--shard", f"{number}/3", "-o", part)
        count = json.loads(succeeded(*words, "--json"))["labels"]
        before = part.read_bytes()
        assert json.loads(succeeded(*words, "--json"))["labels"] == count
        assert part.read_bytes() == before
    merged, whole = tmp_path / "merged.npz", tmp_path / "d.labels.npz"
    assert "40 labels of 3 parts" in succeeded("merge", merged, *parts)
    succeeded(*label)
    assert merged.read_bytes() == whole.read_bytes()
    refused = one_sentence(arcfleet("merge", tmp_path / "m.jsonl", *parts))
    assert ".npz" in refused
    refused = one_sentence(arcfleet(*label, "--shard", "1/3"))
    assert "expected --out" in refused
    parts[1].write_bytes(parts[1].read_bytes()[:-50])
    ran = arcfleet("merge", tmp_path / "again.npz", *parts)
    assert ran.returncode == 1
    assert "run its command again, which resumes" in ran.stderr


def test_runs_of_parts_are_the_runs(towns: list[Path], tmp_path: Path) -> None:
    suite = tmp_path / "suite.toml"
    suite.write_text('folder = "towns"\n[[sets]]\nname = "s"\nfiles = ["town*"]\n')
    bench = ("bench", suite, "--methods", "auto,ps", "--time", 0.02, "--quiet")
    parts = [tmp_path / f"{number}.jsonl" for number in range(1, 4)]
    for number, part in enumerate(parts, start=1):
        succeeded(*bench, "--shard", f"{number}/3", "--out", part)
    merged = tmp_path / "runs.jsonl"
    assert "14 runs of 3 parts" in succeeded("merge", merged, *parts)
    data = merged.read_bytes()
    rows = json.loads(succeeded(*bench, "--out", merged, "--json"))["rows"]
    assert sum(row["runs"] for row in rows) == 14
    assert merged.read_bytes() == data
    refused = one_sentence(arcfleet(*bench, "--out", parts[0]))
    assert "with the same" in refused  # a part takes no runs of other parts
    other = tmp_path / "other.jsonl"
    succeeded(*bench, "--seeds", 2, "--shard", "3/3", "--out", other)
    refused = one_sentence(arcfleet("merge", tmp_path / "m.jsonl", *parts[:2], other))
    assert "the same seeds and runs as in" in refused


def test_costs_of_parts_are_the_costs(tmp_path: Path) -> None:
    data = tmp_path / "d.npz"
    succeeded("dataset", "make", "task20", "--count", 30, "-o", data, "--quiet")
    succeeded("dataset", "label", data, "--iterations", 50, "--quiet")
    model = tiny_model_file(tmp_path)
    rows = ("--rows", "ps", "ruin-recreate=30", "daam-greedy", "--models", f"daam={model}")
    table = ("paper", "table", data, *rows, "--device", "cpu", "--no-figures", "--quiet")
    parts = [tmp_path / f"part{number}" for number in range(1, 3)]
    for number, part in enumerate(parts, start=1):
        words = (*table, "--batch", 2, "--shard", f"{number}/2", "--out", part)
        assert f"plans of part {number}/2" in succeeded(*words)
        assert [x.name for x in part.iterdir()] == ["runs.jsonl"]
    folders = [tmp_path / "merged", tmp_path / "whole"]
    folders[0].mkdir()
    stores = [part / "runs.jsonl" for part in parts]
    merged = folders[0] / "runs.jsonl"
    assert "120 plans of 2 parts" in succeeded("merge", merged, *stores)
    before = merged.read_bytes()
    for folder in folders:
        succeeded(*table, "--out", folder)
    assert merged.read_bytes() == before
    costs = [(x / "table.md").read_text().split("## Time per")[0] for x in folders]
    assert costs[0] == costs[1]
    refused = one_sentence(arcfleet(*table, "--out", tmp_path / "x", "--shard", "3/2"))
    assert "as in 3/10" in refused
