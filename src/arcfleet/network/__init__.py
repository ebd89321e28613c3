"""What solvers search on: tasks, arcs and arc-to-arc costs."""

from arcfleet.network.network import Network, distances_around, node_distances

__all__ = ["Network", "distances_around", "node_distances"]
