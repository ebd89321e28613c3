"""`make fuzz`: damaged files for every reader, for as long as you like.

Where atheris is installed, half of the time is for files that it found to reach new lines.
"""

import argparse
import importlib.util
import re
import subprocess
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
    guides = importlib.util.find_spec("atheris") is not None
    print(f"seed {options.seed}, atheris {'found' if guides else 'not found'}", flush=True)
    total = 0
    for name in options.readers:
        tried, kinds = 0, dict[str, int]()
        share = options.seconds / len(options.readers) / (1 + guides)
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
        if guides:
            tried, said = guided(name, options.seed, share, options.out)
            total += bool(said)
            print(f"{name}: {tried} files with atheris, {said or '0 findings'}", flush=True)
    return 1 if total else 0


def guided(name: str, seed: int, seconds: float, out: Path) -> tuple[int, str]:
    """Return how many files atheris had read, and the finding that ended it, if any."""
    words = [sys.executable, "-m", "tests.fuzz.guided", name, "--out", str(out)]
    words += ["--seed", str(seed), "--seconds", str(max(1, round(seconds)))]
    both = subprocess.STDOUT
    ran = subprocess.run(words, stdout=subprocess.PIPE, stderr=both, check=False)
    said = ran.stdout.decode(errors="replace")
    tried = re.search(r"number_of_executed_units: (\d+)", said)
    count = int(tried[1]) if tried else 0
    if ran.returncode == 0:
        return count, ""
    lines = said.splitlines()
    told = [x for x in lines if "Error: " in x or "ERROR: " in x] or lines[-1:] or ["?"]
    told.sort(key=lambda line: "libFuzzer" in line)  # which comes before or after ours
    return count, f"{told[0]} (exit code {ran.returncode})"


if __name__ == "__main__":
    sys.exit(main())
