"""What solvers search on: tasks, arcs and arc-to-arc costs."""

from arcfleet.network.network import Network, node_distances

__all__ = ["Network", "node_distances"]
