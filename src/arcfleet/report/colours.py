"""One colour per route, for pictures and for the map in the browser."""

from __future__ import annotations

import colorsys
import math
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable

#: The depot, as in the figures of the literature; no route has this colour.
DEPOT = "#e3000f"
#: Facilities; their mark is a diamond, so that it differs from routes and depots in shape.
FACILITY = "#111111"
Ground = Literal["light", "dark"]
#: What routes are drawn on: the map and the panel beside it, as `page.css` has them.
GROUNDS: dict[Ground, tuple[str, str]] = {
    "light": ("#ffffff", "#f6f7f8"),
    "dark": ("#14181b", "#1c2226"),
}
#: Least contrast of a line with its ground (WCAG 2.2, 1.4.11).
LEAST_CONTRAST = 3.0
#: Found one by one, each the colour farthest in CIELAB from all before, the depot and the
#: grey streets, as seen with full colour vision, protanopia, deuteranopia and tritanopia
#: (Machado et al. 2009), among those of enough contrast. On dark ground a route has about
#: the hue that it has on light ground.
_ROUTES: dict[Ground, tuple[str, ...]] = {
    "light": (
        *("#0072b2", "#dd00bb", "#009988", "#aa8855", "#552200", "#9900ff", "#557711"),
        *("#bb4466", "#005533", "#000099", "#8866ee", "#440055", "#990077", "#8811bb"),
    ),
    "dark": (
        *("#56b4e9", "#eeaabb", "#339977", "#aa8844", "#ccbb00", "#aa00ff", "#66ff55"),
        *("#ff9977", "#aaffbb", "#0077cc", "#9966aa", "#aa77ff", "#dd0055", "#cc22cc"),
    ),
}
#: Lightness of further colours: where it starts, and the steps towards enough contrast.
_FURTHER: dict[Ground, tuple[tuple[float, ...], float]] = {
    "light": ((0.28, 0.40, 0.52), -0.01),
    "dark": ((0.50, 0.62, 0.76), 0.01),
}


def route_colours(count: int, ground: Ground = "light") -> list[str]:
    """Colours for routes, all different: chosen ones first, then spread over the hues."""
    colours = list(_ROUTES[ground][:count])
    lightness, step = _FURTHER[ground]
    for extra in range(count - len(colours)):
        # Golden ratio steps keep neighbours apart however many follow.
        hue = (0.07 + extra * (math.sqrt(5) - 1) / 2) % 1
        light, saturation = lightness[extra % 3], (0.75, 0.55)[extra % 2]
        colour = _hex(hue, light, saturation)
        while any(contrast(colour, x) < LEAST_CONTRAST for x in GROUNDS[ground]):
            light += step
            colour = _hex(hue, light, saturation)
        colours.append(colour)
    return colours


def numbered_colours(*numbers: Iterable[int], ground: Ground = "light") -> dict[int, str]:
    """Return the colour of every route number; the first plan's come first."""
    known = list(dict.fromkeys(number for plan in numbers for number in plan))
    return dict(zip(known, route_colours(len(known), ground), strict=True))


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours, from 1 to 21 (WCAG 2.2)."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (
        x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _hex(hue: float, lightness: float, saturation: float) -> str:
    rgb = colorsys.hls_to_rgb(hue, lightness, saturation)
    return "#" + "".join(f"{round(255 * part):02x}" for part in rgb)
