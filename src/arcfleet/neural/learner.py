"""Weights in training: float32 masters, their optimiser, and their moving average."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Generic

import torch

from arcfleet.neural.kinds import AnyModel
from arcfleet.neural.team import ALONE, Team

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor


class Learner(Generic[AnyModel]):
    """A model that learns.

    Losses are computed with `working`. In bfloat16 it is a copy of the float32 masters,
    renewed after every update, since small updates are lost in bfloat16.

    Parameters
    ----------
    model
        To train, in float32; changed in place.
    dtype
        To work in.
    weight_decay, beta1, beta2, clip_norm
        Of AdamW, and the largest norm of a gradient.
    average_decay
        Of the moving average; 0 makes it equal to the weights.
    team
        The processes that learn together.
    """

    def __init__(
        self,
        model: AnyModel,
        *,
        dtype: torch.dtype,
        weight_decay: float,
        beta1: float,
        beta2: float,
        clip_norm: float,
        average_decay: float,
        team: Team = ALONE,
    ) -> None:
        self.master: AnyModel = model.train()
        same = dtype == torch.float32
        self.working: AnyModel = model if same else copy.deepcopy(model).to(dtype)
        self.average: AnyModel = copy.deepcopy(model).requires_grad_(False).eval()
        # Tensors that share the memory of the weights.
        self._averaged = (
            list(self.average.state_dict().values()),
            list(model.state_dict().values()),
        )
        self.dtype = dtype
        self.updates = 0
        self._team = team
        self._clip_norm = clip_norm
        self._average_decay = average_decay
        weights = list(model.parameters())
        # Norms and biases are no matrices; decay would only pull them off their place.
        groups: list[dict[str, Any]] = [
            {"params": [w for w in weights if w.dim() > 1]},
            {"params": [w for w in weights if w.dim() <= 1], "weight_decay": 0.0},
        ]
        self._optimiser = torch.optim.AdamW(
            groups,
            betas=(beta1, beta2),
            weight_decay=weight_decay,
            fused=weights[0].is_cuda,
        )

    def add(self, loss: Tensor) -> None:
        """Add the gradient of a loss computed with `working` to that of the next update."""
        loss.backward()  # type: ignore[no-untyped-call]
        if self.working is self.master:
            return
        pairs = zip(self.master.parameters(), self.working.parameters(), strict=True)
        masters, gradients = [], []
        for master, working in pairs:
            if working.grad is None:
                continue
            if master.grad is None:
                master.grad = torch.zeros_like(master)
            masters.append(master.grad)
            gradients.append(working.grad.float())
        # One call for all tensors: a call for each would keep the host busy.
        torch._foreach_add_(masters, gradients)
        self.working.zero_grad()

    def update(self, loss: Tensor, rate: float) -> None:
        """Make one step down the gradient of a loss, and of what was added before."""
        self.add(loss)
        # Once all are float32: sums in bfloat16 would lose the small parts.
        self._team.average([w.grad for w in self.master.parameters() if w.grad is not None])
        torch.nn.utils.clip_grad_norm_(self.master.parameters(), self._clip_norm)
        for group in self._optimiser.param_groups:
            group["lr"] = rate
        self._optimiser.step()
        self._optimiser.zero_grad()
        self.updates += 1
        self._pass_on()

    @torch.no_grad()
    def _pass_on(self) -> None:
        """Bring the working copy and the average up to date."""
        if self.working is not self.master:
            torch._foreach_copy_(
                list(self.working.parameters()), list(self.master.parameters())
            )
            # Buffers are statistics of what the working copy saw.
            buffers = zip(self.master.buffers(), self.working.buffers(), strict=True)
            for kept, seen in buffers:
                kept.copy_(seen)
        # Early on a long average would remember the random start.
        decay = min(self._average_decay, self.updates / (self.updates + 10))
        torch._foreach_lerp_(*self._averaged, 1 - decay)

    def for_decoding(self) -> AnyModel:
        """Give a copy of the averaged weights in the type that training works in."""
        model: AnyModel = copy.deepcopy(self.average)
        return model.to(self.dtype)

    def tensors(self) -> dict[str, Tensor]:
        """Give all that another learner needs to go on from here, on the CPU."""
        named = {f"model.{name}": t for name, t in self.master.state_dict().items()}
        named |= {f"average.{name}": t for name, t in self.average.state_dict().items()}
        for number, facts in self._optimiser.state_dict()["state"].items():
            named |= {f"optimiser.{number}.{key}": t for key, t in facts.items()}
        return {name: t.detach().cpu().clone() for name, t in named.items()}

    def restore(self, tensors: Mapping[str, Tensor], updates: int) -> None:
        """Take over what `tensors` gave after so many updates."""
        self.master.load_state_dict(_under(tensors, "model."))
        self.average.load_state_dict(_under(tensors, "average."))
        states: dict[int, dict[str, Tensor]] = {}
        for name, tensor in _under(tensors, "optimiser.").items():
            number, key = name.split(".", 1)
            states.setdefault(int(number), {})[key] = tensor
        groups = self._optimiser.state_dict()["param_groups"]
        self._optimiser.load_state_dict({"state": states, "param_groups": groups})
        self.updates = updates
        if self.working is not self.master:
            self.working.load_state_dict(self.master.state_dict())


def _under(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    chosen = {name: t for name, t in tensors.items() if name.startswith(prefix)}
    return {name.removeprefix(prefix): tensor for name, tensor in chosen.items()}
