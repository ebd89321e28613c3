"""One colour per route, for pictures and for the map in the browser."""

from __future__ import annotations

import colorsys
import math

#: The depot, as in the figures of the literature; no route has this colour.
DEPOT = "#e3000f"
#: Facilities; their mark is a diamond, so that it differs from routes and depots in shape.
FACILITY = "#111111"
#: The first five are those of Okabe and Ito (2008). The others were found one by one, each
#: the colour farthest in CIELAB from all before, the depot and the grey streets, as seen
#: with full colour vision, protanopia, deuteranopia and tritanopia (Machado et al. 2009).
_ROUTES = (
    *("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#aa00ff", "#aa3333"),
    *("#ccaa66", "#7722bb", "#ff6688", "#998844", "#9977ff", "#aa1199", "#ee00ee"),
)


def route_colours(count: int) -> list[str]:
    """Colours for routes, all different: chosen ones first, then spread over the hues."""
    colours = list(_ROUTES[:count])
    for extra in range(count - len(colours)):
        # Golden ratio steps keep neighbours apart however many follow.
        hue = (0.07 + extra * (math.sqrt(5) - 1) / 2) % 1
        lightness = (0.38, 0.55, 0.68)[extra % 3]
        saturation = (0.75, 0.55)[extra % 2]
        rgb = colorsys.hls_to_rgb(hue, lightness, saturation)
        colours.append("#" + "".join(f"{round(255 * part):02x}" for part in rgb))
    return colours
