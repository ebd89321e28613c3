"""The rows of a table, one line each: methods of `solve`, and models by a strategy.

A row is asked for by `NAME`, `NAME=NUMBER` for so many plans, iterations or samples, and
`NAME=NUMBER@TEMPERATURE` where plans are sampled.
"""

from __future__ import annotations

import hashlib
import math
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from arcfleet._checks import nearest_name
from arcfleet.errors import FileError, OptionError
from arcfleet.methods import METHODS
from arcfleet.neural.checkpoint import require_packages, shipped_model
from arcfleet.neural.strategies import STRATEGIES
from arcfleet.paper.strategies import BEAMS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from arcfleet.neural.solver import LoadedModel

#: The row that holds the costs of the labels of a test set.
LABELS = "labels"

#: Names of rows in files that were written before they were called as now.
OLD_NAMES = {
    "daam-directions": "daam-greedy",
    "daam-views": "daam",
    "redraw": "daam-sample",
}

_MOST_NUMBER = 10**9
_GIVEN = re.compile(r"(?P<model>[A-Za-z0-9][\w.+-]*)(@(?P<scale>[\w.+-]+))?=(?P<file>.+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of a table: how plans are made."""

    name: str  # name, with the number where there is one
    label: str  # label in tables, with a number that is not the default one
    method: str  # name of the method of `solve`; with a model, of the decoding strategy
    model: str | None = None  # name of the model; None for a method that has none
    model_type: str = "daam"
    unit: str = ""  # what the number counts: plans, iterations or samples; empty for none
    number: int = 1
    # Settings by name, seed among them.
    settings: Mapping[str, int | float] = field(default_factory=dict)
    # Whether it is a search, which may solve fewer instances than the others.
    is_search: bool = False
    # Instances per line of the store: what a kill may lose; 0 for some batches.
    chunk: int = 0
    # Rough time of an instance of 100 tasks on one core, by the default number.
    seconds: float = 0.01

    def expected_seconds(self, tasks: int, device: str) -> float:
        """Return the rough time of an instance; searches know no device but the CPU."""
        usual = known_rows()[self.name.partition(":")[0].partition("=")[0]]
        share = self.seconds * self.number / usual.number
        if self.model is None:
            return share * tasks / 100
        return share * (tasks / 100) ** 2 / (500 if device == "cuda" else 1)


def _scanning(name: str, label: str) -> Row:
    # Plain path scanning has five rules, which give one plan each, ever the same.
    return Row(
        name=name,
        label=label,
        method=name,
        unit="" if name == "ps" else "plans",
        number=METHODS[name].default_stop.iterations or 1,
        chunk=100,
    )


def _search(name: str, label: str, iterations: int, chunk: int, seconds: float) -> Row:
    return Row(
        name=name,
        label=label,
        method=name,
        unit="iterations",
        number=iterations,
        is_search=True,
        chunk=chunk,
        seconds=seconds,
    )


def _decoding(
    name: str, label: str, model: str, strategy: str, seconds: float, samples: int = 0
) -> Row:
    return Row(
        name=name,
        label=label,
        method=strategy,
        model=model,
        model_type=model if model in ("s2v-dqn", "vrp-dl") else "daam",
        unit="samples" if samples else "",
        number=samples or 1,
        seconds=seconds,
    )


#: Every row, in the order of the paper's table; ours below.
ROWS: dict[str, Row] = {
    row.name: row
    for row in (
        _scanning("ps", "PS"),
        _scanning("ps-ellipse", "PS-Ellipse"),
        _scanning("ps-efficiency", "PS-Efficiency"),
        _scanning("ps-alt1", "PS-Alt1"),
        _scanning("ps-alt2", "PS-Alt2"),
        _decoding("s2v-dqn", "S2V-DQN", "s2v-dqn", "as-decoded", 1.0),
        _decoding("vrp-dl", "VRP-DL", "vrp-dl", "as-decoded", 0.5),
        _decoding("daam-sl", "DaAM SL", "daam-sl", "as-decoded", 1.1),
        _decoding("daam-sl-rl", "DaAM SL+RL", "daam", "as-decoded", 1.1),
        _decoding("daam-po", "DaAM + PO", "daam", BEAMS.name, 4.5),
        _search("maens", "MAENS", METHODS["maens"].default_stop.iterations or 1, 2, 15.0),
        _decoding("daam-greedy", "DaAM (greedy, Split)", "daam", "greedy", 1.1),
        _decoding("daam", "DaAM (4 augmentations)", "daam", "augmented", 4.5),
        _decoding("sample", "DaAM", "daam", "sampling", 20.0, samples=32),
        _decoding("daam-sample", "DaAM", "daam", "neural-lns", 20.0, samples=32),
        _search("ruin-recreate", "ruin and recreate", 10_000, 10, 0.05),
    )
}


def known_rows() -> dict[str, Row]:
    """Return every row: those above, and one for any other method or strategy there is."""
    rows = dict(ROWS)
    for name, method in METHODS.items():
        if method.model_type is None and name not in rows:
            rows[name] = _search(
                name, name, method.default_stop.iterations or 1000, 10, 0.1
            )
    taken = {row.method for row in ROWS.values() if row.model}
    for strategy in STRATEGIES.values():
        if strategy.name not in taken:
            name, cost = strategy.method or strategy.name, 1.1 * strategy.rollouts
            samples = strategy.default_iterations if strategy.improve else 0
            cost *= max(1, samples)
            rows[name] = _decoding(name, name, "daam", strategy.name, cost, samples)
    return rows


#: The default rows: those of the paper but for MAENS, which takes hours, and ours below.
TABLE_ROWS = (
    *("ps", "ps-ellipse", "ps-efficiency", "ps-alt1", "ps-alt2", "s2v-dqn", "vrp-dl"),
    *("daam-sl", "daam-sl-rl", "daam-po", "daam", "ruin-recreate"),
)

#: Models that rows need.
MODELS = tuple(dict.fromkeys(row.model for row in ROWS.values() if row.model))

#: The paper's names of greedy plans of DaAM, by the last training of the model.
_TRAINED_LABELS = {
    **{"pretrain": "DaAM SL", "finetune": "DaAM SL+RL", "ppo": "DaAM SL+RL"},
}


def parse_rows(
    texts: Iterable[str], *, seed: int = 0, temperature: float | None = None
) -> list[Row]:
    """Parse rows as they are given to `--rows`."""
    rows = {row.name: row for row in (_parse(x, seed, temperature) for x in texts)}
    if not rows:
        raise OptionError("expected at least one row, got none")
    return list(rows.values())


def full_name(name: str, settings: Mapping[str, float]) -> str:
    """Return the name of a row with all its numbers, by which series are told apart."""
    given, colon, model = name.partition(":")
    base = given.partition("=")[0]
    base = OLD_NAMES.get(base, base)
    row = known_rows().get(base)
    if row is None:
        return name
    if not row.unit:
        return f"{base}{colon}{model}"
    number = settings["samples" if row.unit == "samples" else "iterations"]
    heat = f"@{settings['temperature']:g}" if "temperature" in settings else ""
    return f"{base}={number}{heat}{colon}{model}"


def full_label(row: Row, number: float, temperature: float | None = None) -> str:
    """Return the label of a row with its number, unless that is the default one."""
    if row.unit == "samples":
        heat = "" if temperature is None else f" at {temperature:g}"
        search = ", neural LNS" if row.method == "neural-lns" else ""
        return f"{row.label} (best of {number}{heat}{search})"
    if number != row.number:
        return f"{row.label} ({number:,} {row.unit})"
    return row.label


def _parse(text: str, seed: int, temperature: float | None) -> Row:
    name, _, number = text.strip().partition("=")
    number, _, heat = number.partition("@")
    name = OLD_NAMES.get(name, name)
    rows = known_rows()
    row = rows.get(name)
    if row is None:
        near = nearest_name(name, rows)
        known = f"known are {', '.join(rows)}"
        hint = f"did you mean {near!r}?" if near else known
        raise OptionError(f"expected the name of a row, got {name!r}: {hint}")
    if number and not row.unit:
        raise OptionError(f"expected {name!r} without a number, got {text!r}")
    if heat and row.unit != "samples":
        raise OptionError(
            "expected a temperature where plans are sampled only, as in sample=32@0.5, got "
            f"{text!r}"
        )
    count = _whole(number, text) if number else row.number
    settings: dict[str, int | float] = {}
    chosen = None
    if row.model is None:
        settings = {"iterations": count, "seed": seed}
    elif row.unit == "samples":
        chosen = _temperature(heat, text) if heat else temperature
        settings = {"samples": count, "seed": seed}
        if chosen is not None:
            settings["temperature"] = chosen
    return replace(
        row,
        settings=dict(sorted(settings.items())),
        name=full_name(row.name, settings),
        label=full_label(row, count, chosen),
        number=count,
    )


def trained_label(row: Row, training: str) -> str:
    """Return the label of a row that decodes by a model."""
    usual = known_rows()[row.name.partition(":")[0].partition("=")[0]].label
    if usual in _TRAINED_LABELS.values() and row.label.startswith(usual):
        return _TRAINED_LABELS.get(training, usual) + row.label.removeprefix(usual)
    return row.label


def with_model(row: Row, model: str, *, only_strategy: bool) -> Row:
    """Return a row that decodes by another model, and bears its name."""
    if row.model is None:
        raise OptionError(f"expected rows that decode by a model, got {row.name!r}")
    return replace(
        row,
        model=model,
        name=f"{row.name}:{model}",
        label=model if only_strategy else f"{row.label} by {model}",
    )


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


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """Model files by name and, where they differ, by scale."""

    # Files by name and scale; a scale of None stands for all others.
    given: Mapping[tuple[str, str | None], Path]
    device: str = "auto"
    _sums: dict[Path, str] = field(default_factory=dict)
    _training: dict[Path, str] = field(default_factory=dict)
    _loaded: dict[tuple[Path, str], LoadedModel] = field(default_factory=dict)

    def path(self, row: Row, scale: str) -> Path:
        """Return the file of a row on a scale: a given one, or the shipped one."""
        found = self._find(row, scale)
        if found is None:
            raise OptionError(
                f"expected a model file for the row {row.name!r} on {scale}, found none, "
                f"and none comes with this version: give --models {row.model}=FILE, or "
                "leave the row out by --rows"
            )
        return found

    def has(self, row: Row, scale: str) -> bool:
        """Whether a row has the model that it needs on a scale."""
        return row.model is None or self._find(row, scale) is not None

    def _find(self, row: Row, scale: str) -> Path | None:
        model = row.model or ""
        found = self.given.get((model, scale)) or self.given.get((model, None))
        if found is not None:
            return found
        return shipped_model(model)

    def checksum(self, path: Path) -> str:
        """Return the SHA-256 of a model file."""
        if path not in self._sums:
            try:
                data = path.read_bytes()
            except OSError as error:
                raise FileError(path, f"cannot be read ({error.strerror})") from error
            self._sums[path] = hashlib.sha256(data).hexdigest()
        return self._sums[path]

    def training(self, path: Path) -> str:
        """Return the last training of a model; empty if its file states none."""
        if path not in self._training:
            require_packages("decoding with a model")
            from arcfleet.neural.checkpoint import read_model_info

            facts = read_model_info(path).facts
            # "kind" in files from before phases were called so.
            self._training[path] = str(facts.get("phase", facts.get("kind", "")))
        return self._training[path]

    def load(self, path: Path, row: Row) -> LoadedModel:
        """Load the model file of a row on to the device, once for each type."""
        key = (path, row.model_type)
        if key not in self._loaded:
            require_packages("decoding with a model")
            from arcfleet.neural.solver import load_for_solving

            self._loaded[key] = load_for_solving(path, self.device, row.model_type)
        return self._loaded[key]

    def device_name(self) -> str:
        """Return the name of the device of the models."""
        require_packages("decoding with a model")
        from arcfleet.neural.solver import device_name

        return device_name(self.device)


def parse_models(
    texts: Iterable[str], device: str = "auto", *, names: Iterable[str] | None = None
) -> ModelFiles:
    """Parse model files as given to `--models`: FILE, NAME=FILE or NAME@SCALE=FILE."""
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
                f"expected --models NAME=FILE with a name among {', '.join(known)}, got "
                f"{text!r}"
            )
        if key in given:
            raise OptionError(f"expected one model file for {key[0]!r}, got {text!r} too")
        given[key] = path
    return ModelFiles(given, device)
