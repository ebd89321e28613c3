"""The training loop of every kind of training: step, log, validate, checkpoint, stop."""

from __future__ import annotations

import copy
import math
import signal
import threading
import time
from abc import ABC, abstractmethod
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple

import torch

from arcfleet.errors import ArcfleetError, FileError, OptionError
from arcfleet.neural.batch import bucket_sizes, buckets
from arcfleet.neural.checkpoint import save_model
from arcfleet.neural.decoding_run import DecodingRun
from arcfleet.neural.device import (
    expected_to_fit,
    is_out_of_memory,
    working_on,
    working_type,
)
from arcfleet.neural.kernels.cuda_graph import fastest_wrap
from arcfleet.neural.strategies import STRATEGIES
from arcfleet.neural.train.config import AnyConfig
from arcfleet.neural.train.distributed import ALONE, World
from arcfleet.neural.train.muon import Muon, hidden_matrices

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path
    from types import FrameType

    from torch import Tensor

    from arcfleet.neural.batch import ArcBatch, Bucket
    from arcfleet.neural.decoding import Policy
    from arcfleet.neural.train.config import OptimiserConfig
    from arcfleet.neural.train.data import InstanceSet, LabelledSet
    from arcfleet.neural.train.run import RunFolder

    Report = Callable[["TrainingProgress"], None]


class Gaps(NamedTuple):
    """Mean gaps of total cost to the labels, in percent."""

    greedy: float  # of greedy rollouts
    optimised: float  # after Split with choice of directions


class _Best(NamedTuple):
    """What a run had at the validation with the least mean gap."""

    weights: dict[str, Tensor]  # EMA
    step: int
    gaps: dict[str, Gaps]

    @property
    def gap(self) -> float:
        """Mean gap of the validation sets, as decoded."""
        return sum(each.greedy for each in self.gaps.values()) / len(self.gaps)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingProgress:
    """Progress of a run."""

    activity: str  # such as "training" or "validating task20"
    fraction: float = 0.0  # of the run that is completed
    step: int = 0
    seconds: float = 0.0
    # Means over the last steps; None where no line of metrics was written.
    loss: float | None = None
    states_per_second: float | None = None
    gaps: dict[str, Gaps]  # by validation set; empty before the first validation
    later: float | None = 0.0  # seconds of the runs after this one; None if unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """Outcome of a run."""

    model_file: Path  # with the EMA of the weights
    finished: bool  # else it was stopped and can be resumed
    steps: int
    seconds: float
    gaps: dict[str, Gaps]  # of the last validation, by validation set

    @property
    def interrupted(self) -> bool:
        """Whether a signal stopped it."""
        return not self.finished

    def facts(self) -> dict[str, Any]:
        """Return the outcome as JSON can hold it."""
        return {
            **asdict(self),
            "model_file": str(self.model_file),
            "seconds": round(self.seconds, 3),
            "gaps": as_dicts(self.gaps),
        }

    def gap_lines(self) -> list[str]:
        """Return a line for every validation set."""
        return [
            f"{name}: greedy {gaps.greedy:.2f} % above the labels, "
            f"{gaps.optimised:.2f} % after Split"
            for name, gaps in self.gaps.items()
        ]

    def text(self) -> str:
        """Return the outcome in words."""
        if not self.finished:
            return f"stopped after {self.steps} steps; --resume goes on from there"
        minutes = f"{self.steps} steps in {self.seconds / 60:.1f} minutes"
        return "\n".join([*self.gap_lines(), f"{self.model_file}: {minutes}"])


def as_dicts(gaps: Mapping[str, Gaps]) -> dict[str, dict[str, float]]:
    """Return gaps as JSON can hold them."""
    return {name: each._asdict() for name, each in gaps.items()}


