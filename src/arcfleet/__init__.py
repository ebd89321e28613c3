"""Plans routes for fleets that work along streets.

>>> import arcfleet
>>> streets = arcfleet.read_map("town.osm.pbf")              # doctest: +SKIP
>>> instance = arcfleet.make_scene(streets, capacity=3000)   # doctest: +SKIP
>>> result = arcfleet.solve(instance, seconds=10, seed=1)    # doctest: +SKIP
>>> print(result)                                            # doctest: +SKIP
>>> arcfleet.write_html(instance, result.solution, "plan.html")  # doctest: +SKIP
"""

from arcfleet._version import __version__ as __version__
from arcfleet.batch import BatchProgress, Failure, solve_many
from arcfleet.bounds import bound
from arcfleet.districts import solve_districts
from arcfleet.errors import (
    ArcfleetError,
    FileError,
    FormatWarning,
    InstanceError,
    MapError,
    OptionError,
    SolutionError,
    UnsolvableError,
)
from arcfleet.instance import Assignment, Facility, Instance, Link, Lock, Turn, Vehicle
from arcfleet.instance.change import exclude, pin, require
from arcfleet.instance.diagnose import Problem, diagnose
from arcfleet.instance.files import read, write
from arcfleet.instance.frames import from_networkx, from_pandas
from arcfleet.methods import METHODS, Method, register_method, solve
from arcfleet.report import notebook as _notebook  # noqa: F401  # registers its pictures
from arcfleet.report.html_map import write_diff_html, write_html
from arcfleet.report.plot import plot
from arcfleet.report.sheets import write_sheets
from arcfleet.search import (
    Improvement,
    Incumbent,
    Progress,
    Result,
    RunContext,
    Stop,
    StopRule,
)
from arcfleet.solution import FacilityVisit, Route, Service, Solution, Step, Travel
from arcfleet.solution.bound import Bound
from arcfleet.solution.checker import Report, check
from arcfleet.solution.diff import Diff, diff
from arcfleet.solution.directions import Instruction, directions
from arcfleet.solution.edit import Edit, edit
from arcfleet.solution.evaluate import evaluate
from arcfleet.solution.files import read_solution, write_solution
from arcfleet.solution.geojson import write_geojson
from arcfleet.solution.gpx import write_gpx
from arcfleet.solution.keep import keep, lock
from arcfleet.solution.kml import write_kml
from arcfleet.solution.repair import Repair, repair
from arcfleet.solution.stops import write_stops
from arcfleet.streets import Street, StreetMap
from arcfleet.streets.area import Box, Circle, Polygons
from arcfleet.streets.files import read_map
from arcfleet.streets.fleet import SceneOperations, ScenePlace, SceneVehicle
from arcfleet.streets.scene import SceneRules, make_scene
from arcfleet.streets.tables import Table, read_table
from arcfleet.streets.turns import TurnPolicy

__all__ = [
    "METHODS",
    "ArcfleetError",
    "Assignment",
    "BatchProgress",
    "Bound",
    "Box",
    "Circle",
    "Diff",
    "Edit",
    "Facility",
    "FacilityVisit",
    "Failure",
    "FileError",
    "FormatWarning",
    "Improvement",
    "Incumbent",
    "Instance",
    "InstanceError",
    "Instruction",
    "Link",
    "Lock",
    "MapError",
    "Method",
    "OptionError",
    "Polygons",
    "Problem",
    "Progress",
    "Repair",
    "Report",
    "Result",
    "Route",
    "RunContext",
    "SceneOperations",
    "ScenePlace",
    "SceneRules",
    "SceneVehicle",
    "Service",
    "Solution",
    "SolutionError",
    "Step",
    "Stop",
    "StopRule",
    "Street",
    "StreetMap",
    "Table",
    "Travel",
    "Turn",
    "TurnPolicy",
    "UnsolvableError",
    "Vehicle",
    "bound",
    "check",
    "diagnose",
    "diff",
    "directions",
    "edit",
    "evaluate",
    "exclude",
    "from_networkx",
    "from_pandas",
    "keep",
    "lock",
    "make_scene",
    "pin",
    "plot",
    "read",
    "read_map",
    "read_solution",
    "read_table",
    "register_method",
    "repair",
    "require",
    "solve",
    "solve_districts",
    "solve_many",
    "write",
    "write_diff_html",
    "write_geojson",
    "write_gpx",
    "write_html",
    "write_kml",
    "write_sheets",
    "write_solution",
    "write_stops",
]
