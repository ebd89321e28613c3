"""Who may ask: tokens, hosts and origins, sizes of requests; and headers of answers."""

from __future__ import annotations

import asyncio
import hmac
import json
import os
import secrets
import time
from collections import deque
from hashlib import sha256
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse, Response

from arcfleet.errors import FileError

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from arcfleet.serve.jobs import Limits

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_COOKIE = "arcfleet"
_SESSION_SECONDS = 12 * 3600
#: Wrong tokens within a minute, after which all are refused for the rest of it.
_MOST_WRONG = 20
#: A request that sends nothing for so many seconds is given up.
_BODY_PAUSE = 30.0
_PAUSED = "expected the rest of the request, got nothing: send it again"
_SAFE = ("GET", "HEAD", "OPTIONS")

#: Of the page: its own files, and nothing else.
PAGE_POLICY = (
    "default-src 'self'; script-src 'self'; worker-src 'self' blob:; style-src 'self'; "
    "img-src 'self' data: blob:; connect-src 'self'; object-src 'none'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)
#: Of a page that is made for a plan: one file with its scripts, in a world of its own.
PLAN_POLICY = (
    "sandbox allow-scripts allow-modals allow-downloads; default-src 'none'; "
    "script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; "
    "frame-ancestors 'self'; base-uri 'none'; form-action 'none'"
)
_STATUS_OF = {
    "not_found": 404,
    "invalid": 422,
    "too_large": 413,
    "too_many": 429,
    "unauthorised": 401,
    "conflict": 409,
    "unsolvable": 422,
    "timeout": 504,
    "internal": 500,
}


def error_response(
    kind: str, message: str, field: str | None = None, status: int | None = None
) -> Response:
    """Return the answer to a request that fails."""
    body = {"error": {"type": kind, "message": message, "field": field}}
    headers = {"WWW-Authenticate": "Bearer"} if kind == "unauthorised" else None
    if kind == "too_many":
        headers = {"Retry-After": "5"}
    return Response(
        json.dumps(body),
        status_code=status or _STATUS_OF[kind],
        media_type="application/json",
        headers=headers,
    )


# --- Tokens -------------------------------------------------------------------------------


def write_token(path: Path) -> str:
    """Make a token, write its hash into a new file, and return it."""
    token = secrets.token_urlsafe(32)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as stream:
            stream.write(PasswordHasher().hash(token) + "\n")
    except FileExistsError as error:
        raise FileError(
            path, "is there already; remove it first, which ends the old token"
        ) from error
    except OSError as error:
        raise FileError(
            path, f"cannot be written ({error.strerror}); choose another place"
        ) from error
    return token


class Tokens:
    """The token of a server, known by its hash, and the sessions of those who had it."""

    def __init__(self, path: Path) -> None:
        try:
            self._hash = path.read_text(encoding="ascii").strip()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "it is no text"
            raise FileError(
                path, f"cannot be read ({reason}); make a token with --new-token"
            ) from error
        self._hasher = PasswordHasher()
        try:
            self._hasher.check_needs_rehash(self._hash)
        except (Argon2Error, InvalidHashError, ValueError) as error:
            raise FileError(
                path, "expected the hash of a token; make one with --new-token"
            ) from error
        self._known = b""
        self._wrong: deque[float] = deque()
        self._sessions: dict[str, float] = {}

    def fits(self, token: str) -> bool:
        """Return whether it is the token; False for all after many wrong ones."""
        digest = sha256(token.encode("utf-8", "replace")).digest()
        if self._known and hmac.compare_digest(digest, self._known):
            return True
        now = time.monotonic()
        while self._wrong and self._wrong[0] < now - 60:
            self._wrong.popleft()
        if len(self._wrong) >= _MOST_WRONG:
            return False
        try:
            self._hasher.verify(self._hash, token.encode("utf-8", "replace"))
        except (Argon2Error, InvalidHashError):
            self._wrong.append(now)
            return False
        self._known = digest  # the hash is slow on purpose: once is enough
        return True

    def open_session(self) -> str:
        """Return the name of a new session, for the cookie of a browser."""
        now = time.monotonic()
        self._sessions = {key: end for key, end in self._sessions.items() if end > now}
        session = secrets.token_urlsafe(32)
        self._sessions[session] = now + _SESSION_SECONDS
        return session

    def is_session(self, session: str) -> bool:
        """Return whether a session is open."""
        return self._sessions.get(session, 0.0) > time.monotonic()


# --- The guard ----------------------------------------------------------------------------


class Guard:
    """Stands before all routes: refuses what may not come in, adds headers to the rest."""

    def __init__(self, app: ASGIApp, *, limits: Limits, tokens: Tokens | None) -> None:
        self._app, self._limits, self._tokens = app, limits, tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return

        has_begun = False

        async def send_with_headers(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                headers = MutableHeaders(scope=message)
                headers["X-Content-Type-Options"] = "nosniff"
                headers.setdefault("Referrer-Policy", "no-referrer")
                headers["Cross-Origin-Opener-Policy"] = "same-origin"
                headers["Cross-Origin-Resource-Policy"] = "same-origin"
                headers.setdefault("Content-Security-Policy", PAGE_POLICY)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        headers = Headers(scope=scope)
        refusal = self._refusal(scope, headers) or await self._login(
            scope, headers, receive
        )
        if refusal is not None:
            await refusal(scope, receive, send_with_headers)
            return
        receive = self._limited(scope, receive)
        try:
            await self._app(scope, receive, send_with_headers)
        except Exception:
            if not has_begun:
                text = "unexpected mistake of the server: tell the developers, see its log"
                answer = error_response("internal", text)
                await answer(scope, receive, send_with_headers)
            raise  # into the log

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        """Return why a request may not come in at all, before anybody reads it."""
        host = headers.get("host", "")
        # A page elsewhere can make a name of its own point to this machine; it has neither
        # the token nor the cookie, which browsers keep for the name that it came from.
        if self._tokens is None and _name_of(host) not in LOOPBACK:
            return error_response(
                "unauthorised",
                "expected the host localhost or 127.0.0.1, got another: open the address "
                "that the server printed",
                status=403,
            )
        if scope["method"] not in _SAFE:
            origin = headers.get("origin")
            site = headers.get("sec-fetch-site", "none")
            foreign = origin is not None and origin.split("://", 1)[-1] != host
            if foreign or site not in ("none", "same-origin"):
                return error_response(
                    "unauthorised",
                    "expected a request of this server's own page, got one of another "
                    "site: open the address that the server printed",
                    status=403,
                )
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length[:15]) > self._most(scope):
            return self._too_large(scope)
        return None

    async def _login(
        self, scope: Scope, headers: Headers, receive: Receive
    ) -> Response | None:
        """Return the form for the token, or where it leads; None for those who had it."""
        if self._tokens is None:
            return None
        path = scope["path"]
        if path == "/login" and scope["method"] == "POST":
            try:
                body = await _body(receive, 4096)
            except TimeoutError:
                return error_response("timeout", _PAUSED, status=408)
            form = parse_qs(body.decode("ascii", "replace"))
            if not self._tokens.fits(form.get("token", [""])[0].strip()):
                return _login_page(_WRONG, 401)
            answer = RedirectResponse("/", 303)
            answer.set_cookie(
                _COOKIE,
                self._tokens.open_session(),
                max_age=_SESSION_SECONDS,
                httponly=True,
                samesite="strict",
            )
            return answer
        if path == "/login":
            return _login_page()
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._tokens.fits(token.strip()):
            return None
        if self._tokens.is_session(_cookie(headers)):
            return None
        if path == "/":
            return RedirectResponse("/login", 303)
        return error_response(
            "unauthorised",
            "expected the token of this server, got none or another: send the header "
            "Authorization: Bearer TOKEN",
        )

    def _most(self, scope: Scope) -> int:
        is_upload = scope["path"] == "/v1/maps"
        return self._limits.upload if is_upload else self._limits.body

    def _too_large(self, scope: Scope) -> Response:
        most = self._most(scope)
        return error_response("too_large", _too_large_text(most))

    def _limited(self, scope: Scope, receive: Receive) -> Receive:
        """Return a `receive` that ends with an error beyond the limits of size and time."""
        most, size, is_whole = self._most(scope), 0, False

        async def limited() -> Message:
            nonlocal size, is_whole
            if is_whole:
                return await receive()
            try:
                message = await asyncio.wait_for(receive(), _BODY_PAUSE)
            except TimeoutError:
                raise HTTPException(408, _PAUSED) from None
            size += len(message.get("body", b""))
            is_whole = not message.get("more_body", False)
            if size > most:
                raise HTTPException(413, _too_large_text(most))
            return message

        return limited


def _too_large_text(most: int) -> str:
    shown = f"{most >> 20} MiB" if most >> 20 else f"{most} bytes"
    return f"expected at most {shown} in a request, got more: send a smaller part"


async def _body(receive: Receive, most: int) -> bytes:
    """Return the body of a request, cut off after `most` bytes."""
    found = b""
    while len(found) < most:
        message = await asyncio.wait_for(receive(), _BODY_PAUSE)
        found += message.get("body", b"")
        if not message.get("more_body", False):
            break
    return found[:most]


def _name_of(host: str) -> str:
    """Return a Host header without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def _cookie(headers: Headers) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(_COOKIE)
    except CookieError:
        return ""
    return "" if found is None else found.value


_WRONG = "<p role=alert>This is not the token of this server.</p>"
_LOGIN = """<!doctype html>
<html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>arcfleet</title>
<link rel="icon" href="data:,">
<h1>arcfleet</h1>
<!---->
<form method="post" action="/login">
<p><label>Token of this server
<input type="password" name="token" autocomplete="current-password" required autofocus>
</label> <button>Open</button></p>
</form>
</html>
"""


def _login_page(message: str = "", status: int = 200) -> Response:
    # Without a referrer a browser sends the form with the origin "null", as a foreign one.
    headers = {"Referrer-Policy": "same-origin"}
    return HTMLResponse(_LOGIN.replace("<!---->", message), status, headers)
