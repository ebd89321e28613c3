"""A report as files: Markdown, CSV, LaTeX and figures, each with its provenance."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from arcfleet._files import write_text_atomically
from arcfleet.errors import FileError
from arcfleet.paper.rows import LABELS
from arcfleet.report.picture import check_plottable
from arcfleet.report.tables import latex_table, markdown_table, table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from arcfleet.paper.series import Series


#: Figures come in both.
_PICTURES = (".png", ".svg")


class Section(NamedTuple):
    """One table: its title and its cells."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Tables and figures of an experiment."""

    name: str  # name of the experiment and of its files
    sections: tuple[Section, ...]
    caption: str  # sentences that state how and where it was measured
    details: tuple[str, ...] = ()  # further facts for the Markdown file: checksums
    records: tuple[Mapping[str, object], ...] = ()  # lines of the CSV file
    # By name of the file without its ending, a function that draws into a file with a
    # caption.
    figures: Mapping[str, Callable[..., None]] = field(default_factory=dict)
    files: tuple[Path, ...] = ()  # files that were written

    def text(self) -> str:
        """Return tables, caption and names of the files as text for a terminal."""
        parts = [f"{x.title}\n\n{table(x.rows, x.header)}" for x in self.sections]
        files = ", ".join(path.name for path in self.files)
        return "\n\n".join(x for x in (*parts, self.caption, files) if x)

    def facts(self) -> dict[str, object]:
        """Return records and files, as JSON can hold them."""
        return {"records": self.records, "files": [str(path) for path in self.files]}


def write_report(report: Report, folder: Path, *, figures: bool = True) -> Report:
    """Write a report into a folder, and return it with the files."""
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
        for name, draw in report.figures.items():
            for suffix in _PICTURES:
                path = folder / f"{name}{suffix}"
                draw(path, caption=report.caption)
                written.append(path)
    return replace(report, files=tuple(written))


def prepare_folder(folder: Path, *, figures: bool) -> None:
    """Create the folder, and raise what would prevent the figures, before long work."""
    make_folder(folder)
    if figures:
        check_plottable(folder / "figure.png")


def make_folder(folder: Path) -> None:
    """Create a folder where it is missing, or raise FileError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(
            folder, f"cannot be made ({error.strerror}); name another folder"
        ) from error


def _markdown(report: Report, figures: bool) -> str:
    parts = [f"## {x.title}\n\n{markdown_table(x.rows, x.header)}" for x in report.sections]
    if figures:
        parts += [f"![{name}]({name}.png)" for name in report.figures]
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
    """Return sentences on the machines, commits, seeds and instances of series."""
    measured = [each for each in series if each.row != LABELS]
    lines = [line for each in measured for line in each.lines]
    devices: dict[str, list[str]] = {}
    for line in lines:
        devices.setdefault(line.machine, []).append(line.device)
    places = []
    for name, used in devices.items():
        gpus = [device for device in dict.fromkeys(used) if device != "cpu"]
        places.append(" and ".join([*gpus, name]))
    counts: dict[str, set[int]] = {}
    for each in measured:
        counts.setdefault(each.label, set()).add(len(each))
    by_count: dict[str, list[str]] = {}
    for label, numbers in counts.items():
        least, most = min(numbers), max(numbers)
        text = f"{least:,}" if least == most else f"{least:,} to {most:,}"
        by_count.setdefault(text, []).append(label)
    if len(by_count) == 1:
        instances = f"{next(iter(by_count))} for every row"
    else:
        instances = "; ".join(f"{text} for {', '.join(x)}" for text, x in by_count.items())
    seeds = {x.of.settings["seed"] for x in measured if "seed" in x.of.settings}
    seed = f" Seed {', '.join(str(x) for x in sorted(seeds))}." if seeds else ""
    commits = ", ".join(dict.fromkeys(line.commit for line in lines))
    return (
        f"Instances per test set: {instances}.{seed} Measured on {'; '.join(places)}. "
        f"Commit {commits}."
    )


def checksums(series: Sequence[Series]) -> tuple[str, ...]:
    """Return the files that series were made from, with their SHA-256."""
    found: dict[str, None] = {}
    for of in (each.of for each in series):
        found[f"test set {of.set_name} ({of.scale}, {of.place}): {of.data_sha256}"] = None
    for of in (each.of for each in series if each.of.source_sha256 is not None):
        what = (
            f"{of.label} of {of.set_name}" if of.row == LABELS else f"model of {of.label}"
        )
        found[f"{what}: {of.source_sha256}"] = None
    return tuple(found)


def record_of(series: Series) -> dict[str, object]:
    """Return what a line of any CSV file states of a series."""
    of = series.of
    return {
        "set": of.set_name,
        "scale": of.scale,
        "place": of.place,
        "row": of.row,
        "label": of.label,
        **dict.fromkeys(("iterations", "samples", "temperature", "seed")),
        **of.settings,
        "device": of.device,
        "alone": of.alone,
        "instances": len(series),
        "mean_cost": round(series.mean_cost, 4),
        "seconds": round(series.seconds, 9),
        "seconds_at_once": round(series.seconds_at_once, 9),
        "parallel": series.parallel,
        "verified": sum(line.verified for line in series.lines),
        "machine": "; ".join(dict.fromkeys(x.machine for x in series.lines)),
        "commit": "; ".join(dict.fromkeys(x.commit for x in series.lines)),
        "data_sha256": of.data_sha256,
        "source_sha256": of.source_sha256,
    }


def seconds_text(seconds: float) -> str:
    """Return a time in three digits with its unit."""
    if seconds < 1e-3:
        return f"{1e6 * seconds:.3g} µs"
    if seconds < 1:
        return f"{1e3 * seconds:.3g} ms"
    return f"{seconds:.3g} s" if seconds < 1000 else f"{seconds:.0f} s"
