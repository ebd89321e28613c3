"""What may be asked, checked field by field, with examples for the OpenAPI document."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic_core import to_jsonable_python

#: Longest name of anything.
_LONGEST = 200
_MOST_STREETS = 1_000_000
_MOST_ROUTES = 100_000
_LARGEST = 2**31 - 1

Name = Annotated[str, Field(max_length=_LONGEST)]
Amount = Annotated[int, Field(ge=0, le=_LARGEST)]
Positive = Annotated[int, Field(ge=1, le=_LARGEST)]
Place = Annotated[tuple[float, float], Field(description="[longitude, latitude]")]
Names = Annotated[list[Name], Field(max_length=10_000)]
Positions = Annotated[list[Amount], Field(max_length=_MOST_STREETS)]
Routes = Annotated[list[Positive], Field(max_length=_MOST_ROUTES)]


def _plain_json(value: Any) -> Any:
    """Refuse NaN and Infinity, which Python reads and JSON does not know."""
    try:
        json.dumps(value, allow_nan=False)
        to_jsonable_python(value)  # which bounds the depth
    except (ValueError, RecursionError) as error:
        text = "expected plain JSON, got NaN, Infinity or brackets nested too deeply"
        raise ValueError(text) from error
    return value


Document = Annotated[dict[str, Any], AfterValidator(_plain_json)]


class Model(BaseModel):
    """An object of a request: no unknown fields, only finite numbers."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, frozen=True)


class Serve(Model):
    """Streets to serve: by class and name, or exactly those of some numbers."""

    kinds: Names | None = None
    names: Names = []
    streets: Positions | None = None


class Exclude(Model):
    """Streets that are not served, whatever else asks for them."""

    kinds: Names = []
    names: Names = []
    streets: Positions = []


class SceneFacility(Model):
    """Where vehicles empty or refill."""

    place: Place
    cost: Amount = 0
    name: Name = ""


class SceneVehicle(Model):
    """A vehicle type."""

    name: Annotated[str, Field(min_length=1, max_length=_LONGEST)]
    depot: Place | None = None
    end: Place | None = None
    capacity: Positive | None = None
    count: Positive | None = None
    fixed_cost: Amount = 0
    shift: Positive | Annotated[str, Field(max_length=40)] | None = None
    forbidden_kinds: Names = []


class Operations(Model):
    """Depots, facilities, vehicle types, the shift, and prices on the shape of plans."""

    depots: Annotated[list[Place], Field(max_length=1000)] = []
    facilities: Annotated[list[SceneFacility], Field(max_length=1000)] = []
    empty_at_end: bool = True
    shift: Positive | Annotated[str, Field(max_length=40)] | None = None
    vehicles: Annotated[list[SceneVehicle], Field(max_length=1000)] = []
    fleet_limit: Positive | None = None
    fewest_routes: bool = False
    balance: Annotated[float, Field(ge=0, le=1e6)] = 0.0
    compactness: Amount = 0


class Turns(Model):
    """Turn rules; penalties are in the unit of all costs."""

    restrictions: bool = True
    u_turns: Literal["allowed", "dead-ends", "forbidden"] = "dead-ends"
    u_turn_penalty: Amount = 0
    left: Amount = 0
    right: Amount = 0
    straight: Amount = 0
    traffic: Literal["right", "left"] = "right"


