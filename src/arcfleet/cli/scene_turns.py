"""What `arcfleet scene` says of turns."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from arcfleet.streets.restrictions import RestrictionReport
    from arcfleet.streets.scene import Scene
    from arcfleet.streets.turns import TurnPolicy

#: Restrictions that are named in the summary; --json has all.
_MOST_NAMED = 3
_WIDTH = 14


def turn_facts(scene: Scene, policy: TurnPolicy) -> dict[str, object]:
    """Return the facts about the turns of a scene, for programs."""
    forbidden = sum(turn.penalty is None for turn in scene.instance.turns)
    rules = asdict(policy)
    rules["restrictions"] = None
    report = scene.street_map.restrictions
    if report is not None:
        rules["restrictions"] = {
            "obeyed": report.obeyed if policy.restrictions else 0,
            "conditional": report.conditional if policy.restrictions else 0,
            "in_map": report.obeyed + len(report.skipped),
            "vehicle": report.vehicle,
            "skipped": report.counts,
            "named": [asdict(one) for one in report.named],
        }
    return rules | {
        "signed": len(scene.street_map.turns) if policy.restrictions else 0,
        "forbidden": forbidden,
        "with_penalty": len(scene.instance.turns) - forbidden,
    }


def turn_lines(scene: Scene, policy: TurnPolicy) -> Iterator[str]:
    """Yield the lines about the turns of a scene, for people."""
    from arcfleet._checks import one_line

    texts = list(_texts(scene, policy))
    yield f"{'turns':{_WIDTH}}{one_line('; '.join(texts))}"
    report = scene.street_map.restrictions
    if report is None or not policy.restrictions or not report.skipped:
        return
    yield f"{'not obeyed':{_WIDTH}}{_skipped(report)}"
    for one in report.named[:_MOST_NAMED]:
        yield f"{'':{_WIDTH}}{one_line(str(one))}"
    if len(report.named) > _MOST_NAMED:
        yield f"{'':{_WIDTH}}and {len(report.named) - _MOST_NAMED} more (--json lists all)"


def _texts(scene: Scene, policy: TurnPolicy) -> Iterator[str]:
    yield {
        "allowed": "U-turns everywhere",
        "dead-ends": "U-turns at dead ends only",
        "forbidden": "no U-turns",
    }[policy.u_turns] + (f" (+{policy.u_turn_penalty})" if policy.u_turn_penalty else "")
    sides = ("left", "right", "straight")
    penalties = [f"{side} +{getattr(policy, side)}" for side in sides]
    if policy.by_angle:
        yield ", ".join(text for text in penalties if not text.endswith("+0"))
    report = scene.street_map.restrictions
    if report is None:
        return
    total = report.obeyed + len(report.skipped)
    if not total:
        yield "the map has no turn restrictions"
        return
    if not policy.restrictions:
        yield f"none of {total} restrictions obeyed, as asked"
        return
    at_hours = f", {report.conditional} of them only at some hours" * bool(
        report.conditional
    )
    yield (
        f"{report.obeyed} of {total} restrictions obeyed for {report.vehicle}{at_hours} "
        f"({len(scene.street_map.turns)} turns forbidden in the scene)"
    )


def _skipped(report: RestrictionReport) -> str:
    from arcfleet.streets.restrictions import REASONS

    return ", ".join(f"{count} {REASONS[why]}" for why, count in report.counts.items())
