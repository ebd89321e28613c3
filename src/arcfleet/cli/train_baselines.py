"""`arcfleet train s2v-dqn` and `vrp-dl`: train the baselines."""

from __future__ import annotations

from argparse import RawDescriptionHelpFormatter
from functools import partial
from typing import TYPE_CHECKING

from arcfleet.cli.options import positive_number, whole_number
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
    from collections.abc import Mapping

    from arcfleet.cli.options import Commands
    from arcfleet.cli.training_options import Setting

_EXAMPLES = """\
examples:
  arcfleet train {kind} --data task20-train.npz task50-train.npz \\
      --validation task20-validation.npz --minutes 20 --out runs/{kind}
  arcfleet solve streets.dat --method {kind} --model runs/{kind}/model.safetensors

A run that was stopped by Ctrl-C, SIGTERM or a kill goes on with the same command and
--resume, and so does one that ended if --minutes or --steps is larger than before.
"""

# Labelled plans, tours and bfloat16 are not for the baselines.
_NOT_THEIRS = ("route_order", "directions", "unbound", "precision")
_SHARED: tuple[Setting, ...] = (
    *(setting for setting in COMMON if setting[0] not in _NOT_THEIRS),
    ("learning_rate", number, "R", "default 1e-3"),
    ("warm_up_steps", whole_number, "N", "default 20"),
    ("average_decay", number, "D", "of the mean of the weights; default 0.99"),
    ("validations", whole_number, "N", "over the whole run; default 4"),
    ("log_steps", positive_number, "N", "steps per line of metrics; default 10"),
)
_S2V_DQN: tuple[Setting, ...] = (
    *_SHARED,
    (
        "rollout_tokens",
        positive_number,
        "N",
        "plans of a step times arcs; default 400000, CPU: 4000",
    ),
    ("updates", positive_number, "N", "of the weights in a step; default 32, CPU: 16"),
    ("moments", positive_number, "N", "choices drawn of each plan; default 4"),
    (
        "tokens",
        positive_number,
        "N",
        "choices of an update times arcs; default 200000, CPU: 4000",
    ),
    ("n_steps", positive_number, "N", "steps summed before the estimate; default 5"),
    (
        "replay_plans",
        positive_number,
        "N",
        "held of each data set; default 20000, CPU: 2000",
    ),
    ("target_updates", positive_number, "N", "between new target networks; default 100"),
    ("epsilon_start", number, "E", "chance of a random choice at first; default 1"),
    ("epsilon_end", number, "E", "and at last; default 0.05"),
    ("epsilon_share", number, "S", "share of the run in which it falls; default 0.5"),
)
_VRP_DL: tuple[Setting, ...] = (
    *_SHARED,
    ("moments", positive_number, "N", "choices of each plan; default 16"),
    (
        "tokens",
        positive_number,
        "N",
        "choices of a step times arcs; default 4000000, CPU: 40000",
    ),
    ("critic_weight", number, "W", "of the critic's loss; default 1"),
)
_SIZES: dict[str, tuple[Setting, ...]] = {
    "s2v-dqn": (
        ("model.width", positive_number, "N", "default 64"),
        ("model.layers", positive_number, "N", "rounds of graph attention; default 3"),
        ("model.heads", positive_number, "N", "of each round; default 1"),
        ("model.mds_dimensions", whole_number, "N", "default 8"),
    ),
    "vrp-dl": (
        ("model.width", positive_number, "N", "default 128"),
        ("model.mds_dimensions", whole_number, "N", "default 8"),
    ),
}
_SETTINGS = {"s2v-dqn": _S2V_DQN, "vrp-dl": _VRP_DL}
_ABOUT = {
    "s2v-dqn": "the values of choices (Khalil et al. 2017, with graph attention)",
    "vrp-dl": "a recurrent decoder that points (Nazari et al. 2018)",
}
_ON_CPU: dict[str, Mapping[str, int]] = {
    "s2v-dqn": {
        "rollout_tokens": 4_000,
        "tokens": 4_000,
        "updates": 16,
        # As many steps' worth as on a GPU: older plans are those of another policy.
        "replay_plans": 2_000,
    },
    "vrp-dl": {"tokens": 40_000},
}


def add_baselines(actions: Commands) -> None:
    """Describe the commands."""
    for kind, about in _ABOUT.items():
        parser = actions.add_parser(
            kind,
            help=f"a baseline: {about}",
            description=f"Train a baseline from its own plans: {about}.",
            epilog=_EXAMPLES.format(kind=kind),
            formatter_class=RawDescriptionHelpFormatter,
        )
        add_files(parser, "data sets to learn from; labels are not needed")
        add_settings(parser.add_argument_group("settings").add_argument, _SETTINGS[kind])
        sizes = parser.add_argument_group("sizes of the model")
        add_settings(sizes.add_argument, _SIZES[kind])
        parser.set_defaults(run=partial(run, kind))


def run(kind: str, options: Namespace) -> int:
    """Run `arcfleet train s2v-dqn` or `arcfleet train vrp-dl`."""
    from arcfleet.neural.checkpoint import require_packages

    require_packages("training")
    from arcfleet.neural.train.config import config_of
    from arcfleet.paper.baselines.train import TRAININGS, train_baseline

    names = [setting[0] for setting in (*_SETTINGS[kind], *_SIZES[kind])]
    settings = gather_settings(options, names, kind=kind, on_cpu=_ON_CPU[kind])
    config = config_of(TRAININGS[kind], settings)
    with reporting(options) as bar:
        result = train_baseline(
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
