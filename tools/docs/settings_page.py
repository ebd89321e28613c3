"""The settings page: the dataclasses that hold settings, their defaults and meanings."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
from typing import TYPE_CHECKING, Any

from griffe import Docstring, DocstringSectionKind, parse_numpy

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The part of a training configuration that has a table of its own.
MODEL = "model"
#: What is shown, by heading: where it is set, and the dataclass.
SETTINGS: dict[str, tuple[str, str]] = {
    "Ruin and recreate": (
        "`solve(..., params=...)`, `--set NAME=VALUE`",
        "arcfleet.search.ruin_recreate.RuinRecreateSettings",
    ),
    "MAENS": (
        "`solve(..., params=...)`, `--set NAME=VALUE`",
        "arcfleet.search.maens.MaensSettings",
    ),
    "Turn rules of scenes": (
        "`make_scene(..., turns=...)`, `arcfleet scene --turns`",
        "arcfleet.streets.turns.TurnPolicy",
    ),
    "Scenes": ("`make_scene`, `arcfleet scene`", "arcfleet.streets.scene.SceneRules"),
    "The model": (
        "options, or the table `[model]` of a training configuration",
        "arcfleet.neural.model.DaamConfig",
    ),
    "Pre-training": (
        "`arcfleet train pretrain`",
        "arcfleet.neural.train.config.PretrainConfig",
    ),
    "Fine-tuning": (
        "`arcfleet train finetune`",
        "arcfleet.neural.train.config.FinetuneConfig",
    ),
    "The recipe": ("`arcfleet train recipe`", "arcfleet.neural.train.recipe.RecipeConfig"),
    "The paper: model": (
        "the recipe of `arcfleet paper train`",
        "arcfleet.paper.model.PublishedDaamConfig",
    ),
    "The paper: PPO": (
        "the recipe of `arcfleet paper train`",
        "arcfleet.paper.ppo.PpoConfig",
    ),
}


def page() -> str:
    """Return the page in Markdown."""
    lines = [
        "# Settings",
        "",
        "Defaults are those of this version, read off the code. The defaults of searches "
        "serve all sizes; those of training are the ones of the shipped model.",
    ]
    for heading, (where, dotted) in SETTINGS.items():
        lines += ["", f"## {heading}", "", f"Set by {where}. Class `{dotted}`.", ""]
        lines += table(load(dotted))
    return "\n".join(lines) + "\n"


def load(dotted: str) -> type[Any]:
    """Return the dataclass of a dotted name."""
    module, _, name = dotted.rpartition(".")
    found: type[Any] = getattr(importlib.import_module(module), name)
    return found


def table(settings: type[Any]) -> list[str]:
    """Return the fields of a dataclass as the lines of a Markdown table."""
    lines = ["| setting | type | default | meaning |", "|---|---|---|---|"]
    for row in rows(settings):
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |")
    return lines


def rows(settings: type[Any], values: object = None) -> Iterator[tuple[str, str, str, str]]:
    """Yield name, type, default and meaning of each setting, those of parts in their place.

    Parameters
    ----------
    settings
        The dataclass.
    values
        Instance of it whose values are the defaults; without it those of the fields.
    """
    meanings = descriptions(settings)
    for field in dataclasses.fields(settings):
        value = _default(field) if values is None else getattr(values, field.name)
        if dataclasses.is_dataclass(value) and field.name != MODEL:
            yield from rows(type(value), value)
            continue
        kind = field.type if isinstance(field.type, str) else field.type.__name__
        meaning = " ".join(meanings.get(field.name, "").split())
        yield f"`{field.name}`", f"`{kind}`", _shown(value), meaning


def descriptions(settings: type[Any]) -> dict[str, str]:
    """Return what the docstrings of a dataclass and its bases say of each field."""
    found: dict[str, str] = {}
    for base in reversed(settings.__mro__):
        text = inspect.cleandoc(base.__dict__.get("__doc__") or "")
        for section in parse_numpy(Docstring(text), warnings=False):
            if section.kind in (
                DocstringSectionKind.parameters,
                DocstringSectionKind.attributes,
            ):
                for item in section.value:
                    for name in item.name.split(","):
                        found[name.strip()] = item.description
    return found


def _default(field: dataclasses.Field[Any]) -> object:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def _shown(value: object) -> str:
    if value is dataclasses.MISSING:
        return "must be given"
    if dataclasses.is_dataclass(value):
        return "above"
    return "none" if value is None or value == () else f"`{value!r}`"
