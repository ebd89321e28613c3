"""The paper, reproduced: its model, recipe, baselines, tables and figures.

Importing it enters its models, methods and strategies into the tables of the package.
"""

from arcfleet.paper import methods as methods
from arcfleet.paper import strategies as strategies
