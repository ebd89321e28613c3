"""A curriculum: training on larger and larger scales, each from the model of the last."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arcfleet._files import write_bytes_atomically, write_text_atomically
from arcfleet.errors import FileError
from arcfleet.neural.curriculum_config import require_files
from arcfleet.neural.finetune import finetune
from arcfleet.neural.finetune_config import FinetuneConfig
from arcfleet.neural.pretrain import pretrain
from arcfleet.neural.team import Team, join_team
from arcfleet.neural.training_run import difference, require_unoccupied
from arcfleet.neural.training_start import checksum

if TYPE_CHECKING:
    from collections.abc import Callable

    from arcfleet.neural.curriculum_config import Curriculum, Phase
    from arcfleet.neural.training_progress import Trained, TrainingProgress

    Tell = Callable[[TrainingProgress], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class CurriculumOutcome:
    """How far a curriculum came.

    Parameters
    ----------
    model_file
        The model of the last finished phase.
    stopped_in
        The phase in which it was stopped; None if it came to its end.
    over_time
        Whether it was stopped because its time was over, not by a signal.
    last
        Outcome of the last phase that was at work; None if all were finished before.
    """

    model_file: Path
    stopped_in: Phase | None
    over_time: bool
    last: Trained | None


def run_curriculum(
    out: Path | str,
    curriculum: Curriculum,
    *,
    device: str = "auto",
    resume: bool = False,
    minutes: float | None = None,
    threads: int = 1,
    progress: Tell | None = None,
) -> CurriculumOutcome:
    """Go through a curriculum.

    It can be stopped as every run of training, and goes on with `resume`; on the CPU it
    then comes to the same weights, bit by bit, as if it had not been stopped. Phases that
    have not begun may have other settings then, or be new; the one under way may have
    another end.

    Parameters
    ----------
    out
        Folder of the curriculum; every phase has a folder of a run in it.
    curriculum
        The phases.
    device, threads
        As those of `pretrain`.
    resume
        Whether to go on with the curriculum in `out`.
    minutes
        Stop after so many minutes; None to go on to the end.
    progress
        Told where the phase at work stands, which is named in it.

    Raises
    ------
    OptionError, FileError
        If an argument is wrong, or a file cannot be read or written.
    ArcfleetError
        If the loss is not a number any more.
    """
    started = time.perf_counter()
    require_files(curriculum)
    join_team(device)
    team = Team.of_environment()
    record = _Record(Path(out), curriculum, resume=resume, writes=team.leads)
    model, last = curriculum.init, None

    def over() -> bool:
        return minutes is not None and time.perf_counter() - started >= 60 * minutes

    def outcome(stopped_in: Phase | None, over_time: bool) -> CurriculumOutcome:
        return CurriculumOutcome(
            model_file=record.model_file,
            stopped_in=stopped_in,
            over_time=over_time,
            last=last,
        )

    for number, phase in enumerate(curriculum.phases):
        folder = record.path / phase.folder
        if number >= record.finished:
            # Asked of all processes, whose clocks are not quite the same.
            if any(team.most(over())):
                return outcome(phase, True)
            tell = _named(progress, curriculum, number)
            last = _run(phase, folder, model, device, threads, tell, over)
            if not last.finished:
                return outcome(phase, any(team.most(over())))
            record.finish(number, last)
        model = folder / "model.safetensors"
        # Not those of earlier phases, which it has taken the place of.
        if number + 1 == record.finished:
            record.keep_model(model)
    return outcome(None, False)


def _run(
    phase: Phase,
    folder: Path,
    init: Path | None,
    device: str,
    threads: int,
    tell: Tell | None,
    stop: Callable[[], bool],
) -> Trained:
    options: dict[str, Any] = {
        "data": phase.data,
        "validation": phase.validation,
        "device": device,
        "init": init,
        "resume": (folder / "config.json").exists(),
        "threads": threads,
        "progress": tell,
        "stop": stop,
    }
    if isinstance(phase.config, FinetuneConfig):
        return finetune(folder, phase.config, **options)
    return pretrain(folder, phase.config, **options)


def _named(progress: Tell | None, curriculum: Curriculum, number: int) -> Tell | None:
    """Tell which phase it is, and how long the later ones will take."""
    if progress is None:
        return None
    phases = curriculum.phases
    phase = phases[number]
    times = [later.config.minutes for later in phases[number + 1 :]]
    later = None if None in times else 60 * sum(time or 0.0 for time in times)
    name = f"{phase.stage} {phase.kind} ({number + 1} of {len(phases)})"

    def tell(told: TrainingProgress) -> None:
        progress(replace(told, doing=f"{name}: {told.doing}", later=later))

    return tell


class _Record:
    """The folder of a curriculum: `curriculum.json` and `model.safetensors`."""

    def __init__(
        self, path: Path, curriculum: Curriculum, *, resume: bool, writes: bool
    ) -> None:
        self.path = path
        self.model_file = path / "model.safetensors"
        self._file = path / "curriculum.json"
        self._writes = writes
        init = None if curriculum.init is None else checksum(curriculum.init)
        self._facts: dict[str, Any] = {
            "init": init,
            "phases": [
                {**phase.as_facts(), "finished": None} for phase in curriculum.phases
            ],
        }
        # Through JSON, since that is what it is compared with.
        self._facts = json.loads(json.dumps(self._facts))
        if resume:
            self._take_over(self._read())
        elif writes and self._has_begun():
            raise FileError(
                path,
                "expected a folder without a curriculum, found one: name another folder, "
                "or go on with it by --resume",
            )
        elif writes:
            require_unoccupied(path, but=self._file.name)
        if writes:
            try:
                path.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise FileError(
                    path, f"cannot be made ({error.strerror}); name another folder"
                ) from error
            self._write()

    @property
    def finished(self) -> int:
        """How many phases are finished; always the first ones."""
        return sum(phase["finished"] is not None for phase in self._facts["phases"])

    def _has_begun(self) -> bool:
        # Where the first phase failed at its start, there is nothing to go on with.
        return self._file.exists() and any(self.path.glob("*/*/config.json"))

    def finish(self, number: int, result: Trained) -> None:
        gaps = {name: gap._asdict() for name, gap in result.gaps.items()}
        minutes = round(result.seconds / 60, 2)
        self._facts["phases"][number]["finished"] = {
            "steps": result.steps,
            "minutes": minutes,
            "gaps": gaps,
        }
        self._write()

    def keep_model(self, model: Path) -> None:
        """Put the model of a finished phase where the curriculum's is looked for."""
        if not self._writes:
            return
        try:
            data = model.read_bytes()
        except OSError as error:
            raise FileError(
                model,
                f"expected the model of a finished phase, cannot read it "
                f"({error.strerror}): start the curriculum again in another folder",
            ) from error
        if not self.model_file.exists() or self.model_file.read_bytes() != data:
            write_bytes_atomically(self.model_file, data)

    def _write(self) -> None:
        if self._writes:
            write_text_atomically(self._file, json.dumps(self._facts, indent=2) + "\n")

    def _read(self) -> dict[str, Any]:
        try:
            found = json.loads(self._file.read_text(encoding="utf-8"))
            finished = [phase["finished"] for phase in found["phases"]]
        except FileNotFoundError:
            raise FileError(
                self.path,
                "expected a curriculum to resume, found none: start it without --resume",
            ) from None
        except OSError as error:
            raise FileError(self._file, f"cannot be read ({error.strerror})") from error
        except (ValueError, KeyError, TypeError):
            raise FileError(
                self._file,
                "expected the record of a curriculum, found something else: start again in "
                "another folder",
            ) from None
        number = sum(each is not None for each in finished)
        found["phases"] = found["phases"][:number]  # what is not finished may be another
        return found  # type: ignore[no-any-return]

    def _take_over(self, found: dict[str, Any]) -> None:
        """Take over which phases are finished; they must be those that are wanted."""
        wanted = self._facts["phases"]
        done = found["phases"]
        if len(done) > len(wanted):
            raise FileError(
                self._file,
                f"expected at least the {len(done)} finished phases in the config, got "
                f"{len(wanted)}: give them, or start again in another folder",
            )
        pairs = [(found.get("init"), self._facts["init"], "the curriculum")]
        for before, now in zip(done, wanted, strict=False):
            now["finished"] = before["finished"]
            pairs.append((before, now, before["folder"]))
        for before, now, where in pairs:
            name = difference(before, now, "init")
            if name is not None:
                raise FileError(
                    self._file,
                    f"expected {where}, which is finished, with the same {name} as before, "
                    "got another: put it back, or start again in another folder",
                )
