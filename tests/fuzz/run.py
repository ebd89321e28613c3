"""Read damaged files in a child process with limits, and collect what went wrong."""

import multiprocessing
import os
import resource
import shutil
import time
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from arcfleet.errors import ArcfleetError
from tests.fuzz.readers import READERS, Reader, Sample

#: What one file may take: seconds, and bytes beyond what the process has before it.
SECONDS = 5.0
MEMORY = 1 << 30
#: So many times as long a process may wait for the processor.
_MOST_WAITS = 12
#: Characters of a message beyond the name of its file.
_LONGEST_MESSAGE = 500


@dataclass(frozen=True, slots=True)
class Finding:
    """A damaged file that was not refused in one sentence."""

    reader: str
    number: int
    said: str
    files: dict[str, bytes]

    def __str__(self) -> str:
        return f"{self.reader} {self.number}: {self.said}"


def mutant(
    reader: str, samples: list[Sample], seed: int, number: int
) -> tuple[Sample, dict[str, bytes]]:
    """Return damaged files: the same numbers, the same files."""
    random = Random(f"{reader} {seed} {number}")
    sample = random.choice(samples)
    return sample, sample.mutant(random)


def read_one(reader: Reader, folder: Path, named: str) -> str | None:
    """Read a file; return what is wrong with how it was read or refused, or None."""
    path = folder / named
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", RuntimeWarning)
            reader.read(path)
    except ArcfleetError as error:
        message = str(error)
        if len(message.splitlines()) != 1:
            return f"a message of several lines: {message!r:.300}"
        if str(folder) not in message:
            return f"a message without the file: {message!r:.300}"
        if len(message) > len(str(path)) + _LONGEST_MESSAGE:
            return f"a message of {len(message)} characters: {message!r:.300}"
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)
        own = [x for x in place if "/arcfleet/" in x.filename] or place
        at = f"{Path(own[-1].filename).name}:{own[-1].lineno}"
        return f"{type(error).__name__} at {at}: {str(error)[:200]!r}"
    return None


def write_files(folder: Path, files: dict[str, bytes]) -> None:
    """Make a folder hold these files and nothing else."""
    for path in folder.iterdir():
        if path.name not in files:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    for name, data in files.items():
        (folder / name).write_bytes(data)


def _child(
    reader: Reader,
    samples: list[Sample],
    seed: int,
    first: int,
    count: int,
    pipe: Connection,
) -> None:
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 2)  # libraries beneath write there on their own
    with TemporaryDirectory() as name:
        folder = Path(name)
        for sample in samples:  # what is imported late is no memory of a damaged file
            write_files(folder, sample.files)
            reader.read(folder / sample.named)
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * os.sysconf("SC_PAGE_SIZE") + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        for number in range(first, first + count):
            try:
                sample, files = mutant(reader.name, samples, seed, number)
            except Exception as error:  # a mistake of ours, not of the reader
                pipe.send(number)
                pipe.send(f"a mutator that fails: {error!r:.200}")
                continue
            write_files(folder, files)
            pipe.send(number)
            pipe.send(read_one(reader, folder, sample.named))
    pipe.send(None)


def fuzz(name: str, seed: int, count: int, seconds: float) -> Iterator[int | Finding]:
    """Yield the number of each file that was tried, and each finding.

    Ends after `count` files or `seconds`, whichever comes first.
    """
    reader = READERS[name]
    samples = reader.samples()
    context = multiprocessing.get_context("fork")
    end = time.monotonic() + seconds
    number = -1
    while number + 1 < count and time.monotonic() < end:
        here, there = context.Pipe(duplex=False)
        left = count - number - 1
        child = context.Process(
            target=_child, args=(reader, samples, seed, number + 1, left, there)
        )
        child.start()
        there.close()
        said = "ended the process before a file was read"
        try:
            while time.monotonic() < end:
                said = "ended the process before a file was read"
                if not here.poll(60):
                    break
                started = here.recv()
                if started is None:
                    return
                number = started
                said = f"took more than {SECONDS:g} s"
                if not _answers(here, child.pid or 0):
                    break
                said = "ended the process"
                outcome = here.recv()
                said = ""
                yield number
                if outcome is not None:
                    yield Finding(
                        name, number, outcome, _files(name, samples, seed, number)
                    )
            else:
                said = ""
        except EOFError:
            child.join(10)
            said += f" (exit code {child.exitcode})"
        finally:
            child.kill()
            child.join()
            here.close()
        if said:
            files = _files(name, samples, seed, max(number, 0))
            yield Finding(name, number, said, files)
            if number < 0:
                return


def _answers(pipe: Connection, process: int) -> bool:
    """Return whether a process says something within its time.

    That is time of the processor, which a busy machine does not prolong, or else much more.
    """
    began = _processor_seconds(process)
    for _ in range(_MOST_WAITS):
        if pipe.poll(SECONDS):
            return True
        if _processor_seconds(process) - began >= SECONDS:
            return False
    return False


def _processor_seconds(process: int) -> float:
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # it has ended
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _files(reader: str, samples: list[Sample], seed: int, number: int) -> dict[str, bytes]:
    """Return damaged files for a finding; none where the mutator is what fails."""
    try:
        return mutant(reader, samples, seed, number)[1]
    except Exception:
        return {}
