"""The command line: tables of commands, with heavy imports inside their functions."""

from importlib.util import find_spec

#: Whether the reproduction of the paper is installed; all else works without its folder.
HAS_PAPER = find_spec("arcfleet.paper") is not None

if HAS_PAPER:  # the command has the methods of the paper, too
    import arcfleet.paper  # noqa: F401
