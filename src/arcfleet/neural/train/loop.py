"""The loop of every training run: step, log, validate, keep, stop."""

from __future__ import annotations

import copy
import math
import time
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple

import torch

from arcfleet.errors import ArcfleetError, FileError, OptionError, WithoutPicturesWarning
from arcfleet.neural.batch import bucket_sizes, buckets
from arcfleet.neural.checkpoint import save_model
from arcfleet.neural.decoding import greedy
from arcfleet.neural.device import (
    expected_to_fit,
    is_out_of_memory,
    working_on,
    working_type,
)
from arcfleet.neural.kernels.cuda_graph import fastest_wrap
from arcfleet.neural.model import AnyModel
from arcfleet.neural.plans import as_decoded, split_plans
from arcfleet.neural.train.distributed import ALONE, Team
from arcfleet.neural.train.pictures import draw_examples
from arcfleet.neural.train.run import generator_on, stop_on_signals

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from torch import Tensor

    from arcfleet.neural.batch import Bucket
    from arcfleet.neural.decoding import Policy
    from arcfleet.neural.plans import Plans
    from arcfleet.neural.train.config import PretrainConfig
    from arcfleet.neural.train.data import InstanceSet, LabelledSet
    from arcfleet.neural.train.run import RunFolder


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingProgress:
    """Where a run stands.

    Parameters
    ----------
    doing
        What is done just now.
    share
        Of the run that is over.
    step, seconds
        Steps made, and the time they took.
    loss, states_per_second
        Of the last steps; None before the first line of metrics.
    gaps
        By name of the validation set; empty before the first validation.
    later
        Seconds that other runs will take after this one; None if nobody knows.
    """

    doing: str
    share: float = 0.0
    step: int = 0
    seconds: float = 0.0
    loss: float | None = None
    states_per_second: float | None = None
    gaps: dict[str, Gaps]
    later: float | None = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """The outcome of a run.

    Parameters
    ----------
    model_file
        The averaged weights.
    finished
        Whether the run came to its end; if not, it was stopped and can be resumed.
    steps, seconds
        Steps made, and the time they took.
    gaps
        Of the last validation, by name of the set.
    """

    model_file: Path
    finished: bool
    steps: int
    seconds: float
    gaps: dict[str, Gaps]


class Window:
    """Figures of the steps since the last line of metrics; summed where they are.

    Parameters
    ----------
    started
        Seconds of the run when it was opened.
    """

    def __init__(self, started: float) -> None:
        self.started = started
        self._sums: dict[str, Tensor | float] = {}
        self._counts: dict[str, int] = {}
        self._states = 0

    def add(self, states: int, **figures: Tensor | float) -> None:
        """Note the states that an update learned from, and figures; `loss` is one."""
        self._states += states
        for name, value in figures.items():
            self._sums[name] = self._sums.get(name, 0.0) + value
            self._counts[name] = self._counts.get(name, 0) + 1

    def close(self) -> tuple[dict[str, float], int]:
        """Give the mean of each figure and the number of states; waits for the device."""
        sums = self._sums.items()
        return {name: float(total) / self._counts[name] for name, total in sums}, (
            self._states
        )


class Gaps(NamedTuple):
    """Mean gaps of total cost to the labels, in percent.

    Parameters
    ----------
    greedy
        Of the plans as decoded.
    optimised
        After the path optimiser with directions.
    """

    greedy: float
    optimised: float


@torch.no_grad()
def validate(
    model: Policy, labelled: LabelledSet, *, threads: int = 1
) -> tuple[Gaps, Plans]:
    """Decode every instance greedily and compare costs; give the plans as decoded, too."""
    wrap = fastest_wrap(labelled.batch.real.device)
    rollout = greedy(model, labelled.batch, wrap=wrap)
    label = labelled.plans.cost.double().cpu()
    decoded = as_decoded(labelled.batch, rollout)
    optimised = split_plans(
        labelled.batch, rollout, choose_directions=True, threads=threads
    )
    costs = (torch.as_tensor(plans.costs).double().cpu() for plans in (decoded, optimised))
    # To a label that costs nothing there is no gap in percent; it counts as one that
    # costs 1, so that the mean stays a number.
    unit = label.clamp(min=1)
    # (instances, 1): greedy has one copy
    gaps = (100 * ((cost[:, 0] - label) / unit).mean().item() for cost in costs)
    return Gaps(*gaps), decoded


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


