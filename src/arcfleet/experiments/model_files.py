"""The model files of an experiment: which model a row uses on a test set."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from arcfleet.errors import FileError, OptionError
from arcfleet.neural.shipped import shipped_model

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from arcfleet.experiments.rows import RowType
    from arcfleet.neural.solver import LoadedModel

_GIVEN = re.compile(r"(?P<model>[A-Za-z0-9][\w.+-]*)(@(?P<scale>[\w.+-]+))?=(?P<file>.+)")


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """Model files by name, and where they differ from scale to scale by that too.

    Parameters
    ----------
    given
        Files by name and scale; a scale of None stands for all others.
    device
        Where the models work.
    """

    given: Mapping[tuple[str, str | None], Path]
    device: str = "auto"
    _sums: dict[Path, str] = field(default_factory=dict)
    _training: dict[Path, str] = field(default_factory=dict)
    _loaded: dict[tuple[Path, str], LoadedModel] = field(default_factory=dict)

    def path(self, row: RowType, scale: str) -> Path:
        """Give the file that a row uses on a scale: a given one, or what is shipped.

        Raises
        ------
        OptionError
            If there is none.
        """
        found = self._find(row, scale)
        if found is None:
            raise OptionError(
                f"expected a model file for the row {row.name!r} on {scale}, found none, "
                f"and none comes with this version: give --model {row.model}=FILE, or "
                "leave the row out by --rows"
            )
        return found

    def has(self, row: RowType, scale: str) -> bool:
        """Say whether a row has what it needs on a scale."""
        return row.model is None or self._find(row, scale) is not None

    def _find(self, row: RowType, scale: str) -> Path | None:
        model = row.model or ""
        found = self.given.get((model, scale)) or self.given.get((model, None))
        if found is not None:
            return found
        shipped = shipped_model(model)
        return shipped if shipped.is_file() else None

    def checksum(self, path: Path) -> str:
        """Give the SHA-256 of a model file."""
        if path not in self._sums:
            try:
                data = path.read_bytes()
            except OSError as error:
                raise FileError(path, f"cannot be read ({error.strerror})") from error
            self._sums[path] = hashlib.sha256(data).hexdigest()
        return self._sums[path]

    def training(self, path: Path) -> str:
        """Give the kind of training that a model file comes from; "" if it does not say."""
        if path not in self._training:
            from arcfleet.neural.packages import require_packages

            require_packages("decoding with a model")
            from arcfleet.neural.checkpoint import read_model_info

            self._training[path] = str(read_model_info(path).facts.get("kind", ""))
        return self._training[path]

    def load(self, path: Path, row: RowType) -> LoadedModel:
        """Load the model file of a row on to the device, once for each kind."""
        key = (path, row.model_kind)
        if key not in self._loaded:
            from arcfleet.neural.packages import require_packages

            require_packages("decoding with a model")
            from arcfleet.neural.solver import load_for_solving

            self._loaded[key] = load_for_solving(path, self.device, row.model_kind)
        return self._loaded[key]

    def device_name(self) -> str:
        """Name the device that models work on."""
        from arcfleet.neural.packages import require_packages

        require_packages("decoding with a model")
        from arcfleet.neural.evaluation import device_name

        return device_name(self.device)


def parse_models(
    texts: Iterable[str], device: str = "auto", *, names: Iterable[str] | None = None
) -> ModelFiles:
    """Read model files as given to `--model`: FILE, NAME=FILE or NAME@SCALE=FILE.

    Parameters
    ----------
    texts
        One for each file; one without a name is that of DaAM.
    device
        Where the models work.
    names
        Those that rows know; None for any.

    Raises
    ------
    OptionError
        If a name is unknown or given twice.
    """
    known = None if names is None else tuple(names)
    given: dict[tuple[str, str | None], Path] = {}
    for text in texts:
        match = _GIVEN.fullmatch(text)
        # A path may hold a "=" of its own.
        key: tuple[str, str | None]
        if match is None or Path(text).exists():
            key, path = ("daam", None), Path(text)
        else:
            key, path = (match["model"], match["scale"]), Path(match["file"])
        if known is not None and key[0] not in known:
            raise OptionError(
                f"expected --model NAME=FILE with a name among {', '.join(known)}, got "
                f"{text!r}"
            )
        if key in given:
            raise OptionError(f"expected one model file for {key[0]!r}, got {text!r} too")
        given[key] = path
    return ModelFiles(given, device)
