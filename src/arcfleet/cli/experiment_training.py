"""`arcfleet experiment ablation|convergence`: inputs of the model, and training."""

from __future__ import annotations

from argparse import RawDescriptionHelpFormatter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arcfleet.cli.experiment_options import (
    add_report_options,
    add_run_options,
    check_figures,
    check_run_options,
    finish,
)
from arcfleet.cli.options import number, positive_number, read_toml

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable

    from arcfleet.cli.options import Commands
    from arcfleet.neural.train.loop import TrainingProgress

_ABLATION = """\
example:
  arcfleet experiment ablation task30-test.npz task40-test.npz --device cuda \\
      --data task30-train.npz task40-train.npz \\
      --validation task30-validation.npz task40-validation.npz \\
      --pretrain-minutes 10 --finetune-minutes 10 --objective ppo --out results

Each kind of inputs is pre-trained on the first of --data, which needs labels, and
fine-tuned from there on each of them. Runs lie in FOLDER/ablation; the same command goes on
with them.
"""


def add_parsers(names: Commands) -> None:
    """Describe the experiments."""
    ablation = names.add_parser(
        "ablation",
        help="MDS, GAT and both as inputs of the model, at equal training",
        description="Train models that differ in their inputs alike, and compare them.",
        epilog=_ABLATION,
        formatter_class=RawDescriptionHelpFormatter,
    )
    ablation.add_argument("sets", type=Path, nargs="+", metavar="SET")
    for option, text in (
        ("--data", "training sets, one for each scale"),
        ("--validation", "labelled validation sets, one for each of these scales"),
    ):
        ablation.add_argument(
            option, type=Path, nargs="+", required=True, metavar="FILE", help=text
        )
    ablation.add_argument(
        "--inputs",
        default="mds,gat,mds+gat,mds+gat+skip",
        metavar="A,B",
        help="default mds,gat,mds+gat,mds+gat+skip",
    )
    for stage in ("pretrain", "finetune"):
        ablation.add_argument(
            f"--{stage}-minutes", type=number, metavar="M", help="of each run"
        )
        ablation.add_argument(
            f"--{stage}-config",
            type=Path,
            metavar="TOML",
            help=f"settings of `arcfleet train {stage}`",
        )
    ablation.add_argument(
        "--objective", metavar="NAME", help="of fine-tuning; default ppo, the paper's"
    )
    ablation.add_argument(
        "--count",
        type=positive_number,
        metavar="N",
        help="take only the first N instances of each SET; default all",
    )
    add_run_options(ablation)
    add_report_options(ablation)
    ablation.set_defaults(run=run_ablation, labelled=[])

    convergence = names.add_parser(
        "convergence",
        help="validation gaps of training runs against steps and minutes",
        description="Draw the validation gaps of training runs.",
    )
    convergence.add_argument(
        "runs",
        nargs="+",
        metavar="[NAME=]RUN",
        help="folders of `arcfleet train`, with names for the legend",
    )
    add_report_options(convergence)
    convergence.set_defaults(run=run_convergence)


def run_ablation(options: Namespace) -> int:
    """Run `ablation`, and the curves of its runs."""
    from arcfleet.cli.experiment_series import measured_series
    from arcfleet.paper.ablation import ablation_rows, run_folders, train_ablation
    from arcfleet.paper.convergence import convergence_report
    from arcfleet.paper.measure import plan_measurements
    from arcfleet.paper.report import write_report
    from arcfleet.paper.reports import report_of
    from arcfleet.paper.rows import ModelFiles
    from arcfleet.paper.sets import open_test_sets

    check_run_options(options)
    inputs = [name for name in options.inputs.split(",") if name]
    folder = options.out / "ablation"
    test_sets = open_test_sets(options.sets)
    pretraining = _settings(options, "pretrain")
    finetuning = _settings(options, "finetune")
    if options.objective is not None:
        finetuning["objective"] = options.objective
    if finetuning.setdefault("objective", "ppo") == "ppo":
        # The paper's, which are not the usual ones of fine-tuning.
        finetuning = {"learning_rate": 1e-4, "temperature": 1.0} | finetuning
    files = train_ablation(
        folder,
        inputs=inputs,
        data=options.data,
        validation=options.validation,
        pretraining=pretraining,
        finetuning=finetuning,
        test_scales=[test_set.scale for test_set in test_sets],
        device=options.device,
        threads=options.workers,
        progress=lambda name: None if options.quiet else _lines(name),
    )
    models = ModelFiles(files, options.device)
    rows = ablation_rows(inputs, pretraining, finetuning)
    measurements = plan_measurements(test_sets, rows, models, count=options.count)
    series = measured_series(options, measurements, models)
    runs = run_folders(folder, inputs, options.data)
    curves = convergence_report(runs, "ablation-convergence")
    write_report(curves, options.out, figures=not options.no_figures)
    finish(options, report_of("ablation", series))
    return 0


def run_convergence(options: Namespace) -> int:
    """Run `convergence`."""
    from arcfleet.errors import OptionError
    from arcfleet.paper.convergence import convergence_report
    from arcfleet.paper.report import make_folder

    runs: dict[str, Path] = {}  # by name
    for text in options.runs:
        name, equals, folder = text.partition("=")
        path = Path(folder if equals else text)
        name = name if equals else path.name
        if name in runs:
            raise OptionError(
                f"expected runs with different names, got {name!r} twice: name them as "
                "NAME=RUN"
            )
        runs[name] = path
    make_folder(options.out)
    check_figures(options)
    finish(options, convergence_report(list(runs.items())))
    return 0


def _settings(options: Namespace, stage: str) -> dict[str, Any]:
    from arcfleet.neural.checkpoint import require_packages

    require_packages("training")
    from arcfleet.neural.device import choose_device

    path = getattr(options, f"{stage}_config")
    settings: dict[str, Any] = {} if path is None else read_toml(path)
    minutes = getattr(options, f"{stage}_minutes")
    if minutes is not None:
        settings["minutes"] = minutes
    settings.setdefault("seed", options.seed)
    from arcfleet.neural.train.run import CPU_TOKENS

    if "tokens" not in settings and choose_device(options.device).type == "cpu":
        settings["tokens"] = CPU_TOKENS
    return settings


def _lines(name: str) -> Callable[[TrainingProgress], None]:
    """Print a line for each validation of a run, with the run's name before it."""
    import sys

    from arcfleet.cli.progress import describe

    shown: dict[str, object] = {}

    def show(progress: TrainingProgress) -> None:
        if progress.gaps and progress.gaps != shown:
            shown.clear()
            shown.update(progress.gaps)
            last = progress if progress.loss is not None else None
            print(f"{name}: {describe(progress, last)}", file=sys.stderr, flush=True)

    return show
