"""The CLI page: every command and option, read off the argument parser itself."""

from __future__ import annotations

import argparse
import functools
import re
from typing import TYPE_CHECKING

from arcfleet.cli.main import build_parser

if TYPE_CHECKING:
    from collections.abc import Iterator

_WIDTH = 88
#: What stands for the titles that argparse gives.
_TITLES = {"positional arguments": "argument", "options": "option"}


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
    top = build_parser()
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
    found = list(commands(top))
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
    for group in command._action_groups:  # noqa: SLF001
        listed = [x for x in group._group_actions if _is_shown(x)]  # noqa: SLF001
        if listed:
            title = group.title or ""
            lines += [f"| {_cell(_TITLES.get(title, title))} | |", "|---|---|"]
            lines += [f"| {_names(x)} | {_cell(_help(x, command))} |" for x in listed]
            lines.append("")
    if command.epilog:
        lines += ["```text", command.epilog.strip(), "```"]
    return lines


def _is_shown(action: argparse.Action) -> bool:
    return action.help != argparse.SUPPRESS and action.dest != "help"


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


def _anchor(command: argparse.ArgumentParser) -> str:
    return command.prog.replace(" ", "-")


def _sentence(text: str) -> str:
    return re.sub(r"[*<]", r"\\\g<0>", text.strip())


def _cell(text: str) -> str:
    return _sentence(" ".join(text.split())).replace("|", "\\|")
