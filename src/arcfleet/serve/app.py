"""The routes of the HTTP API, version 1, and the page."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import mimetypes
import re
import reprlib
import sqlite3
from contextlib import asynccontextmanager
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import FastAPI, Header, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response, StreamingResponse
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from arcfleet import __version__
from arcfleet._files import write_bytes_atomically
from arcfleet.errors import ArcfleetError, FileError
from arcfleet.methods import find_method
from arcfleet.serve import models
from arcfleet.serve.jobs import (
    BusyError,
    Limits,
    TooLateError,
    WorkerLostError,
    desk_error,
)
from arcfleet.serve.security import PLAN_POLICY, Guard, Tokens, error_response
from arcfleet.serve.store import (
    ENDED,
    KeyUsedError,
    MapGoneError,
    digest,
    events_of,
    new_id,
    read_json,
    remove,
    write_json,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from arcfleet.serve.jobs import Board
    from arcfleet.serve.store import Row, Store

#: The map that comes with the package.
BUNDLED_ID, BUNDLED_NAME = "m_denver", "Denver"
#: A stream of events looks at the log so often, and is quiet for at most so long.
_LOOK_SECONDS, _QUIET_SECONDS = 0.2, 15.0
#: Suffix and type of a plan in each format.
_EXPORTS = {
    "geojson": ("geojson", "application/geo+json"),
    "json": ("json", "application/json"),
    "gpx": ("zip", "application/zip"),
    "sheets": ("zip", "application/zip"),
    "pdf": ("zip", "application/zip"),
    "xlsx": (
        "xlsx",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ),
    "csv": ("csv", "text/csv; charset=utf-8"),
    "html": ("html", "text/html; charset=utf-8"),
    "kml": ("kml", "application/vnd.google-earth.kml+xml"),
}
_LOG = logging.getLogger("arcfleet.serve")

Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        pattern="^[!-~]{1,100}$",
        description="the same key and request again return what the first one made",
    ),
]
State = Literal["queued", "running", "done", "failed", "cancelled"]
Format = Literal["geojson", "json", "gpx", "sheets", "pdf", "xlsx", "csv", "html", "kml"]


class RequestError(Exception):
    """A request that cannot be answered, and why."""

    def __init__(
        self, kind: str, message: str, field: str | None = None, status: int | None = None
    ) -> None:
        super().__init__(message)
        self.kind, self.field, self.status = kind, field, status


def create_app(
    store: Store,
    board: Board,
    *,
    limits: Limits,
    tokens: Tokens | None = None,
) -> FastAPI:
    """Return the app of one server.

    Parameters
    ----------
    store
        Its data folder.
    board
        Its worker processes; the app starts and ends them.
    limits
        What one user may ask.
    tokens
        Token of the server; None lets everybody in who calls it by a name of this machine.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        if store.map(BUNDLED_ID) is None:
            store.add_map(BUNDLED_ID, BUNDLED_NAME, bundled=1)
        board.start()
        yield
        await run_in_threadpool(board.end)
        store.close()

    app = FastAPI(
        title="arcfleet",
        version=__version__,
        summary="Routes for fleets that work along streets.",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        responses={
            "4XX": {"model": models.ErrorAnswer},
            "5XX": {"model": models.ErrorAnswer},
        },
    )
    app.add_middleware(Guard, limits=limits, tokens=tokens)
    _add_error_handlers(app)
    api = _Api(store, board, limits)
    api.add_routes(app)
    _add_page(app)
    return app


# --- Errors -------------------------------------------------------------------------------


