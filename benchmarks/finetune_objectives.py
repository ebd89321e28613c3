r"""Objectives of fine-tuning at equal time, from one model, over several seeds.

    python -m benchmarks.finetune_objectives --init MODEL --data train-20.npz train-50.npz \
        --validation validation-20.npz validation-50.npz --minutes 1 --seeds 1 2 3 \
        --learning-rates 3e-5 1e-4 --device cuda --out objectives

One run after the other, so that each has the device for itself; all objectives of a seed
come before the next seed. Finished runs stand as lines in the folder and are not made
again: what was stopped goes on with the same command, and the table has all lines of the
folder. Validation sets have their labels beside them.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from arcfleet.experiments.line_file import LineFile
from arcfleet.neural.checkpoint import load_model
from arcfleet.neural.device import choose_device, torch_threads, working_on
from arcfleet.neural.draws import TOUR_SHARE, VIEWS
from arcfleet.neural.evaluation import device_name
from arcfleet.neural.fast_policy import decoding_model, fast_policy
from arcfleet.neural.finetune import finetune
from arcfleet.neural.finetune_config import FinetuneConfig
from arcfleet.neural.labelled_set import open_labelled
from arcfleet.neural.training_start import checksum
from arcfleet.neural.validation import validate
from arcfleet.report.tables import table
from benchmarks.draw_settings import gap
from benchmarks.machine import describe, finish

if TYPE_CHECKING:
    from collections.abc import Sequence

    from arcfleet.neural.daam import Daam
    from arcfleet.neural.labelled_set import LabelledSet

Line = dict[str, Any]

_FORMAT = "arcfleet-objectives-1"
BEFORE = "before"
COPIES = 32
#: As the shipped model was fine-tuned, and what suited the others in trials.
_MANY = FinetuneConfig(copies=16, moments=24, tokens=2_500_000, steps=1, pictures=0)
_PPO = replace(
    _MANY, objective="ppo", temperature=0.3, copies=4, moments=4, tokens=1_000_000
)
OBJECTIVES: dict[str, FinetuneConfig] = {
    "samples": _MANY,
    "best-of-4": replace(_MANY, best_of=4),
    "self-critical": replace(_MANY, objective="self-critical", temperature=0.3),
    "ppo": _PPO,
    "ppo-standardised": replace(_PPO, standardise=True),
    "imitate-best": replace(
        _MANY,
        objective="imitate-best",
        temperature=0.3,
        moments=8,
        tokens=250_000,
        lessons=30,
    ),
}


def measure(
    model: Daam, validation: Sequence[LabelledSet], threads: int
) -> dict[str, list[float]]:
    """Give the gaps of each set: greedy, after the path optimiser, best of 32."""
    policy = fast_policy(model)
    found = {}
    for labelled in validation:
        gaps, _ = validate(decoding_model(model), labelled, threads=threads)
        drawn = gap(policy, labelled, (None, VIEWS, TOUR_SHARE), COPIES, 0, threads)
        found[labelled.name] = [*gaps, drawn]
    return found


def rows_of(lines: Sequence[Line]) -> tuple[list[tuple[object, ...]], list[str]]:
    """Give the cells of the table, and its header: means over the seeds, and each."""
    groups: dict[tuple[str, float], list[Line]] = {}
    for line in lines:
        groups.setdefault((line["objective"], line["learning_rate"]), []).append(line)
    sets = list(lines[0]["gaps"])
    rows = []
    for (name, rate), group in groups.items():
        steps = [line["steps"] for line in group]
        cells: list[object] = [
            name,
            rate or None,
            len(group),
            round(statistics.mean(steps)),
        ]
        for each in sets:
            for column, digits in enumerate((2, 2, 3)):
                values = [line["gaps"][each][column] for line in group]
                mean = f"{statistics.mean(values):.{digits}f}"
                seeds = " ".join(f"{value:.{digits}f}" for value in values)
                cells.append(mean if len(values) == 1 else f"{mean}: {seeds}")
        rows.append(tuple(cells))
    kinds = ("greedy", "optimised", f"best of {COPIES}")
    header = [f"{each} {kind}" for each in sets for kind in kinds]
    return rows, ["objective", "rate", "seeds", "steps", *header]


class Comparison:
    """All runs of a comparison, and the lines that they left."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.device = choose_device(options.device)
        model, _ = load_model(options.init, self.device)
        self.first: Daam = model
        self.validation = [
            open_labelled(
                path,
                self.device,
                mds_dimensions=model.config.mds_dimensions,
                most=options.validation_instances,
            )
            for path in options.validation
        ]
        ends = {"minutes": options.minutes, "steps": options.steps, "size": options.size}
        files = [str(path) for path in (*options.data, *options.validation)]
        self._of = {"init": checksum(options.init), "files": files, **ends}
        options.out.mkdir(parents=True, exist_ok=True)
        path = options.out / "objectives.jsonl"
        self._file = LineFile(path, _FORMAT, "a run of this comparison")
        self.lines: list[Line] = [json.loads(line) for line in self._file.lines]
        for number, line in enumerate(self.lines, start=1):
            if line.get("of") != self._of:
                self._file.refuse(number)

    def go(self) -> bool:
        """Make what is missing; say whether all is there."""
        self._file.open()
        try:
            return self._make_all()
        finally:
            self._file.close()

    def _make_all(self) -> bool:
        options = self.options
        if not self._has(BEFORE, 0.0, 0):
            self._add(BEFORE, 0.0, 0, steps=0, seconds=0.0, model=self.first)
        for seed, rate, name in product(
            options.seeds, options.learning_rates, options.objectives
        ):
            if not self._has(name, rate, seed) and not self._run(name, rate, seed):
                return False
        return True

    def _run(self, name: str, rate: float, seed: int) -> bool:
        options, usual = self.options, OBJECTIVES[name]
        config = replace(
            usual,
            model=self.first.config,
            learning_rate=rate,
            seed=seed,
            minutes=options.minutes,
            steps=options.steps,
            tokens=max(1, round(options.size * usual.tokens)),
            rollout_tokens=max(1, round(options.size * usual.rollout_tokens)),
            validation_instances=options.validation_instances,
            validations=0,
        )
        folder = options.out / f"{name}-{rate:g}-{seed}"
        # "ppo" tests its baseline on the validation sets.
        result = finetune(
            folder,
            config,
            init=options.init,
            data=options.data,
            validation=options.validation,
            device=options.device,
            resume=(folder / "config.json").exists(),
            threads=options.threads,
        )
        if not result.finished:
            return False
        model, _ = load_model(result.model_file, self.device)
        self._add(name, rate, seed, result.steps, result.seconds, model)
        if self.device.type == "cuda":
            torch.cuda.empty_cache()  # the next run has other shapes
        return True

    def _has(self, name: str, rate: float, seed: int) -> bool:
        wanted = [name, rate, seed]
        return any(
            [line["objective"], line["learning_rate"], line["seed"]] == wanted
            for line in self.lines
        )

    def _add(
        self, name: str, rate: float, seed: int, steps: int, seconds: float, model: Daam
    ) -> None:
        with torch.inference_mode():
            gaps = measure(model, self.validation, self.options.threads)
        line = {
            "format": _FORMAT,
            "of": self._of,
            "objective": name,
            "learning_rate": rate,
            "seed": seed,
            "steps": steps,
            "seconds": round(seconds, 1),
            "gaps": gaps,
            "device": device_name(self.device),
            "where": describe(),
        }
        self.lines.append(line)
        self._file.add(f"{json.dumps(line)}\n".encode())
        print(f"{name} {rate:g} seed {seed}: {steps} steps, {gaps}", file=sys.stderr)


