"""`arcfleet serve`: the web app and its HTTP API."""

from __future__ import annotations

import os
import threading
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

from arcfleet.cli.options import (
    Command,
    add_shared,
    number_up_to,
    option,
    positive_number,
)
from arcfleet.cli.output import note, print_either
from arcfleet.errors import OptionError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

_PORT = 8321


def _options(parser: ArgumentParser) -> None:
    text = "address to listen at; another than this machine's own needs a token"
    option(parser, "--host", text, str, "HOST", default="127.0.0.1")
    text = "port; 0 takes a free one"
    option(parser, "--port", text, number_up_to(65535, "port"), "N", default=_PORT)
    text = "folder that keeps maps, scenes, jobs and plans"
    option(parser, "--data", text, Path, "FOLDER", default=Path("arcfleet-data"))
    text = "number of jobs that run at a time (default: one per core)"
    option(parser, "--workers", text, positive_number, "N")
    text = "file with the hash of the token that every request needs"
    option(parser, "--token-file", text, Path, "FILE")
    text = "make a token: write its hash into the token file, print it once, and end"
    option(parser, "--new-token", text)
    option(parser, "--open", "open the page in a browser")
    add_shared(parser, "json")


def _serve(options: Namespace) -> int:
    from arcfleet._checks import needs

    if os.name != "posix":
        raise OptionError(
            "expected Linux or macOS, whose limits the server needs, got another system: "
            "run it in the container that Dockerfile makes"
        )
    with needs("fastapi, uvicorn or argon2-cffi", "the web app", "serve"):
        from arcfleet.serve.security import write_token
        from arcfleet.serve.server import serve
    if options.new_token:
        if options.token_file is None:
            raise OptionError("expected --token-file with --new-token, got none")
        token = write_token(options.token_file)
        print_either(options, {"token": token}, token)
        note(f"this is the token, told once; its hash is in {options.token_file}")
        return 0

    def ready(address: str) -> None:
        if options.token_file is not None:
            note(
                "warning: the token is sent as it is: let others reach this server through "
                "a proxy with TLS only"
            )
        print_either(options, {"address": address}, address)
        note(f"serving, data in {options.data}; Ctrl-C ends it")
        if options.open:
            threading.Thread(target=_open, args=[address], daemon=True).start()

    serve(
        host=options.host,
        port=int(options.port),
        data=options.data,
        workers=options.workers,
        token_file=options.token_file,
        ready=ready,
    )
    note("ended; what was running goes on at the next start")
    return 0


def _open(address: str) -> None:
    """Open the page, where there is a browser."""
    try:
        webbrowser.get()
    except webbrowser.Error:
        return
    webbrowser.open(address)


SERVE = Command(
    name="serve",
    summary="plan in the browser: a web app with an HTTP API",
    options=_options,
    run=_serve,
    epilog="""\
examples:
  arcfleet serve --open
  arcfleet serve --data /srv/arcfleet --port 8000 --workers 4
  arcfleet serve --token-file token.txt --new-token
  arcfleet serve --host 0.0.0.0 --token-file token.txt

Ctrl-C ends it; jobs that were running go on from their best plan at the next start. The
API is described at /openapi.json.
""",
)
