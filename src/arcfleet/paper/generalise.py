"""Models on scales and cities that they were not trained on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from arcfleet.errors import OptionError
from arcfleet.paper.gaps import columns_of, gaps_to, scale_number
from arcfleet.paper.measure import RowsConfig, measure, split_names
from arcfleet.paper.report import (
    Report,
    Section,
    checksums,
    provenance,
    record_of,
    write_report,
)
from arcfleet.paper.rows import LABELS, parse_models, parse_rows, with_model
from arcfleet.paper.sets import open_test_sets, require_labels
from arcfleet.paper.table import gap_text, gap_title
from arcfleet.report.charts import draw_heat

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from arcfleet.paper.commands import Watch
    from arcfleet.paper.series import Series


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Inputs and settings of `arcfleet paper generalise`.

    Parameters
    ----------
    comparison
        Labelled test sets, models named by what they were trained on, and the rows that
        decode by them, by default daam-po.
    seen
        Maps that the models were trained on.
    """

    comparison: RowsConfig
    seen: tuple[str, ...] = ()


def run(config: Config, watch: Watch) -> Report:
    """Measure models on all test sets, and report their gaps."""
    rows = config.comparison.on_tiny_set(("daam-sl-rl",))
    selection, device = rows.selection, rows.measure.device
    texts = split_names(selection.rows) or ["daam-po"]
    decodings = parse_rows(texts, seed=rows.measure.seed, temperature=selection.temperature)
    models = parse_models(selection.models, device)
    names = list(dict.fromkeys(name for name, _ in models.given)) or ["daam"]
    alike = len(decodings) == 1
    named = [with_model(x, name, only_strategy=alike) for name in names for x in decodings]
    test_sets = open_test_sets(rows.sets, rows.labelled)
    seen = tuple(split_names(config.seen))
    require_places(seen, [test_set.place for test_set in test_sets])
    require_labels(test_sets)
    series = measure(
        test_sets,
        named,
        models,
        rows.measure,
        watch,
        store=rows.out / "generalise.jsonl",
        figures=rows.figures,
        count=selection.count,
    )
    report = generalise_report(series, seen)
    return write_report(report, rows.out, figures=rows.figures)


def generalise_report(series: Sequence[Series], seen: Collection[str] = ()) -> Report:
    """Lay out gaps to the labels: models and cities down, scales across."""
    tables = columns_of(series)
    require_places(seen, [t.place for t in tables])
    scales = sorted({t.scale for t in tables}, key=scale_number)
    places = list(dict.fromkeys(t.place for t in tables))
    models = list(dict.fromkeys(x.label for t in tables for x in t.rows.values()))
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
        for x in t.rows.values():
            place = (x.label, t.place, t.scale)
            if place in gaps:
                raise OptionError(
                    f"expected one test set of {t.scale} of {t.place}, found several: "
                    "report them apart"
                )
            compared = gaps_to(x, t.best_known)
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
        gap_title("the best known"),
        ["model, tested on", *columns],
        [
            [name, *(texts.get((*line, scale)) for scale in scales)]
            for name, line in zip(names, lines, strict=True)
        ],
    )
    draw = partial(
        draw_heat,
        [[gaps.get((*line, scale)) for scale in scales] for line in lines],
        rows=names,
        columns=columns,
        x_label="tested on",
        y_label="model",
        value_label="mean gap to the best known, %",
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
        figures={"generalise": draw},
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
    """Return whether models were trained on the maps of a place; empty if unknown."""
    if not seen:
        return ""
    known = [name in seen for name in _maps(place)]
    return "seen" if all(known) else "partly seen" if any(known) else "unseen"


def _decodings(series: Sequence[Series]) -> str:
    names = (x.row.partition(":")[0] for x in series if x.row != LABELS)
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
