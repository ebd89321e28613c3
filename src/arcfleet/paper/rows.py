"""The rows of a table: path scanning, learned policies and searches, one line each.

A row is asked for by `NAME`, `NAME=NUMBER` for so many plans, iterations or samples, and
`NAME=NUMBER@TEMPERATURE` where plans are sampled.
"""

from __future__ import annotations

import difflib
import hashlib
import math
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from arcfleet.errors import FileError, OptionError
from arcfleet.methods import METHODS
from arcfleet.neural.checkpoint import shipped_model
from arcfleet.paper.strategies import BEAMS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from arcfleet.neural.solver import LoadedModel
    from arcfleet.paper.series import Settings


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
        return shipped_model(model)

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
            from arcfleet.neural.checkpoint import require_packages

            require_packages("decoding with a model")
            from arcfleet.neural.checkpoint import read_model_info

            self._training[path] = str(read_model_info(path).facts.get("kind", ""))
        return self._training[path]

    def load(self, path: Path, row: RowType) -> LoadedModel:
        """Load the model file of a row on to the device, once for each kind."""
        key = (path, row.model_kind)
        if key not in self._loaded:
            from arcfleet.neural.checkpoint import require_packages

            require_packages("decoding with a model")
            from arcfleet.neural.solver import load_for_solving

            self._loaded[key] = load_for_solving(path, self.device, row.model_kind)
        return self._loaded[key]

    def device_name(self) -> str:
        """Name the device that models work on."""
        from arcfleet.neural.checkpoint import require_packages

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


#: "search" is any method of `solve` without a model, "decoding" one of
#: `neural.evaluation`, and "hybrid" a learned plan that a search improves.
Kind = Literal["search", "decoding", "hybrid"]


#: The row that holds the costs of the labels of a test set.
LABELS = "labels"


_MOST_NUMBER = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class RowType:
    """What a row is made by.

    Parameters
    ----------
    name
        As given to `--rows`.
    label
        In tables.
    kind, method
        The method of `solve`, or the decoding.
    model, model_kind
        The name of the model it needs, None for none, and its kind, of `neural.kinds`.
    unit, number
        What its number counts and how many there usually are; "" and 0 for none.
    is_slow
        Whether it is a search, which solves fewer instances than the others.
    chunk
        Instances per JSON line: what a kill may lose.
    """

    name: str
    label: str
    kind: Kind
    method: str
    model: str | None = None
    model_kind: str = "daam"
    unit: str = ""
    number: int = 0
    is_slow: bool = False
    chunk: int = 0


def _scanning(name: str, label: str) -> RowType:
    plans = METHODS[name].default_stop.iterations or 1
    # Plain path scanning has five rules, which give one plan each, ever the same.
    unit = "" if name == "ps" else "plans"
    return RowType(
        name=name,
        label=label,
        kind="search",
        method=name,
        unit=unit,
        number=plans,
        chunk=100,
    )


def _search(name: str, label: str, iterations: int, chunk: int) -> RowType:
    return RowType(
        name=name,
        label=label,
        kind="search",
        method=name,
        unit="iterations",
        number=iterations,
        is_slow=True,
        chunk=chunk,
    )


def _decoding(
    name: str, label: str, model: str, strategy: str = "as-decoded", samples: int = 0
) -> RowType:
    return RowType(
        name=name,
        label=label,
        kind="decoding",
        method=strategy,
        model=model,
        model_kind=model if model in ("s2v-dqn", "vrp-dl") else "daam",
        unit="samples" if samples else "",
        number=samples,
    )


#: Every row, in the order of the paper's table; ours below.
ROW_TYPES: dict[str, RowType] = {
    row.name: row
    for row in (
        _scanning("ps", "PS"),
        _scanning("ps-ellipse", "PS-Ellipse"),
        _scanning("ps-efficiency", "PS-Efficiency"),
        _scanning("ps-alt1", "PS-Alt1"),
        _scanning("ps-alt2", "PS-Alt2"),
        _decoding("s2v-dqn", "S2V-DQN", "s2v-dqn"),
        _decoding("vrp-dl", "VRP-DL", "vrp-dl"),
        _decoding("daam-sl", "DaAM SL", "daam-sl"),
        _decoding("daam-sl-rl", "DaAM SL+RL", "daam"),
        _decoding("daam-po", "DaAM + PO", "daam", BEAMS.name),
        _search("maens", "MAENS", METHODS["maens"].default_stop.iterations or 1, 2),
        _decoding("daam-directions", "DaAM (PO with directions)", "daam", "greedy"),
        _decoding("daam-views", "DaAM (four views)", "daam", "augmented"),
        _decoding("sample", "DaAM", "daam", "sampling", samples=32),
        _decoding("redraw", "DaAM", "daam", "neural-lns", samples=32),
        _search("ruin-recreate", "ruin and recreate", 10_000, 10),
        RowType(
            name="hybrid",
            label="hybrid",
            kind="hybrid",
            method="hybrid",
            model="daam",
            unit="iterations",
            number=10_000,
            is_slow=True,
            chunk=100,
        ),
    )
}


