"""Model files: weights, sizes and history of a learned solver in one safetensors file.

The file's metadata has one entry, `arcfleet`, a JSON object: format, version, kind,
config, dtype, facts, and the SHA-256 of the whole file with that checksum written as zeros.
One entry, because safetensors writes several in no fixed order: so the same model gives the
same bytes. Nothing is pickled.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, fields
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn, TypeVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from arcfleet._files import write_bytes_atomically
from arcfleet.errors import FileError, OptionError
from arcfleet.neural.model import Daam, DaamConfig
from arcfleet.paper.baselines.s2v_dqn import S2vDqn, S2vDqnConfig
from arcfleet.paper.baselines.vrp_dl import VrpDl, VrpDlConfig

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor


_PACKAGES = ("torch", "safetensors")


def missing_package() -> str | None:
    """Name a package that learned solvers need and that is not installed, if any.

    The packages are looked for, not imported, which would take seconds.
    """
    return next((name for name in _PACKAGES if find_spec(name) is None), None)


def require_packages(purpose: str) -> None:
    """Raise OptionError where a package that learned solvers need is not installed.

    Parameters
    ----------
    purpose
        What needs it, for the message.
    """
    missing = missing_package()
    if missing is not None:
        raise OptionError(
            f"{purpose} needs {missing}, which is not installed: install arcfleet[neural]"
        )


Model = Daam | S2vDqn | VrpDl

ModelConfig = DaamConfig | S2vDqnConfig | VrpDlConfig

AnyModel = TypeVar("AnyModel", Daam, S2vDqn, VrpDl)


class Kind(NamedTuple):
    """A kind of model, and the class of its sizes."""

    model: type[Any]
    config: type[ModelConfig]


KINDS: dict[str, Kind] = {
    "daam": Kind(Daam, DaamConfig),
    "s2v-dqn": Kind(S2vDqn, S2vDqnConfig),
    "vrp-dl": Kind(VrpDl, VrpDlConfig),
}


def kind_of(model: type[Model]) -> str:
    """Give the name of a class of models."""
    return next(name for name, kind in KINDS.items() if kind.model is model)


SHIPPED_MODEL = Path(__file__).parent / "weights" / "daam.safetensors"


def shipped_model(kind: str) -> Path:
    """Give the place of the model of a kind; it need not be there."""
    if kind == "daam":
        return SHIPPED_MODEL
    return SHIPPED_MODEL.with_name(f"{kind}.safetensors")


def model_path(model: Path | str | None, kind: str = "daam") -> Path:
    """Give the model file to use: the one that is named, or the one that is shipped.

    Parameters
    ----------
    model
        The file, or None.
    kind
        Of model that is wanted: "daam", "s2v-dqn" or "vrp-dl".

    Raises
    ------
    OptionError
        If none is named and none is shipped.
    """
    if model is not None:
        if not isinstance(model, str | Path):
            raise OptionError(
                f"expected the path of a model file, got {type(model).__name__}"
            )
        return Path(model)
    shipped = shipped_model(kind)
    if not shipped.is_file():
        raise OptionError(
            f"expected a model file of kind {kind!r}, got none, and none comes with this "
            "version of arcfleet: name one (model=..., on the command line --model FILE)"
        )
    return shipped


FORMAT = "arcfleet-model"

VERSION = 1


StoredType = Literal["float32", "float16", "bfloat16"]

STORED_TYPES: dict[StoredType, torch.dtype] = {
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
}


_ENTRY = "arcfleet"

# What a file without them means: models of a time when there was nothing to choose.
_ADDED_LATER = {"features": "paper", "served": "seen"}

_MEMBERS = {"format", "version", "kind", "config", "dtype", "facts", "sha256"}

_NO_CHECKSUM = "0" * 64

_LARGEST_HEADER = 1 << 24

# More would be a mistake, and building it would take for ever.
_LARGEST_SIZE = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInfo:
    """What a model file says of itself.

    Parameters
    ----------
    kind
        Of model, one of `KINDS`.
    config
        Its sizes.
    dtype
        Of the weights in the file.
    facts
        How the model came about.
    parameters
        Number of weights.
    bytes
        Size of the file.
    """

    kind: str
    config: ModelConfig
    dtype: StoredType
    facts: dict[str, object]
    parameters: int
    bytes: int


def save_model(
    model: Model,
    path: Path | str,
    facts: Mapping[str, object],
    *,
    dtype: StoredType = "float32",
) -> None:
    """Write a model file whole or not at all.

    Parameters
    ----------
    model
        On any device.
    path
        The file.
    facts
        How the model came about (data, command, steps, date); anything JSON can hold.
    dtype
        Of the weights in the file; half of the bits make half of the file.

    Raises
    ------
    OptionError
        If a weight is not finite, the facts cannot be written as JSON, or `dtype` is
        unknown.
    """
    if dtype not in STORED_TYPES:
        raise OptionError(
            f"expected dtype to be one of {', '.join(STORED_TYPES)}, got {dtype!r}"
        )
    kind = STORED_TYPES[dtype]
    tensors = {
        name: tensor.detach().to("cpu", kind).contiguous()
        for name, tensor in model.state_dict().items()
    }
    for name, tensor in tensors.items():
        if not bool(tensor.isfinite().all()):
            raise OptionError(
                f"expected finite weights in {dtype}, got others in {name!r} of the "
                "model: train it anew from an earlier one, or store float32"
            )
    header = {
        "format": FORMAT,
        "version": VERSION,
        "kind": kind_of(type(model)),
        "config": asdict(model.config),
        "dtype": dtype,
        "facts": dict(facts),
        "sha256": _NO_CHECKSUM,
    }
    try:
        text = json.dumps(header, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise OptionError(f"expected facts that JSON can hold: {error}") from None
    data = save_tensors(tensors, {_ENTRY: text})
    # The last zeros of the header: facts, which come before, may hold such a row as well.
    place = data.rindex(_NO_CHECKSUM.encode(), 0, 8 + int.from_bytes(data[:8], "little"))
    checksum = hashlib.sha256(data).hexdigest().encode()
    write_bytes_atomically(path, data[:place] + checksum + data[place + len(checksum) :])


def load_model(
    path: Path | str, device: torch.device | str = "cpu"
) -> tuple[Daam, dict[str, object]]:
    """Read a file that holds a DaAM, as `load_model_of` does."""
    return load_model_of(Daam, path, device)


def load_model_of(
    model: type[AnyModel], path: Path | str, device: torch.device | str = "cpu"
) -> tuple[AnyModel, dict[str, object]]:
    """Read a model file; the model is in float32, on `device` and not in training.

    Parameters
    ----------
    model
        Its class: one of those of `KINDS`.
    path
        The file.
    device
        Where the weights go.

    Returns
    -------
    model, facts
        What `save_model` was given.

    Raises
    ------
    FileError
        If the file is not there, no model file, of another version or kind, or damaged.
    """
    loaded, facts, _ = _load(Path(path), device, kind_of(model))
    assert isinstance(loaded, model)
    return loaded, facts


def read_model_info(path: Path | str) -> ModelInfo:
    """Say what a model file of any kind holds, after checking all of it."""
    return _load(Path(path), "cpu", None)[2]


def _load(
    path: Path, device: torch.device | str, wanted: str | None
) -> tuple[Model, dict[str, object], ModelInfo]:
    data = _read(path)
    found = _header(path, data)
    name = found["kind"]
    if wanted is not None and name != wanted:
        _refuse(
            path,
            f"a model of kind {wanted!r}",
            f"kind {name!r}: name a file of that kind, or the method of this one",
        )
    kind = KINDS[name]
    config = _config(path, kind.config, found["config"])
    try:
        tensors = load_tensors(data)
    except (SafetensorError, ValueError, KeyError, TypeError, RuntimeError) as error:
        raise FileError(path, f"expected a whole model file, found: {error}") from None
    layers: int = getattr(config, "layers", 1)
    if layers > len(tensors):
        _refuse(path, f"weights of all {layers} layers", "fewer")
    # Without storage, and without random first weights.
    with torch.device("meta"):
        model = kind.model(config)
    dtype: StoredType = found["dtype"]
    _check_tensors(path, tensors, model.state_dict(), STORED_TYPES[dtype])
    model.load_state_dict(
        {name: tensor.to(device, torch.float32) for name, tensor in tensors.items()},
        assign=True,
    )
    info = ModelInfo(
        kind=name,
        config=config,
        dtype=dtype,
        facts=found["facts"],
        parameters=sum(weights.numel() for weights in model.parameters()),
        bytes=len(data),
    )
    return model.eval(), info.facts, info


def _read(path: Path) -> bytes:
    try:
        if path.exists() and not path.is_file():
            _refuse(path, "a model file", "a directory or device")
        with path.open("rb") as stream:
            start = stream.read(9)
            size = int.from_bytes(start[:8], "little")
            if not (len(start) == 9 and 0 < size <= _LARGEST_HEADER and start[8:] == b"{"):
                _refuse(path, "a model file (safetensors)", "another kind of file")
            return start + stream.read()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise FileError(path, f"cannot be read ({reason}); name another file") from error


def _header(path: Path, data: bytes) -> dict[str, Any]:
    size = int.from_bytes(data[:8], "little")
    if len(data) < 8 + size:
        _refuse(path, "a whole model file", "its end missing")
    try:
        metadata = json.loads(data[8 : 8 + size].decode("utf-8"))["__metadata__"]
        found = json.loads(metadata[_ENTRY], parse_constant=_no_constant)
    except (ValueError, KeyError, TypeError, RecursionError):
        _refuse(path, "a model written by arcfleet", "safetensors of another kind")
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        _refuse(path, "a model written by arcfleet", "safetensors of another kind")
    version = found.get("version")
    if type(version) is not int or version != VERSION:
        _refuse(path, f"version {VERSION} of {FORMAT}", f"version {version!r:.40}")
    if found.keys() != _MEMBERS:
        names = ", ".join(sorted(found.keys() ^ _MEMBERS))
        _refuse(
            path, "the members of a model file", f"missing or unknown ones: {names:.80}"
        )
    if not isinstance(found["kind"], str) or found["kind"] not in KINDS:
        _refuse(path, f"a model of kind {', '.join(KINDS)}", f"kind {found['kind']!r:.40}")
    if not isinstance(found["dtype"], str) or found["dtype"] not in STORED_TYPES:
        _refuse(path, "weights of a known dtype", f"{found['dtype']!r:.40}")
    if not isinstance(found["facts"], dict):
        _refuse(path, "facts by name", f"{type(found['facts']).__name__}")
    _check_sum(path, data, found["sha256"])
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _check_sum(path: Path, data: bytes, stated: object) -> None:
    # Every byte counts, so that no damage, however small, becomes a slightly other model.
    if isinstance(stated, str) and len(stated) == 64 and stated.isascii():
        blank = data.replace(stated.encode(), _NO_CHECKSUM.encode(), 1)
        if hashlib.sha256(blank).hexdigest() == stated:
            return
    _refuse(path, "contents that fit the checksum", "others: the file is damaged")


def _config(path: Path, kind: type[ModelConfig], found: object) -> ModelConfig:
    names = {field.name for field in fields(kind)}
    if isinstance(found, dict) and kind is KINDS["daam"].config:
        found = {**_ADDED_LATER, **found}
    if not isinstance(found, dict) or found.keys() != names:
        others = ", ".join(sorted(found.keys() ^ names)) if isinstance(found, dict) else ""
        _refuse(path, "every size of the model", f"missing or unknown ones: {others:.80}")
    for name, value in found.items():
        if type(value) is int and not 0 <= value <= _LARGEST_SIZE:
            _refuse(path, f"{name} from 0 to {_LARGEST_SIZE}", f"{value!r:.40}")
    try:
        return kind(**found)
    except OptionError as error:
        raise FileError(path, f"{error}") from None


def _check_tensors(
    path: Path,
    found: Mapping[str, Tensor],
    expected: Mapping[str, Tensor],
    kind: torch.dtype,
) -> None:
    for name in expected.keys() - found.keys():
        _refuse(path, f"weights {name!r}", "none")
    for name in found.keys() - expected.keys():
        _refuse(path, "no other weights than the model's", f"{name!r:.60}")
    for name, tensor in found.items():
        wanted = tuple(expected[name].shape)
        if tuple(tensor.shape) != wanted or tensor.dtype != kind:
            _refuse(
                path,
                f"weights {name!r} of shape {wanted} in {kind}",
                f"{tuple(tensor.shape)} in {tensor.dtype}",
            )


def _refuse(path: Path, expected: str, found: str) -> NoReturn:
    raise FileError(path, f"expected {expected}, found {found}")
