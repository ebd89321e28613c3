"""Commands and their options: declared once, generated from config dataclasses.

`add_config` makes an option of every field of a frozen dataclass and `config_from` makes
the dataclass of what was given. Help texts come from the section Parameters of the class's
docstring, defaults from the dataclass.
"""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import math
import re
import sys
import types
from argparse import (
    ArgumentParser,
    ArgumentTypeError,
    Namespace,
    RawDescriptionHelpFormatter,
)
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    NoReturn,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from arcfleet._checks import nearest_name
from arcfleet.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from arcfleet.datasets.shards import Shard

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
        """Parse, with all options there; refuse unknown ones, with a suggestion."""
        self.complete()
        self._check_words(sys.argv[1:] if args is None else args)
        return super().parse_known_args(args, namespace)

    def _check_words(self, words: Sequence[str]) -> None:
        """Refuse an unknown option or command, before all other mistakes."""
        groups = (
            action
            for action in self._actions
            if isinstance(action, argparse._SubParsersAction)  # noqa: SLF001
        )
        commands = next((list(group.choices) for group in groups), None)
        known = [flag for action in self._actions for flag in action.option_strings]
        for word in words:
            if word == "--":
                return
            flag = word.partition("=")[0]
            if flag.startswith("--"):
                if not any(one.startswith(flag) for one in known):
                    self._refuse("option", flag, known)
            elif commands is not None and not word.startswith("-"):
                # What follows is for the command to check.
                if word not in commands:
                    self._refuse("command", word, commands)
                return

    def _refuse(self, what: str, word: str, known: Sequence[str]) -> NoReturn:
        near = nearest_name(word, known)
        hint = f"did you mean {near}?" if near else f"{self.prog} --help lists all"
        self.exit(2, f"{self.prog}: error: unrecognised {what} {word[:40]}; {hint}\n")

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
    Literal, tuples of these and unions with None. A field's metadata may have `metavar` and
    `positional` (True: no `--name` but an argument).

    Parameters
    ----------
    parser
        Parser that gets the options.
    config
        Dataclass.
    skip
        Nested dataclasses without options.
    toml
        Whether settings may be in a TOML file as well; then every flag has its opposite.
    title
        Heading of fields that are not nested.
    headings
        Headings that come first, in this order.
    """
    groups = {heading: parser.add_argument_group(heading) for heading in headings}
    for setting in _settings(config):
        *parts, _ = setting.path.split(".")
        heading = parts[-1] if parts else title
        if setting.metadata.get("positional", False):
            _add_option(parser, setting, toml=toml)
        elif heading not in skip:
            if heading not in groups:
                groups[heading] = parser.add_argument_group(heading)
            _add_option(groups[heading], setting, toml=toml)


def config_from(options: Namespace, config: type[Config]) -> Config:
    """Return the config of the options; a setting that was not given has its default."""
    made: Config = _make(config, given_options(options, config), MISSING)
    return made


def given_options(options: Namespace, config: type[Any]) -> dict[str, Any]:
    """Return the settings of options; those of a nested dataclass are a mapping."""
    given: dict[str, Any] = {}
    for setting in _settings(config):
        value = getattr(options, setting.path, None)
        if value is not None and value != []:
            *parts, name = setting.path.split(".")
            table = given
            for part in parts:
                table = table.setdefault(part, {})
            table[name] = tuple(value) if isinstance(value, list) else value
    return given


def _make(config: type[Any], given: Mapping[str, Any], usual: Any) -> Any:
    """Return a config of settings; others are those of `usual`, or the defaults."""
    values = dict(given)
    for name, part, default in _nested(config, usual):
        values[name] = _make(part, given.get(name, {}), default)
    return config(**values) if usual is MISSING else replace(usual, **values)


@dataclass(frozen=True, slots=True)
class _Setting:
    """A field with an option: its dotted path, type, description and default."""

    path: str
    type: Any
    text: str
    default: Any
    metadata: Mapping[str, Any]


def _settings(config: type[Any], prefix: str = "", usual: Any = MISSING) -> list[_Setting]:
    """Return every setting, those of nested dataclasses inlined; defaults are `usual`'s."""
    hints, texts = get_type_hints(config), descriptions(config)
    nested = {name: (part, default) for name, part, default in _nested(config, usual)}
    found = []
    for field in fields(config):
        name, path = field.name, f"{prefix}{field.name}"
        if name in nested:
            part, default = nested[name]
            found += _settings(part, f"{path}.", default)
        else:
            default, text = _default(field, usual), texts.get(name, "")
            found.append(_Setting(path, hints[name], text, default, field.metadata))
    return found


