"""Fewer arcs as plans grow: decoding leaves served arcs out where the policy hides them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arcfleet.neural.rollout import Carry, View
from arcfleet.neural.shrink import as_instances, present_arcs, shrink, whole_vectors

if TYPE_CHECKING:
    from arcfleet.neural.rollout import Narrower, Policy

# A new view is prepared, and on a GPU recorded: that pays for a sixth of the arcs, and on a
# GPU for so many arcs of all plans.
_WORTHWHILE = 5 / 6
_LEAST_ON_GPU = 2**17


def narrowing(policy: Policy, *, together: bool) -> Narrower | None:
    """Give what narrows views for a policy; None if it looks at served arcs.

    Parameters
    ----------
    policy
        Its `hides_served` says whether it gives the same logits without served arcs.
    together
        Whether the plans of an instance stay side by side, as in a beam, and an arc
        must be served in all of them; otherwise each plan goes its own way.
    """
    if not getattr(policy, "hides_served", False):
        return None

    def narrower(view: View, carry: Carry) -> tuple[View, Carry] | None:
        plans, arcs = carry.state.previous.numel(), view.batch.num_arcs
        if not carry.state.previous.is_cpu and plans * arcs < _LEAST_ON_GPU:
            return None
        state, rows = carry.state, None
        if not together and state.previous.shape[1] > 1:
            state, rows = as_instances(state)
        longest = int(present_arcs(state).sum(1).amax())
        length = whole_vectors(longest)
        if length > _WORTHWHILE * arcs:
            return None
        small = shrink(view.batch, state, length, rows)
        # Plans that go their own ways do so from the first narrower view on.
        kept = small.kept if view.kept is None else view.kept.gather(1, small.kept)
        shape = small.state.previous.shape
        return View(small.batch, kept), carry._replace(
            state=small.state, log_probability=carry.log_probability.view(shape)
        )

    return narrower
