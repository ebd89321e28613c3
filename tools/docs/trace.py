"""Which functions of the package a call goes through, in the order of their first calls."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import FrameType

_PACKAGE = "arcfleet"


@dataclass(slots=True)
class Call:
    """A function that was called.

    Parameters
    ----------
    module
        Its module.
    name
        Its qualified name there.
    count
        Number of calls.
    below
        Functions that were first called by this one, in order.
    """

    module: str
    name: str
    count: int = 0
    below: list[Call] = field(default_factory=list)

    @property
    def helper(self) -> bool:
        """Whether the function is private to its module, or made by another one."""
        parts = self.name.split(".")
        return "<locals>" in parts or any(part.startswith("_") for part in parts)

    @property
    def minor(self) -> bool:
        """Whether the function and all below it are helpers."""
        return self.helper and all(call.minor for call in self.below)

    def summary(self) -> str:
        """Return the first sentence of the docstring, "" where there is none."""
        value: object = importlib.import_module(self.module)
        for part in self.name.split("."):
            value = getattr(value, part, None)
        paragraph = (inspect.getdoc(value) or "").split("\n\n")[0]
        return " ".join(paragraph.split())


def first_calls(work: Callable[[], object], known: Iterable[Call] = ()) -> Call:
    """Run `work` and return the functions of the package as a tree of first calls.

    Parameters
    ----------
    work
        What to run.
    known
        Trees of earlier parts; their functions are not listed again.
    """
    top = Call("", "")
    found: dict[tuple[str, str], Call] = {}
    skipped = {name for tree in known for name in counts(tree)}
    running = [top]

    def watch(frame: FrameType, event: str, _: object) -> None:
        module = frame.f_globals.get("__name__", "")
        code = frame.f_code
        if module.split(".")[0] != _PACKAGE or code.co_name.startswith("<"):
            return
        if not code.co_flags & inspect.CO_OPTIMIZED:
            return  # the body of a class, while its module is imported
        if event == "return":
            if len(running) > 1:
                running.pop()
            return
        if event != "call":
            return
        # A class stands for its constructor; that of a dataclass has no name here.
        name = re.sub(r"\.__(init|post_init)__$", "", code.co_qualname)
        if name.startswith("__create_fn__") or f"{module}.{name}" in skipped:
            running.append(running[-1])
            return
        if (module, name) not in found:
            found[module, name] = Call(module, name)
            running[-1].below.append(found[module, name])
        found[module, name].count += 1
        running.append(found[module, name])

    sys.setprofile(watch)
    try:
        work()
    finally:
        sys.setprofile(None)
    return top


def counts(top: Call) -> dict[str, int]:
    """Return the number of calls of every function, in the order of first calls."""
    found: dict[str, int] = {}
    for call in top.below:
        found[f"{call.module}.{call.name}"] = call.count
        found |= counts(call)
    return found
