"""Devices: choose one, its precision, and errors where its memory does not suffice."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Literal, get_args

import torch

from arcfleet.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Precision = Literal["auto", "float32", "bfloat16"]
PRECISIONS: tuple[Precision, ...] = get_args(Precision)

_NAMES = re.compile(r"auto|cpu|cuda(:(0|[1-9]\d{0,3}))?")


def choose_device(name: str) -> torch.device:
    """Return the device of that name: "auto", "cpu", "cuda" or one of several, "cuda:1".

    "auto" is the first CUDA device, or the CPU where there is none.
    """
    if not isinstance(name, str) or not _NAMES.fullmatch(name):
        raise OptionError(
            f"expected device to be 'auto', 'cpu', 'cuda' or 'cuda:NUMBER', got {name!r}"
        )
    available = torch.cuda.is_available()
    if name == "auto":
        return torch.device("cuda" if available else "cpu")
    if name != "cpu":
        count = torch.cuda.device_count() if available else 0
        # torch itself would count large numbers modulo 256.
        if int(name.partition(":")[2] or 0) >= count:
            raise OptionError(
                f"expected device {name!r} to be there, found {count} CUDA devices: "
                "use device 'auto' or 'cpu'"
            )
    return torch.device(name)


def working_on(device: torch.device) -> AbstractContextManager[object]:
    """Make a GPU the current one while the block runs; nothing for the CPU.

    Streams, recordings and Triton kernels take the current one, wherever tensors are.
    """
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


def has_bfloat16(device: torch.device) -> bool:
    """Return whether it is a GPU made for bfloat16: compute capability 8.0 or more."""
    if device.type != "cuda":
        return False
    return torch.cuda.get_device_capability(device) >= (8, 0)


def working_type(precision: Precision, device: torch.device) -> torch.dtype:
    """Return the dtype that training works in."""
    if precision == "auto":
        return torch.bfloat16 if has_bfloat16(device) else torch.float32
    if precision == "float32":
        return torch.float32
    if device.type == "cuda" and not has_bfloat16(device):
        raise OptionError(
            "expected a GPU of compute capability 8.0 or more for precision 'bfloat16', "
            f"found {torch.cuda.get_device_name(device)}: use precision 'auto'"
        )
    return torch.bfloat16


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Set the number of torch's CPU threads while the block runs."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


# In the messages of errors that torch has no class of its own for.
_SIGNS = (
    "can't allocate memory",
    "not enough memory",
    "out of memory",
    "STATUS_ALLOC_FAILED",
)


class OutOfMemoryError(OptionError):
    """Something does not fit in the memory of the device."""


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error means that the memory of a device did not suffice."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(sign in str(error) for sign in _SIGNS)


@contextmanager
def expected_to_fit(message: Callable[[], str]) -> Iterator[None]:
    """Raise OutOfMemoryError with a message where the block finds too little memory."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        raise OutOfMemoryError(message()) from None