class Metrics:
    """Sums of metrics since the last line, kept on the device."""

    def __init__(self, started: float) -> None:
        self.started = started
        self._sums: dict[str, Tensor | float] = {}
        self._counts: dict[str, int] = {}
        self._states = 0

    def add(self, states: int, **values: Tensor | float) -> None:
        """Add the states and values of an update."""
        self._states += states
        for name, value in values.items():
            self._sums[name] = self._sums.get(name, 0.0) + value
            self._counts[name] = self._counts.get(name, 0) + 1

    def means(self) -> tuple[dict[str, float], int]:
        """Return the mean of each value and the number of states; waits for the device."""
        means = {name: float(x) / self._counts[name] for name, x in self._sums.items()}
        return means, self._states


@torch.no_grad()
def validate(model: Policy, labelled: LabelledSet, *, threads: int = 1) -> Gaps:
    """Compare greedy rollouts, as decoded and after Split, with the labels."""
    run = DecodingRun(model, labelled.batch, threads=threads)  # the two share a rollout
    label = labelled.plans.cost.double().cpu()
    unit = label.clamp(min=1)  # of a label that costs 0, so that the mean stays a number
    gaps = []
    for strategy in ("as-decoded", "greedy"):
        cost = torch.as_tensor(STRATEGIES[strategy].decode(run).costs).double().cpu()
        gaps.append(100 * ((cost[:, 0] - label) / unit).mean().item())
    return Gaps(*gaps)


class Learner:
    """Weights in training: float32 masters, a working copy, their EMA, and AdamW.

    Losses are computed with `working`. In bfloat16 it is a copy of the masters, renewed
    after every update, since small updates are lost in bfloat16.
    """

    def __init__(
        self,
        model: Any,
        config: OptimiserConfig,
        dtype: torch.dtype,
        world: World = ALONE,
    ) -> None:
        self.master = model.train()
        self.working = model if dtype == torch.float32 else copy.deepcopy(model).to(dtype)
        self.ema = copy.deepcopy(model).requires_grad_(False).eval()
        # Tensors that share the memory of the weights.
        self._averaged = (
            list(self.ema.state_dict().values()),
            list(model.state_dict().values()),
        )
        self.dtype = dtype
        self.updates = 0
        self._world = world
        self._config = config
        weights = list(model.parameters())
        hidden = hidden_matrices(model) if config.muon_factor else {}
        if config.muon_factor and not hidden:
            raise OptionError(
                f"expected muon_factor 0 for a model without an encoder, got "
                f"{config.muon_factor:g}: leave it out"
            )
        self._muon = Muon(hidden, config.weight_decay) if hidden else None
        weights = [weight for weight in weights if weight not in hidden]
        matrices: dict[str, Any] = {"params": [w for w in weights if w.dim() > 1]}
        # Decay would only pull norms and biases off their place.
        others = {"params": [w for w in weights if w.dim() <= 1], "weight_decay": 0.0}
        self._optimiser = torch.optim.AdamW(
            [matrices, others],
            betas=(config.beta1, config.beta2),
            weight_decay=config.weight_decay,
            fused=weights[0].is_cuda,
        )

    def accumulate(self, loss: Tensor) -> None:
        """Add the gradient of a loss computed with `working` to that of the next update."""
        loss.backward()  # type: ignore[no-untyped-call]
        self._collect()

    def _collect(self) -> None:
        """Add the gradients of the working copy to those of the masters."""
        if self.working is self.master:
            return
        masters, gradients = [], []
        for master, working in zip(
            self.master.parameters(), self.working.parameters(), strict=True
        ):
            if working.grad is not None:
                if master.grad is None:
                    master.grad = torch.zeros_like(master)
                masters.append(master.grad)
                gradients.append(working.grad.float())
        # One call for all tensors: a call for each would keep the host busy.
        torch._foreach_add_(masters, gradients)
        self.working.zero_grad()

    def update(self, loss: Tensor, rate: float) -> None:
        """Make one step down the gradient of a loss and of those accumulated before."""
        self.accumulate(loss)
        self._step(rate)

    def update_recorded(self, rate: float) -> None:
        """Make one step down the gradients that the weights of `working` have."""
        self._collect()
        self._step(rate)

    def _step(self, rate: float) -> None:
        # Once all are float32: sums in bfloat16 would lose the small parts.
        gradients = [w.grad for w in self.master.parameters() if w.grad is not None]
        self._world.all_reduce_mean(gradients)
        torch.nn.utils.clip_grad_norm_(self.master.parameters(), self._config.clip_norm)
        for group in self._optimiser.param_groups:
            group["lr"] = rate
        if self._muon is not None:
            self._muon.param_groups[0]["lr"] = rate * self._config.muon_factor
        for _, optimiser in self._optimisers():
            optimiser.step()
            optimiser.zero_grad()
        self.updates += 1
        self._copy_weights()

    @torch.no_grad()
    def _copy_weights(self) -> None:
        """Update the working copy and the EMA."""
        if self.working is not self.master:
            with_masters = list(self.working.parameters()), list(self.master.parameters())
            torch._foreach_copy_(*with_masters)
            # Buffers are statistics of what the working copy saw.
            for kept, seen in zip(
                self.master.buffers(), self.working.buffers(), strict=True
            ):
                kept.copy_(seen)
        # Early on a long average would remember the random start.
        decay = min(self._config.ema_decay, self.updates / (self.updates + 10))
        torch._foreach_lerp_(*self._averaged, 1 - decay)

    def for_decoding(self) -> Any:
        """Return a copy of the EMA in the dtype of training."""
        return copy.deepcopy(self.ema).to(self.dtype)

    def _optimisers(self) -> Iterator[tuple[str, torch.optim.Optimizer]]:
        yield "optimiser", self._optimiser
        if self._muon is not None:
            yield "muon", self._muon

    def tensors(self) -> dict[str, Tensor]:
        """Return the state of the learner, on the CPU."""
        named = {f"model.{name}": t for name, t in self.master.state_dict().items()}
        named |= {f"ema.{name}": t for name, t in self.ema.state_dict().items()}
        for name, optimiser in self._optimisers():
            for number, facts in optimiser.state_dict()["state"].items():
                named |= {f"{name}.{number}.{key}": t for key, t in facts.items()}
        return {name: t.detach().cpu().clone() for name, t in named.items()}

    def restore(self, tensors: Mapping[str, Tensor], updates: int) -> None:
        """Restore a state that `tensors` returned after so many updates."""
        self.master.load_state_dict(below(tensors, "model."))
        self.ema.load_state_dict(below(tensors, "ema."))
        for prefix, optimiser in self._optimisers():
            states: dict[int, dict[str, Tensor]] = {}
            for name, tensor in below(tensors, f"{prefix}.").items():
                number, key = name.split(".", 1)
                states.setdefault(int(number), {})[key] = tensor
            groups = optimiser.state_dict()["param_groups"]
            optimiser.load_state_dict({"state": states, "param_groups": groups})
        self.updates = updates
        if self.working is not self.master:
            self.working.load_state_dict(self.master.state_dict())


