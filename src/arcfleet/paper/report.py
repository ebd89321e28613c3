"""A report as files: Markdown, CSV, LaTeX and figures, each with where it comes from."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from arcfleet._files import write_text_atomically
from arcfleet.errors import FileError
from arcfleet.paper.rows import LABELS
from arcfleet.report.tables import latex_table, markdown_table, table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from arcfleet.paper.series import Series


#: Figures come in both.
_PICTURES = (".png", ".svg")

_SHORT = 12


class Section(NamedTuple):
    """One table: what it shows, and its cells."""

    title: str
    header: list[str]
    rows: list[list[str | None]]


class Drawing(NamedTuple):
    """A figure that can be drawn into a file.

    Parameters
    ----------
    name
        Of the file, without its ending.
    draw
        Takes the file and the caption.
    """

    name: str
    draw: Callable[[Path, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What an experiment says.

    Parameters
    ----------
    name
        Of the experiment, and of its files.
    sections
        Its tables.
    caption
        How and where it was measured, in sentences.
    details
        Further facts for the Markdown file: checksums.
    records
        The lines of the CSV file.
    drawings
        Its figures.
    """

    name: str
    sections: tuple[Section, ...]
    caption: str
    details: tuple[str, ...] = ()
    records: tuple[Mapping[str, object], ...] = ()
    drawings: tuple[Drawing, ...] = ()

    def text(self) -> str:
        """Write the tables for a terminal."""
        parts = [f"{x.title}\n\n{table(x.rows, x.header)}" for x in self.sections]
        return "\n\n".join(parts)


def write_report(report: Report, folder: Path, *, figures: bool = True) -> list[Path]:
    """Write a report into a folder and give the files.

    Parameters
    ----------
    report
        What to write.
    folder
        Where; made if it is missing.
    figures
        Whether to draw figures, which needs matplotlib.

    Raises
    ------
    OptionError
        If matplotlib is needed and not installed.
    FileError
        If a file cannot be written.
    """
    make_folder(folder)
    texts = {".md": _markdown(report, figures), ".tex": _latex(report)}
    if report.records:
        texts[".csv"] = _csv(report.records)
    written = []
    for suffix, text in texts.items():
        path = folder / f"{report.name}{suffix}"
        write_text_atomically(path, text)
        written.append(path)
    if figures:
        for drawing in report.drawings:
            for suffix in _PICTURES:
                path = folder / f"{drawing.name}{suffix}"
                drawing.draw(path, report.caption)
                written.append(path)
    return written


def make_folder(folder: Path) -> None:
    """Make a folder where it is missing, or raise FileError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(
            folder, f"cannot be made ({error.strerror}); name another folder"
        ) from error


def _markdown(report: Report, figures: bool) -> str:
    parts = [f"## {x.title}\n\n{markdown_table(x.rows, x.header)}" for x in report.sections]
    if figures:
        parts += [f"![{x.name}]({x.name}.png)" for x in report.drawings]
    parts.append(report.caption)
    if report.details:
        parts.append("\n".join(f"- {line}" for line in report.details))
    return "\n\n".join(parts) + "\n"


def _latex(report: Report) -> str:
    return "\n".join(
        latex_table(
            section.rows,
            section.header,
            caption=f"{section.title}. {report.caption}",
            label=f"tab:{report.name}-{number}",
        )
        for number, section in enumerate(report.sections, start=1)
    )


def _csv(records: Sequence[Mapping[str, object]]) -> str:
    text = io.StringIO()
    columns = list(dict.fromkeys(name for record in records for name in record))
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue()


def provenance(series: Sequence[Series]) -> str:
    """Say in sentences on what, by what and on how many instances series were measured."""
    measured = [each for each in series if each.key.row != LABELS]
    chunks = [chunk for each in measured for chunk in each.chunks]
    devices: dict[str, list[str]] = {}
    for chunk in chunks:
        devices.setdefault(chunk.machine, []).append(chunk.key.device)
    places = []
    for name, used in devices.items():
        gpus = [device for device in dict.fromkeys(used) if device != "cpu"]
        places.append(" and ".join([*gpus, name]))
    counts: dict[str, set[int]] = {}
    for each in measured:
        counts.setdefault(each.key.label, set()).add(len(each))
    by_count: dict[str, list[str]] = {}
    for label, numbers in counts.items():
        least, most = min(numbers), max(numbers)
        text = f"{least:,}" if least == most else f"{least:,} to {most:,}"
        by_count.setdefault(text, []).append(label)
    if len(by_count) == 1:
        instances = f"{next(iter(by_count))} for every row"
    else:
        instances = "; ".join(f"{text} for {', '.join(x)}" for text, x in by_count.items())
    seeds = {
        dict(x.key.settings)["seed"] for x in measured if "seed" in dict(x.key.settings)
    }
    seed = f" Seed {', '.join(str(x) for x in sorted(seeds))}." if seeds else ""
    commits = ", ".join(dict.fromkeys(chunk.commit for chunk in chunks))
    return (
        f"Instances per test set: {instances}.{seed} Measured on {'; '.join(places)}. "
        f"Commit {commits}."
    )


def checksums(series: Sequence[Series]) -> tuple[str, ...]:
    """Name the files that series were made of, with their SHA-256."""
    lines: dict[str, None] = {}
    for each in series:
        key = each.key
        lines[f"test set {key.set_name} ({key.scale}, {key.place}): {key.data_sha256}"] = (
            None
        )
    for each in series:
        if each.key.source_sha256 is not None:
            key = each.key
            what = (
                f"{key.label} of {key.set_name}"
                if key.row == LABELS
                else f"model of {key.label}"
            )
            lines[f"{what}: {key.source_sha256}"] = None
    return tuple(lines)


def record_of(series: Series) -> dict[str, object]:
    """Give what a line of any CSV file says of a series."""
    key = series.key
    return {
        "set": key.set_name,
        "scale": key.scale,
        "place": key.place,
        "row": key.row,
        "label": key.label,
        **dict.fromkeys(("iterations", "samples", "temperature", "seed")),
        **dict(key.settings),
        "device": key.device,
        "alone": key.alone,
        "instances": len(series),
        "mean_cost": round(float(series.costs.mean()), 4),
        "seconds": round(series.seconds, 9),
        "seconds_at_once": round(series.seconds_at_once, 9),
        "parallel": series.parallel,
        "judged": sum(chunk.judged for chunk in series.chunks),
        "machine": "; ".join(dict.fromkeys(x.machine for x in series.chunks)),
        "commit": "; ".join(dict.fromkeys(x.commit for x in series.chunks)),
        "data_sha256": key.data_sha256,
        "source_sha256": key.source_sha256,
    }


def seconds_text(seconds: float) -> str:
    """Write a time in three digits with its unit."""
    if seconds < 1e-3:
        return f"{1e6 * seconds:.3g} µs"
    if seconds < 1:
        return f"{1e3 * seconds:.3g} ms"
    return f"{seconds:.3g} s" if seconds < 1000 else f"{seconds:.0f} s"
