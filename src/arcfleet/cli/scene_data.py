"""Own data of `arcfleet scene`: its options, and what the command says of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from arcfleet.cli.options import names, number_up_to, option
from arcfleet.cli.output import count_of

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterator

    from arcfleet.streets.joins import JoinedTable
    from arcfleet.streets.scene import Scene

_WIDTH = 14
#: Rows that found no street, in the summary; the file has all.
_MOST_LISTED = 3


def data_options(parser: ArgumentParser) -> None:
    """Add the options of own data."""
    from arcfleet.streets.joins import JOINS, USUAL_SNAP

    group = parser.add_argument_group(
        "own data (CSV, Excel, GeoPackage, GeoJSON, Shapefile, KML)"
    )
    text = (
        "demands of streets; streets without a row in it are driven on only, unless "
        "--demand is given"
    )
    option(group, "--demand-file", text, Path, "FILE")
    text = (
        "how its rows find their streets: by OpenStreetMap way, place or name (default: "
        "recognised by the columns)"
    )
    option(group, "--demand-join", text, choices=list(JOINS))
    text = (
        "column of the demand (default: demand, amount, quantity or count; without any, "
        "every row counts 1)"
    )
    option(group, "--demand-column", text, str, "NAME")
    option(group, "--serve-file", "serve the streets in this file", Path, "FILE")
    option(group, "--exclude-file", "serve no street in this file", Path, "FILE")
    more: dict[str, Any] = {"action": "append", "default": []}
    text = "serve no street of this name; repeatable"
    option(group, "--exclude-name", text, str, "NAME", **more)
    text = "serve no streets of these kinds; repeatable"
    option(group, "--exclude-kind", text, str, "KIND[,KIND]", **more)
    text = "largest distance of a place from its street"
    metres = number_up_to(1e6, "metres")
    option(group, "--snap", text, metres, "METRES", default=USUAL_SNAP)


def data_rules(options: Namespace) -> dict[str, Any]:
    """Return the rules of own data, with their files read."""
    from arcfleet.streets.choice import TABLES
    from arcfleet.streets.tables import read_table

    files = {name: getattr(options, name) for name in TABLES}
    return {
        "demand_join": options.demand_join,
        "demand_column": options.demand_column,
        "exclude_names": tuple(options.exclude_name),
        "exclude_kinds": tuple(names(",".join(options.exclude_kind))),
        "snap": options.snap,
        **{
            name: None if path is None else read_table(path) for name, path in files.items()
        },
    }


def data_files(options: Namespace) -> list[Path]:
    """Return the files of own data that were given."""
    from arcfleet.streets.choice import TABLES

    return [path for name in TABLES if (path := getattr(options, name)) is not None]


def unmatched_path(out: Path) -> Path:
    """Return the file of the rows that found no street."""
    return out.with_name(f"{out.stem}-unmatched.csv")


def write_unmatched(scene: Scene, out: Path) -> Path | None:
    """Write the rows that found no street; return the file, or None if there are none.

    A file of an earlier run is replaced by one without rows.
    """
    from arcfleet._files import write_text_atomically
    from arcfleet.streets.joins import unmatched_csv

    path = unmatched_path(out)
    lost = any(table.unmatched for table in scene.joins)
    if lost or (scene.joins and path.exists()):
        write_text_atomically(path, unmatched_csv(scene.joins))
    return path if lost else None


def data_facts(scene: Scene, unmatched: Path | None) -> dict[str, object]:
    """Return the facts about own data, for programs."""
    return {
        "own_data": [
            {
                "role": table.role,
                "file": table.file,
                "join": table.join,
                "columns": table.columns,
                "demand_column": table.demand_column,
                "rows": table.rows,
                "matched": table.matched,
                "unmatched": len(table.unmatched),
                "streets": len(table.demands),
                **(
                    {"demand": sum(table.demands.values())}
                    if table.role == "demand"
                    else {}
                ),
            }
            for table in scene.joins
        ],
        "lost_demand": scene.lost_demand,
        "unmatched_file": None if unmatched is None else str(unmatched),
        **{
            name: {"streets": count.streets, "metres": round(count.metres)}
            for name, count in (
                ("without_row", scene.without_row),
                ("excluded", scene.excluded),
            )
        },
    }


def data_lines(scene: Scene, unmatched: Path | None) -> Iterator[str]:
    """Yield the lines about own data, for people."""
    from arcfleet._checks import one_line

    for table in scene.joins:
        yield f"{f'{table.role} file':{_WIDTH}}{one_line(_joined(table))}"
        if table.other_columns:
            columns = one_line(" or ".join(table.other_columns[:_MOST_LISTED]))
            yield f"{'':{_WIDTH}}every row counts 1; else --demand-column {columns}"
    if scene.without_row.streets:
        yield (
            f"{'without row':{_WIDTH}}{count_of(scene.without_row.streets, 'street')}, "
            f"{scene.without_row.metres / 1000:.1f} km, driven on only; --demand N serves "
            "them, too"
        )
    if scene.excluded.streets:
        yield (
            f"{'excluded':{_WIDTH}}{count_of(scene.excluded.streets, 'street')}, "
            f"{scene.excluded.metres / 1000:.1f} km, driven on only"
        )
    if scene.joins and scene.lost_demand:
        lost_demand = f"{scene.lost_demand}, on streets listed as not served"
        yield f"{'lost demand':{_WIDTH}}{lost_demand}"
    if unmatched is not None:
        lost = [one for table in scene.joins for one in table.unmatched]
        yield f"{'UNMATCHED':{_WIDTH}}{count_of(len(lost), 'row')}, all in {unmatched}"
        for one in lost[:_MOST_LISTED]:
            yield f"{'':{_WIDTH}}{one_line(str(one))}"


def _joined(table: JoinedTable) -> str:
    by = f" ({', '.join(table.columns)})" if table.columns else ""
    text = (
        f"{table.file} by {table.join}{by}: {table.matched} of "
        f"{count_of(table.rows, 'row')} on {count_of(len(table.demands), 'street')}"
    )
    if table.role == "demand":
        column = table.demand_column or "count"
        text += f", {column} {sum(table.demands.values())}"
    return text
