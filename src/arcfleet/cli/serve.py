"""`arcfleet serve`: the web app and its HTTP API."""

from __future__ import annotations

import logging
import os
import socket
import threading
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

from arcfleet.cli.options import Command, number_up_to, option, positive_number
from arcfleet.cli.output import note, print_result
from arcfleet.errors import OptionError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

_PORT = 8321
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


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


def _serve(options: Namespace) -> int:
    from arcfleet._checks import needs

    with needs("fastapi, uvicorn or argon2-cffi", "the web app", "serve"):
        import argon2  # noqa: F401
        import fastapi  # noqa: F401
        import uvicorn
    from arcfleet.serve.security import Tokens, write_token

    if options.new_token:
        if options.token_file is None:
            raise OptionError("expected --token-file with --new-token, got none")
        print_result(write_token(options.token_file))
        note(f"this is the token, told once; its hash is in {options.token_file}")
        return 0
    is_local = options.host in _LOOPBACK
    if not is_local and options.token_file is None:
        raise OptionError(
            f"expected a token for {options.host}, which others can reach, got none: make "
            "one with --token-file FILE --new-token, then add --token-file FILE"
        )
    tokens = None if options.token_file is None else Tokens(options.token_file)
    from arcfleet.serve.app import create_app
    from arcfleet.serve.jobs import Board, Limits
    from arcfleet.serve.store import Store

    listener = _listen(options.host, int(options.port))
    try:
        store = Store(options.data.resolve())
    except BaseException:
        listener.close()
        raise
    limits = Limits()
    board = Board(store, options.workers or os.cpu_count() or 1, limits)
    app = create_app(store, board, limits=limits, tokens=tokens, any_host=not is_local)
    logging.basicConfig(format="arcfleet: %(message)s", level=logging.WARNING)

    class Server(uvicorn.Server):
        def handle_exit(self, sig: int, frame: object) -> None:
            board.ending.set()  # streams of events end, which others wait for
            super().handle_exit(sig, frame)  # type: ignore[arg-type]

    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=5,
    )
    port = listener.getsockname()[1]
    host = f"[{options.host}]" if ":" in options.host else options.host
    address = f"http://{host}:{port}/"
    if not is_local:
        note(
            f"warning: whoever reaches {address} and has the token can use this server; "
            "put a proxy with TLS before it, for the token is sent as it is"
        )
    print_result(address)
    note(f"serving, data in {options.data}; Ctrl-C ends it")
    if options.open:
        threading.Thread(target=_open, args=[address], daemon=True).start()
    try:
        Server(config).run(sockets=[listener])
    except KeyboardInterrupt:
        pass
    note("ended; what was running goes on at the next start")
    return 0


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket at an address, or raise OptionError where there can be none."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(256)
    except OSError as error:
        listener.close()
        raise OptionError(
            f"expected a free port, but {host}:{port} cannot be used ({error.strerror}): "
            "choose another with --port, or end the other server"
        ) from error
    return listener


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