def main() -> int:
    """Make what is missing and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--init", type=Path, required=True)
    parser.add_argument("--data", type=Path, nargs="+", required=True)
    parser.add_argument("--validation", type=Path, nargs="+", required=True)
    parser.add_argument("--validation-instances", type=int, default=256)
    parser.add_argument(
        "--objectives", choices=list(OBJECTIVES), nargs="+", default=list(OBJECTIVES)
    )
    parser.add_argument("--learning-rates", type=float, nargs="+", default=[3e-5])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    end = parser.add_mutually_exclusive_group(required=True)
    end.add_argument("--minutes", type=float, help="of each run")
    end.add_argument("--steps", type=int, help="of each run")
    parser.add_argument("--size", type=float, default=1.0, help="of steps, as a share")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    with torch_threads(options.threads), working_on(choose_device(options.device)):
        comparison = Comparison(options)
        complete = comparison.go()
    print(describe())
    end_of_runs = (
        f"{options.steps} steps"
        if options.minutes is None
        else (f"{options.minutes:g} minutes")
    )
    print(f"mean gaps to the labels in percent after {end_of_runs}: of all seeds, of each")
    print(table(*rows_of(comparison.lines)))
    if not complete:
        print("stopped; the same command goes on", file=sys.stderr)
    return 0 if complete else 1


if __name__ == "__main__":
    finish(main)
