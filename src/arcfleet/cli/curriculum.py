"""`arcfleet train curriculum`: train on larger and larger scales."""

from __future__ import annotations

from argparse import RawDescriptionHelpFormatter
from pathlib import Path
from typing import TYPE_CHECKING

from arcfleet.cli.output import print_result
from arcfleet.cli.training_options import (
    add_running,
    number,
    print_gaps,
    read_toml,
    reporting,
    usual_settings,
)
from arcfleet.errors import ArcfleetError, FileError, OptionError

if TYPE_CHECKING:
    from argparse import Namespace

    from arcfleet.cli.options import Commands
    from arcfleet.paper.curriculum import CurriculumOutcome

_EXAMPLES = """\
examples:
  arcfleet train curriculum --config curriculum.toml --out runs/paper --minutes 60
  arcfleet train curriculum --config curriculum.toml --out runs/paper --resume

The TOML file lists the stages, as benchmarks/curriculum.toml does for the paper's:

  [settings]              of all phases; [pretrain] and [finetune] of all of one kind
  minutes = 10
  [[stage]]
  name = "task20"
  data = ["task20-train.npz"]
  validation = ["task20-validation.npz"]
  phases = ["pretrain"]   both if left out
  pretrain = { minutes = 20 }
"""


def add_parser(actions: Commands) -> None:
    """Describe the command."""
    parser = actions.add_parser(
        "curriculum",
        help="train on larger and larger scales",
        description="Pre-train and fine-tune on one scale after the other, each time "
        "starting from the last model.",
        epilog=_EXAMPLES,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--config", type=Path, required=True, metavar="TOML", help="stages and settings"
    )
    parser.add_argument(
        "--folder",
        type=Path,
        metavar="DIR",
        help="where the files are that TOML names; by default beside it",
    )
    parser.add_argument(
        "--minutes",
        type=number,
        metavar="M",
        help="stop after so many minutes; --resume goes on",
    )
    add_running(parser)
    parser.set_defaults(run=run)


def run(options: Namespace) -> int:
    """Run `arcfleet train curriculum`."""
    from arcfleet.neural.checkpoint import require_packages

    require_packages("training")
    from arcfleet.paper.curriculum import curriculum_from, run_curriculum

    content = read_toml(options.config)
    folder = options.folder or options.config.parent
    if options.minutes is not None and not 0 < options.minutes < 1e6:
        raise OptionError(f"expected --minutes above 0, got {options.minutes:g}")
    defaults = usual_settings(options.device)
    try:
        curriculum = curriculum_from(content, folder, defaults)
    except OptionError as error:
        raise FileError(options.config, f"{error}") from None
    with reporting(options) as bar:
        outcome = run_curriculum(
            options.out,
            curriculum,
            device=options.device,
            resume=options.resume,
            minutes=options.minutes,
            threads=options.threads,
            progress=bar,
        )
    return _print_outcome(outcome, len(curriculum.phases))


def _print_outcome(outcome: CurriculumOutcome, phases: int) -> int:
    from arcfleet.neural.train.distributed import Team

    phase, last = outcome.stopped_in, outcome.last
    if not Team.of_environment().leads:
        return 0 if phase is None or outcome.over_time else 1
    if phase is None:
        if last is not None:
            print_gaps(last)
        print_result(f"{outcome.model_file}: all {phases} phases are finished")
        return 0
    where = f"in stage {phase.stage}, {phase.kind}"
    if outcome.over_time:
        print_result(f"stopped {where}: the time is over; --resume goes on from there")
        return 0
    raise ArcfleetError(
        f"interrupted {where}; the same command with --resume goes on from there"
    )
