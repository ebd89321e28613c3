"""What solvers search on: tasks, arcs and arc-to-arc costs."""

from arcfleet.network.network import (
    Network,
    StreetPaths,
    arc_distances,
    distances_around,
    node_distances,
)

__all__ = [
    "Network",
    "StreetPaths",
    "arc_distances",
    "distances_around",
    "node_distances",
]
