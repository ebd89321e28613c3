"""`arcfleet train pretrain`, `finetune` and `recipe`: models of the learned solver."""

from __future__ import annotations

from argparse import SUPPRESS, Action
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arcfleet._files import read_toml
from arcfleet.cli.options import (
    Command,
    add_config,
    add_shared,
    config_from,
    given_options,
    option,
    positive_number,
)
from arcfleet.cli.output import print_json, print_result
from arcfleet.cli.progress import training_progress
from arcfleet.errors import ArcfleetError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable, Iterator

    from arcfleet.neural.train.loop import Trained, TrainingProgress
    from arcfleet.neural.train.recipe import RecipeOutcome

_RESUME = """
A run that was stopped by Ctrl-C, SIGTERM or a kill resumes with the same command and
--resume. So does a finished run with larger --minutes or --steps.
"""
_HEADINGS = ("run", "settings", "optimiser", "model")


def _pretrain_options(parser: ArgumentParser) -> None:
    require_training()
    from arcfleet.neural.train.config import PretrainConfig

    _add_files(parser, "data sets to train on, with their labels beside them")
    add_config(parser, PretrainConfig, headings=_HEADINGS, toml=True)
    _add_former(parser)


def _pretrain(options: Namespace) -> int:
    from arcfleet.neural.train.config import PretrainConfig
    from arcfleet.neural.train.pretrain import pretrain

    return _train(options, PretrainConfig, pretrain)


def _finetune_options(parser: ArgumentParser) -> None:
    require_training()
    from arcfleet.neural.train.config import FinetuneConfig

    _add_files(parser, "data sets to train on; labels are not needed", init=True)
    # The sizes are those of the initial model.
    add_config(parser, FinetuneConfig, headings=_HEADINGS[:3], skip=["model"], toml=True)
    _add_former(parser)


def _finetune(options: Namespace) -> int:
    from arcfleet.neural.train.config import FinetuneConfig
    from arcfleet.neural.train.finetune import finetune

    return _train(options, FinetuneConfig, finetune)


def _recipe_options(parser: ArgumentParser) -> None:
    require_training()
    from arcfleet.neural.train.recipe import RecipeConfig

    add_config(parser, RecipeConfig, title="recipe")
    add_shared(parser, "quiet", "json")


def _recipe(options: Namespace) -> int:
    from arcfleet.neural.train.recipe import RecipeConfig, train_recipe

    config = config_from(options, RecipeConfig)
    with training(config.threads, hidden=options.quiet) as progress:
        outcome = train_recipe(config, progress=progress)
    return print_outcome(outcome, as_json=options.json)


def _add_files(parser: ArgumentParser, data: str, *, init: bool = False) -> None:
    option(parser, "--data", data, Path, "FILE", nargs="+", required=True)
    text = "data sets to validate on, with their labels beside them"
    option(parser, "--validation", text, Path, "FILE", nargs="+", default=[])
    option(parser, "--init", "initial model", Path, "MODEL", required=init)
    option(parser, "--out", "folder of the run", Path, "FOLDER", required=True)
    option(parser, "--resume", "resume the run in FOLDER")
    text = "TOML file of settings; options take precedence"
    option(parser, "--config", text, Path, "FILE")
    text = "number of CPU threads of torch and Split"
    option(parser, "--threads", text, positive_number, "N", default=1)
    add_shared(parser, "device", "quiet", "json")


class _Former(Action):
    """An option of an earlier version: one sentence says what to do instead."""

    def __call__(self, *_: object) -> None:
        """Raise OptionError."""
        from arcfleet.neural.train.config import require_known

        require_known([self.dest], self.const)


def _add_former(parser: ArgumentParser) -> None:
    from arcfleet.neural.train.config import REMOVED, RENAMED

    known = [action.dest.rpartition(".")[2] for action in parser._actions]  # noqa: SLF001
    hidden: Any = {"const": known, "default": SUPPRESS, "help": SUPPRESS, "nargs": "*"}
    for name in (*(old for old, now in RENAMED.items() if now in known), *REMOVED):
        parser.add_argument(f"--{name.replace('_', '-')}", action=_Former, **hidden)