#: The paper's table, and ours below it.
TABLE_ROWS = tuple(name for name in ROW_TYPES if name != "daam-directions")


#: What greedy plans of DaAM are called in the paper, by the last training of the model.
_TRAINED_LABELS = {"pretrain": "DaAM SL", "finetune": "DaAM SL+RL"}


#: Models that rows need.
MODELS = tuple(dict.fromkeys(row.model for row in ROW_TYPES.values() if row.model))


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row that is to be made.

    Parameters
    ----------
    kind
        Its type.
    settings
        In the order of their names.
    name, label
        With the number, where it has one; the label only with one that is not usual.
    """

    kind: RowType
    settings: Settings
    name: str
    label: str


def parse_rows(
    texts: Iterable[str], *, seed: int = 0, temperature: float | None = None
) -> list[Row]:
    """Read rows as they are given to `--rows`.

    Parameters
    ----------
    texts
        One for each row.
    seed
        Of all random choices.
    temperature
        Of samples where the row does not say; by default that of `daam-sample`.

    Raises
    ------
    OptionError
        If a row is unknown, or its number is of no use.
    """
    rows = {row.name: row for row in (_parse(x, seed, temperature) for x in texts)}
    if not rows:
        raise OptionError("expected at least one row, got none")
    return list(rows.values())


def full_name(name: str, settings: Mapping[str, float]) -> str:
    """Give the name of a row with all its numbers, by which series are told apart.

    Parameters
    ----------
    name
        Of the row, with numbers or without.
    settings
        Of the row.
    """
    given, colon, model = name.partition(":")
    kind = ROW_TYPES.get(given.partition("=")[0])
    if kind is None or not kind.unit:
        return name
    number = settings["samples" if kind.unit == "samples" else "iterations"]
    heat = f"@{settings['temperature']:g}" if "temperature" in settings else ""
    return f"{kind.name}={number}{heat}{colon}{model}"


def _parse(text: str, seed: int, temperature: float | None) -> Row:
    name, _, number = text.strip().partition("=")
    number, _, heat = number.partition("@")
    kind = ROW_TYPES.get(name)
    if kind is None:
        near = difflib.get_close_matches(name, ROW_TYPES, n=1)
        known = f"known are {', '.join(ROW_TYPES)}"
        hint = f"did you mean {near[0]!r}?" if near else known
        raise OptionError(f"expected the name of a row, got {name!r}: {hint}")
    if number and not kind.unit:
        raise OptionError(f"expected {name!r} without a number, got {text!r}")
    if heat and kind.unit != "samples":
        raise OptionError(
            "expected a temperature for sample and redraw only, as in sample=32@0.5, got "
            f"{text!r}"
        )
    count = _whole(number, text) if number else kind.number
    settings: dict[str, int | float] = {}
    if kind.kind != "decoding":
        settings = {"iterations": count, "seed": seed}
    elif kind.unit == "samples":
        given = _temperature(heat, text) if heat else temperature
        settings = {"samples": count, "seed": seed}
        if given is not None:
            settings["temperature"] = given
    label = kind.label
    if kind.unit == "samples":
        heat = f" at {settings['temperature']:g}" if "temperature" in settings else ""
        anew = ", routes redrawn" if kind.method == "neural-lns" else ""
        label += f" (best of {count}{heat}{anew})"
    elif count != kind.number:
        label += f" ({count:,} {kind.unit})"
    return Row(
        kind=kind,
        settings=tuple(sorted(settings.items())),
        name=full_name(kind.name, settings),
        label=label,
    )


def trained_label(row: Row, training: str) -> str:
    """Give the label of a row that decodes by a model.

    Parameters
    ----------
    row
        The row; of one that bears the name of a model nothing changes.
    training
        The kind of training that the model comes from, as its file says.
    """
    usual = row.kind.label
    if usual in _TRAINED_LABELS.values() and row.label.startswith(usual):
        return _TRAINED_LABELS.get(training, usual) + row.label.removeprefix(usual)
    return row.label


def _whole(number: str, text: str) -> int:
    if not (number.isascii() and number.isdigit() and 1 <= int(number) <= _MOST_NUMBER):
        raise OptionError(f"expected a row as NAME=NUMBER, from 1 to 1e9, got {text!r}")
    return int(number)


def _temperature(heat: str, text: str) -> float:
    try:
        value = float(heat)
    except ValueError:
        value = math.nan
    if not 0 < value <= 1e6:
        raise OptionError(f"expected a temperature above 0, got {text!r}")
    return value


def with_model(row: Row, model: str, *, alone: bool) -> Row:
    """Give a row that decodes by another model, and bears its name.

    Parameters
    ----------
    row
        How to decode.
    model
        Which model, by the name of its file in `ModelFiles`.
    alone
        Whether all rows decode alike, so that the model's name says enough.

    Raises
    ------
    OptionError
        If the row needs no model.
    """
    if row.kind.model is None:
        raise OptionError(f"expected rows that decode by a model, got {row.name!r}")
    return replace(
        row,
        kind=replace(row.kind, model=model),
        name=f"{row.name}:{model}",
        label=model if alone else f"{row.label} by {model}",
    )
