"""Model files: weights, sizes and history of a model in one safetensors file.

The file's metadata has one entry, `arcfleet`, a JSON object: format, version, kind (the
model type), config, dtype, facts, and the SHA-256 of the whole file with that checksum
written as zeros. One entry, because safetensors writes several in no fixed order: so the
same model gives the same bytes. Nothing is pickled.

The table of model types is here, too: `register_model` adds one. Models are named, not
imported, so that importing this module takes no torch.
"""

from __future__ import annotations

import hashlib
import importlib
import json
from dataclasses import asdict, dataclass, fields
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, get_args

from arcfleet._checks import one_line
from arcfleet._files import write_bytes_atomically
from arcfleet.errors import FileError, OptionError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch
    from torch import Tensor

    from arcfleet.neural.model import Model

_PACKAGES = ("torch", "safetensors")


def missing_package() -> str | None:
    """Return a package that learned methods need and that is not installed, if any."""
    # Looked for, not imported, which would take seconds.
    return next((name for name in _PACKAGES if find_spec(name) is None), None)


def require_packages(purpose: str) -> None:
    """Raise OptionError where a package that `purpose` needs is not installed."""
    missing = missing_package()
    if missing is not None:
        raise OptionError(
            f"{purpose} needs {missing}, which is not installed: install arcfleet[neural]"
        )


# ------------------------------------------------------------------ model types


@dataclass(frozen=True, slots=True)
class ModelType:
    """A type of model, as `register_model` enters it."""

    name: str  # in the metadata of model files
    reference: str  # class of the model as "module:Class", imported when first needed
    serves: str  # model type that methods ask for; mostly its own name
    weights: Path | None = None  # file of the shipped weights; it need not be there

    @property
    def model_class(self) -> type[Model]:
        """Class of the model."""
        module, _, name = self.reference.partition(":")
        found: type[Model] = getattr(importlib.import_module(module), name)
        return found

    @property
    def config_class(self) -> type[Any]:
        """Class of the model's sizes."""
        return self.model_class.config_class


#: Every registered model type, by name.
MODEL_TYPES: dict[str, ModelType] = {}


def register_model(
    name: str, reference: str, *, serves: str | None = None, weights: Path | None = None
) -> None:
    """Add a model type: its files can be read and written, and methods can ask for it.

    Parameters
    ----------
    name
        Name in the metadata of model files.
    reference
        Class of the model, a `neural.model.Model`, as "module:Class".
    serves
        Model type whose methods take it; by default its own name.
    weights
        File of the shipped weights, if any.
    """
    MODEL_TYPES[name] = ModelType(name, reference, serves or name, weights)


SHIPPED_MODEL = Path(__file__).parent / "weights" / "daam.safetensors"

register_model("daam", "arcfleet.neural.model:Daam", weights=SHIPPED_MODEL)


def find_model_type(name: str) -> ModelType:
    """Return the model type of that name, or raise OptionError."""
    if name not in MODEL_TYPES:
        raise OptionError(
            f"expected a model type among {', '.join(MODEL_TYPES)}, got {name!r:.40}: "
            "import arcfleet.paper first if it is one of the paper's"
        )
    return MODEL_TYPES[name]


def registered_type(model: Model | type[Model]) -> ModelType | None:
    """Return the registered type of a model; None for a class of a user's own."""
    model_class = model if isinstance(model, type) else type(model)
    reference = f"{model_class.__module__}:{model_class.__qualname__}"
    return next((x for x in MODEL_TYPES.values() if x.reference == reference), None)


def model_type_of(model: Model | type[Model]) -> ModelType:
    """Return the registered type of a model, or raise OptionError."""
    found = registered_type(model)
    if found is None:
        name = (model if isinstance(model, type) else type(model)).__name__
        raise OptionError(
            f"expected a model of a registered class, got a {name}: call register_model of "
            "arcfleet.neural.checkpoint for it first"
        )
    return found


def model_class_for(config: Any) -> type[Model]:
    """Return the class of models that have sizes of the config's class."""
    classes = (known.model_class for known in MODEL_TYPES.values())
    return next(known for known in classes if known.config_class is type(config))


def sizes_of(config: Any) -> dict[str, Any]:
    """Return the sizes of a model by name, with its type unless that is the shipped one."""
    name = model_type_of(model_class_for(config)).name
    return asdict(config) if name == "daam" else {"type": name, **asdict(config)}


def shipped_model(model_type: str) -> Path | None:
    """Return the file of the shipped weights of a type; None if there is none."""
    known = MODEL_TYPES.get(model_type)
    if known is None or known.weights is None:
        return None
    return known.weights if known.weights.is_file() else None


def model_path(model: Path | str | None, model_type: str = "daam") -> Path:
    """Return the model file to use: the one that is named, or the one that is shipped."""
    if model is not None:
        if not isinstance(model, str | Path):
            raise OptionError(
                f"expected the path of a model file, got {type(model).__name__}"
            )
        return Path(model)
    shipped = shipped_model(model_type)
    if shipped is None:
        raise OptionError(
            f"expected a model file of type {model_type!r}, got none, and none comes with "
            "this version of arcfleet: name one (model=..., on the command line "
            "--model FILE)"
        )
    return shipped


