"""Static pictures of instances and plans, for documents and papers."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from arcfleet.errors import OptionError
from arcfleet.report.charts import PAGE_INCHES, add_caption
from arcfleet.report.colours import DEPOT, FACILITY, route_colours
from arcfleet.report.layout import Places, layout, link_shapes, middle, shifted
from arcfleet.report.picture import new_figure, save_picture
from arcfleet.solution.drive import check_links
from arcfleet.solution.travel import with_travel
from arcfleet.solution.words import brief_figures, depot_nodes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from arcfleet.instance.instance import Instance
    from arcfleet.solution.solution import Route, Solution

_STREET = "#cfd3d6"
_REQUIRED = "#4a5560"
_ONE_WAY = "#8b949b"
_DOTS_PER_INCH = 160
_MOST_LEGEND_ROUTES = 12
_MOST_ARROWS = 150
_MOST_NUMBERED_NODES = 40
_ATTRIBUTION_LETTERS_PER_INCH = 18
_MOST_ATTRIBUTION_LINES = 4  # per line of it: a long story must not fill the page
_LARGEST_SHOWN_NUMBER = 999  # what fits into a node's circle; street data has 10 digits
#: Deadheads along a street are drawn side by side, up to this many in each direction.
_LANES = 3
#: Thickness of lines in one of many panels.
_SMALL = 0.45
_PAGE_DOTS_PER_INCH = 220
_LEFT = 0.22  # inches for the names of the scenes
_TOP = 0.34  # inches for the titles above each row, of two lines
_SPACE = 0.06
_LONGER_SIDE = 8.0  # inches
_SHORTER_SIDE = 3.5
_POINTS_PER_INCH = 72.0
#: Left, bottom, width and height, as shares of a figure.
_Box = tuple[float, float, float, float]


def plot(
    instance: Instance,
    solution: Solution | None = None,
    path: Path | str | None = None,
    title: str | None = None,
    *,
    ax: Axes | None = None,
) -> Axes | None:
    """Draw an instance, or a plan for it, into a file or on to axes of matplotlib.

    Services are solid, deadheads dashed along the streets of the routes' paths; a route
    without a path gets straight dashed connectors. The file appears only once complete,
    and the same plan gives the same file.

    Parameters
    ----------
    instance
        The streets.
    solution
        The plan; None draws the instance alone, with its required streets darker.
    path
        File to write; the suffix chooses among PNG, SVG and PDF.
    title
        Title above the picture; by default name, cost and number of routes.
    ax
        Axes to draw on, in place of a file. They are returned, and neither shown nor
        saved. The legend stands to the right of them; `ax.get_legend().remove()` takes
        it away.

    Raises
    ------
    OptionError
        If there is neither a file nor axes, or both, if the suffix is unknown, or if
        matplotlib is not installed.
    SolutionError
        If the plan contains links that the instance does not have.
    FileError
        If the file cannot be written.
    """
    if (path is None) == (ax is None):
        raise OptionError(
            "expected either a file to draw into or axes to draw on, got "
            f"{'neither' if ax is None else 'both'}: give path or ax"
        )
    figure = None if path is None else new_figure(Path(path))
    if solution is not None:
        check_links(instance, solution)
        solution = with_travel(instance, solution)
    picture = _Picture(instance, figure or ax, solution)
    picture.draw(solution, title or _title(instance, solution))
    if figure is not None:
        save_picture(figure, Path(path or ""), dots_per_inch=_DOTS_PER_INCH)
    return ax


class _Picture:
    """One drawing: the axes and the lines of the links on it."""

    def __init__(
        self,
        instance: Instance,
        canvas: Any,  # a figure, or axes that are there already
        solution: Solution | None,
        box: _Box | None = None,
    ) -> None:
        self.instance = instance
        self.places = layout(instance)
        self.position = {node: i for i, node in enumerate(instance.nodes)}
        self.shapes = link_shapes(instance, self.places)
        self.depots = depot_nodes(instance)
        self.thickness = 1.0 if box is None else _SMALL
        sides, centre = _extent(np.vstack(self._planned(solution)))
        if hasattr(canvas, "add_axes"):
            if box is None:  # the picture fills the figure, which takes its shape
                canvas.set_size_inches(*(_LONGER_SIDE * sides / sides.max()))
            self.axes: Axes = canvas.add_axes(box or (0, 0, 1, 1))
            inches = np.array((box or (0, 0, 1, 1))[2:]) * canvas.get_size_inches()
        else:
            self.axes = canvas
            self.axes.set_aspect("equal")  # whatever shape the axes have later
            place = self.axes.get_window_extent()
            inches = np.array([place.width, place.height]) / canvas.figure.dpi
        # The side that is too long for the axes says how much an inch holds.
        sides = inches * (sides / inches).max()
        self.axes.set_xlim(*(centre[0] + sides[0] * np.array([-0.5, 0.5])))
        self.axes.set_ylim(*(centre[1] + sides[1] * np.array([-0.5, 0.5])))
        self.axes.set_axis_off()
        self.inches = float(inches[0])
        #: Length of a typographic point in units of the axes.
        self.point = float(sides[0] / inches[0] / _POINTS_PER_INCH)

    def _planned(self, solution: Solution | None) -> list[Places]:
        """Return the lines served and driven, and the marks; of a plan of none, all lines.

        Most of a large map is there to drive on only.
        """
        routes = () if solution is None else solution.routes
        driven = {step.link for route in routes for step in route.path}
        shown = sorted(driven.union(self.instance.required))
        marked = self._at([*self.depots, *(x.node for x in self.instance.facilities)])
        if not shown:
            return [self.places, *self.shapes]
        return [marked, *(self.shapes[link] for link in shown)]

    def draw(self, solution: Solution | None, title: str) -> None:
        self._draw_streets(darker_required=solution is None)
        if solution is not None:
            self._draw_routes(solution.routes)
        self._draw_nodes()
        self._draw_legend(solution)
        self.axes.set_title(title, fontsize=13, pad=10, parse_math=False)
        self._draw_attribution()

    def draw_small(self, solution: Solution, title: str) -> None:
        """Draw a plan into axes among others: thin lines, no legend, no attribution."""
        self._draw_streets(darker_required=False, arrows=False)
        self._draw_routes(solution.routes, arrows=False)
        self._marks(16)
        self.axes.set_title(title, fontsize=7.5, pad=3, parse_math=False)

    def _draw_streets(self, darker_required: bool, arrows: bool = True) -> None:
        links = self.instance.links
        drawn = list(zip(self.shapes, links, strict=True))
        dark = [s for s, link in drawn if darker_required and link.required]
        plain = [s for s, link in drawn if not (darker_required and link.required)]
        self._lines(plain, _STREET, 1.3, layer=1)
        self._lines(dark, _REQUIRED, 1.9, layer=2)
        one_way = [s for s, link in drawn if link.one_way]
        if arrows and len(one_way) <= _MOST_ARROWS:
            colour = _REQUIRED if darker_required else _ONE_WAY
            self._arrows(one_way, colour, 6.5, layer=2.5)

    def _draw_routes(self, routes: Sequence[Route], arrows: bool = True) -> None:
        lanes: Counter[tuple[int, bool]] = Counter()
        services = sum(len(route.services) for route in routes)
        directions = arrows and services <= _MOST_ARROWS
        for route, colour in zip(routes, route_colours(len(routes)), strict=True):
            served = [self._driven(s.link, s.reverse) for s in route.services]
            self._lines(served, colour, 2.6, layer=4)
            if directions:
                self._arrows(served, colour, 8.5, layer=5)
            self._lines(self._deadheads(route, lanes), colour, 1.2, layer=3, dashed=True)

    def _deadheads(self, route: Route, lanes: Counter[tuple[int, bool]]) -> list[Places]:
        if not route.path:
            return self._connectors(route)
        lines = []
        for step in route.path:
            if not step.serves:
                # To the right of the street, so that a service there stays visible.
                lane = lanes[step.link, step.reverse] % _LANES
                lanes[step.link, step.reverse] += 1
                aside = (2.6 + 1.9 * lane) * self.point * self.thickness
                lines.append(shifted(self._driven(step.link, step.reverse), aside))
        return lines

    def _connectors(self, route: Route) -> list[Places]:
        vehicle = self.instance.fleet[route.vehicle]
        facilities = self.instance.facilities
        visited = {v.services: facilities[v.facility].node for v in route.visits}
        stops = [vehicle.start]
        for order, service in enumerate(route.services):
            if order in visited:
                stops += [visited[order]] * 2
            stops += self.instance.links[service.link].ends(service.reverse)
        if len(route.services) in visited:
            stops += [visited[len(route.services)]] * 2
        stops.append(vehicle.start if vehicle.end is None else vehicle.end)
        pairs = (self._at(pair) for pair in zip(stops[::2], stops[1::2], strict=True))
        return [pair for pair in pairs if not np.array_equal(*pair)]

    def _at(self, nodes: Sequence[int]) -> Places:
        return self.places[[self.position[node] for node in nodes]]

    def _marks(self, size: float, **style: Any) -> None:
        """Draw facilities as diamonds and depots as squares of so many square points."""
        facilities = [facility.node for facility in self.instance.facilities]
        for nodes, marker, colour in (
            (facilities, "D", FACILITY),
            (self.depots, "s", DEPOT),
        ):
            if nodes:
                x, y = self._at(nodes).T
                style |= {"marker": marker, "color": colour}
                self.axes.scatter(x, y, s=size, zorder=7, **style)

    def _draw_nodes(self) -> None:
        numbered = (
            len(self.places) <= _MOST_NUMBERED_NODES
            and max(self.instance.nodes) <= _LARGEST_SHOWN_NUMBER
        )
        if numbered:
            x, y = self.places.T
            self.axes.scatter(
                x, y, s=130, color="white", edgecolors=_ONE_WAY, linewidths=0.8, zorder=6
            )
            centred: dict[str, Any] = {"size": 7, "ha": "center", "va": "center"}
            marked = {*self.depots, *(x.node for x in self.instance.facilities)}
            for node, place in zip(self.instance.nodes, self.places, strict=True):
                colour = "white" if node in marked else "#333333"
                x, y = place
                self.axes.text(x, y, str(node), color=colour, zorder=8, **centred)
        size = 130 if numbered else 75
        self._marks(size, edgecolors="white")

    def _draw_legend(self, solution: Solution | None) -> None:
        from matplotlib.lines import Line2D

        def line(label: str, colour: str, width: float, dashed: bool = False) -> Line2D:
            style: Literal["--", "-"] = "--" if dashed else "-"
            return Line2D(
                [], [], color=colour, linewidth=width, linestyle=style, label=label
            )

        def mark(label: str, colour: str, marker: str) -> Line2D:
            return Line2D(
                [], [], color=colour, marker=marker, markersize=7, linestyle="", label=label
            )

        marks = [mark("depot", DEPOT, "s")]
        if self.instance.facilities:
            named = [x.name for x in self.instance.facilities if x.name]
            marks.append(mark(_shortened(named), FACILITY, "D"))
        if solution is None:
            marks.append(line("required street", _REQUIRED, 1.9))
            if not all(link.required for link in self.instance.links):
                marks.append(line("other street", _STREET, 1.3))
        else:
            marks.append(line("deadhead", _REQUIRED, 1.2, dashed=True))
            colours = route_colours(solution.num_routes)
            listed = list(zip(solution.numbers, solution.routes, colours, strict=True))
            listed = listed[:_MOST_LEGEND_ROUTES]
            marks += [
                line(f"route {number}: {self._figures(route)}", colour, 2.6)
                for number, route, colour in listed
            ]
            more = solution.num_routes - len(listed)
            if more:
                marks.append(line(f"… and {more} more", "none", 0))
        self.axes.legend(
            handles=marks,
            loc="upper left",
            bbox_to_anchor=(1.01, 1.0),
            frameon=False,
            fontsize=9,
        )

    def _figures(self, route: Route) -> str:
        travel = "" if route.travel is None else route.travel.brief()
        text = brief_figures(self.instance, route, travel)
        # No name is a formula to matplotlib.
        return text.replace("$", r"\$")

    def _draw_attribution(self) -> None:
        """Write the attribution of the map data, as its licence asks for."""
        width = int(_ATTRIBUTION_LETTERS_PER_INCH * self.inches)
        lines = [
            part
            for line in self.instance.attribution.splitlines()
            for part in wrap(
                line, width, max_lines=_MOST_ATTRIBUTION_LINES, placeholder=" …"
            )
        ]
        self.axes.text(
            0,
            0,
            "\n".join(lines),
            transform=self.axes.transAxes,
            size=7,
            color=_REQUIRED,
            va="top",
            parse_math=False,
        )

    def _driven(self, link: int, reverse: bool) -> Places:
        return self.shapes[link][::-1] if reverse else self.shapes[link]

    def _lines(
        self,
        shapes: Sequence[Places],
        colour: str,
        width: float,
        layer: float,
        dashed: bool = False,
    ) -> None:
        from matplotlib.collections import LineCollection

        self.axes.add_collection(
            LineCollection(
                shapes,
                colors=colour,
                linewidths=width * self.thickness,
                linestyles=[(0, (3.2, 1.6))] if dashed else "solid",
                capstyle="butt" if dashed else "round",
                zorder=layer,
            ),
            autolim=False,
        )

    def _arrows(
        self, shapes: Sequence[Places], colour: str, size: float, layer: float
    ) -> None:
        """Draw a triangle of `size` points in the middle of every long enough line."""
        from matplotlib.collections import PolyCollection

        triangles = []
        for shape in shapes:
            if np.hypot(*np.diff(shape, axis=0).T).sum() < 1.6 * size * self.point:
                continue
            centre, ahead = middle(shape)
            left = np.array([-ahead[1], ahead[0]])
            corners = [0.6 * ahead, -0.4 * ahead + 0.42 * left, -0.4 * ahead - 0.42 * left]
            triangles.append(centre + size * self.point * np.array(corners))
        self.axes.add_collection(
            PolyCollection(
                triangles,
                facecolors=colour,
                edgecolors="white",
                linewidths=0.5,
                zorder=layer,
            ),
            autolim=False,
        )


def _title(instance: Instance, solution: Solution | None) -> str:
    if solution is None:
        required, links = len(instance.required), len(instance.links)
        return f"{instance.name}: {required} of {links} links required"
    routes = "route" if solution.num_routes == 1 else "routes"
    travel = "" if solution.travel is None else f", {solution.travel.brief()}"
    return f"{instance.name}: cost {solution.cost}{travel}, {solution.num_routes} {routes}"


class ScenePlans(NamedTuple):
    """A scene, and plans of it."""

    name: str  # name of the scene, beside its row
    instance: Instance
    # One for each method, in the same order in every scene, with their titles.
    plans: Sequence[tuple[str, Solution]]


def draw_scenes(scenes: Sequence[ScenePlans], path: Path, caption: str = "") -> None:
    """Draw a row of plans for each scene into a picture file.

    Routes have colours, other streets are grey, depots red; deadheads are dashed.
    """
    columns = max(len(scene.plans) for scene in scenes)
    side = (PAGE_INCHES - _LEFT) / columns
    height = (side + _TOP) * len(scenes)
    figure = new_figure(path, figsize=(PAGE_INCHES, height))
    for row, scene in enumerate(scenes):
        bottom = height - (row + 1) * (side + _TOP)
        figure.text(
            0.5 * _LEFT / PAGE_INCHES,
            (bottom + side / 2) / height,
            scene.name,
            rotation=90,
            ha="center",
            va="center",
            fontsize=7.5,
            parse_math=False,
        )
        for column, (title, plan) in enumerate(scene.plans):
            left = (_LEFT + column * side + _SPACE / 2) / PAGE_INCHES
            size = ((side - _SPACE) / PAGE_INCHES, (side - _SPACE) / height)
            check_links(scene.instance, plan)
            box = (left, bottom / height, *size)
            _Picture(scene.instance, figure, plan, box).draw_small(plan, title)
    attributions = dict.fromkeys(
        line for scene in scenes for line in scene.instance.attribution.splitlines()
    )
    add_caption(figure, " ".join([caption, *attributions]).strip())
    save_picture(figure, path, dots_per_inch=_PAGE_DOTS_PER_INCH)


def _shortened(names: Sequence[str]) -> str:
    """Return names of facilities for a legend, if they are few."""
    text = f"facility: {', '.join(names)}" if 0 < len(names) <= 3 else "facility"
    return text.replace("$", r"\$")


def _extent(points: Places) -> tuple[Places, Places]:
    """Return the sides of a box around points, with a margin, and its centre."""
    low, high = points.min(axis=0), points.max(axis=0)
    extent = float((high - low).max()) or 1.0
    # A margin for arrows and shifted deadheads; the short side is padded to be readable.
    sides = np.maximum(high - low + 0.07 * extent, extent * _SHORTER_SIDE / _LONGER_SIDE)
    return sides, (low + high) / 2
