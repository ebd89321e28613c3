"""The rows of a table, one line each: methods of `solve`, and models by a strategy.

A row is asked for by `NAME`, `NAME=NUMBER` for so many plans, iterations or samples, and
`NAME=NUMBER@TEMPERATURE` where plans are sampled.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arcfleet._checks import nearest_name
from arcfleet.errors import FileError, OptionError
from arcfleet.methods import METHODS
from arcfleet.neural.checkpoint import read_model_info, shipped_model
from arcfleet.neural.solver import LoadedModel, device_name, load_for_solving
from arcfleet.neural.strategies import STRATEGIES
from arcfleet.paper.strategies import BEAMS, PUBLISHED_BEAMS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


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
    """Return a row of path scanning; its plain form has five rules and no number."""
    number = METHODS[name].default_stop.iterations or 1
    unit = "" if name == "ps" else "plans"
    return Row(name=name, label=label, method=name, unit=unit, number=number, chunk=100)


def _search(name: str, label: str, iterations: int, chunk: int, seconds: float) -> Row:
    """Return a row of a search."""
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
    """Return a row of a model and a decoding strategy."""
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


#: Strategy of greedy plans, taken as decoded, and its rough time.
_GREEDY = ("as-decoded", 1.1)

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
        # The paper's model by its recipe (`paper.toml`), both beams without a mirror.
        _decoding("published-sl", "DaAM SL, as published", "published-sl", *_GREEDY),
        _decoding("published-sl-rl", "DaAM SL+RL, as published", "published", *_GREEDY),
        _decoding(
            *("published-po", "DaAM + PO, as published", "published"),
            *(PUBLISHED_BEAMS.name, 4.5),
        ),
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
_TRAINED_LABELS = {"pretrain": "DaAM SL", "finetune": "DaAM SL+RL", "ppo": "DaAM SL+RL"}


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
    """Parse NAME, NAME=NUMBER or NAME=NUMBER@TEMPERATURE."""
    name, _, number = text.strip().partition("=")
    number, _, heat = number.partition("@")
    name = OLD_NAMES.get(name, name)
    rows = known_rows()
    row = rows.get(name)
    if row is None:
        near = nearest_name(name, rows)
        hint = f"did you mean {near!r}?" if near else f"known are {', '.join(rows)}"
        raise OptionError(f"expected the name of a row, got {name!r}: {hint}")
    is_whole = number.isascii() and number.isdigit() and 1 <= int(number) <= _MOST_NUMBER
    for is_wrong, expected in (
        (number and not row.unit, f"{name!r} without a number"),
        (
            heat and row.unit != "samples",
            "a temperature where plans are sampled only, as in sample=32@0.5",
        ),
        (number and not is_whole, "a row as NAME=NUMBER, from 1 to 1e9"),
        (heat and not _is_temperature(heat), "a temperature above 0"),
    ):
        if is_wrong:
            raise OptionError(f"expected {expected}, got {text!r}")
    count = int(number) if number else row.number
    settings: dict[str, int | float] = {}
    if row.model is None:
        settings = {"iterations": count, "seed": seed}
    elif row.unit == "samples":
        settings = {"samples": count, "seed": seed}
        chosen = float(heat) if heat else temperature
        if chosen is not None:
            settings["temperature"] = chosen
    return replace(
        row,
        settings=settings,
        name=full_name(row.name, settings),
        label=full_label(row, count, settings.get("temperature")),
        number=count,
    )


def _is_temperature(text: str) -> bool:
    try:
        return 0 < float(text) <= 1e6
    except ValueError:
        return False


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


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """Model files by name and, where they differ, by scale."""

    # Files by name and scale; a scale of None stands for all others.
    given: Mapping[tuple[str, str | None], Path]
    device: str = "auto"
    _kept: dict[tuple[object, ...], Any] = field(default_factory=dict)

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
        return shipped_model(model) if found is None else found

    def checksum(self, path: Path) -> str:
        """Return the SHA-256 of a model file."""
        if ("checksum", path) not in self._kept:
            try:
                data = path.read_bytes()
            except OSError as error:
                raise FileError(path, f"cannot be read ({error.strerror})") from error
            self._kept["checksum", path] = hashlib.sha256(data).hexdigest()
        return str(self._kept["checksum", path])

    def training(self, path: Path) -> str:
        """Return the last training of a model; empty if its file states none."""
        if ("facts", path) not in self._kept:
            self._kept["facts", path] = read_model_info(path).facts
        facts = self._kept["facts", path]
        # "kind" in files from before phases were called so.
        return str(facts.get("phase", facts.get("kind", "")))

    def load(self, path: Path, row: Row) -> LoadedModel:
        """Load the model file of a row on to the device, once for each type."""
        key = (row.model_type, path)
        if key not in self._kept:
            self._kept[key] = load_for_solving(path, self.device, row.model_type)
        loaded: LoadedModel = self._kept[key]
        return loaded

    def device_name(self) -> str:
        """Return the name of the device of the models."""
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
