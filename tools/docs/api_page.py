"""The API page: every public name of `arcfleet`, by subject."""

from __future__ import annotations

import arcfleet

#: Names that belong together; a public name that is missing here comes under the last one.
SUBJECTS = {
    "Read and write": ("read", "write", "read_solution", "write_solution"),
    "Streets to instances": (
        "read_map",
        "make_scene",
        "SceneRules",
        "TurnPolicy",
        "Scene",
        "StreetMap",
        "Street",
        "Box",
        "Circle",
        "Polygons",
        "read_table",
        "Table",
    ),
    "Solve": (
        "solve",
        "solve_many",
        "solve_districts",
        "Stop",
        "StopRule",
        "Progress",
        "BatchProgress",
        "Result",
        "Improvement",
        "Failure",
        "check",
        "diagnose",
        "Report",
        "Problem",
    ),
    "See and drive a plan": (
        "write_html",
        "write_diff_html",
        "write_gpx",
        "write_geojson",
        "plot",
    ),
    "Instances and solutions": (
        "Instance",
        "Link",
        "Turn",
        "Solution",
        "Route",
        "Service",
        "Step",
        "Travel",
    ),
    "Methods": (
        "METHODS",
        "Method",
        "register_method",
        "RunContext",
        "Incumbent",
        "load_for_method",
        "LoadedModel",
    ),
    "More": (),
    "Errors and warnings": (),
}


def subjects() -> dict[str, list[str]]:
    """Sort the public names of the package by subject, none of them left out."""
    public = [name for name in arcfleet.__all__ if not name.startswith("__")]
    placed = {name: subject for subject, names in SUBJECTS.items() for name in names}
    sorted_names: dict[str, list[str]] = {subject: [] for subject in SUBJECTS}
    for subject, names in SUBJECTS.items():
        sorted_names[subject] = [name for name in names if name in public]
    for name in public:
        value = getattr(arcfleet, name)
        failure = isinstance(value, type) and issubclass(value, Exception)
        if failure:
            sorted_names["Errors and warnings"].append(name)
        elif name not in placed:
            sorted_names["More"].append(name)
    return {subject: names for subject, names in sorted_names.items() if names}


def page() -> str:
    """Return the page in Markdown; mkdocstrings fills in the names."""
    lines = [
        "# Python API",
        "",
        "Everything here is importable from `arcfleet`. What is not on this page is "
        "internal and may change in any version.",
        "",
    ]
    for subject, names in subjects().items():
        lines += [f"## {subject}", ""]
        for name in names:
            lines += [f"::: arcfleet.{name}", ""]
    return "\n".join(lines)
