"""Models on scales and cities that they were not trained on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arcfleet.errors import OptionError
from arcfleet.paper.gaps import gaps_to, scale_number, set_tables
from arcfleet.paper.report import Drawing, Report, Section, checksums, provenance, record_of
from arcfleet.paper.rows import LABELS
from arcfleet.paper.table import gap_text
from arcfleet.report.charts import draw_heat

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from pathlib import Path

    from arcfleet.paper.series import Series


def generalise_report(series: Sequence[Series], seen: Collection[str] = ()) -> Report:
    """Lay out gaps to the labels: models and cities down, scales across.

    Parameters
    ----------
    series
        What was measured, with the labels of every test set.
    seen
        Cities that the models were trained on; with none given, nothing is said of it.

    Raises
    ------
    OptionError
        If a test set has no labels, two are of the same city and scale, or none is of a
        city that is said to be seen.
    """
    tables = set_tables(series)
    require_places(seen, [t.place for t in tables])
    scales = sorted({t.scale for t in tables}, key=scale_number)
    places = list(dict.fromkeys(t.place for t in tables))
    models = list(dict.fromkeys(x.key.label for t in tables for x in t.rows.values()))
    gaps: dict[tuple[str, str, str], float] = {}
    texts: dict[tuple[str, str, str], str | None] = {}
    records, used = [], []
    for t in tables:
        if t.labels is None:
            raise OptionError(
                f"expected labels of {t.name} to compare with, found none: make them with "
                "`arcfleet dataset label`"
            )
        used.append(t.labels)
        best = t.best_known
        for x in t.rows.values():
            place = (x.key.label, t.place, t.scale)
            if place in gaps:
                raise OptionError(
                    f"expected one test set of {t.scale} of {t.place}, found several: "
                    "report them apart"
                )
            compared = gaps_to(x, best)
            if compared is None:
                continue
            gaps[place] = compared[0].gap_percent
            texts[place] = gap_text(compared)
            used.append(x)
            records.append(
                record_of(x)
                | {
                    "seen": _mark(t.place, seen) or None,
                    "gap_percent": compared[0].gap_percent,
                    "half_width_percent": compared[0].half_width_percent,
                }
            )
    lines = [(m, p) for m in models for p in places if any(k[:2] == (m, p) for k in gaps)]
    names = [_line_name(m, p, models, places, seen) for m, p in lines]
    columns = [scale.replace("task", "Task") for scale in scales]
    section = Section(
        "Mean gap of total cost to the best known in percent, 95 % confidence interval",
        ["model, tested on", *columns],
        [
            [name, *(texts.get((*line, scale)) for scale in scales)]
            for name, line in zip(names, lines, strict=True)
        ],
    )
    values = [[gaps.get((*line, scale)) for scale in scales] for line in lines]

    def draw(path: Path, caption: str) -> None:
        draw_heat(
            values,
            path,
            rows=names,
            columns=columns,
            x_label="tested on",
            y_label="model",
            value_label="mean gap to the best known, %",
            caption=caption,
        )

    return Report(
        name="generalise",
        sections=(section,),
        caption=(
            f"Plans are decoded as by the rows {_decodings(used)}. The best known is the "
            f"cheapest of the labels and all models. {provenance(used)}"
        ),
        details=checksums(used),
        records=tuple(records),
        drawings=(Drawing("generalise", draw),),
    )


def require_places(seen: Iterable[str], places: Iterable[str]) -> None:
    """Raise OptionError unless all maps that were seen are those of some test set."""
    known = list(dict.fromkeys(name for place in places for name in _maps(place)))
    for name in seen:
        if name not in known:
            raise OptionError(
                f"expected --seen to name maps of the test sets, {', '.join(known)}, got "
                f"{name!r}"
            )


def _maps(place: str) -> list[str]:
    return place.split(", ")


def _mark(place: str, seen: Collection[str]) -> str:
    """Say whether models were trained on the maps of a place; nothing if nobody knows."""
    if not seen:
        return ""
    known = [name in seen for name in _maps(place)]
    return "seen" if all(known) else "partly seen" if any(known) else "unseen"


def _decodings(series: Sequence[Series]) -> str:
    names = (x.key.row.partition(":")[0] for x in series if x.key.row != LABELS)
    return ", ".join(dict.fromkeys(names))


def _line_name(
    model: str, place: str, models: list[str], places: list[str], seen: Collection[str]
) -> str:
    mark = _mark(place, seen)
    parts = [model] if len(models) > 1 or len(places) == 1 else []
    if len(places) > 1 or mark:
        count = len(_maps(place))
        alike = sum(len(_maps(other)) == count for other in places) > 1
        short = place if count <= 2 or alike else f"{count} maps"
        parts.append(f"{short} ({mark})" if mark else short)
    return ", ".join(parts)
