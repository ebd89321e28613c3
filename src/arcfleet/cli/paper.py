"""`arcfleet paper`: the paper's models, tables and figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arcfleet.cli.options import (
    Command,
    add_config,
    add_json,
    add_quiet,
    given_options,
    make_config,
)
from arcfleet.cli.train import print_outcome, require_training, training

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


def _train_options(parser: ArgumentParser) -> None:
    require_training()
    from arcfleet.paper.train import Config

    add_config(parser, Config, title="recipe")
    add_quiet(parser)
    add_json(parser)


def _train(options: Namespace) -> int:
    from arcfleet.paper.train import Config, run

    config = make_config(Config, given_options(options, Config))
    with training(config.recipe.threads, hidden=options.quiet) as progress:
        outcome = run(config, progress)
    return print_outcome(outcome, as_json=options.json)


PAPER = Command(
    name="paper",
    summary="reproduce the paper: its models, tables and figures",
    epilog="""\
example:
  arcfleet paper train --maps maps --out runs/paper --workers 16
""",
    commands=(
        Command(
            name="train",
            summary="train a model of the paper by the paper's recipe",
            options=_train_options,
            run=_train,
            epilog="""\
examples:
  arcfleet paper train --maps maps --out runs/paper --workers 16
  arcfleet paper train s2v-dqn --maps maps --out runs/s2v-dqn
  arcfleet paper train --config paper.toml --out runs/own --minutes 60

The same command with --resume resumes after Ctrl-C, a kill or the end of --minutes.
""",
        ),
    ),
)
