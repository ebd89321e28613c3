"""The paper, reproduced: its model, recipe, baselines, tables and figures.

Importing it enters its models and methods into the tables of the package.
"""

from arcfleet.paper import methods as methods
