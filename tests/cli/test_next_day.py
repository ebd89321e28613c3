import json
from dataclasses import replace
from pathlib import Path

import pytest

from arcfleet import Assignment, check, exclude, read, read_solution, write
from tests.cli.running import VILLAGE, arcfleet, one_sentence, succeeded
from tests.hauling_plans import hauling_town
from tests.helpers import star

_NO_TEXT = "expected a .json file for a plan with several vehicle types, which a text"


@pytest.fixture(scope="module")
def yesterday(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("plans") / "yesterday.json"
    succeeded("solve", VILLAGE, "--iterations", 200, "--out", out)
    return out


def test_a_plan_is_repaired_kept_and_compared(yesterday: Path, tmp_path: Path) -> None:
    today, scene = tmp_path / "today.json", tmp_path / "scene.json"
    ran = arcfleet(
        *("solve", VILLAGE, "--start", yesterday, "--exclude-name", "mill lane"),
        *("--iterations", 50, "--out", today, "--out-instance", scene),
    )
    assert ran.returncode == 0
    assert ran.stderr == (
        f"arcfleet: repaired {yesterday}: dropped 5 streets, recomputed the totals\n"
    )
    instance = read(scene)
    assert not any(x.required for x in instance.links if x.name == "Mill Lane")
    assert check(instance, read_solution(today, instance)).ok
    text = succeeded("diff", VILLAGE, yesterday, today, "--match-routes")
    assert "Mill Lane" in text
    picture = tmp_path / "moved.png"
    options = ("--old-instance", VILLAGE, "--plot", picture, "--json")
    facts = json.loads(succeeded("diff", scene, yesterday, today, *options))
    assert len(facts["removed"]) == 5
    assert picture.stat().st_size


def test_what_is_kept_is_written_into_the_instance(yesterday: Path, tmp_path: Path) -> None:
    scene = tmp_path / "scene.json"
    plan = read_solution(yesterday, read(VILLAGE))
    link = plan.routes[1].services[0].link
    ran = arcfleet(
        *("solve", VILLAGE, "--start", yesterday, "--keep", 50, "--lock", "1"),
        *("--pin", f"link:{link}=2", "--iterations", 5, "--out-instance", scene, "--quiet"),
    )
    assert ran.returncode == 0, ran.stderr
    instance = read(scene)
    assert instance.change_price == 50
    assert len(instance.previous) == len(instance.required)
    assert [one.route for one in instance.locks] == [1]
    assert instance.pins == (Assignment(link, 2),)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--pin", "Mill Lane=1", "--pin", "MILL LANE=2"], "for route 1 and for route 2"),
        (["--pin", "Mill Lane=77"], "got 77 for link 0"),
        (["--lock", "77"], "expected the number of a route to lock, got 77"),
        (["--exclude-name", "Mil Lane"], "did you mean 'Mill Lane' or"),
        (["--pin", "Nowhere at all=1"], "check its spelling"),
    ],
)
def test_bad_input_is_one_sentence_and_nothing_is_written(
    yesterday: Path, tmp_path: Path, words: list[str], message: str
) -> None:
    out = tmp_path / "today.json"
    ran = arcfleet("solve", VILLAGE, "--start", yesterday, *words, "--out", out)
    assert message in one_sentence(ran)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("command", "words", "message"),
    [
        *[
            (command, ["--out", "x.txt"], _NO_TEXT)
            for command in ("solve", "compare", "edit")
        ],
        *[
            (command, ["--out-instance", name], message)
            for command in ("solve", "edit")
            for name, message in (
                (
                    "x.txt",
                    "got vehicle types in instance 'village'; write a .json file instead",
                ),
                ("x.jsn", "did you mean .json?"),
            )
        ],
    ],
)
def test_a_file_that_cannot_hold_the_result_is_refused_before_the_search(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    words: list[str],
    message: str,
) -> None:
    town, plan = tmp_path / "town.json", tmp_path / "plan.json"
    write(hauling_town(read(VILLAGE)), town)
    more = ["--time", "600"]
    if command == "edit":
        succeeded("solve", town, "--iterations", 5, "--out", plan)
        more = [str(plan), "--remove", "Mill Lane", *more]
    monkeypatch.chdir(tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    ran = arcfleet(command, town, *more, *words)
    assert message in ran.stderr
    assert (ran.returncode, ran.stdout) == (1, "")
    assert {path.name for path in tmp_path.iterdir()} == names


def test_a_plan_without_excluded_streets_needs_its_instance(tmp_path: Path) -> None:
    out = tmp_path / "x.json"
    words = ("solve", VILLAGE, "--iterations", 1, "--exclude-name", "mill lane")
    line = f"{out} belongs to the instance with these changes; --out-instance writes it"
    assert arcfleet(*words, "--out", out).stderr == f"arcfleet: {line}\n"
    assert arcfleet(*words).stderr == ""


def test_a_text_numbers_the_routes_anew(yesterday: Path, tmp_path: Path) -> None:
    # Route 1 of yesterday is gone, so that the numbers begin with 2.
    plan = json.loads(yesterday.read_text())
    gone = plan["routes"].pop(0)
    numbers = list(range(2, 2 + len(plan["routes"])))
    for route, number in zip(plan["routes"], numbers, strict=True):
        route["number"] = number
    start, town, out = (tmp_path / name for name in ("start.json", "town.json", "x.txt"))
    start.write_text(json.dumps(plan | {"version": 3}))
    excluded = {service["link"] for service in gone["services"]}
    write(exclude(read(VILLAGE), excluded), town)
    ran = arcfleet(
        "solve", town, "--start", start, "--iterations", 1, "--out", out, "--quiet"
    )
    assert ran.returncode == 0
    line = f"{out}: the text form numbers routes by their position: route 2 is 1 there"
    assert line in ran.stderr
    assert check(read(town), read_solution(out, read(town))).ok


@pytest.mark.parametrize("option", ["--keep", "--lock", "--old-instance"])
def test_options_of_a_start_need_one(option: str) -> None:
    value = VILLAGE if option == "--old-instance" else 3
    ran = arcfleet("solve", VILLAGE, option, value)
    assert f"expected --start with {option}, got none" in one_sentence(ran)


def test_with_a_start_only_a_method_that_takes_it_is_named(yesterday: Path) -> None:
    ran = arcfleet("solve", VILLAGE, "--start", yesterday, "--keep", 3, "--method", "maens")
    assert one_sentence(ran).endswith("got 'maens': use 'ruin-recreate'")


def test_a_plan_of_another_town_is_one_sentence(yesterday: Path, tmp_path: Path) -> None:
    other, out = tmp_path / "other.json", tmp_path / "today.json"
    write(replace(star(1, 1), name="village"), other)
    ran = arcfleet("solve", other, "--start", yesterday, "--out", out)
    assert "add --old-instance" in one_sentence(ran)
    village = read(VILLAGE)
    write(replace(village, links=village.links[1:] + village.links[:1]), other)
    ran = arcfleet("solve", other, "--start", yesterday, "--out", out)
    assert "add --old-instance" in one_sentence(ran)
    ran = arcfleet("diff", other, yesterday, yesterday)
    assert "add --old-instance" in one_sentence(ran)
    assert not out.exists()
    words = ("--start", yesterday, "--old-instance", VILLAGE, "--iterations", 5)
    ran = arcfleet("solve", other, *words, "--out", out)
    assert ran.returncode == 0
    assert check(read(other), read_solution(out, read(other))).ok


def test_edit_moves_a_street_and_says_what_moved(yesterday: Path, tmp_path: Path) -> None:
    out = tmp_path / "edited.json"
    plan = read_solution(yesterday, read(VILLAGE))
    link = plan.routes[0].services[0].link
    words = ("--move", f"link:{link}=2", "--time", 0, "--out", out)
    text = succeeded("edit", VILLAGE, yesterday, *words)
    assert text.startswith("free      routes 1, 2\ncost ")
    assert succeeded("check", VILLAGE, out).startswith("ok")
    facts = json.loads(
        succeeded("edit", VILLAGE, yesterday, *words[:2], "--time", 0, "--json")
    )
    assert facts["free"] == [1, 2]
    assert link in {one["link"] for one in facts["moved"]}


def test_edit_names_the_instance_that_its_plan_belongs_to(
    yesterday: Path, tmp_path: Path
) -> None:
    out, scene = tmp_path / "edited.json", tmp_path / "scene.json"
    words = ("edit", VILLAGE, yesterday, "--remove", "Mill Lane", "--time", 0, "--out", out)
    ran = arcfleet(*words)
    assert ran.returncode == 0
    assert "--out-instance writes it" in ran.stderr
    succeeded(*words, "--out-instance", scene)
    assert succeeded("check", scene, out).startswith("ok")
    back = ("--add", "Mill Lane=length", "--time", 0)
    assert "whose length is unknown" in one_sentence(arcfleet("edit", scene, out, *back))
    again = ("--add", "Mill Lane=20", "--time", 0)
    assert "added     7 streets" in succeeded("edit", scene, out, *again)


def test_wrong_edits_are_one_sentence_and_nothing_is_written(
    yesterday: Path, tmp_path: Path
) -> None:
    out = tmp_path / "edited.json"
    for words in (["--move", "Mill Lane=99"], ["--free", "99"], [], ["--remove", "Mil"]):
        one_sentence(arcfleet("edit", VILLAGE, yesterday, *words, "--out", out))
    ran = arcfleet("edit", VILLAGE, yesterday, "--move", "Mill Lane")
    assert ran.returncode == 2
    assert "as in 'Mill Lane=2'" in ran.stderr
    assert not out.exists()


def test_pins_and_locks_of_yesterday_may_be_changed(
    yesterday: Path, tmp_path: Path
) -> None:
    scene, out, later = (tmp_path / f"{name}.json" for name in ("scene", "out", "later"))
    plan = read_solution(yesterday, read(VILLAGE))
    pinned, moved = plan.routes[1].services[0].link, plan.routes[0].services[0].link
    search = ("--iterations", 5, "--quiet")
    succeeded(
        *("solve", VILLAGE, "--start", yesterday, "--lock", "1", *search, "--out", out),
        *("--pin", f"link:{pinned}=2", "--out-instance", scene),
    )
    words = ("solve", scene, "--start", out, *search, "--pin")
    assert arcfleet(*words, f"link:{pinned}=3", "--out-instance", later).returncode == 0
    assert read(later).pins == (Assignment(pinned, 3),)
    assert "(edit --free 1)" in one_sentence(arcfleet(*words, f"link:{moved}=3"))
    move = ("--move", f"link:{moved}=3", "--time", 0, "--out", tmp_path / "edited.json")
    ran = arcfleet("edit", scene, out, *move)
    assert ran.returncode == 0
    assert "--out-instance writes it" in ran.stderr
    succeeded("edit", scene, out, *move, "--out-instance", later)
    assert read(later).locks == ()
    assert succeeded("check", later, tmp_path / "edited.json").startswith("ok")


def test_edit_shows_the_times_of_the_earlier_plan_as_they_were(tmp_path: Path) -> None:
    town, path = tmp_path / "town.json", tmp_path / "plan.json"
    links = [
        replace(link, metres=100, seconds=10, service_seconds=70)
        for link in star(2, 2, 2).links
    ]
    write(replace(star(2, 2, 2), links=tuple(links)), town)
    succeeded("solve", town, "--iterations", 5, "--out", path)
    words = ("edit", town, path, "--remove", "link:0", "--time", 0, "--json")
    (route,) = json.loads(succeeded(*words))["routes"]
    before = read_solution(path, read(town)).routes[0].travel
    assert before is not None
    assert route["before"]["seconds"] == before.seconds
    assert route["after"]["seconds"] < route["before"]["seconds"]
