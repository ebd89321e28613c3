"""What comes out."""

from arcfleet.solution.solution import Route, Service, Solution, Step

__all__ = ["Route", "Service", "Solution", "Step"]
