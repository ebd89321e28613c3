"""Model files: what was written comes back, old ones are read, others are refused."""

import hashlib
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save as save_tensors

from arcfleet.errors import FileError, OptionError
from arcfleet.neural.batch import ArcBatch
from arcfleet.neural.checkpoint import (
    MODEL_TYPES,
    StoredType,
    find_model_type,
    load_model,
    model_class_for,
    model_type_of,
    read_model_info,
    register_model,
    save_model,
    sizes_of,
)
from arcfleet.neural.model import Daam, DaamConfig, Model
from arcfleet.paper.model import INPUTS, NORMS, PublishedDaam
from tests.tiny_model import tiny_config, tiny_model_file, tiny_published_config

BIASED = tiny_config(mds_dimensions=2)
#: As models were before the bias.
TINY = replace(BIASED, cost_bias=False)
#: Settings of the shipped model and of the published one in files of the time when both
#: were one class with options.
OLD_SHIPPED = {
    "gat_heads": 1,
    "norm": "rms",
    "inputs": "mds+gat+skip",
    "features": "more+spare",
    "served": "hidden",
}
OLD_PUBLISHED = {
    "gat_heads": 1,
    "norm": "batch",
    "inputs": "mds+gat",
    "features": "paper",
    "served": "seen",
}
FACTS = {"trained_on": "task20", "steps": 12, "command": "arcfleet train", "loss": 0.25}


def tiny_model(config: DaamConfig = TINY) -> Daam:
    torch.manual_seed(1)
    return Daam(config)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def written(folder: Path) -> bytes:
    path = folder / "tiny.safetensors"
    save_model(tiny_model(), path, FACTS)
    return path.read_bytes()


def header_end(data: bytes) -> int:
    return 8 + int.from_bytes(data[:8], "little")


