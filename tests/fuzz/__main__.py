"""`make fuzz`: damaged files for every reader, for as long as you like."""

import argparse
import sys
import time
from pathlib import Path

from tests.fuzz.readers import READERS
from tests.fuzz.run import Finding, fuzz, write_files


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument(
        "--seconds", type=float, default=3600, help="for all readers together"
    )
    parser.add_argument("--count", type=int, default=10**9, help="files for each reader")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--out", type=Path, default=Path("out/fuzz"), help="for findings")
    parser.add_argument("--readers", nargs="+", choices=READERS, default=list(READERS))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    total = 0
    for name in options.readers:
        tried, kinds = 0, dict[str, int]()
        share = options.seconds / len(options.readers)
        for event in fuzz(name, options.seed, options.count, share):
            if not isinstance(event, Finding):
                tried += 1
                continue
            kind = event.said.split(":")[0] + event.said.partition(": ")[2][:12]
            kinds[kind] = kinds.get(kind, 0) + 1
            if kinds[kind] <= 3:
                folder = options.out / f"{name}-{options.seed}-{event.number}"
                folder.mkdir(parents=True, exist_ok=True)
                write_files(folder, event.files)
                print(f"{event} -> {folder}", flush=True)
        found = sum(kinds.values())
        total += found
        print(f"{name}: {tried} files, {found} findings of {len(kinds)} kinds", flush=True)
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
