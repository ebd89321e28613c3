"""Several processes that train one model, each on its shard of every step.

`torchrun` starts them and sets world size and rank in the environment. All of them draw the
whole of a step with the same random numbers and take every world-size-th row of it, so the
step is that of one process with a batch as much larger. No `DistributedDataParallel`: one
all-reduce of the gradients per update is a few lines, works with a bfloat16 copy beside
float32 masters and with several updates of a step, and leaves the compiled graphs alone.
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

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from torch import Tensor

    from arcfleet.neural.batch import ArcBatch

# The others wait while rank 0 validates. A process that has died is noticed at once.
_TIMEOUT = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The processes that train together, seen from one of them."""

    rank: int = 0
    size: int = 1

    @classmethod
    def from_environment(cls) -> World:
        """Read what `torchrun` sets; without it a process is alone."""
        if "WORLD_SIZE" not in os.environ or "RANK" not in os.environ:
            return cls()
        world = cls(rank=_number("RANK"), size=_number("WORLD_SIZE"))
        if not 0 <= world.rank < world.size:
            raise OptionError(
                "expected RANK below WORLD_SIZE in the environment, got "
                f"{world.rank} and {world.size}: start with torchrun, or unset both"
            )
        return world

    @property
    def is_main(self) -> bool:
        """Whether this is rank 0, which validates, reports and writes files."""
        return self.rank == 0

    def shard(self, whole: Tensor) -> Tensor:
        """Return the rows of this process."""
        return whole if self.size == 1 else whole[self.rank :: self.size]

    def shard_batch(self, batch: ArcBatch) -> ArcBatch:
        """Return the instances of this process."""
        if self.size == 1:
            return batch
        return batch.select(self.shard(torch.arange(len(batch), device=batch.real.device)))

    def all_reduce_mean(self, tensors: Sequence[Tensor]) -> None:
        """Replace every tensor by its mean over all processes."""
        if self.size == 1 or not tensors:
            return
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        with _together():
            distributed.all_reduce(flat)
        flat /= self.size
        parts = torch.split(flat, [tensor.numel() for tensor in tensors])
        shaped = [p.view_as(t) for p, t in zip(parts, tensors, strict=True)]
        torch._foreach_copy_(list(tensors), shaped)

    def all_reduce_max(self, *values: float) -> list[float]:
        """Return the largest of each value over all processes; on the host."""
        if self.size == 1:
            return list(values)
        numbers = torch.tensor(values, dtype=torch.float64)
        with _together():
            distributed.all_reduce(numbers, distributed.ReduceOp.MAX)
        return numbers.tolist()

    def means(self, metrics: Mapping[str, float]) -> dict[str, float]:
        """Return the mean of each metric; all processes must have the same ones."""
        if self.size == 1 or not metrics:
            return dict(metrics)
        numbers = torch.tensor(list(metrics.values()), dtype=torch.float64)
        self.all_reduce_mean([numbers])
        return dict(zip(metrics, numbers.tolist(), strict=True))

    def barrier(self) -> None:
        """Wait until all processes are here."""
        self.all_reduce_max(0.0)

    def require_same(self, facts: object, what: str) -> None:
        """Raise OptionError unless all processes have the same facts; waits for all."""
        if self.size == 1:
            return
        text = json.dumps(facts, sort_keys=True).encode()
        digest = bytearray(hashlib.sha256(text).digest()[:8])
        number = torch.frombuffer(digest, dtype=torch.int64)
        numbers = [torch.empty_like(number) for _ in range(self.size)]
        with _together():
            distributed.all_gather(numbers, number)
        if any(int(other) != int(number) for other in numbers):
            raise OptionError(
                f"expected the same {what} in all {self.size} processes, found others: "
                "give them the same files"
            )


#: A process by itself.
ALONE = World()


def init_process_group(device: str) -> torch.device:
    """Return the device of this process; where `torchrun` started several, join them."""
    world = World.from_environment()
    if world.size == 1:
        return choose_device(device)
    place = _local_device(device, world)
    if not os.environ.get("MASTER_ADDR"):
        raise OptionError(
            "expected the address of rank 0 in the environment variable MASTER_ADDR, got "
            "none: start with torchrun, or unset RANK and WORLD_SIZE"
        )
    port = _number("MASTER_PORT")
    if not 0 < port < 2**16:
        raise OptionError(
            "expected a port from 1 to 65535 in the environment variable MASTER_PORT, got "
            f"{port}"
        )
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

        # What is decided on the host needs no GPU, so both backends are there.
        backend = "cpu:gloo,cuda:nccl" if place.type == "cuda" else "gloo"
        if place.type == "cuda":
            torch.cuda.set_device(place)
        with _together():
            distributed.init_process_group(backend, timeout=_TIMEOUT)
    return place


def destroy_process_group() -> None:
    """Leave the process group, if there is one, at the end of the program."""
    if distributed.is_available() and distributed.is_initialized():
        distributed.destroy_process_group()


def _local_device(name: str, world: World) -> torch.device:
    if ":" in name:
        raise OptionError(
            f"expected device 'auto', 'cpu' or 'cuda' for {world.size} processes, each of "
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
            f"reached ({reason[0][:120]}): see its message above"
        ) from error
