import json
from pathlib import Path
from typing import Any

import pytest

from arcfleet.datasets import Dataset
from arcfleet.errors import ArcfleetError, FormatWarning, OptionError
from arcfleet.instance.files import write
from arcfleet.paper.commands import Watch
from arcfleet.paper.scenes import Config, run
from tests.neural.labelled_towns import labelled_file
from tests.tiny_model import tiny_model_file


@pytest.fixture
def inputs(tmp_path: Path) -> dict[str, Any]:
    scene = tmp_path / "scene.json"
    write(Dataset.open(labelled_file(tmp_path, "test", count=1))[0], scene)
    return {
        "scenes": (scene,),
        "out": tmp_path / "out",
        "methods": ("ps", "daam-greedy", "maens=5"),
        "model": tiny_model_file(tmp_path),
        "device": "cpu",
        "figures": False,
    }


def test_scenes_are_solved_once(inputs: dict[str, Any]) -> None:
    report = run(Config(**inputs), Watch())
    assert "DaAM, greedy" in report.text()
    store = inputs["out"] / "scenes.jsonl"
    before = store.read_bytes()
    assert before.count(b"\n") == 1 + 3
    assert run(Config(**inputs), Watch()).sections == report.sections
    assert store.read_bytes() == before


def test_a_method_with_a_model_of_its_own(inputs: dict[str, Any]) -> None:
    file = inputs["model"]
    methods = ("ps", f"daam-greedy@{file}")
    report = run(Config(**(inputs | {"methods": methods, "model": None})), Watch())
    assert report.sections[0].header == ["scene", "PS", f"DaAM, greedy ({file.stem})"]
    assert f"Methods: ps, daam-greedy ({file.stem});" in report.caption
    both = (*methods, "daam-greedy")
    more = run(Config(**(inputs | {"methods": both, "model": None})), Watch())
    assert more.sections[0].rows[0][:3] == report.sections[0].rows[0]


def test_a_changed_plan_is_not_drawn(inputs: dict[str, Any]) -> None:
    run(Config(**inputs), Watch())
    store = inputs["out"] / "scenes.jsonl"
    header, first, *rest = store.read_text().splitlines()
    plan = json.loads(first)
    changed = first.replace(f'"cost": {plan["cost"]}', f'"cost": {plan["cost"] + 1}')
    store.write_text("\n".join([header, changed, *rest]) + "\n")
    with pytest.warns(FormatWarning, match=r"scenes\.jsonl:2: dropped a line"):
        run(Config(**inputs), Watch())
    # Lines of old have no checksum.
    old = {"format": "arcfleet-scene-plan-1", **plan, "cost": plan["cost"] + 1}
    del old["crc32"]
    store.write_text(json.dumps(old) + "\n")
    with pytest.raises(ArcfleetError, match=f"costs {old['cost']}, found {plan['cost']}"):
        run(Config(**inputs), Watch())
    for name, value in (("seed", [0]), ("cost", "a"), ("routes", [["a"]]), ("routes", 5)):
        store.write_text(json.dumps(old | {name: value}) + "\n")
        with pytest.raises(ArcfleetError, match="jsonl:1: expected a plan of"):
            run(Config(**inputs), Watch())


def test_wrong_inputs(inputs: dict[str, Any]) -> None:
    for message, change in (
        ("at least one method", {"methods": (",",)}),
        ("at least one scene", {"scenes": ()}),
        ("NAME=ITERATIONS", {"methods": ("daam", "maens=many")}),
        ("a learned method as NAME@FILE", {"methods": ("ps@a.safetensors",)}),
        ("workers", {"workers": 0}),
    ):
        with pytest.raises(OptionError, match=message):
            run(Config(**(inputs | change)), Watch())
    assert not inputs["out"].exists()


def test_a_quick_run_with_figures(tmp_path: Path) -> None:
    report = run(Config(out=tmp_path, quick=True, device="cpu"), Watch())
    assert {path.suffix for path in report.files} == {
        *(".md", ".csv", ".tex", ".png", ".svg"),
    }