class SceneRequest(Model):
    """What is to be served, from where and with what: a map and rules, or an instance."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "map": "m_denver",
                    "name": "Monday",
                    "serve": {"kinds": ["residential", "tertiary"]},
                    "capacity": 8000,
                    "depot": [-104.9903, 39.7392],
                    "operations": {"shift": "40 km"},
                    "turns": {"u_turns": "dead-ends", "left": 15},
                },
                {"instance": "example:denver"},
            ]
        }
    )

    map: Annotated[str, Field(max_length=80)] | None = None
    instance: Document | Literal["example:denver"] | None = Field(
        None, description="an instance of arcfleet as JSON, in place of a map"
    )
    name: Name = ""
    area: Document | None = Field(None, description="GeoJSON Polygon or MultiPolygon")
    border: Literal["middle", "leave"] = "middle"
    serve: Serve = Serve()
    exclude: Exclude = Exclude()
    capacity: Positive | None = None
    demand: Literal["length"] | Amount = "length"
    cost: Literal["length", "time"] = "length"
    one_way: bool = True
    both_sides: bool = False
    depot: Place | None = None
    operations: Operations | None = None
    turns: Turns | None = None

    @model_validator(mode="after")
    def _one_source(self) -> SceneRequest:
        if (self.map is None) == (self.instance is None):
            raise ValueError("expected either a map or an instance")
        if self.instance is not None and self.model_fields_set - {"instance", "name"}:
            raise ValueError("expected no rules beside an instance, which has its own")
        return self


class Move(Model):
    """A street that goes to another route."""

    link: Amount
    route: Positive


class Add(Model):
    """A street that is served as well."""

    link: Amount
    demand: Amount | Literal["length"] = "length"


class Edit(Model):
    """A plan changed by hand."""

    move: Annotated[list[Move], Field(max_length=_MOST_ROUTES)] = []
    remove: Positions = []
    add: Annotated[list[Add], Field(max_length=_MOST_ROUTES)] = []
    free: Routes = []
    price: Amount | None = None


class JobRequest(Model):
    """A search for a plan of a scene, from nothing or from an earlier plan."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"scene": "s_0123456789abcdef", "seconds": 10, "seed": 1},
                {
                    "scene": "s_0123456789abcdef",
                    "start": "j_0123456789abcdef",
                    "edit": {"move": [{"link": 17, "route": 2}]},
                    "seconds": 5,
                },
            ]
        }
    )

    scene: Annotated[str, Field(max_length=80)]
    seconds: Annotated[float, Field(ge=0, le=3600)] = 10.0
    iterations: Annotated[int, Field(ge=1, le=10**12)] | None = None
    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] = 0
    method: Annotated[str, Field(max_length=40)] = "auto"
    bound: bool = False
    start: Annotated[str, Field(max_length=80)] | None = None
    edit: Edit | None = None
    lock: Routes = []
    keep: Amount | None = None
    exclude: Positions = []

    @model_validator(mode="after")
    def _with_start(self) -> JobRequest:
        if self.start is None:
            for name in ("edit", "lock", "keep"):
                if getattr(self, name) not in (None, []):
                    raise ValueError(f"expected a job to start from with {name}, got none")
            if self.seconds == 0:
                raise ValueError("expected more than 0 seconds, or a job to start from")
        return self


class PlanRequest(Model):
    """A plan made elsewhere, as its JSON file."""

    scene: Annotated[str, Field(max_length=80)]
    plan: Document


# --- Answers: for the OpenAPI document; what is sent is made by `store` -------------------


class ErrorBody(BaseModel):
    """What is wrong, and what to do about it."""

    type: Literal[
        "not_found",
        "invalid",
        "too_large",
        "too_many",
        "unauthorised",
        "conflict",
        "unsolvable",
        "timeout",
        "internal",
    ]
    message: str
    field: str | None = None


class ErrorAnswer(BaseModel):
    """The answer to every request that fails."""

    error: ErrorBody


class Health(BaseModel):
    """Whether the server works, and how busy it is."""

    status: Literal["ok"]
    version: str
    workers: int
    queued: int
    running: int


class Kind(BaseModel):
    """A class of streets of a map."""

    kind: str
    streets: int
    length: float


class Map(BaseModel):
    """A street map."""

    id: str
    name: str
    state: Literal["reading", "ready", "failed"]
    error: ErrorBody | None
    streets: int
    length: float
    bounds: tuple[float, float, float, float] | None
    kinds: list[Kind]
    attribution: str
    created: str
    bundled: bool


class Maps(BaseModel):
    """All maps."""

    maps: list[Map]


class Unit(BaseModel):
    """Units of a scene."""

    cost: Literal["m", "s", ""]


class Scene(BaseModel):
    """What is to be served: streets, vehicles and rules."""

    id: str
    map: str | None
    name: str
    streets: int
    links: int
    length: float
    demand: int
    least_routes: int
    capacity: int
    unit: Unit
    warnings: list[str]
    created: str
    request: dict[str, Any]


class Best(BaseModel):
    """The best plan so far."""

    cost: int
    routes: int
    seconds: float
    iterations: int


class RouteFacts(BaseModel):
    """Figures of one route."""

    number: int
    vehicle: str
    streets: int
    load: int
    cost: int
    length: int | None
    time: int | None


class JobResult(BaseModel):
    """The plan of a job that has ended."""

    cost: int
    gap: float | None
    routes: list[RouteFacts]
    stopped_by: str
    fallback: str | None


class Job(BaseModel):
    """A search, and what came of it."""

    id: str
    scene: str
    state: Literal["queued", "running", "done", "failed", "cancelled"]
    position: int | None
    request: dict[str, Any]
    created: str
    started: str | None
    ended: str | None
    best: Best | None
    result: JobResult | None
    error: ErrorBody | None
    repair: list[str]


class Jobs(BaseModel):
    """Some jobs, newest first."""

    jobs: list[Job]


class CurvePoint(BaseModel):
    """A better plan, and when it was found."""

    seconds: float
    cost: int


class Curve(BaseModel):
    """How the cost fell."""

    points: list[CurvePoint]


class MovedStreet(BaseModel):
    """A street on another route, or on none."""

    link: int | None
    name: str
    before: int | None
    after: int | None


class CostChange(BaseModel):
    """The cost before and after."""

    before: int
    after: int


class Changes(BaseModel):
    """What differs between two plans."""

    cost: CostChange
    moved: list[MovedStreet]
    removed: list[MovedStreet]
    added: list[MovedStreet]
    routes: list[dict[str, Any]]
