"""Plans of scenes as JSON lines that are not made again."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from arcfleet.experiments.line_file import LineFile

if TYPE_CHECKING:
    from pathlib import Path

_FORMAT = "arcfleet-scene-plan-1"


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneKey:
    """What tells one plan from another.

    Parameters
    ----------
    scene_sha256
        Checksum of the file of the scene.
    method, iterations, seed
        How; without iterations as is usual for the method.
    model_sha256
        Checksum of the model file; None for a method that has none.
    """

    scene_sha256: str
    method: str
    iterations: int | None
    seed: int
    model_sha256: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenePlan:
    """A plan of a scene.

    Parameters
    ----------
    key
        Which plan.
    scene
        Name of the scene.
    cost, seconds
        Of the plan.
    device, machine, commit
        Where it was made, and by what.
    routes
        Services of each route: twice the link, plus one where it is driven backwards.
    """

    key: SceneKey
    scene: str
    cost: int
    seconds: float
    device: str
    machine: str
    commit: str
    routes: tuple[tuple[int, ...], ...]


class SceneFile:
    """The plans in a file, and the place to add to."""

    def __init__(self, path: Path) -> None:
        self._file = LineFile(path, _FORMAT, "a plan of `arcfleet experiment scenes`")
        self.plans: dict[SceneKey, ScenePlan] = {}
        for number, line in enumerate(self._file.lines, start=1):
            try:
                plan = _parse(line)
            except (
                ValueError,
                TypeError,
                KeyError,
                AttributeError,
                RecursionError,
            ) as error:
                self._file.refuse(number, error)
            self.plans[plan.key] = plan
        self._file.open()

    def add(self, plan: ScenePlan) -> None:
        """Append one plan."""
        line = {"format": _FORMAT} | asdict(plan.key) | asdict(plan)
        del line["key"]
        self._file.add(json.dumps(line).encode() + b"\n")
        self.plans[plan.key] = plan

    def close(self) -> None:
        """Close the file."""
        self._file.close()


_KEY_FIELDS: dict[str, tuple[type, ...]] = {
    "scene_sha256": (str,),
    "method": (str,),
    "iterations": (int, type(None)),
    "seed": (int,),
    "model_sha256": (str, type(None)),
}
_FACT_FIELDS: dict[str, tuple[type, ...]] = {
    "scene": (str,),
    "cost": (int,),
    "seconds": (float, int),
    "device": (str,),
    "machine": (str,),
    "commit": (str,),
    "routes": (list,),
}


def _parse(line: bytes) -> ScenePlan:
    facts: dict[str, Any] = json.loads(line)
    if facts.pop("format") != _FORMAT:
        raise ValueError
    known = _KEY_FIELDS | _FACT_FIELDS
    if facts.keys() != known.keys() or not all(
        type(facts[name]) in types for name, types in known.items()
    ):
        raise ValueError
    facts["routes"] = tuple(tuple(route) for route in facts["routes"])
    if not all(type(x) is int for route in facts["routes"] for x in route):
        raise ValueError
    key = SceneKey(**{name: facts[name] for name in _KEY_FIELDS})
    return ScenePlan(key=key, **{name: facts[name] for name in _FACT_FIELDS})
