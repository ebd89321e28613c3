"""What is to be solved."""

from arcfleet.instance.instance import Coordinate, Instance, Link, Turn
from arcfleet.instance.operations import Assignment, Facility, Lock, Vehicle

__all__ = [
    "Assignment",
    "Coordinate",
    "Facility",
    "Instance",
    "Link",
    "Lock",
    "Turn",
    "Vehicle",
]