def initial_file(init: Path | str) -> Path:
    """Return the file of an initial model; "daam" names the shipped one."""
    if str(init) in MODEL_TYPES and not Path(init).exists():
        return model_path(None, str(init))
    return Path(init)


# ------------------------------------------------------------------------ files

FORMAT = "arcfleet-model"
VERSION = 1

StoredType = Literal["float32", "float16", "bfloat16"]
STORED_TYPES: tuple[StoredType, ...] = get_args(StoredType)

_ENTRY = "arcfleet"
_MEMBERS = {"format", "version", "kind", "config", "dtype", "facts", "sha256"}
_NO_CHECKSUM = "0" * 64

# More would be a mistake, and building such a model would take for ever.
_LARGEST_HEADER = 1 << 24
_LARGEST_SIZE = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInfo:
    """Contents of a model file, without the weights."""

    model_type: str
    config: Any  # sizes of the model
    dtype: StoredType  # of the weights in the file
    facts: dict[str, object]  # history of the model: data, command, steps, date
    parameters: int  # number of weights
    bytes: int  # size of the file


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
        Model, on any device.
    path
        File to write.
    facts
        History of the model (data, command, steps, date); anything JSON can hold.
    dtype
        Data type of the weights in the file; half of the bits make half of the file.
    """
    import torch
    from safetensors.torch import save as save_tensors

    if dtype not in STORED_TYPES:
        raise OptionError(
            f"expected dtype to be one of {', '.join(STORED_TYPES)}, got {dtype!r}"
        )
    tensors = {
        name: tensor.detach().to("cpu", getattr(torch, dtype)).contiguous()
        for name, tensor in model.state_dict().items()
    }
    for name, tensor in tensors.items():
        if not bool(tensor.isfinite().all()):
            raise OptionError(
                f"expected finite weights in {dtype}, got others in {name!r} of the "
                "model: train again from an earlier one, or store float32"
            )
    header = {
        "format": FORMAT,
        "version": VERSION,
        "kind": model_type_of(model).name,
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
    path: Path | str, device: torch.device | str = "cpu", *, serves: str | None = None
) -> tuple[Model, dict[str, object]]:
    """Load a model file; the model is in float32, on `device` and not in training.

    Parameters
    ----------
    path
        File to read.
    device
        Device of the weights.
    serves
        Model type that is wanted, or one that stands in for it; None for any.

    Returns
    -------
    model, facts
        The model, and the facts that `save_model` was given.
    """
    model, info = _load(Path(path), device, serves)
    return model, info.facts


def read_model_info(path: Path | str) -> ModelInfo:
    """Read what a model file of any type holds, after checking all of it."""
    return _load(Path(path), "cpu", None)[1]


def _load(
    path: Path, device: torch.device | str, wanted: str | None
) -> tuple[Model, ModelInfo]:
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load as load_tensors

    data = _read(path)
    found = _header(path, data)
    name, sizes, renamed = _current(path, found["kind"], found["config"])
    try:
        model_type = find_model_type(name)
    except OptionError as error:
        raise FileError(path, f"{error}") from None
    if wanted is not None and wanted != model_type.serves:
        _refuse(
            path,
            f"a model of type {wanted!r}",
            f"type {name!r}: name a file of that type, or the method of this one",
        )
    config = _config(path, model_type.config_class, sizes)
    try:
        tensors = load_tensors(data)
    except (SafetensorError, ValueError, KeyError, TypeError, RuntimeError) as error:
        raise FileError(
            path, f"expected a whole model file, found: {one_line(str(error)):.200}"
        ) from None
    if name == "daam-paper" and "attend_to" in tensors:
        _refuse(
            path,
            "a published model as Eq. 5 is read now, with a term of the arc itself",
            "one of the earlier reading: train it again",
        )
    if renamed:
        tensors = {x.replace("_norm.norm.", "_norm."): y for x, y in tensors.items()}
    layers: int = getattr(config, "layers", 1)
    if layers > len(tensors):
        _refuse(path, f"weights of all {layers} layers", "fewer")
    # Without storage, and without random first weights.
    with torch.device("meta"):
        build: Any = model_type.model_class
        model: Model = build(config)
    dtype: StoredType = found["dtype"]
    _check_tensors(path, tensors, model.state_dict(), getattr(torch, dtype))
    model.load_state_dict(
        {name: tensor.to(device, torch.float32) for name, tensor in tensors.items()},
        assign=True,
    )
    info = ModelInfo(
        model_type=name,
        config=config,
        dtype=dtype,
        facts=found["facts"],
        parameters=sum(weights.numel() for weights in model.parameters()),
        bytes=len(data),
    )
    return model.eval(), info


# Settings of the time when shipped model, published model and trials were one class with
# options. Files without the last two are older still, and mean the first words.
_OLD_DEFAULTS = {"features": "paper", "served": "seen"}

# Each with its values in the shipped and in the published model.
_OLD_SETTINGS: dict[str, tuple[tuple[object, ...], tuple[object, ...]]] = {
    "gat_heads": ((1,), (1,)),
    "norm": (("rms",), ("batch", "rms")),
    "inputs": (("mds+gat+skip",), ("mds+gat", "gat", "mds")),
    "features": (("more+spare",), ("paper",)),
    "served": (("hidden",), ("seen",)),
}


def _current(path: Path, name: str, sizes: object) -> tuple[str, object, bool]:
    """Return the model type and sizes of a file, and whether weights have old names."""
    known = _OLD_SETTINGS
    if name != "daam" or not isinstance(sizes, dict) or not sizes.keys() & known.keys():
        return name, sizes, False
    sizes = {**_OLD_DEFAULTS, **sizes}
    old = {setting: sizes.pop(setting) for setting in known if setting in sizes}
    if old.keys() != known.keys():
        missing = ", ".join(sorted(known.keys() - old.keys()))
        _refuse(path, "every size of the model", f"missing ones: {missing}")
    of_shipped, of_published = (
        [f"{x}={old[x]!r:.40}" for x in known if old[x] not in known[x][model]]
        for model in (0, 1)
    )
    if not of_shipped:
        return "daam", sizes, True
    if not of_published:
        return "daam-paper", {**sizes, "inputs": old["inputs"], "norm": old["norm"]}, True
    nearer = of_shipped if len(of_shipped) <= len(of_published) else of_published
    raise FileError(
        path,
        "expected a model of the shipped or the published architecture, found one of a "
        f"trial with {', '.join(nearer)}: version 0.1 up to commit 4afd2fe can read it",
    )


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
        found = None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        _refuse(path, "a model written by arcfleet", "safetensors of another kind")
    version = found.get("version")
    if type(version) is not int or version != VERSION:
        _refuse(path, f"version {VERSION} of {FORMAT}", f"version {version!r:.40}")
    if found.keys() != _MEMBERS:
        _refuse_names(path, "the members of a model file", found.keys() ^ _MEMBERS)
    kind, dtype, facts = found["kind"], found["dtype"], found["facts"]
    for right, expected, value in (
        (isinstance(kind, str), "the name of a model type", kind),
        (
            isinstance(dtype, str) and dtype in STORED_TYPES,
            "weights of a known dtype",
            dtype,
        ),
        (isinstance(facts, dict), "facts by name", facts),
    ):
        if not right:
            _refuse(path, expected, f"{value!r:.40}")
    if not _fits(data, found["sha256"]):
        _refuse(path, "contents that fit the checksum", "others: the file is damaged")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _fits(data: bytes, checksum: object) -> bool:
    """Return whether contents have a checksum: every byte counts."""
    if not isinstance(checksum, str) or len(checksum) != 64 or not checksum.isascii():
        return False
    blank = data.replace(checksum.encode(), _NO_CHECKSUM.encode(), 1)
    return hashlib.sha256(blank).hexdigest() == checksum


# Sizes that files of an earlier version lack, and what they mean there.
_LATER_SIZES = {"cost_bias": False}


def _config(path: Path, config_class: type[Any], found: object) -> Any:
    names = {field.name for field in fields(config_class)}
    if isinstance(found, dict):
        found = {**{x: y for x, y in _LATER_SIZES.items() if x in names}, **found}
    if not isinstance(found, dict) or found.keys() != names:
        others = found.keys() ^ names if isinstance(found, dict) else set()
        _refuse_names(path, "every size of the model", others)
    for name, value in found.items():
        if type(value) is int and not 0 <= value <= _LARGEST_SIZE:
            _refuse(path, f"{name} from 0 to {_LARGEST_SIZE}", f"{value!r:.40}")
    try:
        return config_class(**found)
    except OptionError as error:
        raise FileError(path, f"{error}") from None


def _check_tensors(
    path: Path,
    found: Mapping[str, Tensor],
    expected: Mapping[str, Tensor],
    dtype: torch.dtype,
) -> None:
    for name in expected.keys() - found.keys():
        _refuse(path, f"weights {name!r}", "none")
    for name in found.keys() - expected.keys():
        _refuse(path, "no other weights than the model's", f"{name!r:.60}")
    for name, tensor in found.items():
        wanted = tuple(expected[name].shape)
        if tuple(tensor.shape) != wanted or tensor.dtype != dtype:
            _refuse(
                path,
                f"weights {name!r} of shape {wanted} in {dtype}",
                f"{tuple(tensor.shape)} in {tensor.dtype}",
            )


def _refuse_names(path: Path, expected: str, names: set[str]) -> NoReturn:
    _refuse(path, expected, f"missing or unknown ones: {', '.join(sorted(names)):.80}")


def _refuse(path: Path, expected: str, found: str) -> NoReturn:
    raise FileError(path, f"expected {expected}, found {found}")
