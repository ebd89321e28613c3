from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from arcfleet.report.colours import (
    DEPOT,
    GROUNDS,
    Ground,
    contrast,
    numbered_colours,
    route_colours,
)

# Machado, Oliveira and Fernandes (2009), full severity, on linear RGB.
SIGHTS = {
    "full": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritanopia": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}
TO_XYZ = np.array(
    [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
)


def cielab(colour: str, sight: NDArray[np.float64]) -> NDArray[np.float64]:
    rgb = np.frombuffer(bytes.fromhex(colour[1:]), dtype=np.uint8) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    x, y, z = np.cbrt(TO_XYZ @ np.clip(sight @ linear, 0, 1) / (0.9505, 1.0, 1.089))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("ground", GROUNDS)
def test_colours_of_many_routes_all_differ(ground: Ground) -> None:
    assert len(set(route_colours(60, ground))) == 60
    assert route_colours(3, ground) == route_colours(60, ground)[:3]


def test_contrast_is_that_of_the_guidelines() -> None:
    assert contrast("#000000", "#ffffff") == contrast("#ffffff", "#000000") == 21
    # Values of WCAG's own tools.
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)
    assert contrast("#e69f00", "#ffffff") == pytest.approx(2.25, abs=0.005)


@pytest.mark.parametrize("ground", GROUNDS)
def test_every_colour_stands_out_from_its_ground(ground: Ground) -> None:
    for colour in route_colours(60, ground):
        assert min(contrast(colour, x) for x in GROUNDS[ground]) >= 3


def test_a_number_has_one_colour_in_both_plans() -> None:
    colours = numbered_colours((4, 2), (2, 9))
    assert list(colours) == [4, 2, 9]
    assert list(colours.values()) == route_colours(3)


@pytest.mark.parametrize("ground", GROUNDS)
@pytest.mark.parametrize("sight", SIGHTS)
def test_chosen_colours_stay_apart_for_colour_blind_readers(
    sight: str, ground: Ground
) -> None:
    # A difference of 2.3 is just noticeable; thin lines side by side need much more.
    seen = {colour: cielab(colour, SIGHTS[sight]) for colour in route_colours(14, ground)}
    least = min(np.linalg.norm(seen[a] - seen[b]) for a, b in combinations(seen, 2))
    assert least > 13
    depot = cielab(DEPOT, SIGHTS[sight])
    assert min(np.linalg.norm(depot - colour) for colour in seen.values()) > 13