class TrainingLoop(ABC, Generic[AnyModel]):
    """A run of training; its children say what a step is.

    Parameters
    ----------
    config
        All settings.
    model
        To train, on the device of the data.
    data, validation
        What to learn from, and what to validate on.
    folder
        Where the run is kept.
    threads
        Of the path optimiser.
    tell
        Told where the run stands.
    """

    #: Whether to validate before the first step, too.
    validates_first: ClassVar[bool] = False
    #: Whether `learn` takes its part of a step where several processes train together.
    works_in_team: ClassVar[bool] = False

    def __init__(
        self,
        config: PretrainConfig,
        model: AnyModel,
        data: Sequence[InstanceSet],
        validation: Sequence[LabelledSet],
        folder: RunFolder,
        threads: int,
        tell: Callable[[TrainingProgress], None],
    ) -> None:
        self.settings = config
        self.sets = data
        self.validation = validation
        self.folder = folder
        self.threads = threads
        self.device = next(model.parameters()).device
        self.team = Team.of_environment()
        if self.team.size > 1 and not self.works_in_team:
            raise OptionError(
                "expected one process for this kind of training, got "
                f"{self.team.size}: start it without torchrun"
            )
        self._tell = tell if self.team.leads else _tell_nobody
        self.learner: Learner[AnyModel] = Learner(
            model,
            dtype=working_type(config.precision, self.device),
            weight_decay=config.weight_decay,
            beta1=config.beta1,
            beta2=config.beta2,
            clip_norm=config.clip_norm,
            average_decay=config.average_decay,
            team=self.team,
        )
        # Which scale comes next is decided on the host, so that it never waits.
        self._host = generator_on(torch.device("cpu"), config.seed)
        self.generator = generator_on(self.device, config.seed + 1)
        weights = config.weights or (1.0,) * len(data)
        self._weights = torch.tensor(weights, dtype=torch.float64)
        hidden = getattr(model, "hides_served", False)
        self._buckets = [buckets(each.batch) if hidden else [] for each in data]
        self._bucket_sizes = [
            bucket_sizes(each.batch, known)
            for each, known in zip(data, self._buckets, strict=True)
        ]
        self.step = 0
        self.gaps: dict[str, Gaps] = {}
        self._before = 0.0  # seconds of the parts of the run before this one
        self._started = time.perf_counter()
        self._validated = 0
        self._ended = False  # as the checkpoint says
        self._draws = any(labelled.examples for labelled in validation)
        self.window = Window(self.seconds)

    @abstractmethod
    def learn(self, rate: float) -> None:
        """Make one step at a learning rate, and add its figures to `window`."""

    def extra_tensors(self) -> dict[str, Tensor]:
        """Give what a checkpoint must hold beside the learner, on the CPU."""
        return {}

    def restore_extra(self, tensors: dict[str, Tensor]) -> None:
        """Take over what `extra_tensors` gave."""

    @property
    def seconds(self) -> float:
        """Time that the run has taken, over all its parts."""
        return self._before + time.perf_counter() - self._started

    def draw_set(self) -> int:
        """Choose the data set of the next step."""
        if len(self.sets) == 1:
            return 0
        return int(torch.multinomial(self._weights, 1, generator=self._host))

    def draw_bucket(self, number: int) -> Bucket | None:
        """Choose which states of a set to learn from; None for all of them.

        As often as it has decisions, so that all of them count alike.
        """
        known, sizes = self._buckets[number], self._bucket_sizes[number]
        if len(known) <= 1:
            return known[0] if known else None
        return known[int(torch.multinomial(sizes, 1, generator=self._host))]

    def draw_bound(self) -> bool:
        """Choose whether the capacity counts in the next lesson."""
        unbound = self.settings.unbound
        return not unbound or float(torch.rand((), generator=self._host)) >= unbound

    def buckets_of(self, number: int) -> list[Bucket] | list[None]:
        """Give all parts that the states of a set come in; None for all of them."""
        return self._buckets[number] or [None]

    def arcs_of_state(self, number: int, bucket: Bucket | None) -> int:
        """Give the arcs of a state of a set."""
        return self.sets[number].batch.num_arcs if bucket is None else bucket.length

    def go_or_resume(
        self, *, resume: bool, stop: Callable[[], bool] | None = None
    ) -> Trained:
        """Train from the start, or from the last checkpoint; then close the folder.

        Parameters
        ----------
        resume
            Whether to look for a checkpoint.
        stop
            Asked before every step whether to stop, as by a signal.
        """
        self.team.require_same(self._comparable(), "settings and data")
        try:
            saved = self.folder.load() if resume else None
            if saved is not None:
                with expected_to_fit(self._too_large_a_model):
                    self.restore(*saved)
            self.team.require_same([self.step, self.learner.updates], "checkpoint")
            self._take_new_end()
            return self.go(stop or _never)
        finally:
            self.folder.close()

    def go(self, stop: Callable[[], bool]) -> Trained:
        """Train until the end, a signal, or until `stop` says so."""
        config = self.settings
        self._started = time.perf_counter()
        self.window = Window(self.seconds)
        kept = self.seconds
        with working_on(self.device), stop_on_signals() as stopped:
            if self.validates_first and self.validation and not (self.step or self.gaps):
                self._validate(0)
            while True:
                due = self.seconds - kept > 60 * config.checkpoint_minutes
                share, stops, due = self._agree(stopped() or stop(), due)
                if share >= 1 or stops:
                    break
                if self.validation and int(share * config.validations) > self._validated:
                    self._validate(int(share * config.validations))
                with expected_to_fit(self._too_large_a_step):
                    self.learn(config.rate(self.step, share))
                self.step += 1
                self._ended = False
                if self.step % config.log_steps == 0:
                    self._log(share)
                if due:
                    self._keep(finished=False)
                    kept = self.seconds
            if not self._ended:
                if share >= 1 and self.validation:
                    self._keep(finished=False)  # it may take long, or more memory
                    self._validate(config.validations)
                self._keep(finished=share >= 1)
            self.team.wait()  # what the first one wrote may be read next
        return Trained(
            model_file=self.folder.model_file,
            finished=share >= 1,
            steps=self.step,
            seconds=self.seconds,
            gaps=self.gaps,
        )

    def restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        """Go on from a checkpoint."""
        try:
            self.learner.restore(tensors, int(facts["updates"]))
            self._host.set_state(tensors["generator.host"])
            self.generator.set_state(tensors[f"generator.{self.device.type}"])
            self.step = int(facts["step"])
            self._before = float(facts["seconds"])
            self._validated = int(facts["validated"])
            # Files from before there was such an entry are validated and kept once more.
            self._ended = bool(facts.get("finished", False))
            self.gaps = {name: Gaps(*gaps) for name, gaps in facts["gaps"].items()}
            self.restore_extra(tensors)
        except (KeyError, ValueError, TypeError, RuntimeError) as error:
            if is_out_of_memory(error):
                raise
            raise FileError(
                self.folder.path,
                "expected a checkpoint of the same model, made on the same kind of "
                f"device, found another ({error})",
            ) from error

    def _comparable(self) -> dict[str, Any]:
        # What the first process has read in the folder is not known to the others.
        facts = self.folder.identity
        return {name: facts[name] for name in facts if name != "earlier_ends"}

    def _too_large_a_step(self) -> str:
        config, names = self.settings, ("tokens", "rollout_tokens")
        sizes = {n: getattr(config, n) for n in names if hasattr(config, n)}
        now = " and ".join(f"{name} {size}" for name, size in sizes.items())
        return self._too_large(
            f"step {self.step + 1}",
            f"for {now}: start a run with fewer in another folder",
        )

    def _too_large_a_set(self, labelled: LabelledSet) -> str:
        return self._too_large(
            f"the plans of {labelled.name}",
            f"for {len(labelled)} instances: start a run with fewer validation_instances "
            "in another folder",
        )

    def _too_large_a_model(self) -> str:
        return self._too_large("the model and its data", "to resume: use another device")

    def _too_large(self, what: str, remedy: str) -> str:
        text = (
            f"expected {what} to fit in the memory of device {str(self.device)!r}, found "
            f"too little {remedy}"
        )
        if self.folder.model_file.exists():
            text += f"; the model of the last checkpoint is {self.folder.model_file}"
        return text

    def _take_new_end(self) -> None:
        """Go on to another end than before, the schedules being those of the new one."""
        share, changed, _ = self._agree(self.folder.has_new_end, False)
        if not changed:
            return
        if share >= 1:
            raise OptionError(
                f"expected an end of the run in {self.folder.path} beyond the "
                f"{self.step} steps and {self.seconds / 60:.2f} minutes that it has made, "
                f"got {self.settings.steps} steps, {self.settings.minutes} minutes"
            )
        self._ended = False
        self._validated = min(self._validated, int(share * self.settings.validations))
        self.folder.write_identity()

    def _agree(self, stop: bool, due: bool) -> tuple[float, bool, bool]:
        """Say how far the run is, whether to stop, whether to keep a checkpoint.

        All processes must do the same: the first one's clock counts, and anyone's signal.
        """
        leads = self.team.leads
        share = self.settings.progress(self.step, self.seconds) if leads else 0.0
        share, stops, keeps = self.team.most(share, stop, due and leads)
        return share, bool(stops), bool(keeps)

    def _figures(self) -> tuple[dict[str, float], int]:
        figures, states = self.window.close()
        return self.team.means(figures), states * self.team.size

    def _log(self, share: float) -> None:
        figures, states = self._figures()
        seconds = self.seconds
        loss = figures.get("loss")
        self._require_finite(loss)
        speed = states / max(seconds - self.window.started, 1e-9)
        record: dict[str, object] = {
            "step": self.step,
            "seconds": round(seconds, 3),
            **figures,
            "learning_rate": self.settings.rate(self.step, share),
            "states_per_second": round(speed, 1),
        }
        if self.device.type == "cuda":
            record["gpu_bytes"] = torch.cuda.max_memory_allocated(self.device)
        self.folder.log(record)
        self.window = Window(seconds)
        self._report("training", share, loss, speed)

    def _require_finite(self, loss: float | None) -> None:
        if loss is not None and not math.isfinite(loss):
            raise ArcfleetError(
                f"expected a finite loss, got {loss} by step {self.step}: start again with "
                "a smaller learning rate"
            )

    def _validate(self, number: int) -> None:
        self._validated = number
        if not self.team.leads:
            return
        before = self.seconds
        model = self.learner.for_decoding()
        found = []
        for labelled in self.validation:
            share = self.settings.progress(self.step, self.seconds)
            self._report(f"validating {labelled.name}", share)
            with expected_to_fit(partial(self._too_large_a_set, labelled)):
                self.gaps[labelled.name], plans = validate(
                    model, labelled, threads=self.threads
                )
            found.append((labelled, plans))
        gaps = {name: gap._asdict() for name, gap in self.gaps.items()}
        self.folder.log(
            {"step": self.step, "seconds": round(self.seconds, 3), "gaps": gaps}
        )
        self._draw(found)
        self.window.started += self.seconds - before  # no time of training

    def _draw(self, found: Sequence[tuple[LabelledSet, Plans]]) -> None:
        if not self._draws:
            return
        try:
            path = self.folder.path / "plans" / f"step-{self.step}.png"
            draw_examples(path, found)
        except (
            ArcfleetError,
            OSError,
        ) as error:  # hours of training are worth more than a picture
            self._draws = False
            warnings.warn(
                f"training goes on without pictures of plans: {error}",
                WithoutPicturesWarning,
                stacklevel=2,
            )

    def _keep(self, *, finished: bool) -> None:
        # What is broken must not take the place of what was good.
        self._require_finite(self._figures()[0].get("loss"))
        if not self.team.leads:
            return
        facts = {
            "step": self.step,
            "updates": self.learner.updates,
            "seconds": self.seconds,
            "validated": self._validated,
            "gaps": self.gaps,
            "finished": finished,
        }
        tensors = {**self.learner.tensors(), **self.extra_tensors()}
        tensors["generator.host"] = self._host.get_state()
        tensors[f"generator.{self.device.type}"] = self.generator.get_state()
        device = str(self.device)
        if self.device.type == "cuda":
            device = torch.cuda.get_device_name(self.device)
        save_model(
            self.learner.average,
            self.folder.model_file,
            {
                **self.folder.identity,
                "steps": self.step,
                "minutes": round(self.seconds / 60, 2),
                "device": device,
                "torch": torch.__version__,
                "finished": finished,
                "gaps": {name: gap._asdict() for name, gap in self.gaps.items()},
            },
        )
        # Last, since a run whose checkpoint says that it has ended writes no model again.
        self.folder.save(tensors, facts)

    def _report(
        self,
        doing: str,
        share: float,
        loss: float | None = None,
        states_per_second: float | None = None,
    ) -> None:
        self._tell(
            TrainingProgress(
                doing=doing,
                share=share,
                step=self.step,
                seconds=self.seconds,
                loss=loss,
                states_per_second=states_per_second,
                gaps=dict(self.gaps),
            )
        )


def _never() -> bool:
    return False


def _tell_nobody(_: TrainingProgress) -> None:
    pass
