import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from arcfleet import __version__, check, read, read_solution
from arcfleet.cli.main import GROUPS, build_parser, main
from tests.cli.running import (
    ARCFLEET,
    ROOT,
    SMALL,
    VILLAGE,
    arcfleet,
    one_sentence,
    succeeded,
)


def test_wrong_usage_exits_2() -> None:
    assert arcfleet().returncode == 2
    assert arcfleet("solve", VILLAGE, "--time", "soon").returncode == 2
    assert arcfleet("solve", VILLAGE, "--threads", "-1").returncode == 2
    assert arcfleet("fly").returncode == 2


@pytest.mark.parametrize("signal", ["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("package", ["numpy", "arcfleet.cli.solve"])
def test_ctrl_c_while_importing_is_one_line(
    package: str, signal: str, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import signal, sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {package!r}:\n"
        f"            signal.raise_signal(signal.{signal})\n"
        "sys.meta_path.insert(0, Interrupt())\n"
    )
    script = "import sys; from arcfleet_command import main; sys.exit(main())"
    ran = subprocess.run(
        [sys.executable, "-c", script, "solve", str(SMALL)],
        capture_output=True,
        encoding="utf-8",
        check=False,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
    )
    assert (ran.returncode, ran.stdout) == (130, "")
    assert ran.stderr == "arcfleet: interrupted before it began\n"


def test_ctrl_c_before_a_result_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("arcfleet.instance.files.read", interrupted)
    ran = arcfleet("info", SMALL)
    assert (ran.returncode, ran.stdout) == (130, "")
    assert ran.stderr == "arcfleet: interrupted before all was done\n"


def test_bad_input_is_one_sentence(tmp_path: Path) -> None:
    missing = tmp_path / "missing.dat"
    assert str(missing) in one_sentence(arcfleet("solve", missing))
    bad = tmp_path / "bad.dat"
    text = SMALL.read_text()
    bad.write_text(text.replace("coste", "preis", 1))
    assert f"{bad}:" in one_sentence(arcfleet("info", bad))
    assert "did you mean" in one_sentence(arcfleet("solve", VILLAGE, "--method", "ps-alt3"))
    assert "found a directory" in one_sentence(arcfleet("solve", tmp_path))


def test_plots(tmp_path: Path) -> None:
    for arguments in (("solve", "--iterations", 5), ("info",)):
        picture = tmp_path / f"{arguments[0]}.png"
        ran = arcfleet(arguments[0], VILLAGE, *arguments[1:], "--plot", picture)
        assert ran.returncode == 0, ran.stderr
        assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("closing", ["| true", ">&-"])
def test_a_closed_stdout_costs_neither_the_plan_nor_the_verdict(
    tmp_path: Path, closing: str
) -> None:
    out = tmp_path / "plan.json"
    solve = f"solve {VILLAGE} --iterations 9 --out {out}"
    for command, code in ((solve, 0), (f"check {VILLAGE} {out}", 1)):
        ran = subprocess.run(
            [
                "bash",
                "-c",
                f"{' '.join(ARCFLEET)} {command} {closing}; exit ${{PIPESTATUS[0]}}",
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (ran.returncode, ran.stderr) == (code, "")
        plan = json.loads(out.read_text())
        out.write_text(json.dumps(plan | {"cost": 1}))


def test_a_full_disk_under_stdout_is_one_sentence(tmp_path: Path) -> None:
    out = tmp_path / "plan.json"
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(
            [*ARCFLEET, "solve", str(VILLAGE), "--iterations", "9", "--out", str(out)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert ran.returncode == 1
    assert ran.stderr.startswith("arcfleet: standard output: ")
    assert len(ran.stderr.splitlines()) == 1
    assert out.exists()


def test_the_console_script_is_installed() -> None:
    script = shutil.which("arcfleet", path=str(Path(sys.executable).parent))
    assert script is not None
    ran = subprocess.run([script, "--version"], capture_output=True, text=True, check=False)
    assert ran.stdout == f"arcfleet {__version__}\n"


def test_the_steps_of_the_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = _demo_steps()
    assert [step[0] for step in steps] == ["info", "solve", "check"]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    for step in steps:
        if "--time" in step:
            step[step.index("--time") + 1] = "0.05"
        assert main(step) == 0, capsys.readouterr().err
    assert capsys.readouterr().out.splitlines()[-1].startswith("ok: cost ")
    plan = tmp_path / "out" / "denver-plan.json"
    instance = read("example:denver")
    assert check(instance, read_solution(plan, instance)).ok
    assert plan.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    page = tmp_path / "out" / "denver-map.html"
    assert "OpenStreetMap" in page.read_text(encoding="utf-8")
    drivers = {file.suffix for file in (tmp_path / "out" / "denver-drivers").iterdir()}
    assert drivers == {".gpx", ".html", ".pdf"}


def _demo_steps() -> list[list[str]]:
    """The commands of `make demo`, each without the name of the program."""
    rules = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    (demo,) = [rule for rule in rules.split("\n\n") if "\ndemo: " in rule]
    program = "\t$(BIN)/arcfleet "
    lines = demo.splitlines()
    return [shlex.split(line.removeprefix(program)) for line in lines if program in line]


@pytest.mark.parametrize(("given", "kept"), [(None, "PASSIVE"), ("ACTIVE", "ACTIVE")])
def test_threads_of_torch_do_not_spin_unless_asked_to(
    given: str | None, kept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_WAIT_POLICY", "to be restored")
    if given is None:
        monkeypatch.delenv("OMP_WAIT_POLICY")
    else:
        monkeypatch.setenv("OMP_WAIT_POLICY", given)
    assert main(["methods"]) == 0
    assert os.environ["OMP_WAIT_POLICY"] == kept


def actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return parser._actions  # noqa: SLF001 (argparse has no public way)


def runnable(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Every command that can be run."""
    below = [x.choices for x in actions(parser) if isinstance(x.choices, dict)]
    if not below:
        yield parser
    for choices in below:
        for each in choices.values():
            yield from runnable(each)


def test_the_help_of_the_program_lists_every_command_in_its_group() -> None:
    lines = [tuple(line.split("  ")[:2]) for line in succeeded("--help").splitlines()]
    wanted: list[tuple[str, ...]] = []
    for title, group in GROUPS.items():
        wanted.append((f"{title}:",))
        wanted += [("", command.name) for command in group]
    assert [line for line in lines if line in wanted] == wanted


def test_every_command_has_a_summary_an_example_and_a_help_for_each_option() -> None:
    found = list(runnable(build_parser()))
    assert len(found) > 12
    for command in found:
        assert command.description, command.prog
        assert "example" in (command.epilog or ""), command.prog
        for action in actions(command):
            assert action.help, (command.prog, action.dest)
        assert command.prog in command.format_help()


def test_every_command_has_json() -> None:
    for command in runnable(build_parser()):
        assert any(x.dest == "json" for x in actions(command)), command.prog


@pytest.mark.parametrize(
    ("former", "name"),
    [
        ("train curriculum --config a.toml", "paper train"),
        ("train s2v-dqn --data a.npz", "paper train s2v-dqn"),
        ("train vrp-dl", "paper train vrp-dl"),
        ("experiment table a.npz --out x", "paper table"),
        ("experiment all --quick", "paper COMMAND --quick"),
    ],
)
def test_former_names_point_to_the_new_ones(former: str, name: str) -> None:
    ran = arcfleet(*former.split())
    assert (ran.returncode, ran.stdout) == (2, "")
    words = " ".join(former.split()[:2])
    assert ran.stderr == f"arcfleet: arcfleet {words} is now arcfleet {name}\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            "scene town.osm --capcity 3000 -o x.json",
            "arcfleet scene: error: unrecognised option --capcity; "
            "did you mean --capacity?",
        ),
        (
            "solve example:denver --tiem=5",
            "arcfleet solve: error: unrecognised option --tiem; did you mean --time?",
        ),
        (
            "solve example:denver --xyzzy",
            "arcfleet solve: error: unrecognised option --xyzzy; "
            "arcfleet solve --help lists all",
        ),
        (
            "scen town.osm --capacity 5",
            "arcfleet: error: unrecognised command scen; did you mean scene?",
        ),
        (
            "dataset mkae --nothing",
            "arcfleet dataset: error: unrecognised command mkae; did you mean make?",
        ),
        ("--verison", "arcfleet: error: unrecognised option --verison; did you mean "),
    ],
)
def test_a_typo_in_an_option_or_command_suggests_the_right_one(
    words: str, sentence: str
) -> None:
    ran = arcfleet(*words.split())
    assert (ran.returncode, ran.stdout) == (2, "")
    (line,) = ran.stderr.splitlines()
    assert line.startswith(sentence)


def test_options_may_be_shortened_and_values_may_look_like_typos() -> None:
    shortened = arcfleet("solve", "example:denver", "--meth", "ps", "--js")
    assert (shortened.returncode, shortened.stderr) == (0, "")
    assert arcfleet("info", "--", "--capcity").returncode == 1


def test_deprecations_of_libraries_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    class Both(UserWarning, DeprecationWarning):
        """As pyparsing has it, which matplotlib uses."""

    def warned(path: object) -> object:
        warnings.warn("parseString is deprecated", Both, stacklevel=1)
        warnings.warn("a street is lost", UserWarning, stacklevel=1)
        return read(path)  # type: ignore[arg-type]

    monkeypatch.setattr("arcfleet.instance.files.read", warned)
    ran = arcfleet("info", VILLAGE)
    assert (ran.returncode, ran.stderr) == (0, "arcfleet: warning: a street is lost\n")
