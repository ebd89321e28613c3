"""Places and junctions: which one is nearest, which one is most central."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from arcfleet.errors import MapError, OptionError
from arcfleet.streets.geodesy import metres_from

if TYPE_CHECKING:
    from arcfleet.instance.instance import Coordinate
    from arcfleet.streets.street_map import StreetMap

#: The most central junction is exact on maps up to this size; on larger ones, distances
#: to this many junctions stand for those to all.
MOST_MEASURED = 1000


def nearest_junction(
    street_map: StreetMap, place: Coordinate, *, within: float
) -> tuple[int, float]:
    """Give the junction nearest to a place, and its distance in metres.

    Parameters
    ----------
    street_map
        A map with at least one junction.
    place
        Longitude and latitude in degrees.
    within
        The largest distance allowed, in metres.

    Raises
    ------
    MapError
        If the place is none on earth, or the nearest junction is farther away.
    """
    longitude, latitude = place
    if not (-180 <= longitude <= 180 and -90 <= latitude <= 90):
        raise MapError(
            "expected the depot as longitude,latitude in degrees, "
            f"got {longitude:g},{latitude:g}: check their order"
        )
    junctions = list(street_map.junctions)
    distances = metres_from(place, list(street_map.junctions.values()))
    nearest = int(np.argmin(distances))
    if distances[nearest] > within:
        raise MapError(
            f"expected a depot within {within:,.0f} m of a junction of the scene, got "
            f"{longitude:g},{latitude:g}, which is {distances[nearest]:,.0f} m from "
            f"the nearest one ({junctions[nearest]}): "
            "check that it is longitude,latitude or move it"
        )
    return junctions[nearest], float(distances[nearest])


def most_central_junction(street_map: StreetMap) -> int:
    """Give the junction from which driving to all others and back is least in sum.

    On more than `MOST_MEASURED` junctions the sum is over that many of them, spread evenly
    through their numbers. Among equals the least number is taken.

    Parameters
    ----------
    street_map
        A strongly connected map with at least one junction.
    """
    try:
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import dijkstra
    except ImportError as error:
        raise OptionError(
            "expected scipy to find the most central junction, found it is not installed: "
            "install arcfleet[maps] or name a depot"
        ) from error

    junctions = sorted(street_map.junctions)
    position = {junction: index for index, junction in enumerate(junctions)}
    shortest: dict[tuple[int, int], float] = {}
    for street in street_map.streets:
        tail, head = position[street.tail], position[street.head]
        # A sparse graph has no edges of length 0.
        metres = max(street.metres, 0.01)
        ways = [(tail, head)] if street.one_way else [(tail, head), (head, tail)]
        for way in ways:
            shortest[way] = min(metres, shortest.get(way, metres))
    count = len(junctions)
    ends = np.array(list(shortest), dtype=np.int64).reshape(-1, 2)
    graph = csr_array(
        (np.array(list(shortest.values())), (ends[:, 0], ends[:, 1])), shape=(count, count)
    )
    backward = graph.T.tocsr()
    measured = np.unique(np.linspace(0, count - 1, min(count, MOST_MEASURED)).astype(int))
    sums = np.zeros(count)
    # In slices, so that a large map does not need a matrix of the same size.
    for some in np.array_split(measured, -(-len(measured) // 64)):
        sums += dijkstra(graph, indices=some).sum(axis=0)
        sums += dijkstra(backward, indices=some).sum(axis=0)
    # Rounded, so that the order of summation does not decide among equals.
    return junctions[int(np.argmin(np.round(sums, 3)))]
