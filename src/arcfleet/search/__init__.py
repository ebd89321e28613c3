"""Solvers without learning, and what every method is given."""

from arcfleet.search.result import Improvement, Result
from arcfleet.search.run import Incumbent, RunContext
from arcfleet.search.stop import Progress, ProgressCallback, Stop, StopRule

__all__ = [
    "Improvement",
    "Incumbent",
    "Progress",
    "ProgressCallback",
    "Result",
    "RunContext",
    "Stop",
    "StopRule",
]