def refusal(folder: Path, data: bytes) -> str:
    """Return the message with which the bytes are refused; anything else fails."""
    path = folder / "damaged.safetensors"
    path.write_bytes(data)
    with pytest.raises(FileError) as caught:
        load_model(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert len(message.splitlines()) == 1
    assert len(message) < len(str(path)) + 400
    return message


def forged(
    changes: dict[str, Any], tensors: dict[str, torch.Tensor] | None = None
) -> bytes:
    """Make a file with some header members changed and the checksum right."""
    header: dict[str, Any] = {
        "format": "arcfleet-model",
        "version": 1,
        "kind": "daam",
        "config": asdict(TINY),
        "dtype": "float32",
        "facts": {},
        "sha256": "0" * 64,
    } | changes
    header = {name: value for name, value in header.items() if value is not None}
    weights = tiny_model().state_dict() if tensors is None else tensors
    data = save_tensors(weights, {"arcfleet": json.dumps(header)})
    return data.replace(b"0" * 64, hashlib.sha256(data).hexdigest().encode(), 1)


PUBLISHED = [tiny_published_config(norm=n, inputs=i) for n in NORMS for i in INPUTS]


@pytest.mark.parametrize("config", [TINY, replace(TINY, layers=2), *PUBLISHED], ids=str)
def test_what_was_saved_comes_back(tmp_path: Path, config: Any) -> None:
    model: Any = model_class_for(config)(config)
    path = tmp_path / "model.safetensors"
    save_model(model, path, FACTS)
    loaded, facts = load_model(path)
    assert facts == FACTS
    assert loaded.config == config
    assert not loaded.training
    require_same_weights(loaded, model)
    assert all(tensor.is_cpu for tensor in loaded.state_dict().values())
    assert all(p.requires_grad for p in loaded.parameters())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_the_bits_make_a_smaller_file_of_nearly_the_same_weights(
    tmp_path: Path, dtype: StoredType
) -> None:
    model = tiny_model()
    whole, half = tmp_path / "whole", tmp_path / "half"
    save_model(model, whole, {})
    save_model(model, half, {}, dtype=dtype)
    weights = sum(tensor.numel() for tensor in model.state_dict().values())
    saved = header_end(whole.read_bytes()) - header_end(half.read_bytes()) + 2 * weights
    assert whole.stat().st_size - half.stat().st_size == saved
    loaded, _ = load_model(half)
    for name, tensor in loaded.state_dict().items():
        assert tensor.dtype == torch.float32
        assert torch.equal(tensor, model.state_dict()[name].to(getattr(torch, dtype)))


def test_a_whole_number_for_clip_comes_back(tmp_path: Path, folder: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_model(tiny_model(replace(TINY, clip=5)), path, {})
    assert load_model(path)[0].config == replace(TINY, clip=5.0)
    model = load_model_from(folder, forged({"config": asdict(TINY) | {"clip": 5}}))
    assert type(model.config.clip) is float


def test_facts_may_look_like_a_checksum(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    facts = {"sha256": "0" * 64, "first": [{"sha256": "0" * 64}], "text": "0" * 200}
    save_model(tiny_model(), path, facts)
    assert load_model(path)[1] == facts


def test_the_same_model_gives_the_same_bytes(tmp_path: Path, written: bytes) -> None:
    path = tmp_path / "again.safetensors"
    save_model(load_model_from(tmp_path, written), path, FACTS)
    assert path.read_bytes() == written


def test_a_biased_model_comes_back(tmp_path: Path, folder: Path) -> None:
    model = tiny_model(BIASED)
    path = tmp_path / "biased.safetensors"
    save_model(model, path, {})
    found, _ = load_model(path)
    assert found.config == model.config
    for name, tensor in model.state_dict().items():
        assert torch.equal(found.state_dict()[name], tensor)
    assert "encoder.0.slopes" in found.state_dict()
    # Files from before the bias lack the word.
    sizes = {x: y for x, y in asdict(TINY).items() if x != "cost_bias"}
    assert load_model_from(folder, forged({"config": sizes})).config == TINY


def load_model_from(folder: Path, data: bytes) -> Model:
    path = folder / "written.safetensors"
    path.write_bytes(data)
    return load_model(path)[0]


@settings(max_examples=150)
@given(data=st.data())
def test_a_cut_file_is_refused(folder: Path, written: bytes, data: st.DataObject) -> None:
    refusal(folder, written[: data.draw(st.integers(0, len(written) - 1))])


@settings(max_examples=250)
@given(data=st.data())
def test_changed_bytes_of_the_header_are_refused(
    folder: Path, written: bytes, data: st.DataObject
) -> None:
    changed = bytearray(written)
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, header_end(written) - 1))
        changed[place] ^= data.draw(st.integers(1, 255))
    if bytes(changed) != written:
        refusal(folder, bytes(changed))


@settings(max_examples=100)
@given(data=st.data())
def test_a_changed_weight_is_refused(
    folder: Path, written: bytes, data: st.DataObject
) -> None:
    changed = bytearray(written)
    place = data.draw(st.integers(header_end(written), len(written) - 1))
    changed[place] ^= 1 << data.draw(st.integers(0, 7))
    assert "checksum" in refusal(folder, bytes(changed))


@settings(max_examples=100)
@given(junk=st.binary(max_size=200))
def test_anything_is_refused(folder: Path, junk: bytes) -> None:
    refusal(folder, junk)
    refusal(folder, len(junk).to_bytes(8, "little") + b"{" + junk)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "other"}, "another kind"),
        ({"version": 2}, "expected version 1 of arcfleet-model, found version 2"),
        ({"version": True}, "found version True"),
        ({"kind": "s2v"}, "type among daam, daam-paper, s2v-dqn, vrp-dl, got 's2v'"),
        ({"kind": ["daam"]}, "name of a model type, found ['daam']"),
        ({"kind": "vrp-dl"}, "missing or unknown ones: clip, cost_bias"),
        ({"dtype": "int8"}, "known dtype"),
        ({"dtype": "float16"}, "in torch.float16, found"),
        ({"facts": [1]}, "facts by name"),
        ({"facts": None}, "missing or unknown ones: facts"),
        ({"more": 1}, "missing or unknown ones: more"),
        ({"config": {"width": 8}}, "missing or unknown ones: clip"),
        ({"config": 3}, "every size"),
        ({"sha256": "f" * 64}, "checksum"),
        ({"sha256": 5}, "checksum"),
    ],
)
def test_other_headers_are_refused(
    folder: Path, changes: dict[str, Any], message: str
) -> None:
    assert message in refusal(folder, forged(changes))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("width", 8.0, "expected width to be a whole number, got 8.0"),
        ("width", 32, "of shape"),
        ("width", 10**9, "width from 0 to"),
        ("width", 9, "that heads divides"),
        ("layers", 2, "weights of all 2 layers|expected weights 'encoder.1"),
        ("layers", 60_000, "expected weights of all 60000 layers, found fewer"),
        ("heads", True, "expected heads to be a whole number, got True"),
        ("clip", "high", "expected clip to be a number, got 'high'"),
        ("norm", "rms", "every size of the model, found missing ones: gat_heads, inputs"),
        ("depth", 3, "missing or unknown ones: depth"),
    ],
)
def test_other_sizes_are_refused(
    folder: Path, name: str, value: object, message: str
) -> None:
    found = refusal(folder, forged({"config": asdict(TINY) | {name: value}}))
    assert any(part in found for part in message.split("|"))


