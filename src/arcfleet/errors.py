"""The errors that arcfleet raises for reasons a user can fix.

Every message is one sentence that says what was expected, what was found, where, and,
where it is not plain, what to do about it. Programmer errors stay ordinary Python errors.
"""

from __future__ import annotations

from pathlib import Path


class ArcfleetError(Exception):
    """Base of all errors that a user can fix; the CLI prints it and exits with 1."""


class InstanceError(ArcfleetError):
    """The parts of an instance do not fit together."""


class MapError(ArcfleetError):
    """A street map, or what was asked of it, does not fit together."""


class UnsolvableError(ArcfleetError):
    """The instance is well formed, but no plan can exist or none was found."""


class SolutionError(ArcfleetError):
    """A solution does not belong to its instance."""


class OptionError(ArcfleetError):
    """An argument, a method name or a missing optional package."""


class FileError(ArcfleetError):
    """A file that cannot be read or written.

    Parameters
    ----------
    path
        File at fault.
    message
        Message: what was expected and what was found.
    line
        Number of the offending line, from 1; None where no single line is at fault.
    """

    def __init__(self, path: Path | str, message: str, line: int | None = None) -> None:
        self.path = Path(path)
        self.line = line
        self._message = message
        where = f"{path}:{line}" if line is not None else f"{path}"
        super().__init__(f"{where}: {message}")

    def __reduce__(self) -> tuple[type[FileError], tuple[Path, str, int | None]]:
        """Pickle by the arguments, so that the error comes back from other processes."""
        return type(self), (self.path, self._message, self.line)


class FormatWarning(UserWarning):
    """A file deviates from its format in a way that does not change the problem."""


class WithoutLearnedPlanWarning(UserWarning):
    """A learned method returns a plan that its model did not make."""


class MemoryWarning(UserWarning):
    """An instance needs much memory."""
