"""The loop of every training run: step, log, validate, keep, stop."""

from __future__ import annotations

import math
import time
import warnings
from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic

import torch

from arcfleet.errors import (
    ArcfleetError,
    FileError,
    OptionError,
    WithoutPicturesWarning,
)
from arcfleet.neural.checkpoint import save_model
from arcfleet.neural.device import working_on, working_type
from arcfleet.neural.kinds import AnyModel
from arcfleet.neural.learner import Learner
from arcfleet.neural.out_of_memory import expected_to_fit, is_out_of_memory
from arcfleet.neural.plan_pictures import draw_examples
from arcfleet.neural.shrink import rung_sizes, rungs
from arcfleet.neural.team import Team
from arcfleet.neural.training_progress import Trained, TrainingProgress, Window
from arcfleet.neural.training_run import generator_on, stop_on_signals
from arcfleet.neural.validation import Gaps, validate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from arcfleet.neural.labelled_set import InstanceSet, LabelledSet
    from arcfleet.neural.plans import Plans
    from arcfleet.neural.pretrain_config import PretrainConfig
    from arcfleet.neural.shrink import Rung
    from arcfleet.neural.training_run import RunFolder


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
        self._rungs = [rungs(each.batch) if hidden else [] for each in data]
        self._rung_sizes = [
            rung_sizes(each.batch, known)
            for each, known in zip(data, self._rungs, strict=True)
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

    def draw_rung(self, number: int) -> Rung | None:
        """Choose which states of a set to learn from; None for all of them.

        As often as it has decisions, so that all of them count alike.
        """
        known, sizes = self._rungs[number], self._rung_sizes[number]
        if len(known) <= 1:
            return known[0] if known else None
        return known[int(torch.multinomial(sizes, 1, generator=self._host))]

    def draw_bound(self) -> bool:
        """Choose whether the capacity counts in the next lesson."""
        unbound = self.settings.unbound
        return not unbound or float(torch.rand((), generator=self._host)) >= unbound

    def rungs_of(self, number: int) -> list[Rung] | list[None]:
        """Give all parts that the states of a set come in; None for all of them."""
        return self._rungs[number] or [None]

    def arcs_of_state(self, number: int, rung: Rung | None) -> int:
        """Give the arcs of a state of a set."""
        return self.sets[number].batch.num_arcs if rung is None else rung.length

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