def test_other_weights_are_refused(folder: Path) -> None:
    weights = tiny_model().state_dict()
    missing = {name: tensor for name, tensor in weights.items() if name != "key.weight"}
    for tensors, message in (
        (missing, "expected weights 'key.weight', found none"),
        (weights | {"more": torch.ones(2)}, "found 'more'"),
        (weights | {"key.weight": torch.ones(8, 32)}, "in torch.float32, found (8, 32)"),
        (weights | {"key.weight": torch.ones(16, 16).int()}, "(16, 16) in torch.int32"),
    ):
        assert message in refusal(folder, forged({}, tensors))


def test_foreign_files_are_refused(folder: Path, tmp_path: Path) -> None:
    weights = {"weight": torch.ones(3)}
    for foreign in (save_tensors(weights), save_tensors(weights, {"format": "pt"})):
        assert "safetensors of another kind" in refusal(folder, foreign)
    for foreign in (b"PK\x03\x04" + bytes(100), b'{"format": "arcfleet-instance"}'):
        assert "another kind of file" in refusal(folder, foreign)
    with pytest.raises(FileError, match=r"none\.safetensors: cannot be read \(No such"):
        load_model(tmp_path / "none.safetensors")
    with pytest.raises(FileError, match="found a directory"):
        load_model(tmp_path)


def test_nothing_is_written_that_could_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    with pytest.raises(OptionError, match="JSON"):
        save_model(tiny_model(), path, {"date": object()})
    with pytest.raises(OptionError, match="JSON"):
        save_model(tiny_model(), path, {"loss": float("nan")})
    with pytest.raises(OptionError, match="dtype"):
        save_model(tiny_model(), path, {}, dtype="int8")  # type: ignore[arg-type]
    model = tiny_model()
    with torch.no_grad():
        model.key.weight[0, 0] = 1e6
    with pytest.raises(OptionError, match=r"finite weights in float16.*'key\.weight'"):
        save_model(model, path, {}, dtype="float16")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileError, match="existing directory"):
        save_model(tiny_model(), tmp_path / "none" / "model", {})


def old_file(path: Path, model: Model, changes: dict[str, Any]) -> None:
    """Write a model as versions did in which all models of DaAM were one class."""
    sizes = {x: getattr(model.config, x) for x in asdict(TINY) if x != "cost_bias"}
    old = OLD_SHIPPED if isinstance(model, Daam) else OLD_PUBLISHED
    rms = isinstance(model, Daam) or model.config.norm == "rms"
    weights = {
        name.replace("_norm.", "_norm.norm.") if rms else name: tensor
        for name, tensor in model.state_dict().items()
    }
    config = {name: x for name, x in (sizes | old | changes).items() if x is not None}
    path.write_bytes(forged({"config": config}, weights))


#: Settings of files of a time when there was nothing to choose.
OLDEST = {"features": None, "served": None}


