"""`arcfleet paper`: the commands of the paper's reproduction, from its own table."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from arcfleet.cli import HAS_PAPER
from arcfleet.cli.options import Command, add_config, add_shared, config_from
from arcfleet.cli.output import note, print_either
from arcfleet.cli.progress import count_progress, training_lines
from arcfleet.cli.train import print_outcome, require_training, training

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


def _options(module: str, parser: ArgumentParser) -> None:
    require_training()
    add_config(parser, import_module(module).Config)
    add_shared(parser, "quiet", "json")


def _run(module: str, options: Namespace) -> int:
    from arcfleet.paper.commands import Watch

    command: Any = import_module(module)
    config = config_from(options, command.Config)
    with count_progress("plans", hidden=options.quiet, lines=True) as progress:
        watch = Watch(
            progress=progress,
            training=lambda name: None if options.quiet else training_lines(name),
            note=lambda line: None if options.quiet else note(line),
        )
        outcome = command.run(config, watch)
    print_either(options, outcome.facts(), outcome.text())
    return 0


def _train(module: str, options: Namespace) -> int:
    command: Any = import_module(module)
    config = config_from(options, command.Config)
    with training(config.recipe.threads, hidden=options.quiet) as progress:
        outcome = command.run(config, progress)
    return print_outcome(options, outcome)


def _commands() -> tuple[Command, ...]:
    if not HAS_PAPER:
        return ()
    from arcfleet.paper.commands import COMMANDS

    return tuple(
        Command(
            name=each.name,
            summary=each.summary,
            options=partial(_options, each.module),
            run=partial(_train if each.name == "train" else _run, each.module),
            epilog=each.examples,
        )
        for each in COMMANDS
    )


PAPER = Command(
    name="paper",
    summary="reproduce the paper: its models, tables and figures",
    epilog="""\
example:
  arcfleet paper train --maps maps --out runs/paper --workers 16
  arcfleet paper table task20-test.npz task50-test.npz --out results
""",
    commands=_commands(),
)
