"""A driver's sheet as a PDF file, by reportlab."""

from __future__ import annotations

import io
import unicodedata
import warnings
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arcfleet.errors import FormatWarning
from arcfleet.report.colours import DEPOT, FACILITY
from arcfleet.report.sheets import LINES_PER_PAGE, MAP_SIZE, clock, icon_angle

if TYPE_CHECKING:
    from collections.abc import Iterator

    from arcfleet.report.sheets import Point, Sheet, SheetMap, SheetPage
    from arcfleet.solution.directions import Instruction

_PAGE = (210.0, 297.0)
_LEFT, _TOP = 12.0, 10.0
_MAP_TOP = 33.0
_TABLE_TOP = _MAP_TOP + MAP_SIZE[1] + 6.0
_ROW = (_PAGE[1] - _TABLE_TOP - 16.0) / LINES_PER_PAGE
#: Left edges of the columns, in millimetres from the margin, and right edges of numbers.
_COLUMNS = {"icon": 9.0, "what": 16.0, "street": 72.0, "mode": 130.0, "box": 181.0}
_NUMBERS = {"#": 7.0, "metres": 152.0, "load": 164.0, "time": 177.0}
#: Fonts of the format for scripts that the others lack, by the names of their letters.
_EASTERN = {
    "HANGUL": "HYSMyeongJo-Medium",
    "HIRAGANA": "HeiseiMin-W3",
    "KATAKANA": "HeiseiMin-W3",
    "CJK": "STSong-Light",
}


def sheet_pdf(sheet: Sheet) -> bytes:
    """Return the sheet of a route as a PDF document; equal sheets give equal bytes."""
    from reportlab.lib.units import mm
    from reportlab.pdfgen.canvas import Canvas

    stream = io.BytesIO()
    canvas = Canvas(stream, pagesize=(_PAGE[0] * mm, _PAGE[1] * mm), invariant=1)
    canvas.setTitle(sheet.title)
    canvas.setCreator("arcfleet")
    fonts = _fonts(sheet)
    for number, page in enumerate(sheet.pages, start=1):
        # Millimetres from the top left corner, as on the map.
        canvas.saveState()
        canvas.translate(0, _PAGE[1] * mm)
        canvas.scale(mm, mm)
        _Page(canvas, fonts, sheet).draw(page, number)
        canvas.restoreState()
        canvas.showPage()
    with _as_bytes():
        canvas.save()
    return stream.getvalue()


@contextmanager
def _as_bytes() -> Iterator[None]:
    """Write packed pages as they are: as text they take a quarter more, and time."""
    from reportlab import rl_config

    before = rl_config.useA85
    rl_config.useA85 = 0
    try:
        yield
    finally:
        rl_config.useA85 = before


def _fonts(sheet: Sheet) -> tuple[str, str]:
    """Return the names of a plain and a bold font that have the letters of a sheet."""
    texts = [sheet.title, sheet.notice, *sheet.facts]
    texts += [line.street for page in sheet.pages for _, line in page.lines]
    letters = set("".join(texts))
    try:
        "".join(letters).encode("cp1252")
        return "Helvetica", "Helvetica-Bold"
    except UnicodeEncodeError:
        pass
    from reportlab.pdfbase import pdfmetrics

    names = {unicodedata.name(letter, "").split(" ")[0] for letter in letters}
    for script, font in _EASTERN.items():
        if script in names:
            from reportlab.pdfbase.cidfonts import UnicodeCIDFont

            pdfmetrics.registerFont(UnicodeCIDFont(font))
            return font, font
    return _dejavu(sheet)


def _dejavu(sheet: Sheet) -> tuple[str, str]:
    from reportlab.pdfbase import pdfmetrics
    from reportlab.pdfbase.ttfonts import TTFont

    if find_spec("matplotlib") is None:
        warnings.warn(
            f"{sheet.title}: the PDF lacks letters of some names; for a font that has "
            "them run: pip install 'arcfleet[plot]'",
            FormatWarning,
            stacklevel=4,
        )
        return "Helvetica", "Helvetica-Bold"
    import matplotlib

    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    for name in ("DejaVuSans", "DejaVuSans-Bold"):
        pdfmetrics.registerFont(TTFont(name, folder / f"{name}.ttf"))
    return "DejaVuSans", "DejaVuSans-Bold"


