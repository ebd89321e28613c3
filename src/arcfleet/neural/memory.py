"""Policies that remember: what a recurrent decoder keeps goes from step to step.

What such a policy prepares is a NamedTuple with a field `memory`, at first that of an empty
plan, (batch, 1, width), and it has `remember(prepared, state)`, which takes in the arc that
was chosen last. Decoding keeps the memory in its carry, one for each plan. Policies that
decide by the state alone prepare no memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

    from arcfleet.neural.rollout import Policy
    from arcfleet.neural.state import State


def first_memory(prepared: Any, copies: int) -> Tensor | None:
    """Give the memory of empty plans, (batch, copies, width), or None where there is none.

    Parameters
    ----------
    prepared
        By a policy.
    copies
        Plans of each instance.
    """
    memory: Tensor | None = getattr(prepared, "memory", None)
    return None if memory is None else memory.expand(-1, copies, -1).contiguous()


def recall(
    policy: Policy, prepared: Any, state: State, memory: Tensor | None
) -> tuple[Any, Tensor | None]:
    """Give what the policy decides by, and the memory for the next step.

    Parameters
    ----------
    policy
        Any.
    prepared
        By that policy.
    state
        Where the plans stand.
    memory
        From the step before, (batch, copies, width), or None.
    """
    if memory is None:
        return prepared, None
    recurrent: Any = policy
    prepared = recurrent.remember(prepared._replace(memory=memory), state)
    return prepared, prepared.memory
