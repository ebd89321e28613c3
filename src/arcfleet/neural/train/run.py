"""A run of training from files: what it needs is checked, then it goes on in its folder."""

from __future__ import annotations

import hashlib
import json
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from arcfleet._files import (
    is_file,
    read_bytes,
    read_toml,
    write_bytes_atomically,
    write_text_atomically,
)
from arcfleet.datasets.store import LineFormat, Store
from arcfleet.errors import FileError, FormatWarning, OptionError
from arcfleet.neural.checkpoint import initial_file, load_model, model_class_for, sizes_of
from arcfleet.neural.device import choose_device, working_type
from arcfleet.neural.train.config import (
    config_from,
    settings_of,
    with_added,
    without_dropped,
)
from arcfleet.neural.train.data import open_instances, open_labelled, require_distinct
from arcfleet.neural.train.distributed import World, init_process_group
from arcfleet.neural.train.loop import TrainingProgress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from torch import Tensor

    from arcfleet.neural.train.config import AnyConfig, TrainingConfig
    from arcfleet.neural.train.loop import Trained, Trainer

FORMAT = "arcfleet-training"

VERSION = 1

_ENTRY = "arcfleet"

# Settings that may change when a run is resumed.
_END = ("steps", "minutes")

# Files that make a folder that of something else, which nothing may be written over.
_OCCUPANTS = {
    "config.json": "a run",
    "recipe.jsonl": "a recipe",
    "model.safetensors": "a model",
}

#: `tokens` on a CPU, where a step of the usual size would take tens of seconds.
CPU_TOKENS = 8_000


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricLine:
    """A line of metrics: means over the steps since the last one, or gaps."""

    step: int
    seconds: float
    values: dict[str, float] = field(default_factory=dict)
    # Gaps in percent by validation set and decoding.
    gaps: dict[str, dict[str, float]] = field(default_factory=dict)


METRICS = LineFormat("arcfleet-metrics-1", MetricLine, "metrics of a run of training")


class RunOptions(TypedDict, total=False):
    """Options of `run_training` beside folder, settings, data and initial model."""

    validation: Sequence[Path | str]
    device: str
    resume: bool
    threads: int
    progress: Callable[[TrainingProgress], None] | None
    stop: Callable[[], bool] | None


