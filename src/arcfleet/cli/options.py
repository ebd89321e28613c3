"""Commands and their options: declared once, generated from config dataclasses.

`add_config` makes an option of every field of a frozen dataclass and `config_from` makes
the dataclass of what was given. Help texts come from the field's metadata or from the
section Parameters of the class's docstring, defaults from the dataclass.
"""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import math
import re
import types
from argparse import (
    ArgumentParser,
    ArgumentTypeError,
    Namespace,
    RawDescriptionHelpFormatter,
)
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import (
    Any,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from arcfleet._checks import nearest_name
from arcfleet.errors import FileError, OptionError

Config = TypeVar("Config")

_WESTERN = re.compile(r"-\.?\d[^,]*(,[^,]+)+")


# --- Commands ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command of the program, or a group of commands.

    `options` adds the options to a parser. It is called on first use, so that it may import
    what other commands do without. `run` returns the exit code. The epilog has examples. A
    group has `commands` instead.
    """

    name: str
    summary: str
    options: Callable[[ArgumentParser], None] | None = None
    run: Callable[[Namespace], int] | None = None
    epilog: str = ""
    commands: tuple[Command, ...] = ()


class CommandParser(ArgumentParser):
    """A parser that adds its options on first use."""

    command: Command | None = None

    def complete(self, *, recursively: bool = False) -> None:
        """Add the options, if that has not been done yet."""
        command, self.command = self.command, None
        if command is not None and command.options is not None:
            command.options(self)
        if recursively:
            for action in self._actions:
                if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
                    for parser in action.choices.values():
                        parser.complete(recursively=True)

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Namespace | None = None
    ) -> tuple[Namespace, list[str]]:
        """Parse, with all options there."""
        self.complete()
        return super().parse_known_args(args, namespace)

    def format_help(self) -> str:
        """Format the help, with all options there."""
        self.complete()
        return super().format_help()


def add_commands(
    parser: ArgumentParser, commands: Sequence[Command], *, dest: str, **settings: Any
) -> None:
    """Add commands, and those below them, to a parser."""
    actions = parser.add_subparsers(
        dest=dest, metavar=dest.upper(), parser_class=CommandParser, **settings
    )
    for command in commands:
        made = actions.add_parser(
            command.name,
            help=command.summary,
            description=f"{command.summary[0].upper()}{command.summary[1:]}.",
            epilog=command.epilog,
            formatter_class=RawDescriptionHelpFormatter,
        )
        if command.commands:
            add_commands(made, command.commands, dest="action", required=True)
        else:
            made.command = command
            made.set_defaults(run=command.run, parser=made)


# --- Options of a config dataclass ------------------------------------------------------


def add_config(
    parser: ArgumentParser,
    config: type[Any],
    *,
    skip: Sequence[str] = (),
    toml: bool = False,
    title: str = "settings",
    headings: Sequence[str] = (),
) -> None:
    """Add an option for every field of a dataclass.

    A field `learning_rate` becomes `--learning-rate`; the fields of a nested dataclass
    become options under the heading of its name. Types may be int, float, bool, str, Path,
    Literal, tuples of these and unions with None. A field's metadata may have `help`,
    `metavar`, `positional` (True: no `--name` but an argument) and `option` (False: in the
    TOML file only).

    Parameters
    ----------
    parser
        Parser that gets the options.
    config
        Dataclass.
    skip
        Fields without an option; for a nested dataclass, all of its fields.
    toml
        Whether to add `--config FILE` as well, for settings in a TOML file.
    title
        Heading of fields that are not nested.
    headings
        Headings that come first, in this order.
    """
    groups = {heading: parser.add_argument_group(heading) for heading in headings}
    if toml:
        text = "TOML file of settings; options take precedence"
        option(parser, "--config", text, Path, "FILE")
    for setting in _settings(config):
        field = setting.field
        name = setting.path
        *parts, _ = name.split(".")
        if name in skip or not {*parts}.isdisjoint(skip):
            continue
        if not field.metadata.get("option", True):
            continue
        heading = parts[-1] if parts else title
        if field.metadata.get("positional", False):
            _add_option(parser, setting, toml=toml)
            continue
        if heading not in groups:
            groups[heading] = parser.add_argument_group(heading)
        _add_option(groups[heading], setting, toml=toml)


def config_from(options: Namespace, config: type[Config], *, toml: bool = True) -> Config:
    """Return the config of the options and, below them, of the TOML file of `--config`.

    In the file, settings of a nested dataclass may stand in its table or outside.
    """
    file: Path | None = getattr(options, "config", None) if toml else None
    settings: dict[str, Any] = {}
    if file is not None:
        settings = _in_tables(read_toml(file), config)
        try:
            _require_known(settings, config)
        except OptionError as error:
            raise FileError(file, str(error)) from None
    return make_config(config, merged(settings, given_options(options, config)))


def given_options(options: Namespace, config: type[Any]) -> dict[str, Any]:
    """Return the settings of options; those of a nested dataclass are a mapping."""
    given: dict[str, Any] = {}
    for setting in _settings(config):
        value = getattr(options, setting.path, None)
        if value is not None and value != []:
            value = tuple(value) if _is_tuple(setting.type) else value
            given = merged(given, _nested(setting.path, value))
    return given


def make_config(
    config: type[Config], settings: Mapping[str, Any], usual: Any = None
) -> Config:
    """Return a config of settings by name; others are those of `usual`, or defaults."""
    _require_known(settings, config)
    hints = get_type_hints(config)
    values: dict[str, Any] = {}
    for field in fields(config):  # type: ignore[arg-type]
        name, kind = field.name, hints[field.name]
        default = _default(field) if usual is None else getattr(usual, name)
        if is_dataclass(kind):
            part = None if default is MISSING else default
            inner: Any = kind if part is None else type(part)
            values[name] = make_config(inner, settings.get(name, {}), part)
        elif name in settings:
            values[name] = _value(name, settings[name], kind)
        elif default is MISSING:
            option = f"--{name.replace('_', '-')}"
            raise OptionError(f"expected {option}, or {name} in the file of --config")
        else:
            values[name] = default
    return config(**values)


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of both, tables merged; those `above` take precedence."""
    both = dict(below)
    for name, value in above.items():
        if isinstance(value, Mapping) and isinstance(both.get(name), Mapping):
            value = merged(both[name], value)
        both[name] = value
    return both


def read_toml(path: Path) -> dict[str, Any]:
    """Read a file of settings."""
    import tomllib

    try:
        with path.open("rb") as stream:
            return tomllib.load(stream)
    except OSError as error:
        raise FileError(path, f"cannot be read ({error.strerror})") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FileError(path, f"expected a TOML file, found: {error}") from None


def _in_tables(settings: Mapping[str, Any], config: type[Any]) -> dict[str, Any]:
    """Put the settings of nested dataclasses into their tables."""
    paths = {setting.path.rpartition(".")[2]: setting.path for setting in _settings(config)}
    placed: dict[str, Any] = {}
    for name, value in settings.items():
        path = name if isinstance(value, Mapping) else paths.get(name, name)
        placed = merged(placed, _nested(path, value))
    return placed


def _nested(path: str, value: Any) -> dict[str, Any]:
    """Return the mapping of mappings that holds a value at a dotted path."""
    name, _, rest = path.partition(".")
    return {name: _nested(rest, value) if rest else value}


def has_setting(config: type[Any], name: str) -> bool:
    """Return whether a dataclass, or one nested in it, has a field of this name."""
    return any(setting.path.split(".")[-1] == name for setting in _settings(config))


@dataclass(frozen=True, slots=True)
class _Setting:
    """A field with an option: its dotted path, type, description and default."""

    path: str
    field: dataclasses.Field[Any]
    type: Any
    text: str
    default: Any


def _settings(config: type[Any], prefix: str = "", usual: object = None) -> list[_Setting]:
    """Return every setting, those of nested dataclasses inlined; defaults are `usual`'s."""
    hints, texts = get_type_hints(config), descriptions(config)
    found = []
    for field in fields(config):
        default = _default(field) if usual is None else getattr(usual, field.name)
        path = f"{prefix}{field.name}"
        kind = hints[field.name]
        if is_dataclass(kind):
            inner = None if default is MISSING else default
            part: Any = kind if inner is None else type(inner)
            found += _settings(part, f"{path}.", inner)
        else:
            text = field.metadata.get("help", texts.get(field.name, ""))
            found.append(_Setting(path, field, kind, text, default))
    return found


def descriptions(config: type[Any]) -> dict[str, str]:
    """Return what the docstrings of a class and its bases say of each parameter."""
    texts: dict[str, str] = {}
    for owner in reversed(config.__mro__):
        doc = inspect.cleandoc(owner.__dict__.get("__doc__") or "")
        _, found, section = doc.partition("Parameters\n----------\n")
        if not found:
            continue
        section = re.split(r"\n\n\w[^\n]*\n-{3,}\n", section)[0]
        for names, text in re.findall(
            r"^(\w[\w, ]*)[^\n]*\n((?:(?:    [^\n]*)?\n?)+)", section, re.M
        ):
            for name in names.split(","):
                texts[name.strip()] = " ".join(text.split())
    return texts


def _add_option(target: Any, setting: _Setting, *, toml: bool) -> None:
    field, name = setting.field, setting.path.rpartition(".")[2]
    arguments: dict[str, Any] = {
        "help": _help(setting.text, setting.default),
        "default": argparse.SUPPRESS,
    }
    if field.metadata.get("positional", False):
        flag = setting.path
    else:
        flag = f"--{name.replace('_', '-')}"
        arguments["dest"] = setting.path
        arguments["required"] = setting.default is MISSING and not toml
    member = _member(setting.type)
    if member is bool:
        # Without a file that may say yes, there is no need to say no.
        plain = setting.default is False and not toml
        action: Any = "store_true" if plain else argparse.BooleanOptionalAction
        target.add_argument(flag, action=action, **arguments)
        return
    may_be_left_out = "dest" not in arguments and setting.default is not MISSING
    if may_be_left_out:
        arguments["default"] = None  # argparse would parse any other one
    if _is_tuple(setting.type):
        arguments["nargs"] = "*" if may_be_left_out else "+"
    elif may_be_left_out:
        arguments["nargs"] = "?"
    metavar = field.metadata.get("metavar")
    if get_origin(member) is Literal:
        arguments["choices"] = get_args(member)
        arguments["metavar"] = metavar
    else:
        arguments["type"], usual = _PARSERS.get(member, (str, "NAME"))
        if re.match(r"(output )?folder", setting.text, re.IGNORECASE):
            usual = "FOLDER"
        arguments["metavar"] = metavar or usual
    target.add_argument(flag, **arguments)


def _help(text: str, default: Any) -> str:
    """Return the help of an option: the first sentence of the text, and the default."""
    text = re.split(r"(?<=[^.][.])\s", text, maxsplit=1)[0].rstrip(".")
    first = text.partition(" ")[0]
    if re.fullmatch(r"[A-Z][a-z]*(-[a-z]+)*[,;:]?", first):
        text = text[0].lower() + text[1:]
    return _with_default(text.replace("`", ""), default).replace("%", "%%")


def _with_default(text: str, default: Any) -> str:
    is_plain = default is MISSING or default is None or default is False
    if is_plain or default in ((), [], ""):
        return text
    return f"{text} (default: {_shown(default)})"


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes"
    if isinstance(value, tuple | list):
        return " ".join(map(_shown, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _without_none(kind: Any) -> Any:
    if get_origin(kind) in (Union, types.UnionType):
        members = [member for member in get_args(kind) if member is not type(None)]
        return members[0] if len(members) == 1 else kind
    return kind


def _is_tuple(kind: Any) -> bool:
    return get_origin(_without_none(kind)) is tuple


def _member(kind: Any) -> Any:
    """Return the type of a field, or of the members of its tuple."""
    kind = _without_none(kind)
    return get_args(kind)[0] if get_origin(kind) is tuple else kind


def _require_known(
    settings: Mapping[str, Any], config: type[Any], prefix: str = ""
) -> None:
    hints = get_type_hints(config)
    for name, value in settings.items():
        if name not in hints:
            known = [setting.path.rpartition(".")[2] for setting in _settings(config)]
            near = nearest_name(name, known)
            hint = (
                f"did you mean {prefix}{near}?" if near else f"known are {', '.join(known)}"
            )
            raise OptionError(f"expected a known setting, got {prefix}{name}: {hint}")
        if is_dataclass(hints[name]):
            if not isinstance(value, Mapping):
                raise OptionError(f"expected {name} to be a table, got {value!r:.40}")
            _require_known(value, hints[name], f"{prefix}{name}.")


def _value(name: str, value: Any, kind: Any) -> Any:
    """Return a setting as its dataclass takes it; what TOML cannot hold is converted."""
    if value is None:
        return None
    member = _member(kind)
    if _is_tuple(kind):
        if not isinstance(value, list | tuple):
            raise OptionError(f"expected {name} to be a list, got {value!r:.40}")
        return tuple(_value(name, each, member) for each in value)
    if member is Path and isinstance(value, str | Path):
        return Path(value)
    if get_origin(member) is Literal:
        if value not in get_args(member):
            raise OptionError(
                f"expected {name} to be one of {', '.join(map(str, get_args(member)))}, "
                f"got {value!r:.40}"
            )
        return value
    if (
        member in _WANTED
        and type(value) is not member
        and not (member is float and type(value) is int)
    ):
        raise OptionError(f"expected {name} to be {_WANTED[member]}, got {value!r:.40}")
    return value


_WANTED = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a text",
    Path: "the name of a file",
}


# --- Values on the command line ---------------------------------------------------------


def whole_number(text: str) -> int:
    """Parse an integer that is at least 0, for argparse."""
    if not (text.isascii() and text.isdigit() and len(text) <= 20):
        raise ArgumentTypeError(f"expected a whole number, got {text[:40]!r}")
    return int(text)


def positive_number(text: str) -> int:
    """Parse an integer that is at least 1, for argparse."""
    value = whole_number(text)
    if value == 0:
        raise ArgumentTypeError("expected a number of at least 1, got 0")
    return value


def number(text: str) -> float:
    """Parse a number, for argparse."""
    try:
        return float(text)
    except ValueError:
        raise ArgumentTypeError(f"expected a number, got {text[:40]!r}") from None


def number_up_to(most: float, what: str) -> Callable[[str], float]:
    """Return a parser of numbers from 0 to `most`, for argparse."""

    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if not 0 <= value <= most:
            raise ArgumentTypeError(
                f"expected {what} from 0 to {most:g}, got {text[:40]!r}"
            )
        return value

    return parse


seconds = number_up_to(1e9, "seconds")


def coordinates(count: int, form: str) -> Callable[[str], tuple[float, ...]]:
    """Return a parser of `count` numbers, written as in `LON,LAT`, for argparse."""

    def parse(text: str) -> tuple[float, ...]:
        try:
            numbers = tuple(float(part) for part in text.split(","))
        except ValueError:
            numbers = ()
        if len(numbers) != count or not all(map(math.isfinite, numbers)):
            raise ArgumentTypeError(f"expected {form}, got {text[:60]!r}")
        return numbers

    return parse


def attach_coordinates(arguments: Sequence[str]) -> list[str]:
    """Write `--depot -71.3,42.5` as `--depot=-71.3,42.5`.

    In the western hemisphere a place begins with a minus, and argparse would take it for
    an option.
    """
    attached: list[str] = []
    for argument in arguments:
        option = attached[-1] if attached else ""
        if _WESTERN.fullmatch(argument) and option.startswith("--") and "=" not in option:
            attached[-1] = f"{option}={argument}"
        else:
            attached.append(argument)
    return attached


def names(text: str) -> list[str]:
    """Split names with commas between."""
    return [name for part in text.split(",") if (name := part.strip())]


_PARSERS: dict[Any, tuple[Callable[[str], Any], str]] = {
    int: (whole_number, "N"),
    float: (number, "X"),
    Path: (Path, "FILE"),
    str: (str, "NAME"),
}


# --- Options of a command -----------------------------------------------------------------


def option(
    parser: Any,
    name: str,
    text: str,
    type: Callable[[str], Any] | None = None,
    metavar: str | None = None,
    **more: Any,
) -> None:
    """Add an option; a flag if it has neither a type nor choices."""
    if type is None and "choices" not in more:
        parser.add_argument(name, action="store_true", help=text)
    else:
        if type is not None:
            more |= {"type": type, "metavar": metavar}
        parser.add_argument(name, help=_with_default(text, more.get("default")), **more)


#: Options that several commands have.
_SHARED: dict[str, tuple[Any, ...]] = {
    "json": ("print one JSON object",),
    "quiet": ("show no progress",),
    "seed": ("seed of the random number generator", whole_number, "N", 0),
    "threads": ("number of threads, 0 for one per core", whole_number, "N", 1),
    "workers": (
        *("number of processes; the results do not depend on it", positive_number, "N", 1),
    ),
    "model": (
        "model file of learned methods (default: the model that comes with arcfleet)",
        *(Path, "FILE", None),
    ),
    "device": ("device of learned methods: auto, cpu, cuda, cuda:1", str, "NAME", "auto"),
}


def add_shared(parser: Any, *shared: str) -> None:
    """Add options that several commands have."""
    for name in shared:
        text, *value = _SHARED[name]
        if value:
            option(parser, f"--{name}", text, value[0], value[1], default=value[2])
        else:
            option(parser, f"--{name}", text)
