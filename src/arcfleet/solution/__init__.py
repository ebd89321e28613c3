"""What comes out."""

from arcfleet.solution.solution import Route, Service, Solution, Step
from arcfleet.solution.travel import Travel

__all__ = ["Route", "Service", "Solution", "Step", "Travel"]
