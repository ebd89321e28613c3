"""What is to be solved."""

from arcfleet.instance.instance import Coordinate, Instance, Link

__all__ = ["Coordinate", "Instance", "Link"]