def below(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Return the tensors whose names begin with a prefix, without it."""
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }


@contextmanager
def stop_on_signals() -> Iterator[Callable[[], bool]]:
    """Yield a function that is true after Ctrl-C or SIGTERM; a second Ctrl-C ends all."""
    came = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal came
        if came and number == signal.SIGINT:
            raise KeyboardInterrupt
        came = True

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False  # signals reach the main thread only
        return
    before = {each: signal.signal(each, note) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: came
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


class Trainer(ABC, Generic[AnyConfig]):
    """A run of training; subclasses define a step."""

    #: Name of this kind of training, in run folders and model files.
    phase: ClassVar[str]
    #: Whether the data sets must have labels.
    needs_labels: ClassVar[bool] = False
    #: Whether to validate before the first step, too.
    validates_first: ClassVar[bool] = False
    #: Whether the model file holds the weights of the best validation, not the last ones.
    keeps_best: ClassVar[bool] = False
    #: Whether several processes can share a step.
    distributed: ClassVar[bool] = False

    def __init__(
        self,
        config: AnyConfig,
        model: Any,
        data: Sequence[InstanceSet],
        validation: Sequence[LabelledSet],
        folder: RunFolder,
        threads: int = 1,
        report: Report | None = None,
    ) -> None:
        self.config = config
        self.data = data
        self.validation = validation
        self.folder = folder
        self.threads = threads
        self.device = next(model.parameters()).device
        self.world = World.from_environment()
        self._callback = report if self.world.is_main else None
        dtype = working_type(config.run.precision, self.device)
        self.learner = Learner(model, config.optimiser, dtype, self.world)
        # Which data set comes next is decided on the host, so that it never waits.
        self._host = torch.Generator().manual_seed(config.run.seed)
        self.generator = torch.Generator(self.device).manual_seed(config.run.seed + 1)
        weights = config.run.weights or (1.0,) * len(data)
        self._weights = torch.tensor(weights, dtype=torch.float64)
        hidden = getattr(model, "hides_served", False)
        self._buckets = [buckets(each.batch) if hidden else [] for each in data]
        self._bucket_sizes = [
            bucket_sizes(each.batch, known)
            for each, known in zip(data, self._buckets, strict=True)
        ]
        self.step = 0
        self.gaps: dict[str, Gaps] = {}
        self._best: _Best | None = None
        self._before = 0.0  # seconds of the parts of the run before this one
        self._started = time.perf_counter()
        self._validated = 0
        self._ended = False  # as the checkpoint says
        self.metrics = Metrics(self.seconds)

    @abstractmethod
    def train_step(self, rate: float) -> None:
        """Make one step at a learning rate, and add its values to `metrics`."""

    @classmethod
    def require_validation(cls, validation: Sequence[LabelledSet]) -> None:
        """Raise OptionError unless the validation sets suffice for this training."""

    def extra_tensors(self) -> dict[str, Tensor]:
        """Return what a checkpoint must hold beside the learner, on the CPU."""
        return {}

    def restore_extra(self, tensors: dict[str, Tensor]) -> None:
        """Restore what `extra_tensors` returned."""

    @property
    def seconds(self) -> float:
        """Time of the run, over all its parts."""
        return self._before + time.perf_counter() - self._started

    # --- What subclasses draw from ---

    def draw_set(self) -> int:
        """Sample the data set of the next step."""
        if len(self.data) == 1:
            return 0
        return int(torch.multinomial(self._weights, 1, generator=self._host))

    def draw_bucket(self, number: int) -> Bucket | None:
        """Sample a length bucket of a data set, by its decisions; None for all states."""
        known, sizes = self._buckets[number], self._bucket_sizes[number]
        if len(known) <= 1:
            return known[0] if known else None
        return known[int(torch.multinomial(sizes, 1, generator=self._host))]

    def draw_giant_tour(self, fraction: float) -> bool:
        """Sample whether the next step trains on giant tours."""
        return fraction > 0 and float(torch.rand((), generator=self._host)) < fraction

    def buckets_of(self, number: int) -> list[Bucket] | list[None]:
        """Return the length buckets of a data set; None for all states together."""
        return self._buckets[number] or [None]

    def rollout_options(self, batch: ArcBatch) -> dict[str, Any]:
        """Return how rollouts are computed: on a GPU all at once, in recorded graphs."""
        chunk = None if self.device.type == "cpu" else len(batch)
        return {"chunk": chunk, "wrap": fastest_wrap(self.device)}

    # --- The loop ---

    def run(self, *, resume: bool, stop: Callable[[], bool] | None = None) -> Trained:
        """Train from the start or from the last checkpoint, then close the folder."""
        # What rank 0 has read in the folder is not known to the others.
        identity = {**self.folder.identity, "earlier_ends": None}
        self.world.require_same(identity, "settings and data")
        try:
            saved = self.folder.load() if resume else None
            if saved is not None:
                what, remedy = "the model and its data", "to resume: use another device"
                with expected_to_fit(partial(self._too_large, what, remedy)):
                    self._restore(*saved)
            self.world.require_same([self.step, self.learner.updates], "checkpoint")
            self._take_new_end()
            return self._loop(stop or (lambda: False))
        finally:
            self.folder.close()

    def _loop(self, stop: Callable[[], bool]) -> Trained:
        config = self.config.run
        self._started = time.perf_counter()
        self.metrics = Metrics(self.seconds)
        kept = self.seconds
        with working_on(self.device), stop_on_signals() as stopped:
            if self.validates_first and self.validation and not (self.step or self.gaps):
                self._validate(0)
            while True:
                due = self.seconds - kept > 60 * config.checkpoint_minutes
                fraction, stops, due = self._agree(stopped() or stop(), due)
                if fraction >= 1 or stops:
                    break
                if self.validation and int(fraction * config.validations) > self._validated:
                    self._validate(int(fraction * config.validations))
                with expected_to_fit(self._too_large_a_step):
                    self.train_step(self.config.optimiser.rate(self.step, fraction))
                self.step += 1
                self._ended = False
                if self.step % config.log_steps == 0:
                    self._log(fraction)
                if due:
                    self._checkpoint(finished=False)
                    kept = self.seconds
            if not self._ended:
                if fraction >= 1 and self.validation:
                    self._checkpoint(finished=False)  # it may take long, or more memory
                    self._validate(config.validations)
                self._checkpoint(finished=fraction >= 1)
            self.world.barrier()  # what rank 0 wrote may be read next
        return Trained(
            model_file=self.folder.model_file,
            finished=fraction >= 1,
            steps=self.step,
            seconds=self.seconds,
            gaps=self.gaps,
        )

    def _agree(self, stop: bool, due: bool) -> tuple[float, bool, bool]:
        """Return the fraction completed, whether to stop, whether a checkpoint is due.

        All processes must do the same: the clock of rank 0 counts, and anyone's signal.
        """
        main = self.world.is_main
        fraction = self.config.run.fraction(self.step, self.seconds) if main else 0.0
        fraction, stops, keeps = self.world.all_reduce_max(fraction, stop, due and main)
        return fraction, bool(stops), bool(keeps)

    def _take_new_end(self) -> None:
        """Go on to another end than before; the schedules are those of the new one."""
        fraction, changed, _ = self._agree(self.folder.has_new_end, False)
        if not changed:
            return
        config = self.config.run
        if fraction >= 1:
            raise OptionError(
                f"expected an end of the run in {self.folder.path} beyond the "
                f"{self.step} steps and {self.seconds / 60:.2f} minutes that it has made, "
                f"got {config.steps} steps, {config.minutes} minutes"
            )
        self._ended = False
        self._validated = min(self._validated, int(fraction * config.validations))
        self.folder.write_identity()

    def _restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        try:
            self.learner.restore(tensors, int(facts["updates"]))
            self._host.set_state(tensors["generator.host"])
            self.generator.set_state(tensors[f"generator.{self.device.type}"])
            self.step = int(facts["step"])
            self._before = float(facts["seconds"])
            self._validated = int(facts["validated"])
            self._ended = bool(facts["finished"])
            self.gaps = {name: Gaps(*gaps) for name, gaps in facts["gaps"].items()}
            self.restore_extra(tensors)
            if best := facts.get("best"):
                gaps = {name: Gaps(*each) for name, each in best["gaps"].items()}
                self._best = _Best(below(tensors, "best."), int(best["step"]), gaps)
        except (KeyError, ValueError, TypeError, RuntimeError) as error:
            if is_out_of_memory(error):
                raise
            raise FileError(
                self.folder.path,
                "expected a checkpoint of the same model, made on the same kind of "
                f"device, found another ({error})",
            ) from error

    # --- Metrics, validation, checkpoints ---

    def _means(self) -> tuple[dict[str, float], int]:
        means, states = self.metrics.means()
        return self.world.means(means), states * self.world.size

    def _log(self, fraction: float) -> None:
        means, states = self._means()
        seconds = self.seconds
        loss = means.get("loss")
        self._require_finite(loss)
        speed = states / max(seconds - self.metrics.started, 1e-9)
        means["learning_rate"] = self.config.optimiser.rate(self.step, fraction)
        means["states_per_second"] = round(speed, 1)
        if self.device.type == "cuda":
            means["gpu_bytes"] = torch.cuda.max_memory_allocated(self.device)
        self.log(means)
        self.metrics = Metrics(seconds)
        self._report("training", fraction, loss=loss, states_per_second=speed)

    def log(self, values: dict[str, float], step: int | None = None) -> None:
        """Write a line of metrics."""
        step, seconds = self.step if step is None else step, round(self.seconds, 3)
        self.folder.log(step, seconds, values=values)

    def _require_finite(self, loss: float | None) -> None:
        if loss is not None and not math.isfinite(loss):
            raise ArcfleetError(
                f"expected a finite loss, got {loss} by step {self.step}: start again with "
                "a smaller learning rate"
            )

    def _validate(self, number: int) -> None:
        self._validated = number
        if not self.world.is_main:
            return
        before = self.seconds
        model = self.learner.for_decoding()
        for labelled in self.validation:
            fraction = self.config.run.fraction(self.step, self.seconds)
            self._report(f"validating {labelled.name}", fraction)
            what = f"the plans of {labelled.name}"
            remedy = f"for {len(labelled)} instances: start a run with fewer "
            remedy += "validation_instances in another folder"
            with expected_to_fit(partial(self._too_large, what, remedy)):
                self.gaps[labelled.name] = validate(model, labelled, threads=self.threads)
        self.folder.log(self.step, round(self.seconds, 3), gaps=as_dicts(self.gaps))
        if self.keeps_best:
            weights = {name: x.clone() for name, x in self.learner.ema.state_dict().items()}
            found = _Best(weights, self.step, dict(self.gaps))
            if self._best is None or found.gap < self._best.gap:
                self._best = found
        self.metrics.started += self.seconds - before  # no time of training

    def _checkpoint(self, *, finished: bool) -> None:
        # A broken model must not replace a good one.
        self._require_finite(self._means()[0].get("loss"))
        if not self.world.is_main:
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
        model, gaps, step = self.learner.ema, self.gaps, self.step
        if self._best is not None:
            weights, step, gaps = self._best
            model = copy.deepcopy(model)
            model.load_state_dict(weights)
            tensors |= {f"best.{name}": x.cpu() for name, x in weights.items()}
            facts["best"] = {"step": step, "gaps": gaps}
        tensors["generator.host"] = self._host.get_state()
        tensors[f"generator.{self.device.type}"] = self.generator.get_state()
        device = str(self.device)
        if self.device.type == "cuda":
            device = torch.cuda.get_device_name(self.device)
        made = {
            "steps": self.step,
            "minutes": round(self.seconds / 60, 2),
            "device": device,
            "torch": torch.__version__,
            "finished": finished,
            "gaps": as_dicts(gaps),
        }
        if self.keeps_best:
            made["best_step"] = step
        model_facts = {**self.folder.identity, **made}
        save_model(model, self.folder.model_file, model_facts)
        # Last, since a run whose checkpoint says that it has ended writes no model again.
        self.folder.save(tensors, facts)

    def _report(self, activity: str, fraction: float, **means: float | None) -> None:
        if self._callback is not None:
            self._callback(
                TrainingProgress(
                    activity=activity,
                    fraction=fraction,
                    step=self.step,
                    seconds=self.seconds,
                    gaps=dict(self.gaps),
                    **means,
                )
            )

    # --- Too little memory ---

    def _too_large_a_step(self) -> str:
        names = ("tokens", "rollout_tokens")
        sizes = {n: getattr(self.config, n) for n in names if hasattr(self.config, n)}
        now = " and ".join(f"{name} {size}" for name, size in sizes.items())
        remedy = f"for {now}: start a run with fewer in another folder"
        return self._too_large(f"step {self.step + 1}", remedy)

    def _too_large(self, what: str, remedy: str) -> str:
        text = (
            f"expected {what} to fit in the memory of device {str(self.device)!r}, found "
            f"too little {remedy}"
        )
        if self.folder.model_file.exists():
            text += f"; the model of the last checkpoint is {self.folder.model_file}"
        return text