def _train(options: Namespace, config: Any, train: Callable[..., Trained]) -> int:
    from arcfleet.neural.train.run import resolve_config

    given = given_options(options, config)
    for part in ("run", "optimiser"):  # their settings have names of their own
        given |= given.pop(part, {})
    settings = resolve_config(
        config,
        given,
        file=None if options.config is None else read_toml(options.config),
        out=options.out if options.resume else None,
        init=options.init,
        device=options.device,
    )
    with training(options.threads, hidden=options.quiet) as progress:
        result = train(
            options.out,
            settings,
            data=options.data,
            validation=options.validation,
            device=options.device,
            init=options.init,
            resume=options.resume,
            threads=options.threads,
            progress=progress,
        )
    return print_outcome(result, as_json=options.json)


def require_training() -> None:
    """Raise OptionError unless the packages of training are installed."""
    from arcfleet.neural.checkpoint import require_packages

    require_packages("training")


@contextmanager
def training(
    threads: int, *, hidden: bool
) -> Iterator[Callable[[TrainingProgress], None] | None]:
    """Show the progress of training while the block runs; of several processes, rank 0's.

    Torch has so many threads then: its own choice, all cores, is many times slower where
    something else needs one of them.
    """
    from arcfleet.neural.device import torch_threads
    from arcfleet.neural.train.distributed import World, destroy_process_group

    hidden = hidden or not World.from_environment().is_main
    with torch_threads(threads), training_progress(hidden=hidden) as progress:
        yield progress
    # Not after an error: the others may wait for this process, and it would for them.
    destroy_process_group()


def print_outcome(outcome: Trained | RecipeOutcome, *, as_json: bool) -> int:
    """Print the outcome of training, of several processes rank 0 only.

    Raises
    ------
    ArcfleetError
        If a signal stopped it.
    """
    from arcfleet.neural.train.distributed import World

    if not World.from_environment().is_main:
        return int(outcome.interrupted)
    if outcome.interrupted:
        raise ArcfleetError(outcome.text())
    if as_json:
        print_json(outcome.facts())
    else:
        print_result(outcome.text())
    return 0


TRAIN = Command(
    name="train",
    summary="train models of the learned solver",
    epilog="""\
example:
  arcfleet train pretrain --data task20-train.npz --minutes 20 --out runs/first
  arcfleet train finetune --data task20-train.npz --minutes 20 --out runs/second \\
      --init runs/first/model.safetensors
  arcfleet solve town.dat --method daam --model runs/second/model.safetensors
""",
    commands=(
        Command(
            name="pretrain",
            summary="train a model on labelled plans (supervised pre-training)",
            options=_pretrain_options,
            run=_pretrain,
            epilog=f"""\
examples:
  arcfleet train pretrain --data task20-train.npz task50-train.npz \\
      --validation task20-validation.npz --minutes 20 --compile --out runs/first
  torchrun --nproc-per-node 4 -m arcfleet.cli.main train pretrain \\
      --data task20-train.npz --minutes 20 --out runs/second
{_RESUME}""",
        ),
        Command(
            name="finetune",
            summary="train a model on its own plans (REINFORCE, leave-one-out baseline)",
            options=_finetune_options,
            run=_finetune,
            epilog=f"""\
example:
  arcfleet train finetune --init runs/first/model.safetensors --data task50-train.npz \\
      --validation task50-validation.npz --minutes 20 --compile --out runs/second
{_RESUME}""",
        ),
        Command(
            name="recipe",
            summary="make the data sets of a recipe and train its stages in turn",
            options=_recipe_options,
            run=_recipe,
            epilog="""\
examples:
  arcfleet train recipe --maps maps --out runs/daam --workers 16
  arcfleet train recipe --config own.toml --out runs/own --minutes 60

Without --config, the recipe of the shipped model. The same command with --resume resumes
after Ctrl-C, a kill or the end of --minutes.
""",
        ),
    ),
)
