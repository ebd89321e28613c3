"""Start of the `arcfleet` command.

It is no part of the package `arcfleet`, because it has to run before that is imported.
"""

import sys


def main() -> int:
    """Run the command; Ctrl-C while it is still being imported ends it in one line."""
    try:
        from arcfleet.cli.main import main as run
    except KeyboardInterrupt:
        print("arcfleet: interrupted before it began", file=sys.stderr)
        return 130
    return run()