def _add_error_handlers(app: FastAPI) -> None:
    def of_request(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestError)
        return error_response(error.kind, str(error), error.field, error.status)

    def of_validation(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        field, message = _fault(error.errors()[0])
        return error_response("invalid", message, field)

    def of_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        kinds = {404: "not_found", 408: "timeout", 413: "too_large"}
        message = str(error.detail)
        if error.status_code == 404:
            message = "expected an address that /openapi.json lists, got another"
        if error.status_code == 405:
            message = "expected a method that /openapi.json lists, got another"
        kind = kinds.get(error.status_code, "invalid")
        answer = error_response(kind, message, status=error.status_code)
        answer.headers.update(error.headers or {})
        return answer

    def of_arcfleet(request: Request, error: Exception) -> Response:
        if isinstance(error, FileError):  # of ours: those of requests have no files
            return of_disk(request, error.__cause__ or error)
        return error_response("invalid", str(error))

    def of_disk(request: Request, error: BaseException) -> Response:
        if isinstance(error, FileNotFoundError):  # purged meanwhile
            return error_response("not_found", "there is no such thing any more")
        _LOG.error("the data folder cannot be used: %s", error)
        reason = getattr(error, "strerror", None) or type(error).__name__
        if isinstance(error, sqlite3.OperationalError):
            reason = str(error)
        message = f"the data folder cannot be used ({reason}): free some space, ask again"
        return error_response("internal", message)

    def of_client(request: Request, error: Exception) -> Response:
        return error_response("invalid", "expected the whole request, got a part")  # unread

    app.add_exception_handler(RequestError, of_request)
    app.add_exception_handler(RequestValidationError, of_validation)
    app.add_exception_handler(HTTPException, of_http)
    app.add_exception_handler(ArcfleetError, of_arcfleet)
    app.add_exception_handler(sqlite3.OperationalError, of_disk)
    app.add_exception_handler(OSError, of_disk)
    app.add_exception_handler(ClientDisconnect, of_client)


def _fault(found: Row) -> tuple[str | None, str]:
    """Return the field that is at fault in a request, and a sentence about it."""
    text, given = found["msg"].removeprefix("Value error, "), found.get("input")
    if found["type"] == "json_invalid":
        said = found.get("ctx", {}).get("error", "")
        return None, f"expected JSON as body, found a mistake in it: {said}"
    # The place ends with the case of a union, which is no field.
    place = [str(part) for part in found["loc"][1:]]
    while place and re.search(r"[\[(]|^constrained-|^(int|str|float)$", place[-1]):
        place.pop()
    field = ".".join(place) or None
    if text.startswith("expected"):
        return field, text
    if field is None:
        return None, (
            "expected JSON as body, got none that is an object: send the header "
            "Content-Type: application/json, and what /openapi.json describes"
        )
    if found["type"] == "missing":
        return field, f"expected {field}, got none: /openapi.json describes the request"
    if found["type"] == "extra_forbidden":
        return field, f"expected a field that /openapi.json lists, got {field:.100}"
    text = re.sub(r"^(Input|String|List|Tuple) should ", "", text).partition(", unable")[0]
    return field, f"expected {field} to {text}, got {reprlib.repr(given)}"


def _answer(value: Any, status: int = 200) -> Response:
    """Return JSON in ASCII, which holds any text."""
    text = json.dumps(value, separators=(",", ":"))
    return Response(text, status_code=status, media_type="application/json")


# --- Routes -------------------------------------------------------------------------------


class _Api:
    """The routes, and what they share."""

    def __init__(self, store: Store, board: Board, limits: Limits) -> None:
        self.store, self.board, self.limits = store, board, limits
        self.watchers = 0

    def add_routes(self, app: FastAPI) -> None:
        """Add every route of the API."""
        raw: dict[str, Any] = {
            "requestBody": {
                "required": True,
                "content": {
                    "application/octet-stream": {
                        "schema": {"type": "string", "format": "binary"}
                    }
                },
            }
        }
        for method, path, function, answer, status in (
            ("GET", "/health", self.health, models.Health, 200),
            ("GET", "/maps", self.maps, models.Maps, 200),
            ("POST", "/maps", self.add_map, models.Map, 202),
            ("GET", "/maps/{id}", self.map, models.Map, 200),
            ("DELETE", "/maps/{id}", self.delete_map, None, 204),
            ("GET", "/maps/{id}/streets", self.map_streets, None, 200),
            ("POST", "/scenes", self.add_scene, models.Scene, 201),
            ("GET", "/scenes/{id}", self.scene, models.Scene, 200),
            ("GET", "/scenes/{id}/streets", self.scene_streets, None, 200),
            ("GET", "/scenes/{id}/instance", self.scene_instance, None, 200),
            ("POST", "/jobs", self.add_job, models.Job, 202),
            ("POST", "/plans", self.add_plan, models.Job, 202),
            ("GET", "/jobs", self.jobs, models.Jobs, 200),
            ("GET", "/jobs/{id}", self.job, models.Job, 200),
            ("DELETE", "/jobs/{id}", self.delete_job, None, 204),
            ("POST", "/jobs/{id}/stop", self.stop_job, models.Job, 202),
            ("GET", "/jobs/{id}/events", self.events, None, 200),
            ("GET", "/jobs/{id}/curve", self.curve, models.Curve, 200),
            ("GET", "/jobs/{id}/plan", self.plan, None, 200),
            ("GET", "/jobs/{id}/diff/{other}", self.changes, models.Changes, 200),
        ):
            route: Any = app.api_route(
                f"/v1{path}",
                methods=[method],
                response_model=answer,
                status_code=status,
                operation_id=function.__name__,
                response_class=Response,
                openapi_extra=raw if function == self.add_map else None,
            )
            route(function)

    def health(self) -> Response:
        """Return whether the server works, and how busy it is."""
        counts = self.store.counts()
        return _answer(
            {
                "status": "ok",
                "version": __version__,
                "workers": self.board.workers,
                "queued": counts["queued"],
                "running": counts["running"],
            }
        )

    # --- Maps -----------------------------------------------------------------------------

    def maps(self) -> Response:
        """Return all maps."""
        return _answer({"maps": self.store.maps()})

    async def add_map(
        self,
        request: Request,
        name: Annotated[str, Query(min_length=1, max_length=200)],
        key: Key = None,
    ) -> Response:
        """Take a map: an OpenStreetMap extract or GeoJSON, as the bytes of the body.

        It is read in a process of its own; ask for the map until it is ready or failed.
        """
        part = self.store.folder / "parts" / new_id("u")
        try:
            size = 0
            with part.open("wb") as stream:
                async for chunk in request.stream():
                    size += len(chunk)
                    await run_in_threadpool(stream.write, chunk)
            if not size:
                raise RequestError(
                    "invalid",
                    "expected the file of a map as body, got none: send its bytes",
                )
            return await run_in_threadpool(self._add_map, part, name, key)
        finally:
            remove(part)

    def _add_map(self, part: Path, name: str, key: str | None) -> Response:
        asked = digest(b"map", name.encode("utf-8", "replace"), _digest_of(part))

        def make(id: str) -> None:
            if len(self.store.maps()) >= self.limits.maps:
                raise RequestError(
                    "too_many",
                    f"expected at most {self.limits.maps} maps, got more: delete some",
                )
            folder = self.store.map_folder(id)
            folder.mkdir()
            # The file has a name of ours: that of the user is a label and nothing else.
            part.replace(folder / "upload")
            self.store.add_map(id, _plain_name(name), key, asked)
            self.board.wake()

        return self._made("m", key, asked, make, 202)

    def map(self, id: str) -> Response:
        """Return a map."""
        return _answer(_known(self.store.map(id), "map"))

    def delete_map(self, id: str) -> Response:
        """Delete a map that no scene uses."""
        found = _known(self.store.map(id), "map")
        if found["bundled"]:
            raise RequestError("conflict", "the bundled map stays: delete another")
        if not self.store.remove_map(id):
            raise RequestError("conflict", "scenes use this map: it stays with them")
        return Response(status_code=204)

    def map_streets(self, id: str, request: Request) -> Response:
        """Return the streets of a map as GeoJSON; the id of each is its number."""
        if _known(self.store.map(id), "map")["state"] != "ready":
            raise RequestError("conflict", "this map is not read: ask when it is ready")
        return _geojson(request, self.store.map_folder(id) / "streets.geojson")

    # --- Scenes ---------------------------------------------------------------------------

    def add_scene(self, scene: models.SceneRequest, key: Key = None) -> Response:
        """Make a scene: what is to be served, from where and with what."""
        request = scene.model_dump(mode="json")
        asked = digest(b"scene", _canonical(request))

        def make(id: str) -> None:
            task = {"task": "scene", "request": request}
            if scene.map is not None:
                found = self.store.map(scene.map)
                if found is None:
                    raise RequestError(
                        "not_found", f"there is no map {scene.map}: GET /v1/maps", "map"
                    )
                if found["state"] != "ready":
                    raise RequestError(
                        "conflict", "the map is not read: ask when it is ready", "map"
                    )
                task |= self.board.map_source(scene.map)
            facts = self._at_desk(task | {"folder": str(self.store.scene_folder(id))})
            told = request
            if isinstance(scene.instance, dict):
                told = {**request, "instance": {}}  # it has an address of its own
            try:
                self.store.add_scene(id, scene.map, facts, told, key, asked)
            except MapGoneError:
                raise RequestError(
                    "not_found", "there is no such map any more", "map"
                ) from None

        return self._made("s", key, asked, make, 201)

    def scene(self, id: str) -> Response:
        """Return a scene."""
        return _answer(_known(self.store.scene(id), "scene"))

    def scene_streets(self, id: str, request: Request) -> Response:
        """Return the streets of a scene as GeoJSON; the id of each is that of its link."""
        _known(self.store.scene(id), "scene")
        return _geojson(request, self.store.scene_folder(id) / "streets.geojson")

    def scene_instance(self, id: str) -> Response:
        """Return the instance file of a scene, which arcfleet.read reads."""
        _known(self.store.scene(id), "scene")
        data = (self.store.scene_folder(id) / "instance.json").read_bytes()
        return _download(data, "application/json", f"scene-{id[2:10]}.json")

    # --- Jobs -----------------------------------------------------------------------------

    def add_job(self, job: models.JobRequest, key: Key = None) -> Response:
        """Queue a job: a search for a plan, from nothing or from that of another job."""
        request = job.model_dump(mode="json")
        asked = digest(b"job", _canonical(request))

        def make(id: str) -> None:
            self._require_scene(job.scene)
            find_method(job.method)  # or raise
            if self.store.counts()["queued"] >= self.limits.queued:
                raise RequestError(
                    "too_many",
                    f"expected at most {self.limits.queued} waiting jobs, got more: ask "
                    "again when some have ended",
                )
            links = {"new_scene": new_id("s"), "start_scene": None}
            plan = None
            if job.start is not None:
                start = self.store.job_row(job.start)
                if start is None:
                    raise RequestError(
                        "not_found", f"there is no job {job.start}: GET /v1/jobs", "start"
                    )
                # A copy: the earlier job may go on, or be purged.
                plan = self._plan_file(start).read_bytes()
                links["start_scene"] = start["scene"]
            folder = self.store.job_folder(id)
            folder.mkdir()
            if plan is not None:
                write_bytes_atomically(folder / "start.json", plan)
            write_json(folder / "job.json", links)
            self.store.add_job(id, job.scene, request, key, asked)
            self.board.wake()

        return self._made("j", key, asked, make, 202)

    def add_plan(self, plan: models.PlanRequest, key: Key = None) -> Response:
        """Take a plan that was made elsewhere, as a job that is done at once."""
        request = plan.model_dump(mode="json")
        asked = digest(b"plan", _canonical(request))

        def make(id: str) -> None:
            self._require_scene(plan.scene)
            folder = self.store.job_folder(id)
            folder.mkdir()
            task = {
                "task": "plan",
                "plan": plan.plan,
                "folder": str(folder),
                "instance": str(self.store.scene_folder(plan.scene) / "instance.json"),
            }
            end = self._at_desk(task)
            job = models.JobRequest(scene=plan.scene).model_dump(mode="json")
            self.store.add_done_job(id, plan.scene, job, end, key, asked)

        return self._made("j", key, asked, make, 202)

    def jobs(
        self,
        state: State | None = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
        after: Annotated[str | None, Query(max_length=80)] = None,
    ) -> Response:
        """Return jobs, newest first; `after` is the last id of the page before."""
        if after is not None and self.store.job_row(after) is None:
            raise RequestError(
                "not_found", f"there is no job {after}: GET /v1/jobs", "after"
            )
        return _answer({"jobs": self.store.jobs(state, limit, after)})

    def job(self, id: str) -> Response:
        """Return a job."""
        return _answer(_known(self.store.job(id), "job"))

    def delete_job(self, id: str, purge: bool = False) -> Response:
        """Cancel a job that has not ended; with `purge`, delete one that has."""
        found = _known(self.store.job(id), "job")
        if found["state"] in ("queued", "running"):
            self.board.cancel_job(id)
        elif not purge:
            raise RequestError(
                "conflict", "this job has ended: delete it for good with ?purge=true"
            )
        else:
            self.store.purge_job(id)
        return Response(status_code=204)

    def stop_job(self, id: str) -> Response:
        """End a job with the best plan that it has, or the first that it finds."""
        found = _known(self.store.job(id), "job")
        if found["state"] not in ("queued", "running"):
            raise RequestError("conflict", f"this job has ended: it is {found['state']}")
        self.board.stop_job(id)
        return _answer(_known(self.store.job(id), "job"), 202)

    async def events(
        self,
        id: str,
        request: Request,
        last: Annotated[
            str | None, Header(alias="Last-Event-ID", pattern="^[0-9]{1,9}$")
        ] = None,
    ) -> Response:
        """Return what happens to a job as server-sent events, from its start or `last` on.

        Events are `state` and `end` with the job, `progress`, and `plan` when a better
        plan is stored. Their ids are the numbers of lines of the job's log.
        """
        _known(self.store.job(id), "job")
        if self.watchers >= self.limits.watchers:
            raise RequestError("too_many", "too many watch at a time: ask again later")
        stream = self._stream(id, 0 if last is None else int(last))
        return StreamingResponse(stream, media_type="text/event-stream")

    async def _stream(self, id: str, sent: int) -> AsyncIterator[str]:
        self.watchers += 1
        try:
            yield "retry: 1000\n\n"
            log = self.store.job_folder(id) / "events.jsonl"
            number, offset, quiet, ended = 0, 0, 0.0, False
            while not self.board.ending.is_set():
                lines, offset = await run_in_threadpool(_lines_from, log, offset)
                for line in lines:
                    number += 1
                    for event, data in events_of([line]):
                        if number > sent:
                            text = json.dumps(data, separators=(",", ":"))
                            yield f"id: {number}\nevent: {event}\ndata: {text}\n\n"
                            quiet = 0.0
                        if event == "end":
                            return
                job = await run_in_threadpool(self.store.job_row, id)
                if job is None:
                    return
                if job["state"] in ENDED and ended:  # and its log does not have it
                    if number >= sent:
                        text = json.dumps(self.store.job(id), separators=(",", ":"))
                        yield f"id: {number + 1}\nevent: end\ndata: {text}\n\n"
                    return
                ended = job["state"] in ENDED
                await asyncio.sleep(_LOOK_SECONDS)
                quiet += _LOOK_SECONDS
                if quiet >= _QUIET_SECONDS:
                    yield ": still here\n\n"
                    quiet = 0.0
        finally:
            self.watchers -= 1

    def curve(self, id: str) -> Response:
        """Return how the cost of a job fell."""
        _known(self.store.job(id), "job")
        lines, _ = _lines_from(self.store.job_folder(id) / "events.jsonl", 0)
        points: list[Row] = []
        for event, data in events_of(lines):
            if event == "progress" and (not points or data["cost"] < points[-1]["cost"]):
                points.append({"seconds": data["seconds"], "cost": data["cost"]})
        return _answer({"points": points})

    # --- Plans ----------------------------------------------------------------------------

    def plan(self, id: str, format: Format = "geojson") -> Response:
        """Return the best plan so far: as it is, or written in another format.

        `gpx`, `sheets` and `pdf` are zip files with a file for each route.
        """
        row = _known(self.store.job_row(id), "job")
        file = self._plan_file(row)
        suffix, media_type = _EXPORTS[format]
        name = (
            f"plan-{id[2:10]}-{format}.{suffix}"
            if suffix == "zip"
            else (f"plan-{id[2:10]}.{suffix}")
        )
        if format == "json":
            return _download(file.read_bytes(), media_type, name)
        if format == "geojson":
            drawn = file.with_name("plan.geojson")
            if not drawn.exists():
                raise RequestError(
                    "invalid", "this scene has no coordinates: ask for json, csv or html"
                )
            return _download(drawn.read_bytes(), media_type, name)
        is_final = row["state"] in ("done", "failed", "cancelled")
        target = file.with_name(f"export-{format}")
        if not is_final:
            target = self.store.folder / "parts" / new_id("e")
        try:
            if not target.exists():
                task = {
                    "task": "export",
                    "format": format,
                    "plan": str(file),
                    "instance": self._instance_file(row),
                    "parts": str(self.store.folder / "parts"),
                    "target": str(target),
                }
                self._at_desk(task)
            data = target.read_bytes()
        finally:
            if not is_final:
                remove(target)
        return _download(data, media_type, name, is_page=format == "html")

    def changes(
        self, id: str, other: str, format: Literal["json", "html"] = "json"
    ) -> Response:
        """Return what changed from the plan of another, earlier job to that of this one."""
        after = _known(self.store.job_row(id), "job")
        before = _known(self.store.job_row(other), "job")
        target = self.store.folder / "parts" / new_id("d")
        task = {
            "task": "changes",
            "format": format,
            "plan": str(self._plan_file(after)),
            "old_plan": str(self._plan_file(before)),
            "instance": self._instance_file(after),
            "old_instance": self._instance_file(before),
            "parts": str(self.store.folder / "parts"),
            "target": str(target),
        }
        try:
            found = self._at_desk(task)
            if format == "json":
                return _answer(found["changes"])
            data = target.read_bytes()
        finally:
            remove(target)
        return _download(data, _EXPORTS["html"][1], "changes.html", is_page=True)

    # --- What they share ------------------------------------------------------------------

    def _made(
        self,
        prefix: str,
        key: str | None,
        asked: str,
        make: Callable[[str], None],
        status: int,
    ) -> Response:
        """Make something once for a key, and return it; nothing stays where that fails."""
        store = self.store
        view, folder = {
            "m": (store.map, store.map_folder),
            "s": (store.scene, store.scene_folder),
            "j": (store.job, store.job_folder),
        }[prefix]
        with self.store.key(key):
            try:
                id = self.store.made_before(key, asked)
            except KeyUsedError:
                raise RequestError(
                    "conflict",
                    "expected a new Idempotency-Key for a new request, got one that came "
                    "with another: choose another key",
                    "Idempotency-Key",
                ) from None
            if id is not None:
                return _answer(_known(view(id), "thing"))
            id = new_id(prefix)
            try:
                make(id)
            except BaseException:
                if view(id) is None:
                    remove(folder(id))
                raise
        return _answer(_known(view(id), "thing"), status)

    def _at_desk(self, task: Row) -> Row:
        try:
            end = self.board.desk.do(task)
        except (BusyError, WorkerLostError, TooLateError) as error:
            end = {"error": desk_error(error)}
        if "error" in end:
            found = end["error"]
            raise RequestError(found["type"], found["message"], found["field"])
        return end

    def _require_scene(self, id: str) -> None:
        if self.store.scene(id) is None:
            raise RequestError(
                "not_found", f"there is no scene {id}: make one, POST /v1/scenes", "scene"
            )

    def _plan_file(self, row: Row) -> Path:
        file = self.store.job_folder(row["id"]) / "plan.json"
        if read_json(file.with_name("best.json")) is None:
            raise RequestError("conflict", "this job has no plan yet: ask again later")
        return file

    def _instance_file(self, row: Row) -> str:
        return str(self.store.scene_folder(row["scene"]) / "instance.json")


def _known(found: Row | None, what: str) -> Row:
    if found is None:
        raise RequestError("not_found", f"there is no such {what}: check its id")
    return found


def _canonical(request: Row) -> bytes:
    return json.dumps(request, sort_keys=True).encode()


def _digest_of(file: Path) -> bytes:
    with file.open("rb") as stream:
        parts = iter(lambda: stream.read(1 << 20), b"")
        return digest(*parts).encode()


def _plain_name(name: str) -> str:
    """Return the name of an uploaded file in one line."""
    return "".join(c if c.isprintable() else "?" for c in name).strip()


def _lines_from(log: Path, offset: int) -> tuple[list[bytes], int]:
    """Return the whole lines of a log from an offset on, and where they end."""
    try:
        with log.open("rb") as stream:
            stream.seek(offset)
            data = stream.read()
    except FileNotFoundError:
        return [], offset
    end = data.rfind(b"\n") + 1
    return data[:end].split(b"\n")[:-1], offset + end


def _packed(request: Request, data: bytes, media_type: str, headers: Row) -> Response:
    """Return a large answer, packed for those who take it so."""
    headers = {"Vary": "Accept-Encoding", **headers}
    if "gzip" in request.headers.get("accept-encoding", ""):
        data = gzip.compress(data, 3)
        headers["Content-Encoding"] = "gzip"
    return Response(data, media_type=media_type, headers=headers)


def _geojson(request: Request, file: Path) -> Response:
    return _packed(request, file.read_bytes(), _EXPORTS["geojson"][1], {})


def _download(data: bytes, media_type: str, name: str, is_page: bool = False) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    if is_page:
        headers = {"Content-Disposition": f'inline; filename="{name}"'}
        headers["Content-Security-Policy"] = PLAN_POLICY
    return Response(data, media_type=media_type, headers=headers)


# --- The page -----------------------------------------------------------------------------


def _add_page(app: FastAPI) -> None:
    """Add the files of the page: those that are in the package, and no others."""
    folder = Path(str(resources.files("arcfleet.serve"))) / "page"
    files = {
        file.relative_to(folder).as_posix(): file
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }

    @app.get("/", include_in_schema=False)
    def index() -> Response:
        if "index.html" not in files:
            return Response("arcfleet serves its API here, see /openapi.json\n")
        return Response(files["index.html"].read_bytes(), media_type="text/html")

    @app.get("/{path:path}", include_in_schema=False)
    def asset(path: str, request: Request) -> Response:
        file = files.get(path)  # looked up, never put together
        if file is None:
            raise HTTPException(404)
        kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        headers = {"Cache-Control": "no-cache"}
        if path.startswith("assets/"):  # their names change with their content
            headers = {"Cache-Control": "private, max-age=31536000, immutable"}
        return _packed(request, file.read_bytes(), kind, headers)
