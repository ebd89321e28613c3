"""The command line: one file per command, heavy imports inside run()."""

from importlib.util import find_spec

# The command has the methods of the paper, too, and works without its folder.
if find_spec("arcfleet.paper") is not None:
    import arcfleet.paper  # noqa: F401
