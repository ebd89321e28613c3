"""Solvers without learning."""

from arcfleet.search.progress import Progress, ProgressCallback
from arcfleet.search.result import Improvement, Result
from arcfleet.search.stop import Stop

__all__ = ["Improvement", "Progress", "ProgressCallback", "Result", "Stop"]
