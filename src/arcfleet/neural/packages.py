"""Says in one sentence what to install where learned solvers lack a package."""

from __future__ import annotations

from importlib.util import find_spec

from arcfleet.errors import OptionError

_PACKAGES = ("torch", "safetensors")


def missing_package() -> str | None:
    """Name a package that learned solvers need and that is not installed, if any.

    The packages are looked for, not imported, which would take seconds.
    """
    return next((name for name in _PACKAGES if find_spec(name) is None), None)


def require_packages(purpose: str) -> None:
    """Raise OptionError where a package that learned solvers need is not installed.

    Parameters
    ----------
    purpose
        What needs it, for the message.
    """
    missing = missing_package()
    if missing is not None:
        raise OptionError(
            f"{purpose} needs {missing}, which is not installed: install arcfleet[neural]"
        )
