"""Fuzzing one reader where atheris is installed: files that reach new lines are damaged on.

    python -m tests.fuzz.guided READER --seconds 60 --out out/fuzz

The damage is that of `tests.fuzz.mutate`; atheris keeps what leads somewhere new. It ends
with the first finding, which is in the folder. `python -m tests.fuzz --guided` does so for
all readers.
"""

import argparse
import gc
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from types import FunctionType

import atheris

from tests.fuzz.mutate import damaged
from tests.fuzz.readers import READERS
from tests.fuzz.run import MEMORY, SECONDS, read_one, write_files


def instrument() -> None:
    """Let atheris see which lines of arcfleet run, also where it is installed editable."""
    for thing in gc.get_objects():
        if isinstance(thing, FunctionType) and str(thing.__module__).startswith("arcfleet"):
            atheris.instrument_func(thing)


def main() -> None:
    """Fuzz a reader; libFuzzer ends the process with 77 at a finding."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.guided")
    parser.add_argument("reader", choices=READERS)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--out", type=Path, default=Path("out/fuzz"))
    options = parser.parse_args()
    reader = READERS[options.reader]
    folder = Path(tempfile.mkdtemp())
    corpus = Path(tempfile.mkdtemp())
    samples = reader.samples()
    for sample in samples:  # some modules are imported by the first file
        write_files(folder, sample.files)
        reader.read(folder / sample.named)
    instrument()
    # Each file that may be damaged, with the sample that it belongs to.
    targets = [(sample, name) for sample in samples for name in sorted(sample.kinds)]
    for number, (sample, name) in enumerate(targets):
        (corpus / str(number)).write_bytes(bytes([number]) + sample.files[name])

    def mutated(data: bytes, most: int, seed: int) -> bytes:
        number = (data[0] if data else seed) % len(targets)
        sample, name = targets[number]
        try:
            new = damaged(Random(seed), data[1:], sample.kinds[name])
        except Exception:  # what was damaged before is no longer what the mutator knows
            new = data[1:]
        return bytes([number]) + new[: most - 1]

    def read(data: bytes) -> None:
        if not data:
            return
        sample, name = targets[data[0] % len(targets)]
        files = {**sample.files, name: data[1:]}
        write_files(folder, files)
        said = read_one(reader, folder, sample.named)
        if said is not None:
            found = options.out / f"{reader.name}-guided-{options.seed}"
            found.mkdir(parents=True, exist_ok=True)
            write_files(found, files)
            raise AssertionError(f"{said} -> {found}")

    options.out.mkdir(parents=True, exist_ok=True)
    words = [
        f"-max_total_time={options.seconds}",
        f"-seed={options.seed % 2**31 or 1}",
        f"-timeout={6 * SECONDS:.0f}",  # of the clock, which other programs prolong
        f"-rss_limit_mb={2 * MEMORY >> 20}",
        f"-artifact_prefix={options.out}/{reader.name}-",
        "-max_len=1000000",
        "-print_final_stats=1",
    ]
    atheris.Setup([sys.argv[0], *words, str(corpus)], read, custom_mutator=mutated)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
