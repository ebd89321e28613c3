"""`arcfleet train`: train the models of the learned solvers."""

from __future__ import annotations

from argparse import ArgumentTypeError, RawDescriptionHelpFormatter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arcfleet.cli.options import positive_number, whole_number
from arcfleet.cli.output import print_result
from arcfleet.errors import ArcfleetError, FileError, OptionError

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable

    from arcfleet.cli.options import Commands

_EXAMPLES = """\
examples:
  arcfleet train pretrain --data task20-train.npz task50-train.npz \\
      --validation task20-validation.npz --minutes 20 --compile --out runs/first
  arcfleet train pretrain --data task20-train.npz --out runs/first --resume
  arcfleet solve streets.dat --method daam --model runs/first/model.safetensors

A run that was stopped by Ctrl-C, SIGTERM or a kill goes on with --resume.
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


def _add_pretrain(actions: Commands) -> None:
    parser = actions.add_parser(
        "pretrain",
        help="learn from labelled plans",
        description="Train a model to decide as the labelled plans of data sets do.",
        epilog=_EXAMPLES,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--data",
        type=Path,
        nargs="+",
        required=True,
        metavar="FILE",
        help="data sets to learn from, with their labels beside them",
    )
    parser.add_argument(
        "--validation",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="data sets to validate on, with their labels beside them",
    )
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="folder of the run"
    )
    parser.add_argument(
        "--config", type=Path, metavar="TOML", help="settings; options go before it"
    )
    parser.add_argument(
        "--init", type=Path, metavar="MODEL", help="model file to start from"
    )
    parser.add_argument(
        "--resume", action="store_true", help="go on with the run that is in DIR"
    )
    parser.add_argument(
        "--device",
        default="auto",
        metavar="NAME",
        help="auto (default), cpu, cuda, cuda:1",
    )
    parser.add_argument(
        "--threads",
        type=positive_number,
        default=1,
        metavar="N",
        help="of the path optimiser in validations; default 1",
    )
    parser.add_argument("--quiet", action="store_true", help="no progress")
    settings = parser.add_argument_group("settings")
    for name, kind, form, text in _SETTINGS:
        _add_setting(settings.add_argument, name, kind, form, text)
    sizes = parser.add_argument_group("sizes of the model")
    for name, kind, form, text in _SIZES:
        _add_setting(sizes.add_argument, f"model.{name}", kind, form, text)
    parser.set_defaults(run=run_pretrain)


def _add_setting(
    add: Callable[..., object],
    name: str,
    kind: Callable[[str], Any] | None,
    form: str,
    text: str,
) -> None:
    option = f"--{name.removeprefix('model.').replace('_', '-')}"
    if kind is None:
        add(option, dest=name, action="store_true", default=None, help=text)
    elif name == "weights":
        add(option, dest=name, type=kind, nargs="+", metavar=form, help=text)
    else:
        add(option, dest=name, type=kind, metavar=form, help=text)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ArgumentTypeError(f"expected a number, got {text[:40]!r}") from None


# Name, type, form and help of the settings that have an option; None is a switch. All of
# them, and all others of PretrainConfig, may stand in the TOML file.
_SETTINGS: tuple[tuple[str, Callable[[str], Any] | None, str, str], ...] = (
    ("minutes", _number, "M", "end after so many minutes"),
    ("steps", positive_number, "N", "end after so many steps"),
    ("seed", whole_number, "N", "of all random choices; default 0"),
    ("route_order", str, "NAME", "order of a plan's routes; default farthest"),
    ("directions", str, "NAME", "directions of the routes; default random"),
    ("moments", positive_number, "N", "states drawn of each plan; default 8"),
    ("tokens", positive_number, "N", "states of a step times arcs; default 200000"),
    ("weights", _number, "W", "how often each of --data is drawn; default all alike"),
    ("learning_rate", _number, "R", "default 7e-4"),
    ("warm_up_steps", whole_number, "N", "default 300"),
    ("average_decay", _number, "D", "of the mean of the weights; default 0.999"),
    ("validations", whole_number, "N", "over the whole run; default 8"),
    ("validation_instances", positive_number, "N", "of each set; default 500"),
    ("checkpoint_minutes", _number, "M", "default 3"),
    ("log_steps", positive_number, "N", "steps per line of metrics; default 50"),
    ("precision", str, "NAME", "auto (default), float32, bfloat16"),
    ("compile", None, "", "use torch.compile"),
)
_SIZES: tuple[tuple[str, Callable[[str], Any] | None, str, str], ...] = (
    ("width", positive_number, "N", "default 128"),
    ("layers", positive_number, "N", "default 3"),
    ("heads", positive_number, "N", "default 8"),
    ("feed_forward", positive_number, "N", "default 512"),
    ("gat_heads", positive_number, "N", "default 1"),
    ("mds_dimensions", whole_number, "N", "default 8"),
    ("norm", str, "NAME", "rms (default), layer, instance, batch"),
    ("inputs", str, "NAME", "mds+gat (default), mds+gat+skip, gat, mds"),
)


def run_pretrain(options: Namespace) -> int:
    """Run `arcfleet train pretrain`."""
    from arcfleet.neural.packages import require_packages

    require_packages("training")
    from arcfleet.cli.training_bar import training_bar
    from arcfleet.neural.pretrain import pretrain
    from arcfleet.neural.pretrain_config import config_from

    config = config_from(_settings(options))
    with training_bar(hidden=options.quiet) as bar:
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
    if not result.finished:
        raise ArcfleetError(
            f"interrupted after {result.steps} steps; the same command with --resume goes "
            "on from here"
        )
    for name, gaps in result.gaps.items():
        print_result(
            f"{name}: greedy {gaps.greedy:.2f} % above the labels, "
            f"{gaps.optimised:.2f} % after the path optimiser"
        )
    minutes = result.seconds / 60
    print_result(f"{result.model_file}: {result.steps} steps in {minutes:.1f} minutes")
    return 0


def _settings(options: Namespace) -> dict[str, Any]:
    """Gather the settings: those of the file, then the options, else the run's own."""
    settings: dict[str, Any] = {}
    if options.config is not None:
        settings = _read_toml(options.config)
    given = {
        name: getattr(options, name)
        for name in (*(s[0] for s in _SETTINGS), *(f"model.{s[0]}" for s in _SIZES))
        if getattr(options, name) is not None
    }
    if options.resume and not settings and not given:
        from arcfleet.neural.training_run import saved_settings

        return saved_settings(options.out)
    sizes = settings.setdefault("model", {})
    if not isinstance(sizes, dict):
        raise OptionError(
            f"{options.config}: expected model to be a table of sizes, got {sizes!r:.40}"
        )
    for name, value in given.items():
        if name.startswith("model."):
            sizes[name.removeprefix("model.")] = value
        else:
            settings[name] = value
    if options.init is not None and not sizes:
        from dataclasses import asdict

        from arcfleet.neural.checkpoint import load_model

        settings["model"] = asdict(load_model(options.init)[0].config)
    return settings


def _read_toml(path: Path) -> dict[str, Any]:
    import tomllib

    try:
        with path.open("rb") as stream:
            return tomllib.load(stream)
    except OSError as error:
        raise FileError(path, f"cannot be read ({error.strerror})") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FileError(path, f"expected a TOML file, found: {error}") from None
