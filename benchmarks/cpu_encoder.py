"""Greedy plans on one CPU core: layers in the C++ core against layers in torch.

    python -m benchmarks.cpu_encoder FOLDER --count 12 --rounds 3

FOLDER holds the sets of `benchmarks.neural_gaps`. Both decode the same instances, one at a
time and by turns, with one thread; seconds are those of the processor. The plans should be
the same, but where a difference of rounding decides.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from arcfleet.bench.machine import commit, machine
from arcfleet.datasets import Dataset
from arcfleet.neural.batch import batch_from_arrays
from arcfleet.neural.checkpoint import load_model, model_path
from arcfleet.neural.decoding import decoding_model, greedy
from arcfleet.neural.plans import as_decoded
from arcfleet.report.tables import table
from benchmarks import run_and_exit
from benchmarks.neural_gaps import SETS

if TYPE_CHECKING:
    from arcfleet.neural.batch import ArcBatch


def main() -> None:
    """Parse the command line, measure, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    parser.add_argument("--model", default=None)
    parser.add_argument("--count", type=int, default=12, help="instances of each set")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, help="file to append JSON lines to")
    args = parser.parse_args()
    torch.set_num_threads(1)
    model, _ = load_model(model_path(args.model))
    rows = []
    for name in args.sets:
        line = measure(model, args.folder / f"{name}.npz", args.count, args.rounds)
        line = {"set": name, **line, "commit": commit(), "machine": machine()}
        if args.out is not None:
            with args.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
        torch_seconds, core_seconds = line["torch"], line["core"]
        ratio = f"{torch_seconds / core_seconds:.2f}"
        same = f"{line['same']} of {line['count']}"
        rows.append((name, f"{torch_seconds:.4f}", f"{core_seconds:.4f}", ratio, same))
    print(table(rows, ["set", "torch, s", "core, s", "ratio", "plans that cost the same"]))


def measure(model: Any, path: Path, count: int, rounds: int) -> dict[str, Any]:
    """Return the median seconds of a greedy plan by both, and how many cost the same."""
    dataset = Dataset.open(path)
    count = min(count, len(dataset))
    forms = {"torch": model, "core": decoding_model(model)}
    seconds: dict[str, list[float]] = {name: [] for name in forms}
    costs: dict[str, list[int]] = {name: [] for name in forms}
    for turn in range(rounds):
        for index in range(count):
            dimensions = model.config.mds_dimensions
            arrays = dataset.padded([index])
            batch = batch_from_arrays(arrays, device="cpu", mds_dimensions=dimensions)
            for name, form in forms.items():
                spent, cost = _decode(form, batch)
                seconds[name].append(spent)
                if turn == 0:
                    costs[name].append(cost)
    same = sum(one == other for one, other in zip(*costs.values(), strict=True))
    medians = {name: round(statistics.median(x), 5) for name, x in seconds.items()}
    return {**medians, "same": same, "count": count, "rounds": rounds}


@torch.inference_mode()
def _decode(model: Any, batch: ArcBatch) -> tuple[float, int]:
    started = time.process_time()
    rollout = greedy(model, batch)
    spent = time.process_time() - started
    return spent, int(as_decoded(batch, rollout).costs[0, 0])


if __name__ == "__main__":
    run_and_exit(main)