@pytest.mark.parametrize(
    ("config", "changes"),
    [
        (TINY, {}),
        (replace(TINY, width=8, layers=3, clip=5.0), {}),
        *((x, changes) for x in PUBLISHED if x.inputs == "mds" for changes in ({}, OLDEST)),
    ],
    ids=str,
)
def test_files_of_old_versions_are_read(
    tmp_path: Path, config: Any, changes: dict[str, Any]
) -> None:
    model_class: Any = model_class_for(config)
    model, path = model_class(config), tmp_path / "old.safetensors"
    if model_class is PublishedDaam:
        changes = {"norm": config.norm, "inputs": config.inputs, **changes}
    old_file(path, model, changes)
    found, _ = load_model(path, serves="daam")
    assert type(found) is model_class
    assert found.config == config
    require_same_weights(found, model)
    published = isinstance(model, PublishedDaam)
    assert read_model_info(path).model_type == ("daam-paper" if published else "daam")


@pytest.mark.parametrize("config", [x for x in PUBLISHED if x.inputs != "mds"], ids=str)
def test_another_reading_of_the_graph_attention_is_refused(
    tmp_path: Path, config: Any
) -> None:
    model: Any = PublishedDaam(config)
    model.attend_to = torch.nn.Parameter(torch.ones(1, config.width))
    path = tmp_path / "old.safetensors"
    old_file(path, model, {"norm": config.norm, "inputs": config.inputs})
    with pytest.raises(FileError, match="one of the earlier reading: train it again"):
        load_model(path)


def require_same_weights(found: Model, expected: Model) -> None:
    wanted = expected.state_dict()
    assert found.state_dict().keys() == wanted.keys()
    assert all(torch.equal(x, wanted[name]) for name, x in found.state_dict().items())


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"norm": "layer"}, "norm='layer'"),
        ({"norm": []}, "norm=[]"),
        ({"gat_heads": 2}, "gat_heads=2"),
        ({"features": "more"}, "features='more'"),
        ({"served": "seen"}, "served='seen'"),
        ({"inputs": "mds+gat"}, "inputs='mds+gat'"),
        ({"inputs": "mds", "features": "paper"}, "served='hidden'"),
    ],
)
def test_old_files_of_trials_are_refused(
    folder: Path, changes: dict[str, Any], named: str
) -> None:
    path = folder / "trial.safetensors"
    old_file(path, tiny_model(), changes)
    message = refusal(folder, path.read_bytes())
    assert f"one of a trial with {named}: version 0.1 up to commit 4afd2fe" in message


def test_a_published_model_needs_the_papers_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = tmp_path / "old.safetensors", tiny_model_file(tmp_path, "daam-paper")
    old_file(old, PublishedDaam(tiny_published_config()), {})
    monkeypatch.delitem(MODEL_TYPES, "daam-paper")
    for path in (old, new):
        with pytest.raises(FileError, match=r"'daam-paper': import arcfleet\.paper first"):
            load_model(path)


def test_a_model_of_another_type_is_refused(tmp_path: Path) -> None:
    path = tiny_model_file(tmp_path, "vrp-dl")
    with pytest.raises(FileError, match="model of type 'daam', found type 'vrp-dl'"):
        load_model(path, serves="daam")


class Indifferent(Model):
    """A model of a user: every arc has the same logit, its one weight."""

    config_class = DaamConfig

    def __init__(self, config: DaamConfig) -> None:
        super().__init__()
        self.config = config
        self.logit = torch.nn.Parameter(torch.ones(1))

    def prepare(self, batch: ArcBatch, *, padded: bool | None = None) -> None:
        """There is nothing to prepare."""


def test_a_registered_model_is_written_and_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arcfleet.neural.checkpoint.MODEL_TYPES", dict(MODEL_TYPES))
    register_model("indifferent", f"{__name__}:Indifferent", serves="daam")
    model, path = Indifferent(TINY), tmp_path / "model.safetensors"
    assert model_type_of(model).name == "indifferent"
    save_model(model, path, {})
    found, _ = load_model(path, serves="daam")
    assert type(found) is Indifferent
    require_same_weights(found, model)


def test_sizes_name_the_type_of_other_models_than_the_shipped_one() -> None:
    assert sizes_of(TINY) == asdict(TINY)
    published = tiny_published_config()
    assert sizes_of(published) == {"type": "daam-paper", **asdict(published)}
    with pytest.raises(OptionError, match=r"expected a model type among daam, .*'other'"):
        find_model_type("other")
