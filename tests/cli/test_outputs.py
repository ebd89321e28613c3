"""Files that cannot be written: told before the work, and none costs another one."""

from pathlib import Path
from typing import Any

import pytest

from arcfleet import read_solution
from arcfleet.instance.files import read
from tests.cli.running import SMALL, VILLAGE, arcfleet, one_sentence
from tests.helpers import files_of_at_most

SUITE = 'summary = "x"\nfolder = "{}"\n[[sets]]\nname = "s"\nfiles = ["{}"]\n'


@pytest.fixture
def inputs(tmp_path: Path) -> dict[str, Path]:
    """Return a plan, a suite and a data set to work on."""
    plan, suite, data = (tmp_path / name for name in ("plan.json", "s.toml", "d.npz"))
    assert arcfleet("solve", VILLAGE, "--iterations", 5, "--out", plan).returncode == 0
    suite.write_text(SUITE.format(VILLAGE.parent, VILLAGE.name))
    made = arcfleet("dataset", "make", "task20", "--count", 2, "-o", data)
    assert made.returncode == 0
    return {"PLAN": plan, "SUITE": suite, "DATA": data}


@pytest.fixture
def never_searched(inputs: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail where a plan is searched for, once there are inputs."""

    def fail(*_: object, **__: object) -> Any:
        raise AssertionError("searched before the files were checked")

    monkeypatch.setattr("arcfleet.methods.solve", fail)
    monkeypatch.setattr("arcfleet.bench.run.solve", fail)
    monkeypatch.setattr("arcfleet.bench.compare.solve", fail)
    monkeypatch.setattr("arcfleet.datasets.labels.ruin_recreate", fail)


COMMANDS = (
    *("solve VILLAGE --out FILE.json", "solve VILLAGE --out FILE.sol"),
    *("solve VILLAGE --html FILE.html", "solve VILLAGE --plot FILE.png"),
    *("solve VILLAGE --geojson FILE.geojson", "solve VILLAGE --gpx FILE.gpx"),
    *("solve VILLAGE --kml FILE.kml", "solve VILLAGE --stops FILE.csv"),
    *("solve VILLAGE --sheets FILE", "solve VILLAGE --out-instance FILE.json"),
    *("compare VILLAGE --methods ps --out FILE.json",),
    *("edit VILLAGE PLAN --free 1 --out FILE.json", "show VILLAGE PLAN --html FILE.html"),
    *("bench SUITE --out FILE.jsonl", "dataset make task20 --count 5 -o FILE.npz"),
    *("dataset label DATA --iterations 1000000000 -o FILE.npz",),
    *("convert VILLAGE FILE.json",),
)


@pytest.mark.usefixtures("never_searched")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk_is_found_before_the_work(
    command: str, inputs: dict[str, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    words: list[object] = []
    for word in command.split():
        known = {"VILLAGE": VILLAGE, **inputs}.get(word, word)
        words.append(str(known).replace("FILE", str(folder / "new")))
    with files_of_at_most(0):
        line = one_sentence(arcfleet(*words))
    assert str(folder) in line
    assert "cannot be written (File too large)" in line
    assert list(folder.iterdir()) == []


def test_a_file_that_is_there_is_left_alone_by_a_full_disk(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text("old")
    with files_of_at_most(0):
        one_sentence(arcfleet("solve", VILLAGE, "--out", path))
    # Enough for the test before the search, too little for the plan.
    with files_of_at_most(10):
        ran = arcfleet("solve", VILLAGE, "--iterations", 5, "--out", path)
    assert ran.returncode == 1
    assert "cannot be written (File too large)" in ran.stderr
    assert "cost" in ran.stdout  # printed, so not lost
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_picture_that_fails_costs_no_other_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise TypeError("an older version\nof a library")

    monkeypatch.setattr("arcfleet.report.plot.plot", fail)
    monkeypatch.setattr("arcfleet.report.html_map.write_html", fail)
    files = {
        name: tmp_path / end
        for name, end in (
            *(("out", "a.json"), ("plot", "a.png"), ("html", "a.html"), ("stops", "a.csv")),
            *(("out-instance", "b.json"), ("geojson", "a.geojson")),
        )
    }
    words = [word for name, path in files.items() for word in (f"--{name}", path)]
    ran = arcfleet("solve", VILLAGE, "--iterations", 5, *words)
    assert ran.returncode == 1
    assert ran.stderr.splitlines() == [
        f"arcfleet: {files[name]}: cannot be written (TypeError: an older version of a "
        "library)"
        for name in ("plot", "html")
    ]
    assert "cost" in ran.stdout
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {"a.json", "a.csv", "b.json", "a.geojson"}
    read_solution(tmp_path / "a.json", read(VILLAGE))


def test_a_plan_that_cannot_be_written_costs_no_map(tmp_path: Path) -> None:
    page = tmp_path / "a.html"
    plan = tmp_path / "a.json"
    ran = arcfleet("solve", SMALL, "--iterations", 5, "--html", page)
    size = page.stat().st_size
    page.unlink()
    plan.write_text("old")

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("arcfleet.solution.files.write_text_atomically", fail)
        ran = arcfleet("solve", SMALL, "--iterations", 5, "--out", plan, "--html", page)
    assert ran.returncode == 1
    assert len(ran.stderr.splitlines()) == 1
    assert plan.read_text() == "old"
    assert page.stat().st_size == size
