"""Checks of the plans of a batch by the checker."""

from arcfleet import check
from arcfleet.network import Network
from arcfleet.neural.plans import NO_PLAN, Plans, flat_plan
from arcfleet.solution.plan import from_plan


def verify(networks: list[Network], plans: Plans) -> None:
    """Require that every sample that is a plan is valid and costs what it says."""
    for row, network in enumerate(networks):
        for copy in range(plans.costs.shape[1]):
            if plans.costs[row, copy] == NO_PLAN:
                continue
            one = slice(copy, copy + 1)
            single = Plans(
                plans.arcs[:, one], plans.starts_route[:, one], plans.costs[:, one]
            )
            solution = from_plan(network, *flat_plan(single, row))
            assert solution.cost == plans.costs[row, copy]
            assert check(network.instance, solution).faults == ()
