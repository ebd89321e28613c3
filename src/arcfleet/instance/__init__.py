"""What is to be solved."""

from arcfleet.instance.instance import Coordinate, Instance, Link, Turn

__all__ = ["Coordinate", "Instance", "Link", "Turn"]