class _Page:
    """Draw on one page; y is counted downwards."""

    def __init__(self, canvas: Any, fonts: tuple[str, str], sheet: Sheet) -> None:
        self.canvas, self.sheet = canvas, sheet
        self.plain, self.bold = fonts

    def draw(self, page: SheetPage, number: int) -> None:
        self._header(number)
        self.canvas.saveState()
        self.canvas.translate(_LEFT, -_MAP_TOP)
        self._map(page.map)
        self.canvas.restoreState()
        self._table(page)
        foot = _PAGE[1] - 7
        self._text(_LEFT, foot, self.sheet.notice, 2.3, width=120)
        ending = f"{self.sheet.title}, page {number} of {len(self.sheet.pages)}"
        self._text(_PAGE[0] - _LEFT, foot, ending, 2.3, width=62, align="right")

    def _header(self, number: int) -> None:
        canvas = self.canvas
        canvas.setFillColor(self.sheet.colour)
        canvas.rect(_LEFT, -_TOP - 7, 3, 7, stroke=0, fill=1)
        self._text(_LEFT + 5, _TOP + 5.5, self.sheet.title, 5.5, bold=True, width=150)
        if number > 1:
            return
        facts = " · ".join(self.sheet.facts)
        self._text(_LEFT, _TOP + 12.5, facts, 3.5, width=158)
        x = _LEFT
        canvas.setStrokeColor("#777777")
        canvas.setLineWidth(0.2)
        for blank in ("Driver", "Vehicle", "Date"):
            self._text(x, _TOP + 19.5, blank, 3.2)
            canvas.line(x + 13, -_TOP - 20, x + 50, -_TOP - 20)
            x += 53
        self._qr()

    def _qr(self) -> None:
        import segno

        rows = list(segno.make(self.sheet.track, error="m", micro=False).matrix)
        side = 17.0 / len(rows)
        left, top = _PAGE[0] - _LEFT - 17, _TOP - 3
        self.canvas.setFillColor("#000000")
        for row, cells in enumerate(rows):
            for column, dark in enumerate(cells):
                if dark:
                    self.canvas.rect(
                        left + column * side,
                        -top - (row + 1) * side,
                        # A little over the edge, or printers leave white hairlines.
                        side * 1.02,
                        side * 1.02,
                        stroke=0,
                        fill=1,
                    )
        self._text(left + 8.5, top + 20, self.sheet.track, 2.4, align="centre")

    def _map(self, drawn: SheetMap) -> None:
        canvas = self.canvas
        width, height = MAP_SIZE
        frame = canvas.beginPath()
        frame.rect(0, -height, width, height)
        canvas.saveState()
        canvas.clipPath(frame, stroke=0, fill=0)
        canvas.setLineJoin(1)
        colour = self.sheet.colour
        self._lines(drawn.streets, "#c8c8c8", 0.7)
        self._lines(drawn.route, self.sheet.pale, 0.7)
        canvas.setDash([1.6, 1.2])
        self._lines(drawn.drive, colour, 0.8)
        canvas.setDash([])
        self._lines(drawn.work, colour, 1.6)
        canvas.setFillColor("#111111")
        for (x, y), angle in drawn.arrows:
            self._shape(x, y, angle, [(0, -1.2), (0.9, 0.9), (0, 0.4), (-0.9, 0.9)])
        canvas.setFillColor(FACILITY)
        for (x, y), name in drawn.facilities:
            self._shape(x, y, 0, [(-1.6, 0), (0, -1.6), (1.6, 0), (0, 1.6)])
            self._text(x + 2.2, y + 1, name, 3)
        canvas.setFillColor(DEPOT)
        for x, y in drawn.depots:
            canvas.rect(x - 1.4, -y - 1.4, 2.8, 2.8, stroke=0, fill=1)
        canvas.setStrokeColor("#111111")
        canvas.setLineWidth(0.25)
        for (x, y), number in drawn.labels:
            canvas.setFillColor("#ffffff")
            canvas.circle(x, -y, 2.2, stroke=1, fill=1)
            self._text(x, y + 0.95, number, 2.7, align="centre")
        canvas.restoreState()
        canvas.setStrokeColor("#999999")
        canvas.setLineWidth(0.2)
        canvas.rect(0, -height, width, height, stroke=1, fill=0)

    def _lines(self, lines: list[list[Point]], colour: str, width: float) -> None:
        path = self.canvas.beginPath()
        for (x, y), *others in lines:
            path.moveTo(x, -y)
            for next_x, next_y in others:
                path.lineTo(next_x, -next_y)
        self.canvas.setStrokeColor(colour)
        self.canvas.setLineWidth(width)
        self.canvas.drawPath(path, stroke=1, fill=0)

    def _shape(self, x: float, y: float, angle: float, corners: list[Point]) -> None:
        self.canvas.saveState()
        self.canvas.translate(x, -y)
        self.canvas.rotate(-angle)
        path = self.canvas.beginPath()
        path.moveTo(corners[0][0], -corners[0][1])
        for corner_x, corner_y in corners[1:]:
            path.lineTo(corner_x, -corner_y)
        path.close()
        self.canvas.drawPath(path, stroke=0, fill=1)
        self.canvas.restoreState()

    def _table(self, page: SheetPage) -> None:
        y = _TABLE_TOP - 1
        for name, right in _NUMBERS.items():
            if name != "time" or self.sheet.timed:
                self._text(_LEFT + right, y, name, 2.8, align="right")
        heads = {"what": "what to do", "street": "street", "box": "done"}
        for name, text in heads.items():
            self._text(_LEFT + _COLUMNS[name] - (1 if name == "box" else 0), y, text, 2.8)
        self._rule(y + 1.2, 0.4, "#111111")
        y = _TABLE_TOP + 0.2
        for number, line in page.lines:
            self._row(y, number, line)
            y += _ROW

    def _row(self, y: float, number: int, line: Instruction) -> None:
        canvas = self.canvas
        works = line.action == "serve"
        if works:
            canvas.setFillColor("#eef3f7")
            canvas.rect(_LEFT, -y - _ROW, MAP_SIZE[0], _ROW, stroke=0, fill=1)
        base = y + _ROW * 0.7
        mode = {"serve": "work", "drive": "drive"}.get(line.action, "")
        size = 3.3
        self._text(_LEFT + _NUMBERS["#"], base, str(number), size, align="right")
        self._text(_LEFT + _COLUMNS["what"], base, line.manoeuvre, size, width=55)
        self._text(_LEFT + _COLUMNS["street"], base, line.street, size, works, width=57)
        self._text(_LEFT + _COLUMNS["mode"], base, mode, size, works)
        values = {"metres": str(line.metres) if mode else "", "load": str(line.load)}
        if self.sheet.timed:
            values["time"] = clock(line.total_seconds)
        for name, text in values.items():
            self._text(_LEFT + _NUMBERS[name], base, text, size, works, align="right")
        if line.action in ("serve", "visit"):
            canvas.setStrokeColor("#111111")
            canvas.setLineWidth(0.3)
            canvas.rect(_LEFT + _COLUMNS["box"], -base - 0.3, 3.2, 3.2, stroke=1, fill=0)
        self._icon(_LEFT + _COLUMNS["icon"] + 2, y + _ROW / 2, line)
        self._rule(y + _ROW, 0.1, "#bbbbbb")

    def _icon(self, x: float, y: float, line: Instruction) -> None:
        angle = icon_angle(line)
        if angle is None:
            return
        canvas = self.canvas
        canvas.saveState()
        canvas.translate(x, -y)
        canvas.setStrokeColor("#111111")
        canvas.setLineWidth(0.5)
        path = canvas.beginPath()
        if line.turn == "turn round":
            path.moveTo(-0.9, -1.7)
            path.lineTo(-0.9, 0.6)
            path.curveTo(-0.9, 1.9, 0.9, 1.9, 0.9, 0.6)
            path.lineTo(0.9, -1.2)
            path.moveTo(0.1, -0.4)
            path.lineTo(0.9, -1.3)
            path.lineTo(1.7, -0.4)
        else:
            canvas.rotate(-angle)
            path.moveTo(0, -1.7)
            path.lineTo(0, 1.6)
            path.moveTo(-1, 0.6)
            path.lineTo(0, 1.6)
            path.lineTo(1, 0.6)
        canvas.drawPath(path, stroke=1, fill=0)
        canvas.restoreState()

    def _rule(self, y: float, width: float, colour: str) -> None:
        self.canvas.setStrokeColor(colour)
        self.canvas.setLineWidth(width)
        self.canvas.line(_LEFT, -y, _LEFT + MAP_SIZE[0], -y)

    def _text(
        self,
        x: float,
        y: float,
        text: str,
        size: float,
        bold: bool = False,
        *,
        width: float | None = None,
        align: str = "left",
    ) -> None:
        """Write text at a base line; what is wider than `width` becomes smaller."""
        font = self.bold if bold else self.plain
        wide = self.canvas.stringWidth(text, font, size)
        if width is not None and wide > width:
            size *= width / wide
        self.canvas.setFont(font, size)
        self.canvas.setFillColor("#111111")
        draw = {
            "left": self.canvas.drawString,
            "right": self.canvas.drawRightString,
            "centre": self.canvas.drawCentredString,
        }[align]
        draw(x, -y, text)
