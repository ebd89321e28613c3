"""Plans routes for fleets that work along streets.

>>> import arcfleet
>>> instance = arcfleet.read("town.dat")            # doctest: +SKIP
>>> result = arcfleet.solve(instance, seed=1)       # doctest: +SKIP
>>> print(result.summary())                         # doctest: +SKIP
"""

from arcfleet.batch import Failure, solve_many
from arcfleet.errors import ArcfleetError
from arcfleet.instance import Instance, Link
from arcfleet.instance.diagnose import diagnose
from arcfleet.instance.files import read, write
from arcfleet.methods import METHODS, solve
from arcfleet.search import Result, Stop
from arcfleet.solution import Route, Service, Solution
from arcfleet.solution.checker import check
from arcfleet.solution.files import read_solution, write_solution

__version__ = "0.1.0"

__all__ = [
    "METHODS",
    "ArcfleetError",
    "Failure",
    "Instance",
    "Link",
    "Result",
    "Route",
    "Service",
    "Solution",
    "Stop",
    "check",
    "diagnose",
    "read",
    "read_solution",
    "solve",
    "solve_many",
    "write",
    "write_solution",
]
