"""The commands of `arcfleet paper`, one line each.

The module of a command has a frozen dataclass `Config` with all inputs of the command as
fields, and `run(config, watch)`, which does everything and returns an outcome with `text()`
to print and `facts()` for JSON. A module is imported only when its command is called.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from arcfleet.neural.train.loop import TrainingProgress


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """Callbacks of a command that takes long."""

    # Callback with the number of plans made and the number of all.
    progress: Callable[[int, int], None] | None = None
    # Function from the name of a training run to the callback that hears of it.
    training: Callable[[str], Callable[[TrainingProgress], None] | None] = lambda _: None
    note: Callable[[str], None] = lambda _: None  # callback with a line for people


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperCommand:
    """A command."""

    name: str  # word on the command line
    summary: str  # description in one line, without a full stop
    module: str  # module with `Config` and `run`
    examples: str = ""  # examples, shown below the options


_ROWS = """\
rows: NAME, NAME=NUMBER (plans, iterations or samples), sample=NUMBER@TEMPERATURE
  ps ps-ellipse ps-efficiency ps-alt1 ps-alt2            path scanning
  s2v-dqn vrp-dl daam-sl daam-sl-rl daam-po              learned, as in the paper
  daam-greedy daam sample daam-sample                    learned, ours
  maens ruin-recreate                                    searches
"""

#: Every command.
COMMANDS: tuple[PaperCommand, ...] = (
    PaperCommand(
        name="train",
        summary="train a model of the paper by the paper's recipe",
        module="arcfleet.paper.train",
        examples="""\
examples:
  arcfleet paper train --maps maps --out runs/paper --workers 16
  arcfleet paper train s2v-dqn --maps maps --out runs/s2v-dqn

The same command with --resume resumes after Ctrl-C, a kill or the end of --minutes.
""",
    ),
    PaperCommand(
        name="table",
        summary="the main table: costs and gaps of all methods at all scales",
        module="arcfleet.paper.table",
        examples=f"""\
examples:
  arcfleet paper table task20-test.npz task100-test.npz --workers 8 --out results
  arcfleet paper table task*-test.npz --rows daam-sl daam-sl-rl daam-po maens=5000 \\
      --models daam-sl=sl.safetensors daam=rl.safetensors --device cuda --count 0 \\
      --no-figures --out gpu
  arcfleet paper report table results gpu --out joined
  arcfleet paper table task20-test.npz --shard 3/10 --out parts/3
  arcfleet merge results/runs.jsonl parts/*/runs.jsonl

{_ROWS}
Labels beside a set, or of a smaller set that is its beginning (--labelled), count among
the best known. MAENS takes hours at its 90,000 iterations and is run only if asked for.
""",
    ),
    PaperCommand(
        name="runtime",
        summary="run times of one instance and of many at once",
        module="arcfleet.paper.runtime",
        examples=f"""\
example:
  arcfleet paper runtime task20-test.npz task100-test.npz --out results

{_ROWS}""",
    ),
    PaperCommand(
        name="pareto",
        summary="gap against time at one scale: which method when",
        module="arcfleet.paper.pareto",
        examples=f"""\
example:
  arcfleet paper pareto task60-test.npz --out results

{_ROWS}""",
    ),
    PaperCommand(
        name="generalise",
        summary="models on scales and cities that they were not trained on",
        module="arcfleet.paper.generalise",
        examples="""\
example:
  arcfleet paper generalise rome-task20-test.npz --models beijing=daam.safetensors \\
      --seen beijing_5ring --out results
""",
    ),
    PaperCommand(
        name="ablation",
        summary="MDS, GAT and both as inputs of the model, at equal training",
        module="arcfleet.paper.ablation",
        examples="""\
example:
  arcfleet paper ablation task30-test.npz task40-test.npz --device cuda \\
      --data task30-train.npz task40-train.npz \\
      --validation task30-validation.npz task40-validation.npz \\
      --pretrain-minutes 10 --finetune-minutes 10 --out results
""",
    ),
    PaperCommand(
        name="convergence",
        summary="validation gaps of training runs against steps and minutes",
        module="arcfleet.paper.convergence",
        examples="""\
example:
  arcfleet paper convergence mds=runs/mds both=runs/both --out results
""",
    ),
    PaperCommand(
        name="scenes",
        summary="plans of street scenes by several methods, side by side",
        module="arcfleet.paper.scenes",
        examples="""\
example:
  arcfleet scene maps/beijing_5ring --around 116.40,39.90,700 --capacity 100 \\
      --demand 5-10 --ignore-one-way --merge 15 -o centre.json
  arcfleet paper scenes centre.json --methods ps daam maens=5000 --out results
""",
    ),
    PaperCommand(
        name="report",
        summary="tables and figures from files of costs, perhaps of several machines",
        module="arcfleet.paper.reports",
        examples="""\
example:
  arcfleet paper report table cpu gpu --out joined
""",
    ),
)
