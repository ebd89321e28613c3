"""What is said where the memory of a device does not suffice."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

from arcfleet.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
    """Say whether an error means that the memory of a device did not suffice."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(sign in str(error) for sign in _SIGNS)


@contextmanager
def expected_to_fit(message: Callable[[], str]) -> Iterator[None]:
    """Raise OutOfMemoryError with a message where the block finds too little memory.

    Parameters
    ----------
    message
        Says what was expected to fit, and what to do.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        raise OutOfMemoryError(message()) from None
