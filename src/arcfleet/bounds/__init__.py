"""How good a plan can be at best: lower bounds by cutting planes."""

from arcfleet.bounds.run import bound as bound
