"""A trained model that is given more features or layers: what it knows is kept."""

from __future__ import annotations

import hashlib
import json
import signal
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from arcfleet._files import write_bytes_atomically, write_text_atomically
from arcfleet.errors import FileError, OptionError
from arcfleet.neural.checkpoint import load_model, model_class_for
from arcfleet.neural.device import working_type
from arcfleet.neural.train.distributed import Team

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import FrameType

    from torch import Tensor

    from arcfleet.neural.train.config import PretrainConfig


FORMAT = "arcfleet-training"

VERSION = 1


_ENTRY = "arcfleet"


# What may be another when a run goes on: where it ends, and what is shown of it.
_END = ("steps", "minutes")

_FREE = (*_END, "pictures")


# What makes a folder that of something else, which nothing may be written over.
_OCCUPANTS = {
    "config.json": "a run",
    "curriculum.json": "a curriculum",
    "model.safetensors": "a model",
}


class RunFolder:
    """The folder of a run.

    It holds `config.json`, `metrics.jsonl`, `checkpoint.safetensors`,
    `model.safetensors`, `plans`, and `tensorboard` where that is installed. Of several
    processes only the first writes to it, and looks whether it is the right one.

    Parameters
    ----------
    path
        The folder; made if it is not there.
    identity
        What the run is: settings, data, first weights. A run goes on only with the same,
        but for its end.
    resume
        Whether to go on with the run that is there.

    Raises
    ------
    FileError
        If there is a run that is not to be resumed, or none or another one that is, or
        anything else that a run would write over.
    """

    def __init__(
        self, path: Path | str, identity: Mapping[str, object], *, resume: bool
    ) -> None:
        self.path = Path(path)
        self.model_file = self.path / "model.safetensors"
        self._checkpoint = self.path / "checkpoint.safetensors"
        self._metrics = self.path / "metrics.jsonl"
        self._config = self.path / "config.json"
        team = Team.of_environment()
        self.writes = team.leads
        # Through JSON, since that is what it is compared with.
        self.identity: dict[str, Any] = json.loads(json.dumps(identity))
        if team.size > 1:
            self.identity["processes"] = team.size
        #: Whether the run is to end elsewhere than it was said before.
        self.has_new_end = False
        self._lines = 0  # of the metrics
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
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(
                self.path, f"cannot be made ({error.strerror}); name another folder"
            ) from error
        self.write_identity()

    def write_identity(self) -> None:
        """Write down what the run is."""
        if self.writes:
            text = json.dumps(self.identity, indent=2)
            write_text_atomically(self._config, f"{text}\n")

    def save(self, tensors: Mapping[str, Tensor], facts: Mapping[str, object]) -> None:
        """Write a checkpoint whole or not at all."""
        header = {
            **{"format": FORMAT, "version": VERSION, "facts": dict(facts)},
            "metric_lines": self._lines,
        }
        data = save_tensors(dict(tensors), {_ENTRY: json.dumps(header)})
        write_bytes_atomically(self._checkpoint, data)

    def load(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Read the checkpoint, on the CPU; None where the run has not come to one."""
        if not self._checkpoint.exists():
            self.forget_metrics_after(-1)
            return None
        try:
            data = self._checkpoint.read_bytes()
            size = int.from_bytes(data[:8], "little")
            header = json.loads(json.loads(data[8 : 8 + size])["__metadata__"][_ENTRY])
            if (header["format"], header["version"]) != (FORMAT, VERSION):
                raise ValueError(f"{header['format']} {header['version']}")
            facts: dict[str, Any] = header["facts"]
            tensors: dict[str, Tensor] = load_tensors(data)
        except OSError as error:
            raise FileError(
                self._checkpoint, f"cannot be read ({error.strerror})"
            ) from error
        except (SafetensorError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise FileError(
                self._checkpoint,
                f"expected a checkpoint of version {VERSION}, found another or a damaged "
                "file: start the run again in another folder",
            ) from error
        # Files from before there was such an entry may keep a line that comes again.
        self.forget_metrics_after(int(facts["step"]), header.get("metric_lines"))
        return tensors, facts

    def log(self, record: Mapping[str, object]) -> None:
        """Add a line to the metrics, and show its numbers in TensorBoard."""
        if not self.writes:
            return
        with self._metrics.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(record) + "\n")
        self._lines += 1
        if self._board is None:
            self._board = _tensorboard(self.path / "tensorboard", record["step"])
        if self._board is not False:
            for name, value in _numbers(record):
                if name != "step":
                    self._board.add_scalar(name, value, record["step"])

    def forget_metrics_after(self, step: int, lines: int | None = None) -> None:
        """Drop the metrics of what a run from a checkpoint makes again.

        Parameters
        ----------
        step
            The last one to keep.
        lines
            How many there were then; None for all up to that step.
        """
        if self.writes and self._metrics.exists():
            found = self._metrics.read_text(encoding="utf-8").splitlines()[:lines]
            kept = [line for line in found if _step_of(line) <= step]
            self._lines = len(kept)
            write_text_atomically(self._metrics, "".join(f"{line}\n" for line in kept))

    def close(self) -> None:
        """Flush what is shown in TensorBoard."""
        if self._board:
            self._board.close()

    def _compare(self) -> None:
        found = _read_config(self.path)
        ends = found.pop("earlier_ends", [])
        name = difference(_without_free(found), _without_free(self.identity))
        if name is not None:
            raise FileError(
                self._config,
                f"expected the run to be resumed with the same {name}, got another: give "
                "what it was started with, or start a new run in another folder",
            )
        before, now = (
            {k: x["config"].get(k) for k in _END} for x in (found, self.identity)
        )
        self.has_new_end = before != now
        if self.has_new_end:
            ends = [*ends, before]
        if ends:  # the learning rate followed them, so they belong to the run's history
            self.identity["earlier_ends"] = ends


def require_unoccupied(folder: Path, *, but: str = "") -> None:
    """Raise FileError where a folder has a run, a curriculum or a model in it.

    Parameters
    ----------
    folder
        Need not be there.
    but
        The name of a file that may be in it.
    """
    for name, found in _OCCUPANTS.items():
        if name != but and (folder / name).exists():
            raise FileError(
                folder,
                f"expected a folder for this training alone, found {found} in it: name "
                "another folder",
            )


def saved_settings(path: Path | str) -> dict[str, Any]:
    """Give the settings with which the run in a folder was started."""
    config = _read_config(Path(path))["config"]
    if not isinstance(config, dict):
        raise FileError(path, "expected a run with its settings, found none")
    return config


@contextmanager
def stop_on_signals() -> Iterator[Callable[[], bool]]:
    """Say whether Ctrl-C or SIGTERM has come; a second Ctrl-C ends the program at once."""
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


def generator_on(device: torch.device, seed: int) -> torch.Generator:
    """Make a generator of random numbers on a device."""
    generator = torch.Generator(device=device)
    generator.manual_seed(seed)
    return generator


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileError(
            folder, "expected a run to resume, found none: start it without --resume"
        ) from None
    except OSError as error:
        raise FileError(path, f"cannot be read ({error.strerror})") from error
    except ValueError:
        found = None
    if not isinstance(found, dict) or "config" not in found:
        raise FileError(
            path,
            "expected the settings of a run, found something else: start the run again in "
            "another folder",
        )
    return found


def _tensorboard(path: Path, step: object) -> Any:
    """Open what TensorBoard shows, without what an earlier part tells from `step` on."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:  # an extra view of the same metrics, no part of the run
        return False
    return SummaryWriter(str(path), purge_step=step)


def _numbers(record: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, float]]:
    for name, value in record.items():
        if isinstance(value, dict):
            yield from _numbers(value, f"{prefix}{name}/")
        elif isinstance(value, (int, float)):
            yield f"{prefix}{name}", float(value)