def run_training(
    trainer: type[Trainer[AnyConfig]],
    out: Path | str,
    config: AnyConfig,
    *,
    data: Sequence[Path | str],
    validation: Sequence[Path | str] = (),
    device: str = "auto",
    init: Path | str | None = None,
    resume: bool = False,
    threads: int = 1,
    progress: Callable[[TrainingProgress], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Trained:
    """Train a model.

    Ctrl-C or SIGTERM ends the run after the step at hand; a checkpoint is written then, and
    every few minutes, and the run goes on with `resume`. On the CPU it then comes to the
    same weights, bit by bit, as if it had not been stopped. With `resume` a run may be
    given another end, later than where it stands.

    Processes that `torchrun` has started train one model, each on its shard of a step.

    Parameters
    ----------
    trainer
        Kind of training.
    out
        Folder of the run.
    config
        Settings; the class of `config.model` says which model is trained.
    data
        Data sets to train on; each file is one scale.
    validation
        Data sets to validate on, with labels beside them.
    device
        Name of the device: "auto", "cpu", "cuda" or "cuda:1".
    init
        Model file to start from, or "daam" for the shipped model; its sizes must be those
        of the config.
    resume
        True to go on with the run in `out`.
    threads
        Number of CPU threads of Split.
    progress
        Callback of the progress.
    stop
        Function that is asked before every step whether to stop, as by a signal.

    Raises
    ------
    OptionError, FileError
        If an argument is wrong, or a file cannot be read or written.
    ArcfleetError
        If the loss is not a number any more.
    """
    require_runnable(trainer, config, data, validation)
    init = None if init is None else initial_file(init)
    place = init_process_group(device)
    working_type(config.run.precision, place)  # raises where the device has it not
    model = initial_model(config, init)
    report = progress or (lambda _: None)
    dimensions = config.model.mds_dimensions

    def opened(path: Path | str, labelled: bool, most: int | None = None) -> Any:
        report(TrainingProgress(activity=f"preparing {Path(path).name}", gaps={}))
        if labelled:
            return open_labelled(path, place, mds_dimensions=dimensions, most=most)
        return open_instances(path, place, mds_dimensions=dimensions)

    sets = [opened(path, trainer.needs_labels) for path in data]
    most = config.run.validation_instances
    tests = [opened(path, True, most) for path in validation]
    trainer.require_validation(tests)
    size = World.from_environment().size
    for each in sets:
        if len(each) < size:
            raise OptionError(
                f"expected at least {size} instances in {each.name}, one for each process, "
                f"found {len(each)}: start fewer processes"
            )
    identity = {
        "phase": trainer.phase,
        "config": settings_of(config),
        "data": [each.facts for each in sets],
        "validation": [each.facts for each in tests],
        "init": None if init is None else checksum(init),
    }
    folder = RunFolder(out, identity, resume=resume)
    run = trainer(config, model.to(place), sets, tests, folder, threads, report)
    return run.run(resume=resume, stop=stop)


def require_runnable(
    trainer: type[Trainer[AnyConfig]],
    config: AnyConfig,
    data: Sequence[Path | str],
    validation: Sequence[Path | str],
) -> None:
    """Raise OptionError where settings, data sets and processes do not fit together."""
    require_distinct(data, "to train on")
    if validation:
        require_distinct(validation, "to validate on")
    weights = config.run.weights
    if weights and len(weights) != len(data):
        raise OptionError(
            f"expected a weight for each of {len(data)} data sets, got {len(weights)} "
            "weights"
        )
    size = World.from_environment().size
    if size > 1 and not trainer.distributed:
        raise OptionError(
            f"expected one process for {trainer.phase}, got {size}: start it without "
            "torchrun"
        )
    if size > 1 and getattr(config.model, "norm", None) == "batch":
        raise OptionError(
            f"expected another norm than batch for {size} processes, each of which would "
            "take the statistics of its own shard: choose rms, or start one process"
        )


def initial_model(config: TrainingConfig, init: Path | str | None) -> Any:
    """Return the initial model: that of a file, else one with random weights."""
    if init is not None:
        model, _ = load_model(init)
        if model.config != config.model:
            raise OptionError(
                f"expected the model to start from to have the sizes {config.model}, "
                f"found {model.config} in {init}: give its sizes, or start from nothing"
            )
        return model
    # The weights depend on the seed alone, and the caller's generator is left as it was.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.run.seed)
        build: Any = model_class_for(config.model)
        return build(config.model)


def resolve_config(
    config_class: type[AnyConfig],
    given: Mapping[str, Any],
    *,
    file: Path | None = None,
    out: Path | str | None = None,
    init: Path | str | None = None,
    device: str = "auto",
    on_cpu: Mapping[str, Any] | None = None,
) -> AnyConfig:
    """Merge the settings of a run from all their sources, and make its config.

    The options `given` take precedence over those of a TOML `file`, then come those of the
    run in `out` that is resumed, the sizes of the model `init`, and the defaults `on_cpu`,
    which are fewer `tokens` unless given.
    """
    sources: list[Mapping[str, Any]] = []
    if choose_device(device).type == "cpu":
        sources.append({"tokens": CPU_TOKENS} if on_cpu is None else on_cpu)
    if init is not None:
        sources.append({"model": sizes_of(load_model(initial_file(init))[0].config)})
    if out is not None:
        sources.append(saved_settings(out))
        try:  # of another version, its names are the reason
            config_from(config_class, sources[-1])
        except OptionError as error:
            raise FileError(Path(out) / "config.json", f"{error!s:.300}") from None
    if file is None:
        return config_from(config_class, _merged([*sources, given]))
    content = read_toml(file)
    try:
        return config_from(config_class, _merged([*sources, content, given]))
    except OptionError as error:
        # Without the file an end of the run may be missing, which is not what is asked.
        config_from(config_class, {"steps": 1, **_merged([*sources, given])})
        raise FileError(file, f"{error!s:.300}") from None


def _merged(sources: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the settings of all sources; later ones take precedence."""
    settings: dict[str, Any] = {}
    for source in sources:
        sizes = source.get("model", {})
        if not isinstance(sizes, dict):
            raise OptionError(f"expected model to be a table of sizes, got {sizes!r:.40}")
        settings |= {**source, "model": {**settings.get("model", {}), **sizes}}
    return settings


class RunFolder:
    """The folder of a run.

    It holds `config.json`, `metrics.jsonl`, `checkpoint.safetensors`, `model.safetensors`,
    and `tensorboard` where that is installed. Of several processes only rank 0 reads and
    writes it. Nothing is written over: FileError is raised where there is a run that is not
    to be resumed, or none or another one that is, or anything else.
    """

    def __init__(
        self, path: Path | str, identity: Mapping[str, object], *, resume: bool
    ) -> None:
        self.path = Path(path)
        self.model_file = self.path / "model.safetensors"
        self._checkpoint = self.path / "checkpoint.safetensors"
        self._config = self.path / "config.json"
        world = World.from_environment()
        self.writes = world.is_main
        # Through JSON, since that is what it is compared with.
        self.identity: dict[str, Any] = json.loads(json.dumps(identity))
        if world.size > 1:
            self.identity["processes"] = world.size
        #: Whether the run is given another end than before.
        self.has_new_end = False
        self._store: Store[MetricLine] | None = None
        self._board: Any = None
        if not self.writes:
            return
        if resume:
            self._compare()
            return
        if self._config.exists():
            raise FileError(
                self.path,
                "expected a folder without a run, found one: name another folder, or go "
                "on with it by --resume",
            )
        require_unoccupied(self.path)
        make_folder(self.path)
        self.write_identity()

    def write_identity(self) -> None:
        """Write `config.json`."""
        if self.writes:
            text = json.dumps(self.identity, indent=2)
            write_text_atomically(self._config, f"{text}\n")

    @property
    def _metrics(self) -> Store[MetricLine]:
        """The metrics; opened late, since they are locked while they are open."""
        if self._store is None:
            self._store = Store(self.path / "metrics.jsonl", METRICS)
        return self._store

    def save(self, tensors: Mapping[str, Tensor], facts: Mapping[str, object]) -> None:
        """Write a checkpoint whole or not at all."""
        header = {"format": FORMAT, "version": VERSION, "facts": dict(facts)}
        header["metric_lines"] = len(self._metrics.records)
        data = save_tensors(dict(tensors), {_ENTRY: json.dumps(header)})
        write_bytes_atomically(self._checkpoint, data)

    def load(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Load the checkpoint, on the CPU; None where there is none yet."""
        if not self._checkpoint.exists():
            self._rewind(0)
            return None
        data = read_bytes(self._checkpoint)
        try:
            size = int.from_bytes(data[:8], "little")
            header = json.loads(json.loads(data[8 : 8 + size])["__metadata__"][_ENTRY])
            if (header["format"], header["version"]) != (FORMAT, VERSION):
                raise ValueError(f"{header['format']} {header['version']}")
            facts: dict[str, Any] = header["facts"]
            tensors: dict[str, Tensor] = load_tensors(data)
        except (SafetensorError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise FileError(
                self._checkpoint,
                f"expected a checkpoint of version {VERSION}, found another or a damaged "
                "file: start the run again in another folder",
            ) from error
        self._rewind(int(header["metric_lines"]))
        return tensors, facts

    def log(self, step: int, seconds: float, **values: Any) -> None:
        """Append a line to the metrics and to TensorBoard."""
        if not self.writes:
            return
        line = MetricLine(step=step, seconds=seconds, **values)
        self._metrics.add(line)
        if self._board is None:
            self._board = _tensorboard(self.path / "tensorboard", line.step)
        if self._board is not False:
            for name, value in {"seconds": line.seconds, **line.values}.items():
                self._board.add_scalar(name, value, line.step)
            for name, gaps in line.gaps.items():
                for decoding, gap in gaps.items():
                    self._board.add_scalar(f"gaps/{name}/{decoding}", gap, line.step)

    def _rewind(self, lines: int) -> None:
        """Drop the metrics after a checkpoint, which a resumed run writes again."""
        if self.writes:
            with warnings.catch_warnings():  # a cut line is dropped here in any case
                warnings.simplefilter("ignore", FormatWarning)
                self._metrics.rewind(lines)

    def close(self) -> None:
        """Close the metrics and flush TensorBoard."""
        if self._store is not None:
            self._store.close()
            self._store = None
        if self._board:
            self._board.close()

    def _compare(self) -> None:
        """Raise FileError unless the run in the folder is this one, but for its end."""
        found = read_identity(self.path)
        ends = found.pop("earlier_ends", [])
        (before, old_end), (now, end) = map(_without_end, (found, self.identity))
        before["config"] = with_added(before["config"], now["config"])
        name = difference(before, now)
        if name is not None:
            raise FileError(
                self._config,
                f"expected the run to be resumed with the same {name}, got another: give "
                "what it was started with, or start a new run in another folder",
            )
        self.has_new_end = old_end != end
        if self.has_new_end:
            ends = [*ends, old_end]
        if ends:  # the learning rate followed them, so they belong to the run's history
            self.identity["earlier_ends"] = ends


def make_folder(path: Path) -> None:
    """Make a folder and those above it."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(
            path, f"cannot be made ({error.strerror}); name another folder"
        ) from error


def require_unoccupied(folder: Path, *, but: str = "") -> None:
    """Raise FileError where a folder has a run, a recipe or a model in it."""
    for name, found in _OCCUPANTS.items():
        if name != but and (folder / name).exists():
            raise FileError(
                folder,
                f"expected a folder for this training alone, found {found} in it: name "
                "another folder",
            )


def saved_settings(path: Path | str) -> dict[str, Any]:
    """Return the settings with which the run in a folder was started."""
    return without_dropped(read_identity(Path(path))["config"])


def read_identity(folder: Path) -> dict[str, Any]:
    """Read the `config.json` of a run."""
    path = folder / "config.json"
    if not is_file(path):
        raise FileError(
            folder, "expected a run to resume, found none: start it without --resume"
        )
    try:
        found = json.loads(read_bytes(path))
        if isinstance(found["config"], dict):
            return dict(found)
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise FileError(
        path,
        "expected the settings of a run, found something else: start the run again in "
        "another folder",
    )


def _tensorboard(path: Path, step: object) -> Any:
    """Open TensorBoard's log, without what an earlier part wrote from `step` on."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:  # the same metrics once more, no part of the run
        return False
    return SummaryWriter(str(path), purge_step=step)


def _without_end(identity: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what identifies a run, and its end, which may change."""
    config = dict(identity["config"])
    end = {name: config.pop(name, None) for name in _END}
    return {**identity, "config": config}, end


def difference(found: object, expected: object, name: str = "settings") -> str | None:
    """Return the name of the first entry in which two JSON values differ."""
    if isinstance(found, dict) and isinstance(expected, dict):
        for key in sorted(found.keys() | expected.keys()):
            different = difference(found.get(key), expected.get(key), str(key))
            if different is not None:
                return different
        return None
    return None if found == expected else name


def checksum(path: Path | str) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()
