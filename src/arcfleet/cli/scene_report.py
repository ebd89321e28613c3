"""What `arcfleet scene` says about the scene that it made."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from arcfleet.streets.scene import Scene
    from arcfleet.streets.simplify import Dropped


def facts(scene: Scene) -> dict[str, object]:
    """Give what there is to say about a scene, for programs."""
    instance = scene.instance
    return {
        "name": instance.name,
        "junctions": len(scene.street_map.junctions),
        "streets": len(scene.street_map.streets),
        "one_way": sum(street.one_way for street in scene.street_map.streets),
        "metres": round(scene.metres),
        "tasks": len(instance.required),
        "total_demand": instance.total_demand,
        "capacity": instance.capacity,
        "least_routes": max(
            -(-instance.total_demand // instance.capacity), int(bool(instance.required))
        ),
        "depot": instance.depot,
        "depot_metres": (
            None if scene.depot_metres is None else round(scene.depot_metres, 1)
        ),
        "split_streets": scene.split_streets,
        "outside": _dropped_facts(scene.outside),
        "cut_off": _dropped_facts(scene.cut_off),
        "comment": instance.comment,
        "attribution": instance.attribution,
    }


def _dropped_facts(dropped: Dropped) -> dict[str, int]:
    return {
        "junctions": dropped.junctions,
        "streets": dropped.streets,
        "metres": round(dropped.metres),
    }


def summary(scene: Scene, merged_away: dict[str, int]) -> str:
    """Give the same for people.

    Parameters
    ----------
    scene
        The scene.
    merged_away
        How many junctions and streets of the map became part of others before.
    """
    from arcfleet._checks import one_line

    known = facts(scene)
    depot = "the most central junction"
    if scene.depot_metres is not None:
        depot = f"{scene.depot_metres:,.0f} m from the place given"
    lines = [
        f"scene         {one_line(scene.instance.name)}",
        f"junctions     {known['junctions']}",
        f"streets       {known['streets']}, {scene.metres / 1000:.1f} km, "
        f"{known['one_way']} one-way",
        f"depot         {known['depot']}, {depot}",
        f"tasks         {known['tasks']}, total demand {known['total_demand']}",
        f"least routes  {known['least_routes']} of capacity {known['capacity']}",
    ]
    if scene.split_streets:
        split = _count(scene.split_streets, "street")
        lines.append(f"split         {split} with more demand than that")
    if any(merged_away.values()):
        lines.append(f"merged        {_counts(**merged_away)} into others")
    for dropped, why in (
        (scene.outside, "outside the area"),
        (scene.cut_off, "without a way there and back"),
    ):
        if dropped.junctions or dropped.streets:
            counts = _counts(dropped.junctions, dropped.streets)
            lines.append(f"dropped       {counts} ({dropped.metres / 1000:.1f} km) {why}")
    if scene.instance.notice:
        lines.append(f"attribution   {one_line(scene.instance.notice)}")
    return "\n".join(lines)


def _counts(junctions: int, streets: int) -> str:
    return f"{_count(junctions, 'junction')} and {_count(streets, 'street')}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
