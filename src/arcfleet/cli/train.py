"""`arcfleet train`: train the models of the learned solvers."""

from __future__ import annotations

from argparse import RawDescriptionHelpFormatter
from typing import TYPE_CHECKING

from arcfleet.cli import curriculum
from arcfleet.cli.options import positive_number, whole_number
from arcfleet.cli.train_baselines import add_baselines
from arcfleet.cli.training_options import (
    COMMON,
    add_files,
    add_settings,
    gather_settings,
    number,
    print_outcome,
    reporting,
)

if TYPE_CHECKING:
    from argparse import Namespace

    from arcfleet.cli.options import Commands
    from arcfleet.cli.training_options import Setting

_EXAMPLES = """\
examples:
  arcfleet train pretrain --data task20-train.npz task50-train.npz \\
      --validation task20-validation.npz --minutes 20 --compile --out runs/first
  arcfleet train finetune --init runs/first/model.safetensors --data task50-train.npz \\
      --validation task50-validation.npz --minutes 20 --compile --out runs/second
  arcfleet train curriculum --config curriculum.toml --out runs/third
  torchrun --nproc-per-node 4 -m arcfleet.cli.main train pretrain \\
      --data task20-train.npz --minutes 20 --out runs/fourth
  arcfleet train s2v-dqn --data task20-train.npz --minutes 20 --out runs/fifth
  arcfleet solve streets.dat --method daam --model runs/second/model.safetensors

A run that was stopped by Ctrl-C, SIGTERM or a kill goes on with the same command and
--resume, and so does one that ended if --minutes or --steps is larger than before.
"""


def add_parser(commands: Commands) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "train",
        help="train the models of the learned solvers",
        description="Train the models of the learned solvers.",
        epilog=_EXAMPLES,
        formatter_class=RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    _add_pretrain(actions)
    _add_finetune(actions)
    curriculum.add_parser(actions)
    add_baselines(actions)


def _add_pretrain(actions: Commands) -> None:
    parser = actions.add_parser(
        "pretrain",
        help="learn from labelled plans",
        description="Train a model to decide as the labelled plans of data sets do.",
        epilog=_EXAMPLES,
        formatter_class=RawDescriptionHelpFormatter,
    )
    add_files(parser, "data sets to learn from, with their labels beside them")
    add_settings(parser.add_argument_group("settings").add_argument, _PRETRAIN)
    add_settings(parser.add_argument_group("sizes of the model").add_argument, _SIZES)
    parser.set_defaults(run=run_pretrain)


def _add_finetune(actions: Commands) -> None:
    parser = actions.add_parser(
        "finetune",
        help="learn from a model's own plans",
        description="Train a model further on plans that it makes itself.",
        epilog=_EXAMPLES,
        formatter_class=RawDescriptionHelpFormatter,
    )
    add_files(parser, "data sets to learn from; labels are not needed", needs_init=True)
    add_settings(parser.add_argument_group("settings").add_argument, _FINETUNE)
    parser.set_defaults(run=run_finetune)


# All of these, and all others of PretrainConfig or FinetuneConfig, may stand in the TOML
# file.
_PRETRAIN: tuple[Setting, ...] = (
    *COMMON,
    ("moments", positive_number, "N", "states drawn of each plan; default 8"),
    (
        "tokens",
        positive_number,
        "N",
        "states of a step times arcs; default 200000, CPU: 8000",
    ),
    ("learning_rate", number, "R", "default 7e-4"),
    ("warm_up_steps", whole_number, "N", "default 300"),
    ("average_decay", number, "D", "of the mean of the weights; default 0.999"),
    ("validations", whole_number, "N", "over the whole run; default 8"),
    ("log_steps", positive_number, "N", "steps per line of metrics; default 50"),
)
_SIZES: tuple[Setting, ...] = (
    ("model.width", positive_number, "N", "default 128"),
    ("model.layers", positive_number, "N", "default 9"),
    ("model.heads", positive_number, "N", "default 8"),
    ("model.feed_forward", positive_number, "N", "default 512"),
    ("model.mds_dimensions", whole_number, "N", "default 8"),
)
_FINETUNE: tuple[Setting, ...] = (
    ("objective", str, "NAME", "samples (default), imitate-best, self-critical, ppo"),
    ("copies", positive_number, "N", "plans sampled of each instance; default 16"),
    (
        "best_of",
        positive_number,
        "N",
        "aim samples at the best of N plans, not the mean; default 1",
    ),
    ("rollout_tokens", positive_number, "N", "plans of a step times arcs; default 800000"),
    ("temperature", number, "T", "of the samples; default 0.5"),
    ("anchor", number, "A", "price of samples for leaving the first model; default 0.02"),
    ("lessons", positive_number, "N", "updates of a step of imitate-best; default 20"),
    ("epochs", positive_number, "N", "passes over the states of ppo; default 3"),
    ("standardise", None, "", "bring the advantages of ppo to mean 0, deviation 1"),
    ("baseline_steps", positive_number, "N", "steps between tests of ppo; default 10"),
    *COMMON,
    ("moments", positive_number, "N", "states drawn of each plan; default 4"),
    ("tokens", positive_number, "N", "states of an update times arcs; default 400000"),
    ("learning_rate", number, "R", "default 3e-5"),
    ("warm_up_steps", whole_number, "N", "default 5"),
    ("average_decay", number, "D", "of the mean of the weights; default 0.99"),
    ("validations", whole_number, "N", "over the whole run; default 4"),
    ("log_steps", positive_number, "N", "steps per line of metrics; default 1"),
)


def run_pretrain(options: Namespace) -> int:
    """Run `arcfleet train pretrain`."""
    from arcfleet.neural.checkpoint import require_packages

    require_packages("training")
    from arcfleet.neural.train.config import config_from
    from arcfleet.neural.train.pretrain import pretrain

    names = [setting[0] for setting in (*_PRETRAIN, *_SIZES)]
    config = config_from(gather_settings(options, names))
    with reporting(options) as bar:
        result = pretrain(
            options.out,
            config,
            data=options.data,
            validation=options.validation,
            device=options.device,
            init=options.init,
            resume=options.resume,
            threads=options.threads,
            progress=bar,
        )
    return print_outcome(result)


def run_finetune(options: Namespace) -> int:
    """Run `arcfleet train finetune`."""
    from arcfleet.neural.checkpoint import require_packages

    require_packages("training")
    from arcfleet.neural.train.config import FinetuneConfig, config_of
    from arcfleet.neural.train.finetune import finetune

    names = [setting[0] for setting in _FINETUNE]
    config = config_of(FinetuneConfig, gather_settings(options, names))
    with reporting(options) as bar:
        result = finetune(
            options.out,
            config,
            init=options.init,
            data=options.data,
            validation=options.validation,
            device=options.device,
            resume=options.resume,
            threads=options.threads,
            progress=bar,
        )
    return print_outcome(result)
