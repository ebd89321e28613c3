"""The executor "ray", on two raylets on this machine."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from arcfleet import Failure, Instance, Result, Stop, check, solve_districts, solve_many
from arcfleet.datasets.labels import label_dataset
from arcfleet.datasets.make import make_dataset
from arcfleet.errors import OptionError
from arcfleet.search import ProgressCallback
from arcfleet.workers import TaskFailure, run_tasks
from tests.cli.running import succeeded
from tests.helpers import MIXED, ROOT, SMALL, VILLAGE, verified

ray = pytest.importorskip("ray")
from ray.cluster_utils import Cluster  # noqa: E402

# Ray leaves sockets and processes to the end of the interpreter.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
STOP = Stop(iterations=300)
_MEMORY = 100 << 20


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two machines, of one core each."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    before = signal.getsignal(signal.SIGTERM)
    args = {"num_cpus": 1, "object_store_memory": _MEMORY, "include_dashboard": False}
    made = Cluster(initialize_head=True, head_node_args=args)
    try:
        # While there is no other: a driver dies with the raylet that it is connected to.
        ray.init(address=made.address, log_to_driver=False, logging_level="ERROR")
        made.add_node(num_cpus=1, object_store_memory=_MEMORY)
        made.wait_for_nodes()
        yield made
    finally:
        ray.shutdown()
        made.shutdown()
        signal.signal(signal.SIGTERM, before)


def over_ray(
    function: Callable[[Any, ProgressCallback], Any], tasks: range
) -> dict[int, Any]:
    """Run tasks, and require one outcome of each."""
    outcomes: dict[int, Any] = {}

    def finished(number: int, outcome: object) -> None:
        assert number not in outcomes, "an outcome is doubled"
        outcomes[number] = outcome

    run_tasks(function, tasks, workers=None, executor="ray", finished=finished)
    assert sorted(outcomes) == list(tasks), "an outcome is missing"
    return outcomes


def test_results_are_those_of_processes(cluster: Any, tmp_path: Path) -> None:
    bad = tmp_path / "bad.dat"
    bad.write_text("NOMBRE : bad\n")
    files: list[Instance | Path | str] = [VILLAGE, bad, SMALL, str(MIXED), VILLAGE]
    found = solve_many(files, stop=STOP, seed=7, executor="ray")
    expected = solve_many(files, stop=STOP, seed=7)
    assert [type(x) for x in found] == [Result, Failure, Result, Result, Result]
    verified(x for x in found if isinstance(x, Result))
    for one, other in zip(found, expected, strict=True):
        if isinstance(one, Result) and isinstance(other, Result):
            assert (one.solution, one.seed) == (other.solution, other.seed)
        else:
            assert one == other

    dataset = make_dataset(tmp_path / "d.npz", "task20", count=20)
    labels = [
        label_dataset(dataset, tmp_path / f"{name}.npz", iterations=30_000, executor=name)
        for name in ("processes", "ray")
    ]
    assert labels[0].path.read_bytes() == labels[1].path.read_bytes()

    suite, runs = tmp_path / "suite.toml", tmp_path / "runs.jsonl"
    (tmp_path / SMALL.name).write_bytes(SMALL.read_bytes())
    suite.write_text(f'folder = "."\n[[sets]]\nname = "s"\nfiles = ["{SMALL.name}"]\n')
    bench = ("bench", suite, "--seeds", 3, "--time", 0.05, "--out", runs, "--quiet")
    rows = json.loads(succeeded(*bench, "--executor", "ray", "--json"))["rows"]
    assert [row["runs"] for row in rows] == [3]

    plans = tmp_path / "plans.jsonl"
    words = (VILLAGE, SMALL, "--iterations", 100, "--out", plans, "--quiet")
    assert "2 plans" in succeeded("solve-many", *words, "--executor", "ray")
    assert ray.is_initialized()  # a connection of the script's own stays


def _short(task: int, progress: ProgressCallback) -> int:
    return os.getpid()


def test_short_tasks_are_grouped_and_both_machines_work(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from arcfleet.workers import ray as executor

    groups = []
    group = executor._Team._group  # noqa: SLF001

    def counted(team: Any) -> Any:
        made = group(team)
        groups.append(len(made))
        return made

    monkeypatch.setattr(executor._Team, "_group", counted)  # noqa: SLF001
    over_ray(_short, range(5000))
    assert sum(groups) >= 5000
    assert len([size for size in groups if size]) < 500


def _a_while(task: int, progress: ProgressCallback) -> str:
    time.sleep(0.3)
    return str(ray.get_runtime_context().get_node_id())


def test_a_killed_raylet_loses_nothing(cluster: Any) -> None:
    """The second machine is gone while both work."""
    (second,) = [x for x in cluster.list_all_nodes() if not x.head]
    nodes: Counter[str] = Counter()
    outcomes: dict[int, Any] = {}

    def finished(number: int, outcome: Any) -> None:
        assert number not in outcomes
        outcomes[number] = outcome
        nodes[outcome] += 1
        if len(nodes) == 2 and second in cluster.list_all_nodes():
            cluster.remove_node(second, allow_graceful=False)

    try:
        run_tasks(_a_while, range(30), workers=None, executor="ray", finished=finished)
        assert second not in cluster.list_all_nodes()
    finally:
        if second not in cluster.list_all_nodes():
            cluster.add_node(num_cpus=1, object_store_memory=_MEMORY)
            cluster.wait_for_nodes()
    assert sorted(outcomes) == list(range(30))
    assert len(nodes) == 2
    assert max(nodes.values()) > min(nodes.values())  # the first one did the rest


def _die_on_three(task: int, progress: ProgressCallback) -> int:
    if task == 3:
        os._exit(1)
    return task


def _fail(task: int, progress: ProgressCallback) -> object:
    if task == 1:
        raise ZeroDivisionError("one")
    return (lambda: task) if task == 2 else sys.stderr if task == 3 else task


def test_bad_tasks_are_failures_and_the_others_go_on(cluster: Any) -> None:
    outcomes = over_ray(_die_on_three, range(8))
    assert isinstance(outcomes[3], TaskFailure)
    assert "ended by itself" in outcomes[3].message
    assert all(outcomes[x] == x for x in range(8) if x != 3)
    outcomes = over_ray(_fail, range(6))
    assert outcomes[1] == TaskFailure(message="unexpected ZeroDivisionError: one")
    assert isinstance(outcomes[3], TaskFailure)  # cannot be sent back
    assert [outcomes[x] for x in (0, 4, 5)] == [0, 4, 5]


_SCRIPT = """
import os, pathlib, sys
import arcfleet