def _nested(config: type[Any], usual: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield name, class and default of the fields that are dataclasses themselves."""
    hints = get_type_hints(config)
    for field in fields(config):
        if is_dataclass(hints[field.name]):
            default = _default(field, usual)
            part = hints[field.name] if default is MISSING else type(default)
            yield field.name, part, default


def _default(field: dataclasses.Field[Any], usual: Any) -> Any:
    if usual is not MISSING:
        return getattr(usual, field.name)
    factory: Any = field.default_factory
    return field.default if factory is MISSING else factory()


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
    """Add the option of a setting to a parser or a group."""
    is_tuple, member = _member(setting.type)
    may_be_left_out = setting.default is not MISSING
    arguments: dict[str, Any] = {
        "help": _help(setting.text, setting.default),
        "default": argparse.SUPPRESS,
    }
    if setting.metadata.get("positional", False):
        flag = setting.path
        if may_be_left_out:  # argparse would parse any other default
            arguments |= {"default": None, "nargs": "?"}
    else:
        flag = f"--{setting.path.rpartition('.')[2].replace('_', '-')}"
        arguments |= {"dest": setting.path, "required": not may_be_left_out}
    if member is bool:
        # Without a file that may say yes, there is no need to say no.
        plain = setting.default is False and not toml
        action: Any = "store_true" if plain else argparse.BooleanOptionalAction
        target.add_argument(flag, action=action, **arguments)
        return
    if is_tuple:
        arguments["nargs"] = "*" if "nargs" in arguments else "+"
    metavar = setting.metadata.get("metavar")
    if get_origin(member) is Literal:
        arguments |= {"choices": get_args(member), "metavar": metavar}
    else:
        arguments["type"], usual = _PARSERS[member]
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


def _member(field_type: Any) -> tuple[bool, Any]:
    """Return whether a type, perhaps with None, is a tuple, and of what; else the type."""
    if get_origin(field_type) in (Union, types.UnionType):
        (field_type,) = (
            member for member in get_args(field_type) if member is not type(None)
        )
    if get_origin(field_type) is tuple:
        return True, get_args(field_type)[0]
    return False, field_type


# --- Values on the command line ---------------------------------------------------------


def whole_number(text: str) -> int:
    """Parse an integer that is at least 0, for argparse."""
    return _number_from(0, text)


def positive_number(text: str) -> int:
    """Parse an integer that is at least 1, for argparse."""
    return _number_from(1, text)


def _number_from(least: int, text: str) -> int:
    is_number = text.isascii() and text.isdigit() and len(text) <= 20
    if not is_number or int(text) < least:
        raise ArgumentTypeError(
            f"expected a whole number of at least {least}, got {text[:40]!r}"
        )
    return int(text)


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


def shard(text: str) -> Shard:
    """Parse a part such as 3/10, for argparse."""
    from arcfleet.datasets.shards import Shard

    try:
        return Shard.parse(text)
    except OptionError as error:
        raise ArgumentTypeError(str(error)) from None


_PARSERS: dict[Any, tuple[Callable[[str], Any], str]] = {
    int: (whole_number, "N"),
    float: (number, "X"),
    Path: (Path, "FILE"),
    str: (str, "NAME"),
}


# --- Options of a command -----------------------------------------------------------------


def file_argument(
    parser: Any, name: str, text: str, metavar: str = "FILE", **more: Any
) -> None:
    """Add a positional argument that is a file."""
    parser.add_argument(name, type=Path, metavar=metavar, help=text, **more)


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


def add_executor(parser: Any, text: str) -> None:
    """Add --workers and --executor."""
    from arcfleet.workers import EXECUTORS, PROCESSES

    text += ", 1 by default; with ray the most cores, all of the cluster by default"
    option(parser, "--workers", text, positive_number, "N")
    text = "where the work is done: processes of this machine, or a Ray cluster"
    option(parser, "--executor", text, choices=EXECUTORS, default=PROCESSES)


def add_shard(parser: Any, text: str) -> None:
    """Add --shard."""
    text += ", as in 3/10 for the third of ten parts; `arcfleet merge` joins their files"
    option(parser, "--shard", text, shard, "I/N")
