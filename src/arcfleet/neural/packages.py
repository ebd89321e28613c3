"""Says in one sentence what to install where the packages of the learned solvers are missing."""

from __future__ import annotations

from importlib import import_module

from arcfleet.errors import OptionError

_PACKAGES = ("torch", "safetensors")


def require_packages(purpose: str) -> None:
    """Raise OptionError where a package that learned solvers need is not installed.

    Parameters
    ----------
    purpose
        What needs it, for the message.
    """
    for package in _PACKAGES:
        try:
            import_module(package)
        except ModuleNotFoundError as error:
            # A package that is there but lacks one of its own parts is another fault.
            if error.name != package:
                raise
            raise OptionError(
                f"{purpose} needs {package}, which is not installed: "
                "install arcfleet[neural]"
            ) from None
