"""Runs the command in this process, in a new one, or on a terminal."""

import contextlib
import io
import os
import pty
import select
import signal
import subprocess
import sys

from arcfleet.cli.main import main
from tests.helpers import ROOT as ROOT
from tests.helpers import SMALL as SMALL
from tests.helpers import VILLAGE as VILLAGE

ARCFLEET = [sys.executable, "-m", "arcfleet.cli.main"]

Ran = subprocess.CompletedProcess[str]


def arcfleet(*arguments: object) -> Ran:
    """Run a command in this process, which takes less time than a new one."""
    words = [str(argument) for argument in arguments]
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    err = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(words)
        except SystemExit as ended:  # argparse: wrong usage, --help, --version
            code = int(ended.code or 0)
    out.seek(0)
    return subprocess.CompletedProcess(words, code, out.read(), err.getvalue())


def succeeded(*arguments: object) -> str:
    """Run a command that must succeed and write nothing to stderr; return its stdout."""
    ran = arcfleet(*arguments)
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout


def one_sentence(ran: Ran) -> str:
    """Return the error of a failed run: exit code 1, one line, nothing on stdout."""
    assert ran.returncode == 1, ran.stderr
    assert ran.stdout == ""
    (line,) = ran.stderr.splitlines()
    assert line.startswith("arcfleet: ")
    return line


def in_a_new_process(*arguments: object, **environment: str) -> Ran:
    """Run a command as a user does."""
    return subprocess.run(
        [*ARCFLEET, *map(str, arguments)],
        capture_output=True,
        encoding="utf-8",
        check=False,
        env=os.environ | environment,
    )


def on_a_terminal(
    *arguments: object,
    interrupt_at: bytes | None = None,
    by: signal.Signals = signal.SIGINT,
) -> tuple[int, str, bytes]:
    """Run with stderr on a terminal: exit code, stdout and what the terminal was sent.

    Ctrl-C is pressed, or another signal sent, as soon as the terminal shows `interrupt_at`.
    """
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*ARCFLEET, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(theirs)
    shown = b""
    while select.select([ours], [], [])[0]:
        try:
            chunk = os.read(ours, 4096)
        except OSError:  # Linux reports the closed other end so
            break
        if not chunk:
            break
        shown += chunk
        if interrupt_at is not None and interrupt_at in shown:
            process.send_signal(by)
            interrupt_at = None
    os.close(ours)
    out, _ = process.communicate()
    return process.returncode, out, shown
