"""Lines of the page on drivable plans: finished ones are reused, speeds are replaced."""

from pathlib import Path

import pytest

from arcfleet import _core
from arcfleet.errors import SolutionError
from arcfleet.instance import Instance
from arcfleet.solution.checker import Report
from benchmarks import drivable, drive_area, engine_speed, street_maps, turns_on_maps
from benchmarks.drivable import (
    ENGINE_SPEEDS,
    FREE,
    MARGIN_PLANS,
    READING_TIMES,
    TURN_COUNTS,
    EngineSpeed,
    TurnCount,
    drivable_report,
    make_missing,
    read_lines,
    replace_lines,
    solve_verified,
)
from tests.shared_data import maps_dir, shared_dir


def turn_count(
    map_name: str, rules: str, seed: int, iterations: int, **here: str
) -> TurnCount:
    obeys = rules != FREE
    return TurnCount(
        map_name=map_name,
        rules=rules,
        seed=seed,
        iterations=iterations,
        **here,
        capacity=9000,
        tasks=50,
        routes=2,
        cost=10_100 + 100 * (seed - 1) if obeys else 10_000,
        deadhead=1200 if obeys else 1000,
        signs=int(map_name == "a.osm"),
        turns=100,
        forbidden=0 if obeys else seed,
        doubtful=0,
        u_turns=10,
        u_turns_elsewhere=0 if obeys else 4,
        lost=0,
    )


KEYS = [
    (name, rules, seed, 10)
    for name in ("a.osm", "b")
    for seed in (1, 2)
    for rules in (FREE, "osm")
]


def test_the_table_of_turns_compares_plans_without_and_with_rules() -> None:
    made = drivable_report(TURN_COUNTS, make_missing(TURN_COUNTS, None, KEYS, turn_count))
    percents = ("+1.5 %", "+1.0 % to +2.0 %", "+20.0 %")
    assert made.sections[0].rows == [
        ["a", "1", "50", "1.5 → 0", "0 → 0", "4 → 0", "10.0", *percents],
        ["b", "0", "50", None, None, "4 → 0", "10.0", *percents],
    ]
    assert "10 iterations each; capacity 9,000 m; mean of seeds 1, 2;" in made.caption
    assert "turns_on_maps --iterations 10 --seeds 1 2 --out" in made.details[0]


def test_finished_lines_are_reused(tmp_path: Path) -> None:
    first = make_missing(TURN_COUNTS, tmp_path, KEYS[:3], turn_count)
    made = []

    def count_and_make(*key: object, **here: str) -> TurnCount:
        made.append(key)
        return turn_count(*key, **here)  # type: ignore[arg-type]

    every = make_missing(TURN_COUNTS, tmp_path, KEYS, count_and_make)
    assert made == KEYS[3:]
    assert every[:3] == first
    assert read_lines(TURN_COUNTS, tmp_path) == every


def speed(method: str, speed_with: float) -> EngineSpeed:
    return EngineSpeed(
        method=method,
        instance="i",
        seed=1,
        turns=3,
        iterations=10,
        machine="m",
        commit="c",
        speed_without=2000.0,
        speed_with=speed_with,
        ratio_quartiles=(0.4, 0.5, 0.6),
    )


def test_a_later_speed_replaces_an_earlier_one(tmp_path: Path) -> None:
    replace_lines(ENGINE_SPEEDS, tmp_path, [speed("x", 900.0), speed("y", 800.0)])
    replace_lines(ENGINE_SPEEDS, tmp_path, [speed("x", 1000.0)])
    found = read_lines(ENGINE_SPEEDS, tmp_path)
    assert found == [speed("y", 800.0), speed("x", 1000.0)]
    rows = drivable_report(ENGINE_SPEEDS, found).sections[0].rows
    assert rows[1] == ["`x`", "i", "2,000", "1,000", "0.50", "0.40 to 0.60"]


def test_a_faulty_plan_is_no_measurement(
    small: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert solve_verified(small, 10, seed=1).cost > 0
    faulty = Report(faults=("a fault",), cost=None, deadhead=None, service_cost=None)
    monkeypatch.setattr(drivable, "check", lambda instance, plan: faulty)
    with pytest.raises(SolutionError, match="faulty plan: a fault"):
        solve_verified(small, 10, seed=1)


def test_plans_of_a_map_serve_the_same_streets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    maps_dir()
    turns_on_maps.main(["--quick", "--out", str(tmp_path)])
    free, obeying = read_lines(TURN_COUNTS, tmp_path)
    assert (free.rules, obeying.rules) == (FREE, turns_on_maps.RULES)
    assert free.tasks == obeying.tasks
    assert free.forbidden > 0 < free.u_turns_elsewhere
    assert obeying.forbidden == obeying.doubtful == obeying.u_turns_elsewhere == 0
    assert free.lost == obeying.lost == 0
    shown = capsys.readouterr().out
    turns_on_maps.main(["--quick", "--out", str(tmp_path)])
    assert capsys.readouterr().out == shown


def test_plans_of_a_box_compare_by_the_same_streets(tmp_path: Path) -> None:
    maps_dir()
    drive_area.main(["--quick", "--out", str(tmp_path)])
    plans = read_lines(MARGIN_PLANS, tmp_path)
    assert len({plan.tasks for plan in plans if not plan.all_tasks}) == 1
    cut, wider = plans[0], plans[-1]
    assert cut.served < cut.to_serve == wider.to_serve == wider.served


def test_speeds_with_turn_rules_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared_dir()
    monkeypatch.setitem(engine_speed.TURNS, "ruin-recreate", (3, 3))
    build = Path(_core.__file__)
    found = engine_speed.compare(
        build,
        build,
        "ruin-recreate",
        engine_speed.INSTANCES[0],
        turns=2,
        new_suffix=engine_speed.WITH_TURNS,
    )
    engine_speed.keep(found, tmp_path, {"machine": "m", "commit": "c"})
    (line,) = read_lines(ENGINE_SPEEDS, tmp_path)
    assert (line.instance, line.turns, line.iterations) == ("egl-s4-A", 2, 3)


def test_times_of_reading_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    maps_dir()
    monkeypatch.setattr(street_maps, "ROUNDS", 1)
    street_maps.main(["--out", str(tmp_path)])
    lines = read_lines(READING_TIMES, tmp_path)
    assert [x.map_name for x in lines] == [*street_maps.EXTRACTS, street_maps.CITY]
