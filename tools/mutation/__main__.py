"""Show samples of mutants to the tests: `python -m tools.mutation checker --sample 100`."""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from tools.mutation.core import show_core
from tools.mutation.mutants import Mutant, mutants
from tools.mutation.run import KILLED, OUT, ROOT, TIMEOUT, Outcome, run_mutants

if TYPE_CHECKING:
    from collections.abc import Sequence


class Part(NamedTuple):
    """Modules that are mutated, some only in these functions, and their tests."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]


PARTS = {
    "checker": Part(
        ("solution/checker.py", "solution/checker_driving.py"),
        (
            *(
                f"tests/solution/test_checker{name}.py"
                for name in ("", "_fleet", "_goes_on", "_operations", "_path", "_turns")
            ),
            "tests/solution/test_travel.py",
        ),
    ),
    "split": Part(
        ("search/split.py",),
        ("tests/search/test_split.py", "tests/search/test_trip_split.py"),
    ),
    "masks": Part(
        (
            "neural/env.py",
            "neural/decoding.py:_Loop.step_on,_Greedy,_Sampling,_Beam,_chosen,"
            "_without_replacement,_initial_carry,_at_beams,_follow",
        ),
        ("tests/neural/test_env.py", "tests/neural/test_decoding.py"),
    ),
    "readers": Part(
        (
            "instance/files.py",
            "instance/formats/carplib.py",
            "instance/formats/dialect.py",
            "instance/formats/json_format.py",
            "instance/formats/json_operations.py",
            "instance/formats/keyed_text.py",
            "instance/formats/mcarp.py",
            "instance/formats/strict_json.py",
            "solution/files.py",
            "solution/json_solution.py",
            "solution/text_solution.py",
        ),
        (
            "tests/instance",
            "tests/solution/test_solution_files.py",
        ),
    ),
    "rules": Part(
        (
            "instance/diagnose.py",
            "instance/diagnose_fleet.py",
            "instance/operations.py",
            "instance/turns.py",
            "streets/restrictions.py",
            "streets/turns.py",
        ),
        (
            "tests/instance/test_diagnose.py",
            "tests/instance/test_diagnose_fleet.py",
            "tests/instance/test_instance.py",
            "tests/instance/test_operations.py",
            "tests/instance/test_turns.py",
            "tests/streets/test_restrictions.py",
            "tests/streets/test_turns.py",
        ),
    ),
}


def main() -> None:
    """Show a sample of the mutants of each part to its tests."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "parts",
        nargs="*",
        metavar="PART",
        help=f"{', '.join(PARTS)} or core (Split in C++); all of them by default",
    )
    parser.add_argument("--sample", type=int, help="most mutants per part; default: all")
    parser.add_argument("--seed", type=int, default=1, help="seed of the sample")
    parser.add_argument("--only", help="only modules with this in their name")
    options = parser.parse_args()
    os.chdir(ROOT)
    os.nice(15)
    for name in options.parts or (*PARTS, "core"):
        if name == "core":
            show_core(options.sample, options.seed)
            continue
        modules, tests = PARTS[name]
        found = [
            mutant
            for module in modules
            if not options.only or options.only in module
            for mutant in _mutants(module)
        ]
        chosen = found
        if options.sample and options.sample < len(found):
            chosen = random.Random(options.seed).sample(found, options.sample)
        _show_part(name, len(found), chosen, tests)


def _mutants(module: str) -> list[Mutant]:
    file, _, names = module.partition(":")
    wanted = set(names.split(","))
    return [
        mutant
        for mutant in mutants(ROOT / "src" / "arcfleet" / file)
        if not names or {mutant.function, mutant.function.split(".")[0]} & wanted
    ]


def _show_part(
    name: str, all_mutants: int, chosen: Sequence[Mutant], tests: Sequence[str]
) -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    outcomes: list[Outcome] = []
    started = time.monotonic()
    with (OUT / f"{name}.jsonl").open("w", buffering=1) as file:

        def report(outcome: Outcome) -> None:
            outcomes.append(outcome)
            file.write(outcome.line() + "\n")

        run_mutants(chosen, tests, report)
    fates = Counter(outcome.fate for outcome in outcomes)
    killed = fates[KILLED] + fates[TIMEOUT]
    for outcome in outcomes:
        if outcome.fate not in {KILLED, TIMEOUT}:
            place = f"{outcome.mutant.path.relative_to(ROOT)}:{outcome.mutant.line}"
            print(f"{place}: {outcome.mutant.change}: {outcome.fate}")
    print(
        f"{name}: {killed} of {len(outcomes)} killed ({fates[TIMEOUT]} by their time), "
        f"sampled from {all_mutants}, {time.monotonic() - started:.0f} s"
    )
    sys.stdout.flush()


if __name__ == "__main__":
    main()
