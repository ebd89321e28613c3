import json
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from arcfleet import (
    METHODS,
    Instance,
    Link,
    Progress,
    Solution,
    Stop,
    check,
    read,
    read_solution,
    write,
)
from arcfleet.methods import has_model
from arcfleet.search import ProgressCallback
from arcfleet.solution import checker
from tests.cli.running import VILLAGE, arcfleet, one_sentence


def test_every_method_has_a_row_and_the_best_plan_is_written(tmp_path: Path) -> None:
    out, picture, page = (tmp_path / f"best.{suffix}" for suffix in ("json", "png", "html"))
    ran = arcfleet(
        "compare",
        *(VILLAGE, "--time", 0.3, "--seed", 2),
        *("--out", out, "--plot", picture, "--html", page),
    )
    assert ran.returncode == 0
    # Whether the time is enough for a learned plan is the machine's business.
    assert all("without a learned plan" in line for line in ran.stderr.splitlines())
    header, _, *lines = ran.stdout.splitlines()
    columns = ["method", "cost", "deadhead", "routes", "gap to best", "seconds", "verified"]
    assert re.split("  +", header) == columns
    rows = [re.split("  +", line.strip()) for line in lines]
    assert {row[0].removesuffix(" (by ps)") for row in rows} == {
        name
        for name, method in METHODS.items()
        if method.model_type is None or has_model(method.model_type)
    }
    costs = [int(row[1]) for row in rows]
    assert costs == sorted(costs)
    assert rows[0][4] == "0.00 %"
    assert {row[-1] for row in rows} == {"ok"}
    instance = read(VILLAGE)
    best = read_solution(out, instance)
    assert check(instance, best).ok
    assert best.cost == costs[0]
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "</html>" in page.read_text(encoding="utf-8")


def test_json_of_chosen_methods() -> None:
    ran = arcfleet("compare", VILLAGE, "--methods", "ps, ps-alt1,ps", "--time", 5, "--json")
    facts = json.loads(ran.stdout)
    first, second = facts["methods"]
    assert (first["method"], second["method"]) == ("ps", "ps-alt1")
    best = min(first, second, key=lambda row: row["cost"])
    assert (facts["instance"], facts["best"]) == ("village", best["method"])
    for row in (first, second):
        gap = 100 * (row["cost"] - best["cost"]) / best["cost"]
        assert row["gap_percent"] == pytest.approx(gap)
        assert row["ok"] is True
        # Path scanning ends by its number of plans, not by the time.
        assert row["stopped_by"] == "iterations"


def test_a_method_without_a_plan_is_a_row_and_not_the_end(tmp_path: Path) -> None:
    # Path scanning serves both near streets first, and then two routes are too few.
    tight = tmp_path / "tight.json"
    write(
        Instance(
            name="tight",
            nodes=tuple(range(7)),
            links=(
                *(Link(tail=0, head=n, cost=1, required=True, demand=4) for n in (1, 2)),
                *(Link(tail=0, head=n, cost=99) for n in (3, 4)),
                Link(tail=3, head=5, cost=1, required=True, demand=6),
                Link(tail=4, head=6, cost=1, required=True, demand=6),
            ),
            depot=0,
            capacity=10,
            fleet_limit=2,
        ),
        tight,
    )
    compare = ("compare", tight, "--methods", "ps,ruin-recreate", "--time", 0.5)
    ran = arcfleet(*compare, "--json")
    scanning, search = json.loads(ran.stdout)["methods"]
    assert search["ok"] is True
    assert search["num_routes"] == 2
    assert scanning["failure"].startswith("found no plan")
    assert ran.stderr.startswith("arcfleet: ps: found no plan")
    assert ran.returncode == 1
    table = arcfleet(*compare).stdout.splitlines()
    assert table[-1].split() == ["ps", *"-----", "no", "plan"]


def test_a_faulty_plan_is_told_and_never_the_best(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    honest = checker.check

    def judge(instance: Instance, solution: Solution) -> checker.Report:
        report = honest(instance, solution)
        judged.append(solution.cost)
        if len(judged) == 1:
            return checker.Report(
                faults=("made up",), cost=None, deadhead=None, service_cost=None
            )
        return report

    judged: list[int] = []
    monkeypatch.setattr(checker, "check", judge)
    ran = arcfleet("compare", VILLAGE, "--methods", "ps-alt1,ps", "--json")
    assert ran.returncode == 1
    facts: dict[str, Any] = json.loads(ran.stdout)
    assert facts["best"] == "ps"
    assert [row["ok"] for row in facts["methods"]] == [False, True]
    assert ran.stderr == "arcfleet: ps-alt1: made up\n"


def test_ctrl_c_keeps_what_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def interrupting(stop: Stop, *, hidden: bool) -> Iterator[ProgressCallback]:
        def told(progress: Progress) -> None:
            if progress.cost is not None and stop.iterations is None:  # not path scanning
                signal.raise_signal(signal.SIGINT)

        yield told

    monkeypatch.setattr("arcfleet.cli.solve.search_progress", interrupting)
    options = ("--time", 1000, "--json", "--methods", "ps,maens,ps-alt1")
    ran = arcfleet("compare", VILLAGE, *options)
    assert ran.returncode == 0, ran.stderr
    rows = json.loads(ran.stdout)["methods"]
    assert [row["method"] for row in rows] == ["ps", "maens"]
    assert rows[1]["stopped_by"] == "interrupt"
    assert all(row["ok"] for row in rows)
    assert "interrupted after 2 of 3 methods" in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--methods", "ps,ps-alt3"], "did you mean 'ps-alt2'"),
        (["--out", "no/plan.json"], "create it first"),
        (["--plot", "plan.gif"], "plan.gif"),
        (["--out", "same.json", "--plot", "same.json"], "expected different files"),
    ],
)
def test_errors_come_before_the_searches(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    outputs = [tmp_path / word if "." in word else word for word in arguments]
    ran = arcfleet("compare", VILLAGE, "--time", 100, *outputs)
    assert message in one_sentence(ran)
    assert list(tmp_path.iterdir()) == []


def test_an_instance_without_a_plan_is_one_sentence(tmp_path: Path) -> None:
    small = tmp_path / "small.json"
    small.write_text(json.dumps(json.loads(VILLAGE.read_text()) | {"capacity": 1}))
    assert "cannot be solved" in one_sentence(arcfleet("compare", small))


def test_methods_that_cannot_plan_with_operations_are_skipped(tmp_path: Path) -> None:
    scene = tmp_path / "scene.json"
    write(replace(read(VILLAGE), max_route_cost=20_000), scene)
    ran = arcfleet("compare", scene, "--time", 0.2, "--json")
    assert ran.returncode == 0, ran.stderr
    assert "skipped maens, " in ran.stderr
    assert "which cannot plan with a longest route" in ran.stderr
    able = {name for name, method in METHODS.items() if method.operations}
    assert {one["method"] for one in json.loads(ran.stdout)["methods"]} == able
    ran = arcfleet("compare", scene, "--time", 0.2, "--methods", "ruin-recreate,maens")
    assert ran.returncode == 1
    assert "got 'maens': use 'ruin-recreate'" in ran.stderr
