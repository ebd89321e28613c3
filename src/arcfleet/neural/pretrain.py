"""Supervised pre-training: imitate labelled plans, decision by decision."""

from __future__ import annotations

import hashlib
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from arcfleet.errors import ArcfleetError, FileError, OptionError
from arcfleet.neural.checkpoint import load_model, save_model
from arcfleet.neural.daam import Daam
from arcfleet.neural.device import choose_device
from arcfleet.neural.features import flip_axes
from arcfleet.neural.imitation import draw_moments, sequences, state_at
from arcfleet.neural.labelled_set import open_labelled, require_distinct
from arcfleet.neural.learner import Learner
from arcfleet.neural.state import allowed_arcs
from arcfleet.neural.training_run import RunFolder, generator_on, stop_on_signals
from arcfleet.neural.validation import Gaps, validate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from arcfleet.neural.arc_batch import ArcBatch
    from arcfleet.neural.labelled_set import LabelledSet
    from arcfleet.neural.pretrain_config import PretrainConfig
    from arcfleet.neural.state import State

    LossOf = Callable[[ArcBatch, State, Tensor, bool], Tensor]


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
    """

    doing: str
    share: float = 0.0
    step: int = 0
    seconds: float = 0.0
    loss: float | None = None
    states_per_second: float | None = None
    gaps: dict[str, Gaps]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pretrained:
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


def pretrain(
    out: Path | str,
    config: PretrainConfig,
    *,
    data: Sequence[Path | str],
    validation: Sequence[Path | str] = (),
    device: str = "auto",
    init: Path | str | None = None,
    resume: bool = False,
    threads: int = 1,
    progress: Callable[[TrainingProgress], None] | None = None,
) -> Pretrained:
    """Train a model to decide as labelled plans do.

    Ctrl-C or SIGTERM ends the run after the step at hand; a checkpoint is kept then, and
    every few minutes, and the run goes on with `resume`. On the CPU it then comes to the
    same weights, bit by bit, as if it had not been stopped.

    Parameters
    ----------
    out
        Folder of the run.
    config
        All settings.
    data, validation
        Data sets with labels beside them; each file is one scale.
    device
        "auto", "cpu", "cuda" or "cuda:1".
    init
        A model file to start from; its sizes must be those of the config.
    resume
        Whether to go on with the run in `out`.
    threads
        Of the path optimiser in validations.
    progress
        Told where the run stands, now and then.

    Raises
    ------
    OptionError, FileError
        If an argument is wrong, or a file cannot be read or written.
    ArcfleetError
        If the loss is not a number any more.
    """
    require_distinct(data, "to train on")
    if config.weights and len(config.weights) != len(data):
        raise OptionError(
            f"expected a weight for each of {len(data)} data sets, got "
            f"{len(config.weights)} weights"
        )
    if validation:
        require_distinct(validation, "to validate on")
    place = choose_device(device)
    model = _first_model(config, init)
    tell = progress or (lambda _: None)

    def opened(path: Path | str, most: int | None = None) -> LabelledSet:
        tell(TrainingProgress(doing=f"preparing {Path(path).name}", gaps={}))
        dimensions = config.model.mds_dimensions
        return open_labelled(path, place, mds_dimensions=dimensions, most=most)

    training = [opened(path) for path in data]
    tests = [opened(path, config.validation_instances) for path in validation]
    identity = {
        "kind": "pretrain",
        "config": config.as_facts(),
        "data": [each.facts for each in training],
        "validation": [each.facts for each in tests],
        "init": None if init is None else _checksum(init),
    }
    folder = RunFolder(out, identity, resume=resume)
    run = Pretraining(config, model.to(place), training, tests, folder, threads, tell)
    if resume:
        saved = folder.load()
        if saved is not None:
            run.restore(*saved)
    try:
        return run.go(identity)
    finally:
        folder.close()


class Pretraining:
    """A run of pre-training; `pretrain` is the usual way.

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
        Of the path optimiser in validations.
    tell
        Told where the run stands.
    """

    def __init__(
        self,
        config: PretrainConfig,
        model: Daam,
        data: Sequence[LabelledSet],
        validation: Sequence[LabelledSet],
        folder: RunFolder,
        threads: int,
        tell: Callable[[TrainingProgress], None],
    ) -> None:
        self.config = config
        self.data = data
        self.validation = validation
        self.folder = folder
        self.device = next(model.parameters()).device
        self._threads = threads
        self._tell = tell
        self.learner = Learner(
            model,
            dtype=_working_type(config, self.device),
            weight_decay=config.weight_decay,
            beta1=config.beta1,
            beta2=config.beta2,
            clip_norm=config.clip_norm,
            average_decay=config.average_decay,
        )
        self._loss_of = _loss_function(self.learner.working, config, len(data))
        # Which scale comes next is decided on the host, so that it never waits.
        self._host = generator_on(torch.device("cpu"), config.seed)
        self._generator = generator_on(self.device, config.seed + 1)
        weights = config.weights or (1.0,) * len(data)
        self._weights = torch.tensor(weights, dtype=torch.float64)
        self.step = 0
        self.gaps: dict[str, Gaps] = {}
        self._before = 0.0  # seconds of the parts of the run before this one
        self._started = time.perf_counter()
        self._validated = 0
        self._window = _Window(self.device, self.seconds)

    @property
    def seconds(self) -> float:
        """Time that the run has taken, over all its parts."""
        return self._before + time.perf_counter() - self._started

    def go(self, identity: dict[str, Any]) -> Pretrained:
        """Train until the end, or a signal."""
        config = self.config
        self._started = time.perf_counter()
        self._window = _Window(self.device, self.seconds)
        kept = self.seconds
        with stop_on_signals() as stopped:
            while True:
                share = config.progress(self.step, self.seconds)
                if share >= 1 or stopped():
                    break
                if self.validation and int(share * config.validations) > self._validated:
                    self._validate(int(share * config.validations))
                self._learn(config.rate(self.step, share))
                if self.step % config.log_steps == 0:
                    self._log(share)
                if self.seconds - kept > 60 * config.checkpoint_minutes:
                    self._keep(identity, finished=False)
                    kept = self.seconds
            if share >= 1 and self.validation:
                self._validate(config.validations)
            self._keep(identity, finished=share >= 1)
        return Pretrained(
            model_file=self.folder.model_file,
            finished=share >= 1,
            steps=self.step,
            seconds=self.seconds,
            gaps=self.gaps,
        )

    def restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        """Go on from a checkpoint."""
        try:
            self.learner.restore(tensors, int(facts["step"]))
            self._host.set_state(tensors["generator.host"])
            self._generator.set_state(tensors[f"generator.{self.device.type}"])
            self.step = int(facts["step"])
            self._before = float(facts["seconds"])
            self._validated = int(facts["validated"])
            self.gaps = {name: Gaps(*gaps) for name, gaps in facts["gaps"].items()}
        except (KeyError, ValueError, TypeError, RuntimeError) as error:
            raise FileError(
                self.folder.path,
                "expected a checkpoint of the same model, made on the same kind of "
                f"device, found another ({error})",
            ) from error

    def lesson(self, labelled: LabelledSet) -> Tensor:
        """Draw states of some plans and give the loss on what came next."""
        config, generator = self.config, self._generator
        rows = torch.randint(
            len(labelled), (self._rows(labelled),), device=self.device, generator=generator
        )
        batch = labelled.batch.select(rows)
        if config.flip_axes:
            batch = flip_axes(batch, generator)
        plans = sequences(
            batch,
            labelled.plans.select(rows),
            route_order=config.route_order,
            directions=config.directions,
            generator=generator,
        )
        moments = draw_moments(plans.steps, config.moments, generator)
        state, choice = state_at(batch, plans, moments)
        return self._loss_of(batch, state, choice, not labelled.full)

    def _rows(self, labelled: LabelledSet) -> int:
        states = self.config.tokens / labelled.batch.num_arcs
        return max(1, round(states / self.config.moments))

    def _learn(self, rate: float) -> None:
        chosen = 0
        if len(self.data) > 1:
            chosen = int(torch.multinomial(self._weights, 1, generator=self._host))
        loss = self.lesson(self.data[chosen])
        self.learner.update(loss, rate)
        self.step += 1
        states = self._rows(self.data[chosen]) * self.config.moments
        self._window.add(loss.detach(), states)

    def _log(self, share: float) -> None:
        loss, states = self._window.close()
        seconds = self.seconds
        self._require_finite(loss)
        rate = states / max(seconds - self._window.started, 1e-9)
        record: dict[str, object] = {
            "step": self.step,
            "seconds": round(seconds, 3),
            "loss": loss,
            "learning_rate": self.config.rate(self.step, share),
            "states_per_second": round(rate, 1),
        }
        if self.device.type == "cuda":
            record["gpu_bytes"] = torch.cuda.max_memory_allocated(self.device)
        self.folder.log(record)
        self._window = _Window(self.device, seconds)
        self._report("training", share, loss, rate)

    def _require_finite(self, loss: float) -> None:
        if not math.isfinite(loss):
            raise ArcfleetError(
                f"expected a finite loss, got {loss} by step {self.step}: start again with "
                "a smaller learning rate"
            )

    def _validate(self, number: int) -> None:
        before = self.seconds
        self._validated = number
        model = self.learner.for_decoding()
        for labelled in self.validation:
            self._report(
                f"validating {labelled.name}", self.config.progress(self.step, self.seconds)
            )
            self.gaps[labelled.name] = validate(model, labelled, threads=self._threads)
        gaps = {name: gap._asdict() for name, gap in self.gaps.items()}
        self.folder.log(
            {"step": self.step, "seconds": round(self.seconds, 3), "gaps": gaps}
        )
        self._window.started += self.seconds - before  # no time of training

    def _keep(self, identity: dict[str, Any], *, finished: bool) -> None:
        # What is broken must not take the place of what was good.
        self._require_finite(self._window.close()[0])
        facts = {
            "step": self.step,
            "seconds": self.seconds,
            "validated": self._validated,
            "gaps": self.gaps,
        }
        tensors = self.learner.tensors()
        tensors["generator.host"] = self._host.get_state()
        tensors[f"generator.{self.device.type}"] = self._generator.get_state()
        self.folder.save(tensors, facts)
        device = str(self.device)
        if self.device.type == "cuda":
            device = torch.cuda.get_device_name(self.device)
        save_model(
            self.learner.average,
            self.folder.model_file,
            {
                **identity,
                "steps": self.step,
                "minutes": round(self.seconds / 60, 2),
                "device": device,
                "torch": torch.__version__,
                "finished": finished,
                "gaps": {name: gap._asdict() for name, gap in self.gaps.items()},
            },
        )

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


class _Window:
    """Losses and states since the last line of metrics; summed on the device."""

    def __init__(self, device: torch.device, started: float) -> None:
        self.started = started
        self._loss = torch.zeros((), device=device)
        self._count = 0
        self._states = 0

    def add(self, loss: Tensor, states: int) -> None:
        self._loss += loss
        self._count += 1
        self._states += states

    def close(self) -> tuple[float, int]:
        """Give the mean loss and the number of states; waits for the device."""
        return float(self._loss) / max(1, self._count), self._states


def imitation_loss(
    model: Daam, batch: ArcBatch, state: State, choice: Tensor, padded: bool
) -> Tensor:
    """Give the mean cross-entropy of the choices among the allowed arcs.

    Parameters
    ----------
    model
        What decides.
    batch, state
        The instances, and where plans of them stand, (batch, copies, ...).
    choice
        The arcs to choose, (batch, copies).
    padded
        Whether there may be padding.
    """
    prepared = model.prepare(batch, padded=padded)
    logits = model(prepared, state, allowed_arcs(batch, state))  # (batch, copies, arcs)
    return functional.cross_entropy(logits.flatten(0, 1), choice.flatten())


def _loss_function(model: Daam, config: PretrainConfig, scales: int) -> LossOf:
    def loss_of(batch: ArcBatch, state: State, choice: Tensor, padded: bool) -> Tensor:
        return imitation_loss(model, batch, state, choice, padded)

    if not config.compile:
        return loss_of
    # Every scale has its own fixed shapes, hence a graph of its own; sizes that vary
    # within a graph would make it slower, and giving up after some would be silent.
    from torch._dynamo import config as compiler

    compiler.recompile_limit = max(compiler.recompile_limit, 2 * scales)
    compiled: LossOf = torch.compile(loss_of, dynamic=False)
    return compiled


def _working_type(config: PretrainConfig, device: torch.device) -> torch.dtype:
    half = config.precision == "bfloat16"
    half |= config.precision == "auto" and device.type == "cuda"
    return torch.bfloat16 if half else torch.float32


def _first_model(config: PretrainConfig, init: Path | str | None) -> Daam:
    if init is not None:
        model, _ = load_model(init, "cpu")
        if model.config != config.model:
            raise OptionError(
                f"expected the model to start from to have the sizes {config.model}, "
                f"found {model.config} in {init}: give its sizes, or start from nothing"
            )
        return model
    # The start depends on the seed alone, and the caller's generator is left as it was.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        return Daam(config.model)


def _checksum(path: Path | str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()
