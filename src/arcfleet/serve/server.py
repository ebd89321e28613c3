"""One server: its socket, its data folder and its end."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
from typing import TYPE_CHECKING

import uvicorn

from arcfleet.errors import OptionError
from arcfleet.serve.app import create_app
from arcfleet.serve.jobs import Board, Limits
from arcfleet.serve.security import LOOPBACK, Tokens
from arcfleet.serve.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

#: Seconds that requests have to end when the server does.
_END_SECONDS = 5


def serve(
    *,
    host: str,
    port: int,
    data: Path,
    workers: int | None,
    token_file: Path | None,
    ready: Callable[[str], None],
) -> None:
    """Serve until Ctrl-C or SIGTERM.

    Parameters
    ----------
    host, port
        Address to listen at; port 0 takes a free one.
    data
        Data folder.
    workers
        Number of jobs at a time; None means one per core.
    token_file
        File with the hash of the token, see `write_token`.
    ready
        Called with the address as soon as it can be opened.

    Raises
    ------
    OptionError
        If others could reach the address without a token, or it cannot be used.
    FileError
        If the data folder or the token file cannot be used.
    """
    if host not in LOOPBACK and token_file is None:
        raise OptionError(
            f"expected a token for {host}, which others can reach, got none: make one with "
            "--token-file FILE --new-token, then add --token-file FILE"
        )
    tokens = None if token_file is None else Tokens(token_file)
    limits = Limits()
    with contextlib.closing(_listen(host, port)) as listener:
        store = Store(data.resolve())
        board = Board(store, workers or os.cpu_count() or 1, limits)
        app = create_app(store, board, limits=limits, tokens=tokens)
        logging.basicConfig(format="arcfleet: %(message)s", level=logging.WARNING)
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=_END_SECONDS,
        )
        shown = f"[{host}]" if ":" in host else host
        ready(f"http://{shown}:{listener.getsockname()[1]}/")
        with contextlib.suppress(KeyboardInterrupt):
            _Server(config, board).run(sockets=[listener])


class _Server(uvicorn.Server):
    """A server whose streams of events end with it."""

    def __init__(self, config: uvicorn.Config, board: Board) -> None:
        super().__init__(config)
        self._board = board

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._board.ending.set()
        await super().shutdown(sockets)


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
