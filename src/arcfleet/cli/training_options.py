"""Options that all kinds of training share."""

from __future__ import annotations

from argparse import ArgumentTypeError
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arcfleet.cli.options import positive_number, whole_number
from arcfleet.cli.output import print_result
from arcfleet.errors import ArcfleetError, FileError, OptionError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from arcfleet.neural.train.loop import Trained, TrainingProgress

    # Name, type, form and help of a setting that has an option; None is a switch.
    Setting = tuple[str, Callable[[str], Any] | None, str, str]

#: States of a step times arcs where the command trains on a CPU, unless told otherwise.
CPU_TOKENS = 8_000


def add_files(parser: ArgumentParser, data_help: str, *, needs_init: bool = False) -> None:
    """Describe the options that say what to read, where to write and how to run."""
    parser.add_argument(
        "--data",
        type=Path,
        nargs="+",
        required=True,
        metavar="FILE",
        help=data_help,
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
        "--config", type=Path, metavar="TOML", help="settings; options go before it"
    )
    parser.add_argument(
        "--init",
        type=Path,
        required=needs_init,
        metavar="MODEL",
        help="model file to start from",
    )
    add_running(parser)


def add_running(parser: ArgumentParser) -> None:
    """Describe the options that say where to write and how to run."""
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="folder of the run"
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
        help="of the CPU, for torch and the path optimiser; default 1",
    )
    parser.add_argument("--quiet", action="store_true", help="no progress")


def add_settings(add: Callable[..., object], settings: Iterable[Setting]) -> None:
    """Describe the options of settings."""
    for name, kind, form, text in settings:
        option = f"--{name.removeprefix('model.').replace('_', '-')}"
        if kind is None:
            add(option, dest=name, action="store_true", default=None, help=text)
        elif name == "weights":
            add(option, dest=name, type=kind, nargs="+", metavar=form, help=text)
        else:
            add(option, dest=name, type=kind, metavar=form, help=text)


def number(text: str) -> float:
    """Read a number."""
    try:
        return float(text)
    except ValueError:
        raise ArgumentTypeError(f"expected a number, got {text[:40]!r}") from None


#: Settings of every kind of training, but for the figures that differ.
COMMON: tuple[Setting, ...] = (
    ("minutes", number, "M", "end after so many minutes"),
    ("steps", positive_number, "N", "end after so many steps"),
    ("seed", whole_number, "N", "of all random choices; default 0"),
    ("route_order", str, "NAME", "order of a plan's routes; default farthest"),
    ("directions", str, "NAME", "directions of the routes; default random"),
    ("unbound", number, "SHARE", "of steps that ignore the capacity; default 0"),
    ("weights", number, "W", "how often each of --data is drawn; default all alike"),
    ("validation_instances", positive_number, "N", "of each set; default 500"),
    ("pictures", whole_number, "N", "instances drawn at validations; default 3"),
    ("checkpoint_minutes", number, "M", "default 3"),
    ("precision", str, "NAME", "auto (default), float32, bfloat16"),
    ("compile", None, "", "use torch.compile"),
)


def gather_settings(
    options: Namespace,
    names: Iterable[str],
    *,
    kind: str = "daam",
    on_cpu: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Gather the settings: of the run to resume, over them the file's, then the options.

    Parameters
    ----------
    options
        As given.
    names
        Of the settings that have options.
    kind
        Of model that is trained.
    on_cpu
        What replaces the usual values where the command trains on a CPU; by default
        `tokens`.
    """
    settings: dict[str, Any] = {}
    if options.resume:
        from arcfleet.neural.train.run import saved_settings

        settings = saved_settings(options.out)
    if options.config is not None:
        settings |= read_toml(options.config)
    given = {
        name: getattr(options, name) for name in names if getattr(options, name) is not None
    }
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
    settings = {**usual_settings(options.device, on_cpu), **settings}
    if options.init is not None:
        from arcfleet.neural.checkpoint import load_model, sizes_of

        first, _ = load_model(options.init, serves=kind)
        settings["model"] = {**sizes_of(first.config), **sizes}
    return settings


def usual_settings(
    device: str, on_cpu: Mapping[str, Any] | None = None
) -> Mapping[str, Any]:
    """Give the settings that differ from the usual ones on a device.

    Parameters
    ----------
    device
        As `choose_device` takes it.
    on_cpu
        Those for a CPU; None for those of pre-training and fine-tuning.
    """
    from arcfleet.neural.device import choose_device

    if choose_device(device).type != "cpu":
        return {}
    # A step of the usual size would take a CPU tens of seconds.
    return {"tokens": CPU_TOKENS} if on_cpu is None else on_cpu


@contextmanager
def reporting(options: Namespace) -> Iterator[Callable[[TrainingProgress], None] | None]:
    """Show how training goes while the block runs; of several processes the first does.

    Torch has `options.threads` then: its own choice, all cores, is many times slower
    where something else needs one of them.
    """
    from arcfleet.cli.training_bar import training_bar
    from arcfleet.neural.device import torch_threads
    from arcfleet.neural.train.distributed import Team, leave_team

    hidden = options.quiet or not Team.of_environment().leads
    with torch_threads(options.threads), training_bar(hidden=hidden) as bar:
        yield bar
    # Not after an error: the others may wait for this process, and it would for them.
    leave_team()


def print_outcome(result: Trained) -> int:
    """Print the gaps and the model file, and give the exit code.

    Of several processes only the first prints.

    Raises
    ------
    ArcfleetError
        If the run was interrupted.
    """
    from arcfleet.neural.train.distributed import Team

    if not Team.of_environment().leads:
        return 0 if result.finished else 1
    if not result.finished:
        raise ArcfleetError(
            f"interrupted after {result.steps} steps; the same command with --resume goes "
            "on from here"
        )
    print_gaps(result)
    minutes = result.seconds / 60
    print_result(f"{result.model_file}: {result.steps} steps in {minutes:.1f} minutes")
    return 0


def print_gaps(result: Trained) -> None:
    """Print a line for every validation set."""
    for name, gaps in result.gaps.items():
        print_result(
            f"{name}: greedy {gaps.greedy:.2f} % above the labels, "
            f"{gaps.optimised:.2f} % after the path optimiser"
        )


def read_toml(path: Path) -> dict[str, Any]:
    """Read a file of settings."""
    import tomllib

    try:
        with path.open("rb") as stream:
            return tomllib.load(stream)
    except OSError as error:
        raise FileError(path, f"cannot be read ({error.strerror})") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FileError(path, f"expected a TOML file, found: {error}") from None
