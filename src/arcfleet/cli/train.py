"""`arcfleet train pretrain`, `finetune` and `recipe`: models of the learned solver."""

from __future__ import annotations

from argparse import SUPPRESS
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arcfleet.cli.options import (
    Command,
    add_config,
    add_shared,
    config_from,
    given_options,
    option,
    positive_number,
)
from arcfleet.cli.output import print_either
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


def _phase(name: str) -> tuple[Any, Callable[..., Trained]]:
    """Return the config and the function of a phase of training."""
    require_training()
    from arcfleet.neural.train.config import FinetuneConfig, PretrainConfig
    from arcfleet.neural.train.finetune import finetune
    from arcfleet.neural.train.pretrain import pretrain

    if name == "pretrain":
        return PretrainConfig, pretrain
    return FinetuneConfig, finetune


def _phase_options(name: str, parser: ArgumentParser) -> None:
    config, _ = _phase(name)
    from arcfleet.neural.train.config import REMOVED, RENAMED

    is_first = name == "pretrain"
    needs = "with their labels beside them" if is_first else "labels are not needed"
    text = f"data sets to train on{',' if is_first else ';'} {needs}"
    option(parser, "--data", text, Path, "FILE", nargs="+", required=True)
    text = "data sets to validate on, with their labels beside them"
    option(parser, "--validation", text, Path, "FILE", nargs="+", default=[])
    text = "initial model: a file, or daam for the shipped one"
    option(parser, "--init", text, Path, "MODEL", required=not is_first)
    option(parser, "--out", "folder of the run", Path, "FOLDER", required=True)
    option(parser, "--resume", "resume the run in FOLDER")
    text = "TOML file of settings; options take precedence"
    option(parser, "--config", text, Path, "FILE")
    text = "number of CPU threads of torch and Split"
    option(parser, "--threads", text, positive_number, "N", default=1)
    add_shared(parser, "device", "quiet", "json")
    # The sizes of a fine-tuned model are those of the initial one.
    skip = () if is_first else ("model",)
    headings = [x for x in ("run", "settings", "optimiser", "model") if x not in skip]
    add_config(parser, config, headings=headings, skip=skip, toml=True)
    hidden: dict[str, Any] = {"help": SUPPRESS, "default": SUPPRESS, "nargs": "*"}
    for former in (*RENAMED, *REMOVED):  # the error of each names what to use instead
        flag = f"--{former.replace('_', '-')}"
        parser.add_argument(flag, dest=f"former.{former}", **hidden)


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
    return print_outcome(options, outcome)


def _train(name: str, options: Namespace) -> int:
    from arcfleet.neural.train.run import resolve_config

    config, train = _phase(name)
    given = given_options(options, config)
    for part in ("run", "optimiser"):  # their settings have names of their own
        given |= given.pop(part, {})
    for option_name, value in vars(options).items():
        if option_name.startswith("former."):
            given[option_name.removeprefix("former.")] = value
    settings = resolve_config(
        config,
        given,
        file=options.config,
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
    return print_outcome(options, result)


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


def print_outcome(options: Namespace, outcome: Trained | RecipeOutcome) -> int:
    """Print the outcome of training, rank 0 only; raise ArcfleetError after a signal."""
    from arcfleet.neural.train.distributed import World

    if not World.from_environment().is_main:
        return int(outcome.interrupted)
    if outcome.interrupted:
        raise ArcfleetError(outcome.text())
    print_either(options, outcome.facts(), outcome.text())
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
            options=partial(_phase_options, "pretrain"),
            run=partial(_train, "pretrain"),
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
            options=partial(_phase_options, "finetune"),
            run=partial(_train, "finetune"),
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