FOLDER = sys.argv[2]

def endless(progress):
    import ray
    mark = pathlib.Path(FOLDER, str(os.getpid()))
    if not mark.exists():
        mark.write_text(ray.get_runtime_context().gcs_address)
    return False

if __name__ == "__main__":
    files = [sys.argv[1]] * 12
    outcomes = arcfleet.solve_many(files, stop=endless, executor="ray", workers=2)
    plans = [x for x in outcomes if isinstance(x, arcfleet.Result)]
    left = [x.message for x in outcomes if isinstance(x, arcfleet.Failure)]
    print(len(plans), {x.stopped_by for x in plans}, len(left), set(left), flush=True)
"""


def test_ctrl_c_ends_all_and_keeps_the_plans_so_far(tmp_path: Path) -> None:
    script, marks = tmp_path / "script.py", tmp_path / "marks"
    script.write_text(_SCRIPT)
    marks.mkdir()
    process = subprocess.Popen(
        [sys.executable, str(script), str(VILLAGE), str(marks)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "RAY_ADDRESS": "local"},
        cwd=ROOT,
        start_new_session=True,
    )
    cores = min(2, os.cpu_count() or 1)
    while len(list(marks.iterdir())) < cores or not all(
        mark.read_text() for mark in marks.iterdir()
    ):
        assert process.poll() is None
        time.sleep(0.1)
    addresses = {mark.read_text() for mark in marks.iterdir()}
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    out, _ = process.communicate()
    assert process.returncode == 0
    left = 12 - cores
    assert out == f"{cores} {{'interrupt'}} {left} {{'interrupted before it was begun'}}\n"
    (address,) = addresses
    while _of_cluster(address):
        time.sleep(0.2)


def _of_cluster(address: str) -> list[str]:
    """Return the processes of a cluster."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if any(address.encode() in word for word in words):
            found.append(str(words))
    return found


def test_what_ray_cannot_do_is_said_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(OptionError, match="'rey': did you mean 'ray'"):
        solve_many([VILLAGE], executor="rey")
    with pytest.raises(OptionError, match="workers"):
        solve_many([VILLAGE], executor="ray", workers=0)
    with pytest.raises(OptionError, match="'processes' for method 'daam-greedy'"):
        solve_many([VILLAGE], "daam-greedy", executor="ray", device="cpu")
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(OptionError, match=r"needs Ray, .* install arcfleet\[cluster\]"):
        solve_many([VILLAGE], executor="ray")


def test_districts_of_a_city(cluster: Any) -> None:
    expected = solve_districts(VILLAGE, 3, stop=STOP)
    found = solve_districts(VILLAGE, 3, stop=STOP, executor="ray")
    assert found.solution == expected.solution
    assert check(found.instance, found.solution).faults == ()
