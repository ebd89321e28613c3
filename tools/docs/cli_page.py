"""The CLI page: every command and option, read off the argument parser itself."""

from __future__ import annotations

import argparse
import functools
import re
from typing import TYPE_CHECKING
from unittest import mock

from arcfleet.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Iterator

_WIDTH = 88


class _Caught(Exception):  # noqa: N818 (no error)
    """Carries the parser out of `main`."""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the `arcfleet` command."""

    def catch(self: argparse.ArgumentParser, *_: object, **__: object) -> None:
        raise _Caught(self)

    with mock.patch.object(argparse.ArgumentParser, "parse_args", catch):
        try:
            main([])
        except _Caught as caught:
            found: argparse.ArgumentParser = caught.args[0]
            return found
    raise AssertionError("expected main to parse arguments")


def commands(
    of: argparse.ArgumentParser, help_text: str = ""
) -> Iterator[tuple[argparse.ArgumentParser, str]]:
    """Yield every command below a parser that can be run, with its line of help."""
    # argparse has no public way to the commands below a parser.
    groups = [x for x in actions(of) if isinstance(x, argparse._SubParsersAction)]  # noqa: SLF001
    if not groups:
        yield of, help_text
    for group in groups:
        listed = group._choices_actions  # noqa: SLF001
        texts = {choice.dest: choice.help or "" for choice in listed}
        for name, child in group.choices.items():
            yield from commands(child, texts.get(name, ""))


def actions(of: argparse.ArgumentParser) -> list[argparse.Action]:
    """Return the arguments and options of a parser."""
    return of._actions  # noqa: SLF001


def page() -> str:
    """Return the page in Markdown."""
    top = parser()
    lines = [
        "# Command line",
        "",
        "Every command has `--help`. Results go to stdout, everything else to stderr. "
        "Exit code 0 means done, 1 bad input or a faulty plan, 2 wrong usage. "
        "Ctrl-C ends a search and keeps the best plan so far.",
        "",
        "| command | |",
        "|---|---|",
    ]
    found = [pair for pair in commands(top) if not _is_pointer(*pair)]
    for command, text in found:
        lines.append(f"| [`{command.prog}`](#{_anchor(command)}) | {_cell(text)} |")
    for command, text in found:
        lines += ["", *_section(command, text)]
    return "\n".join(lines) + "\n"


def _section(command: argparse.ArgumentParser, text: str) -> list[str]:
    command.formatter_class = functools.partial(
        argparse.RawDescriptionHelpFormatter, width=_WIDTH
    )
    usage = command.format_usage().removeprefix("usage: ").rstrip()
    lines = [
        f"## `{command.prog}` {{ #{_anchor(command)} }}",
        "",
        _sentence(command.description or text),
        "",
        "```text",
        usage,
        "```",
        "",
    ]
    listed = [
        x for x in actions(command) if x.help != argparse.SUPPRESS and x.dest != "help"
    ]
    if listed:
        lines += ["| argument | |", "|---|---|"]
        lines += [f"| {_names(x)} | {_cell(_help(x, command))} |" for x in listed]
    if command.epilog:
        lines += ["", "```text", command.epilog.strip(), "```"]
    return lines


def _names(action: argparse.Action) -> str:
    value = action.metavar or ("" if action.nargs == 0 else action.dest.upper())
    shown = " ".join(value) if isinstance(value, tuple) else value
    if action.choices and not action.metavar:
        shown = "{" + ",".join(map(str, action.choices)) + "}"
    if not action.option_strings:
        return f"`{shown}`"
    return ", ".join(f"`{f'{x} {shown}'.strip()}`" for x in action.option_strings)


def _help(action: argparse.Action, command: argparse.ArgumentParser) -> str:
    values = {**vars(action), "prog": command.prog}
    if action.choices is not None:
        values["choices"] = ", ".join(map(str, action.choices))
    return (action.help or "") % values


def _is_pointer(command: argparse.ArgumentParser, text: str) -> bool:
    """Return whether a command only names the one that took its place."""
    return text == argparse.SUPPRESS or (not text and not command.description)


def _anchor(command: argparse.ArgumentParser) -> str:
    return command.prog.replace(" ", "-")


def _sentence(text: str) -> str:
    return re.sub(r"[*<]", r"\\\g<0>", text.strip())


def _cell(text: str) -> str:
    return _sentence(" ".join(text.split())).replace("|", "\\|")
