"""Several processes that train one model, each on its part of every step.

`torchrun` starts them and says in the environment which is which. All of them draw the
whole of a step with the same random numbers and take every so-many-th row of it, so the
step is that of one process with a batch as much larger. No `DistributedDataParallel`: one
sum of all gradients per update is a few lines, works with a bfloat16 copy beside float32
masters and with several updates of a step, and leaves the compiled graphs as they are.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch
from torch import distributed

from arcfleet.errors import ArcfleetError, OptionError
from arcfleet.neural.device import choose_device
from arcfleet.neural.env import State

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from torch import Tensor

    from arcfleet.neural.batch import ArcBatch
    from arcfleet.neural.train.steps import Lesson


# The others wait while the first one validates. Whoever has died is noticed at once.
_PATIENCE = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Team:
    """Which process it is, and of how many.

    Parameters
    ----------
    rank
        Its number, from 0.
    size
        How many there are.
    """

    rank: int = 0
    size: int = 1

    @classmethod
    def of_environment(cls) -> Team:
        """Read what `torchrun` says; without it a process is alone."""
        if "WORLD_SIZE" not in os.environ or "RANK" not in os.environ:
            return cls()
        team = cls(rank=_number("RANK"), size=_number("WORLD_SIZE"))
        if not 0 <= team.rank < team.size:
            raise OptionError(
                "expected RANK below WORLD_SIZE in the environment, got "
                f"{team.rank} and {team.size}: start with torchrun, or unset both"
            )
        return team

    @property
    def leads(self) -> bool:
        """Whether this is the one that validates, reports and writes files."""
        return self.rank == 0

    def mine(self, whole: Tensor) -> Tensor:
        """Give the rows of this process."""
        return whole if self.size == 1 else whole[self.rank :: self.size]

    def my_rows(self, batch: ArcBatch) -> ArcBatch:
        """Give the instances of this process."""
        if self.size == 1:
            return batch
        return batch.select(
            torch.arange(self.rank, len(batch), self.size, device=batch.real.device)
        )

    def my_lesson(self, lesson: Lesson) -> Lesson:
        """Give the part of this process of a lesson that all have drawn alike."""
        if self.size == 1:
            return lesson
        return lesson._replace(
            batch=self.my_rows(lesson.batch),
            state=State(*(self.mine(tensor) for tensor in lesson.state)),
            choice=self.mine(lesson.choice),
            weight=self.mine(lesson.weight),
        )

    def average(self, tensors: Sequence[Tensor]) -> None:
        """Put the mean over all processes in the place of every tensor."""
        if self.size == 1 or not tensors:
            return
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        with _together():
            distributed.all_reduce(flat)
        flat /= self.size
        parts = torch.split(flat, [tensor.numel() for tensor in tensors])
        shaped = [p.view_as(t) for p, t in zip(parts, tensors, strict=True)]
        torch._foreach_copy_(list(tensors), shaped)

    def most(self, *values: float) -> list[float]:
        """Give the largest of each value that any process has; on the host."""
        if self.size == 1:
            return list(values)
        numbers = torch.tensor(values, dtype=torch.float64)
        with _together():
            distributed.all_reduce(numbers, distributed.ReduceOp.MAX)
        return numbers.tolist()

    def means(self, figures: Mapping[str, float]) -> dict[str, float]:
        """Give the mean of each figure; all processes must have the same ones."""
        if self.size == 1 or not figures:
            return dict(figures)
        numbers = torch.tensor([figures[name] for name in figures], dtype=torch.float64)
        self.average([numbers])
        return dict(zip(figures, numbers.tolist(), strict=True))

    def wait(self) -> None:
        """Wait until all processes are here."""
        self.most(0.0)

    def all_rows(self, mine: Tensor) -> Tensor:
        """Put the rows of all processes, as many of each, in the order of the whole."""
        if self.size == 1:
            return mine
        parts = [torch.empty_like(mine) for _ in range(self.size)]
        with _together():
            distributed.all_gather(parts, mine.contiguous())
        return torch.stack(parts, dim=1).flatten(0, 1)

    def require_same(self, facts: object, what: str) -> None:
        """Raise OptionError unless all processes have the same facts; waits for all.

        Parameters
        ----------
        facts
            Anything JSON can hold.
        what
            They are, for the message.
        """
        if self.size == 1:
            return
        text = json.dumps(facts, sort_keys=True).encode()
        number = torch.frombuffer(
            bytearray(hashlib.sha256(text).digest()[:8]), dtype=torch.int64
        )
        numbers = self.all_rows(number)
        if not bool((numbers == numbers[0]).all()):
            raise OptionError(
                f"expected the same {what} in all {self.size} processes, found others: "
                "give them the same files"
            )


#: A process by itself.
ALONE = Team()


def join_team(device: str) -> torch.device:
    """Give the device of this process; where `torchrun` started several, meet the others.

    Parameters
    ----------
    device
        As `choose_device` takes it; of several processes each takes the GPU of its
        number.

    Raises
    ------
    OptionError
        If there is no such device, too few GPUs, or nothing says where to meet.
    """
    team = Team.of_environment()
    if team.size == 1:
        return choose_device(device)
    place = _own_device(device, team)
    _require_meeting_place()
    if not distributed.is_available():
        raise OptionError(
            f"expected a torch that several processes can share, got {torch.__version__} "
            "without torch.distributed: start one process"
        )
    if not distributed.is_initialized():
        # The optimiser imports it in any case. After the group is there, its functions
        # would keep the group as a default argument, whose threads then sometimes
        # bring down the program as it ends.
        from torch.distributed.nn import functional  # noqa: F401

        # What is decided on the host needs no GPU, so both can be had.
        backend = "cpu:gloo,cuda:nccl" if place.type == "cuda" else "gloo"
        if place.type == "cuda":
            torch.cuda.set_device(place)
        with _together():
            distributed.init_process_group(backend, timeout=_PATIENCE)
    return place


def leave_team() -> None:
    """Part from the other processes, if there are any, at the end of the program."""
    if distributed.is_available() and distributed.is_initialized():
        distributed.destroy_process_group()


def _own_device(name: str, team: Team) -> torch.device:
    if ":" in name:
        raise OptionError(
            f"expected device 'auto', 'cpu' or 'cuda' for {team.size} processes, each of "
            f"which takes a GPU of its own, got {name!r}"
        )
    place = choose_device(name)
    if place.type != "cuda":
        return place
    number, count = _number("LOCAL_RANK"), torch.cuda.device_count()
    if number >= count:
        raise OptionError(
            f"expected a GPU for every process, found {count} on this machine for process "
            f"{number + 1}: start fewer, or use --device cpu"
        )
    return torch.device("cuda", number)


def _require_meeting_place() -> None:
    if not os.environ.get("MASTER_ADDR"):
        raise OptionError(
            "expected the address of the first process in the environment variable "
            "MASTER_ADDR, got none: start with torchrun, or unset RANK and WORLD_SIZE"
        )
    port = _number("MASTER_PORT")
    if not 0 < port < 2**16:
        raise OptionError(
            "expected a port from 1 to 65535 in the environment variable MASTER_PORT, got "
            f"{port}"
        )


def _number(name: str) -> int:
    text = os.environ.get(name, "")
    if not (text.isascii() and text.isdigit()):
        raise OptionError(
            f"expected a whole number in the environment variable {name}, as torchrun "
            f"sets it, got {text[:40]!r}"
        )
    return int(text)


@contextmanager
def _together() -> Iterator[Any]:
    try:
        yield
    except RuntimeError as error:
        reason = str(error).strip().splitlines() or ["no reason given"]
        raise ArcfleetError(
            "expected all processes to go on together, but one has ended or cannot be "
            f"reached ({reason[0][:120]}): what it said comes before this"
        ) from error