def _step_of(line: str) -> float:
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return float("inf")  # cut short by a kill


def _without_free(identity: Mapping[str, Any]) -> dict[str, Any]:
    config = {k: v for k, v in identity["config"].items() if k not in _FREE}
    return {**identity, "config": config}


def difference(found: object, expected: object, name: str = "settings") -> str | None:
    """Name the first entry in which two JSON values differ."""
    if isinstance(found, dict) and isinstance(expected, dict):
        for key in sorted(found.keys() | expected.keys()):
            different = difference(found.get(key), expected.get(key), str(key))
            if different is not None:
                return different
        return None
    return None if found == expected else name


def first_model(config: PretrainConfig, init: Path | str | None) -> Any:
    """Return the model to start from, its weights those of a file, else random ones.

    Raises
    ------
    OptionError
        If the model of the file has other sizes than the config.
    """
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
        build: Any = model_class_for(config.model)
        return build(config.model)


def require_weights(config: PretrainConfig, count: int) -> None:
    """Raise OptionError unless every data set has a weight, or none has."""
    if config.weights and len(config.weights) != count:
        raise OptionError(
            f"expected a weight for each of {count} data sets, got "
            f"{len(config.weights)} weights"
        )


def require_teamwork(config: PretrainConfig) -> None:
    """Raise OptionError where several processes cannot train such a model together."""
    size = Team.of_environment().size
    if size > 1 and getattr(config.model, "norm", "rms") == "batch":
        raise OptionError(
            f"expected another norm than batch for {size} processes, each of which would "
            "take the statistics of its own part: choose rms, or start one process"
        )


def require_precision(config: PretrainConfig, device: torch.device) -> None:
    """Raise OptionError where the device cannot work in the precision asked for."""
    working_type(config.precision, device)


def checksum(path: Path | str) -> str:
    """Give the SHA-256 of a file, which tells models apart."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()
