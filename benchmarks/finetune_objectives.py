r"""Objectives of fine-tuning at equal time, from one model, over several seeds.

    python -m benchmarks.finetune_objectives --init MODEL --data train-20.npz train-50.npz \
        --validation validation-20.npz validation-50.npz --minutes 1 --seeds 1 2 3 \
        --learning-rates 3e-5 1e-4 --device cuda --out objectives

One run after the other, so that each has the device for itself; all objectives of a seed
come before the next seed. On a GPU a step of each is made before any is timed, since the
first compiles kernels. Finished runs stand as lines in the folder and are not made again:
what was stopped goes on with the same command, and the table has all lines of the folder.

Validation sets have their labels beside them. Validating once before the first step is part
of the minutes, the last time is not. "ppo" tests its baseline on the same sets.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from contextlib import suppress
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
from arcfleet.neural.out_of_memory import OutOfMemoryError
from arcfleet.neural.training_progress import Trained
from arcfleet.neural.training_start import checksum
from arcfleet.neural.validation import validate
from arcfleet.report.tables import table
from benchmarks.draw_settings import gap
from benchmarks.machine import describe, run_and_exit

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from arcfleet.neural.daam import Daam
    from arcfleet.neural.labelled_set import LabelledSet

    Gaps = dict[str, float]
    Line = dict[str, Any]

_FORMAT = "arcfleet-objectives-1"
BEFORE = "before"
COPIES = 32
# Of steps like those of the shipped model's last runs, but always under the capacity.
_SAMPLES = FinetuneConfig(copies=16, moments=24, tokens=2_500_000, steps=1, pictures=0)
# These and "imitate-best" as in the first comparison of the training log.
_PPO = replace(
    _SAMPLES, objective="ppo", temperature=0.3, copies=4, moments=4, tokens=1_000_000
)
COMPARED: dict[str, FinetuneConfig] = {
    "samples": _SAMPLES,
    "best-of-4": replace(_SAMPLES, best_of=4),
    "self-critical": replace(_SAMPLES, objective="self-critical", temperature=0.3),
    "ppo": _PPO,
    "ppo-standardised": replace(_PPO, standardise=True),
    "imitate-best": replace(
        _SAMPLES,
        objective="imitate-best",
        temperature=0.3,
        moments=8,
        tokens=250_000,
        lessons=30,
    ),
}


def best_of_drawn(model: Daam, validation: Sequence[LabelledSet], threads: int) -> Gaps:
    """Give the gap of the best of 32 samples, by the name of the set."""
    setting, policy = (None, VIEWS, TOUR_SHARE), fast_policy(model)
    with torch.inference_mode():
        return {
            labelled.name: gap(policy, labelled, setting, COPIES, 0, threads)
            for labelled in validation
        }


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
        files = (options.init, *options.data, *options.validation)
        self._of = {
            "files": {str(path): checksum(path) for path in files},
            "device": device_name(self.device),
            "validation_instances": options.validation_instances,
            "minutes": options.minutes,
            "steps": options.steps,
            "size": options.size,
            "settings": {
                name: json.loads(json.dumps(config.as_facts()))
                for name, config in COMPARED.items()
            },
        }
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
            gaps = {
                each.name: validate(decoding_model(self.first), each)[0]
                for each in self.validation
            }
            first = Trained(
                model_file=options.init, finished=True, steps=0, seconds=0.0, gaps=gaps
            )
            self._add((BEFORE, 0.0, 0), first)
        wanted = product(options.seeds, options.learning_rates, options.objectives)
        missing = [run for run in wanted if not self._has(run[2], run[1], run[0])]
        if self.device.type == "cuda":
            self._warm_up({name for _, _, name in missing})
        complete = True
        for seed, rate, name in missing:
            try:
                result = self._run(name, rate, seed)
            except OutOfMemoryError as error:
                print(f"{name} was left out: {error}; or a smaller --size", file=sys.stderr)
                complete = False
                continue
            if not result.finished:
                return False
            self._add((name, rate, seed), result)
        return complete

    def _warm_up(self, names: Collection[str]) -> None:
        """Make one step of each objective and scale, so that all kernels are there."""
        for name, path in product(sorted(names), self.options.data):
            with tempfile.TemporaryDirectory() as folder, suppress(OutOfMemoryError):
                config = replace(self._config(name, 1e-9, 0), steps=1, minutes=None)
                self._finetune(Path(folder) / "run", config, [path], most_sets=1)

    def _run(self, name: str, rate: float, seed: int) -> Trained:
        config = self._config(name, rate, seed)
        folder = self.options.out / f"{name}-{rate:g}-{seed}"
        return self._finetune(folder, config, self.options.data)

    def _config(self, name: str, rate: float, seed: int) -> FinetuneConfig:
        options, usual = self.options, COMPARED[name]
        return replace(
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

    def _finetune(
        self,
        folder: Path,
        config: FinetuneConfig,
        data: Sequence[Path],
        most_sets: int | None = None,
    ) -> Trained:
        if self.device.type == "cuda":
            torch.cuda.empty_cache()  # the run before had other shapes
        return finetune(
            folder,
            config,
            init=self.options.init,
            data=data,
            validation=self.options.validation[:most_sets],
            device=self.options.device,
            resume=(folder / "config.json").exists(),
            threads=self.options.threads,
        )

    def _has(self, name: str, rate: float, seed: int) -> bool:
        wanted = [name, rate, seed]
        return any(
            [line["objective"], line["learning_rate"], line["seed"]] == wanted
            for line in self.lines
        )

    def _add(self, run: tuple[str, float, int], result: Trained) -> None:
        model, _ = load_model(result.model_file, self.device)
        drawn = best_of_drawn(model, self.validation, self.options.threads)
        name, rate, seed = run
        line = {
            "format": _FORMAT,
            "of": self._of,
            "objective": name,
            "learning_rate": rate,
            "seed": seed,
            "steps": result.steps,
            "seconds": round(result.seconds, 1),
            "gaps": {each: [*result.gaps[each], drawn[each]] for each in drawn},
            "where": describe(),
        }
        self.lines.append(line)
        self._file.add(f"{json.dumps(line)}\n".encode())
        print(
            f"{name} {rate:g} seed {seed}: {result.steps} steps, {line['gaps']}",
            file=sys.stderr,
        )


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
        "--objectives", choices=list(COMPARED), nargs="+", default=list(COMPARED)
    )
    parser.add_argument("--learning-rates", type=float, nargs="+", default=[3e-5])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    end = parser.add_mutually_exclusive_group(required=True)
    end.add_argument("--minutes", type=float, help="of each run")
    end.add_argument("--steps", type=int, help="of each run")
    parser.add_argument(
        "--size", type=float, default=1.0, help="share of a step's usual arcs; default 1"
    )
    parser.add_argument("--device", default="auto")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    with torch_threads(options.threads), working_on(choose_device(options.device)):
        comparison = Comparison(options)
        complete = comparison.go()
    print(describe())
    minutes, steps = options.minutes, options.steps
    length = f"{steps} steps" if minutes is None else f"{minutes:g} minutes"
    print(f"mean gaps to the labels in percent after {length}: of all seeds, of each")
    print(table(*rows_of(comparison.lines)))
    if not complete:
        print("some runs are missing; the same command goes on", file=sys.stderr)
    return 0 if complete else 1


if __name__ == "__main__":
    run_and_exit(main)
