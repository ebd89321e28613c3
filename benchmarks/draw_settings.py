r"""The best of some drawn plans by temperature, views and share of tours.

    python -m benchmarks.draw_settings validation-40.npz ... --device cuda \
        --temperatures 0.5 0.7 --views 8 32 --tour-shares 0 0.5 --seeds 0 1

Each data set has its labels beside it. What `daam-sample` does without being told was
chosen by such tables, never on test sets.
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from arcfleet.neural.checkpoint import load_model
from arcfleet.neural.cuda_graph import fastest_wrap
from arcfleet.neural.draws import TOUR_SHARE, VIEWS, draw_parts
from arcfleet.neural.fast_policy import fast_policy
from arcfleet.neural.gumbel import draw_seeds
from arcfleet.neural.labelled_set import open_labelled
from arcfleet.neural.plans import best, merge
from arcfleet.neural.shipped import shipped_model
from arcfleet.report.tables import table
from benchmarks.machine import describe, run_and_exit

if TYPE_CHECKING:
    from arcfleet.neural.fast_policy import FastPolicy
    from arcfleet.neural.labelled_set import LabelledSet

# None for what `usual_temperature` says.
Setting = tuple[float | None, int, float]


def gap(
    policy: FastPolicy,
    labelled: LabelledSet,
    setting: Setting,
    copies: int,
    seed: int,
    threads: int,
) -> float:
    """Mean gap of the cheapest of the drawn plans to the labels, in percent."""
    temperature, views, tour_share = setting
    batch = labelled.batch
    seeds = draw_seeds(len(batch), torch.Generator().manual_seed(seed))
    parts = draw_parts(
        policy,
        batch,
        copies,
        seeds,
        temperature=temperature,
        views=views,
        tour_share=tour_share,
        threads=threads,
        wrap=fastest_wrap(batch.real.device),
    )
    found = best(merge(*parts)).costs[:, 0]
    costs = torch.as_tensor(found).double() / labelled.plans.cost.cpu()
    return 100 * (costs.mean().item() - 1)


def main() -> None:
    """Print a row for each setting, a column for each data set: means over the seeds."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sets", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--model", type=Path, help="default the one of the package")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--count", type=int, help="instances of each set; default all")
    parser.add_argument("--copies", type=int, default=32)
    parser.add_argument("--temperatures", type=float, nargs="+", default=[None])
    parser.add_argument("--views", type=int, nargs="+", default=[VIEWS])
    parser.add_argument("--tour-shares", type=float, nargs="+", default=[TOUR_SHARE])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--threads", type=int, default=1, help="of the path optimiser")
    options = parser.parse_args()
    model, _ = load_model(options.model or shipped_model("daam"), options.device)
    policy = fast_policy(model)
    sets = [
        open_labelled(
            path,
            options.device,
            mds_dimensions=model.config.mds_dimensions,
            most=options.count,
        )
        for path in options.sets
    ]
    rows = []
    for setting in product(options.temperatures, options.views, options.tour_shares):
        columns = []
        for labelled in sets:
            gaps = [
                gap(policy, labelled, setting, options.copies, seed, options.threads)
                for seed in options.seeds
            ]
            columns.append(f"{sum(gaps) / len(gaps):.3f}")
        heat, *others = setting
        rows.append(("usual" if heat is None else heat, *others, *columns))
    print(describe())
    print(f"mean gap in percent to the labels, best of {options.copies}")
    print(table(rows, ("temperature", "views", "tours", *(each.name for each in sets))))


if __name__ == "__main__":
    run_and_exit(main)
