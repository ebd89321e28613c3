"""What comes out."""

from arcfleet.solution.solution import FacilityVisit, Route, Service, Solution, Step
from arcfleet.solution.travel import Travel

__all__ = ["FacilityVisit", "Route", "Service", "Solution", "Step", "Travel"]
