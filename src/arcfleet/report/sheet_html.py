"""A driver's sheet as one HTML file, made to be printed on A4."""

from __future__ import annotations

import html
from importlib import resources
from typing import TYPE_CHECKING

from arcfleet.report.colours import DEPOT, FACILITY
from arcfleet.report.sheets import MAP_SIZE, clock, has_pdf, icon_angle

if TYPE_CHECKING:
    from arcfleet.report.sheets import Point, Sheet, SheetMap, SheetPage
    from arcfleet.solution.directions import Instruction


def sheet_html(sheet: Sheet) -> str:
    """Return the sheet of a route as an HTML document."""
    folder = resources.files("arcfleet.report") / "page"
    style = (folder / "sheet.css").read_text(encoding="utf-8")
    pages = [_page(sheet, page, number) for number, page in enumerate(sheet.pages, start=1)]
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{html.escape(sheet.title)}</title>",
            f"<style>\n{style}</style>\n</head>\n<body>",
            *pages,
            "</body>\n</html>\n",
        ]
    )


def _page(sheet: Sheet, page: SheetPage, number: int) -> str:
    time = '<th class="n">time</th>' if sheet.timed else ""
    head = (
        "<tr><th>#</th><th></th><th>what to do</th><th>street</th><th></th>"
        f'<th class="n">metres</th><th class="n">load</th>{time}<th>done</th></tr>'
    )
    rows = [_row(position, line, sheet.timed) for position, line in page.lines]
    last = len(sheet.pages)
    return "\n".join(
        [
            f'<section class="page">\n{_header(sheet, number)}',
            _svg(page.map, sheet),
            f"<table>\n<thead>{head}</thead>\n<tbody>",
            *rows,
            "</tbody>\n</table>",
            f"<footer><span>{html.escape(sheet.notice)}</span>"
            f"<span>{html.escape(sheet.title)}, page {number} of {last}</span></footer>",
            "</section>",
        ]
    )


def _header(sheet: Sheet, number: int) -> str:
    title = html.escape(sheet.title)
    parts = [f'<h1 style="border-color: {sheet.colour}">{title}</h1>']
    if number == 1:
        facts = " · ".join(html.escape(fact) for fact in sheet.facts)
        parts.append(f"<p>{facts}</p>")
        blanks = " ".join(f"{x} <span>&nbsp;</span>" for x in ("Driver", "Vehicle", "Date"))
        parts.append(f'<p class="blanks">{blanks}</p>')
    code = _qr(sheet.track) if number == 1 else ""
    return f"<header><div>{''.join(parts)}</div>{code}</header>"


def _qr(track: str) -> str:
    if not has_pdf():
        return ""
    import segno

    code = segno.make(track, error="m", micro=False)
    picture = code.svg_inline(scale=1, border=2, omitsize=True)
    return f'<div class="qr">{picture}{html.escape(track)}</div>'


def _row(number: int, line: Instruction, timed: bool) -> str:
    word = {"serve": "work", "drive": "drive"}.get(line.action, "")
    metres = line.metres if word else ""
    time = f'<td class="n time">{clock(line.total_seconds)}</td>' if timed else ""
    box = '<span class="box"></span>' if line.action in ("serve", "visit") else ""
    return (
        f'<tr class="{line.action}"><td class="n">{number}</td>'
        f'<td class="icon">{_icon(line)}</td>'
        f'<td class="what">{html.escape(line.manoeuvre)}</td>'
        f'<td class="street">{html.escape(line.street)}</td>'
        f'<td class="mode">{word}</td><td class="n metres">{metres}</td>'
        f'<td class="n load">{line.load}</td>{time}<td>{box}</td></tr>'
    )


def _icon(line: Instruction) -> str:
    angle = icon_angle(line)
    if angle is None:
        return ""
    if line.turn == "turn round":
        path = "M6 15V7a3 3 0 0 1 6 0v6M9.5 10.500l2.500 3 2.500-3"
        turned = ""
    else:
        path = "M9 16V3M5 7l4-4 4 4"
        turned = f' transform="rotate({angle} 9 9)"'
    return (
        f'<svg viewBox="0 0 18 18" aria-hidden="true"><path d="{path}"{turned} fill="none" '
        'stroke="#111" stroke-width="2"/></svg>'
    )


def _svg(drawn: SheetMap, sheet: Sheet) -> str:
    colour = sheet.colour
    width, height = MAP_SIZE
    parts = [
        f'<svg class="map" viewBox="0 0 {width:g} {height:g}" role="img" '
        'aria-label="map of this page">',
        _lines(drawn.streets, 'stroke="#c8c8c8" stroke-width=".7"'),
        _lines(drawn.route, f'stroke="{sheet.pale}" stroke-width=".7"'),
        _lines(
            drawn.drive, f'stroke="{colour}" stroke-width=".8" stroke-dasharray="1.6 1.2"'
        ),
        _lines(drawn.work, f'stroke="{colour}" stroke-width="1.6"'),
    ]
    parts += [
        f'<path d="M0-1.2L.9.9L0 .4L-.9.9Z" transform="translate({x:g} {y:g}) '
        f'rotate({angle:g})" fill="#111"/>'
        for (x, y), angle in drawn.arrows
    ]
    parts += [
        f'<path d="M{x - 1.6:g} {y:g}l1.6-1.6 1.6 1.6-1.6 1.6z" fill="{FACILITY}"/>'
        f'<text x="{x + 2.2:g}" y="{y + 1:g}" font-size="3">{html.escape(name)}</text>'
        for (x, y), name in drawn.facilities
    ]
    parts += [
        f'<rect x="{x - 1.4:g}" y="{y - 1.4:g}" width="2.8" height="2.8" fill="{DEPOT}"/>'
        for x, y in drawn.depots
    ]
    parts += [
        f'<circle cx="{x:g}" cy="{y:g}" r="2.2" fill="#fff" stroke="#111" '
        f'stroke-width=".25"/><text x="{x:g}" y="{y + 0.95:g}" font-size="2.7" '
        f'text-anchor="middle">{number}</text>'
        for (x, y), number in drawn.labels
    ]
    return "\n".join([*parts, "</svg>"])


def _lines(lines: list[list[Point]], style: str) -> str:
    path = "".join(
        "M" + "L".join(f"{x:g} {y:g}" for x, y in line) for line in lines if line
    )
    return f'<path d="{path}" fill="none" {style}/>' if path else ""
