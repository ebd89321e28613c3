"""Requests that schemathesis makes up from the OpenAPI document: none ends in a 500."""

from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.serve.running import Json, Server

_EXAMPLES = 15


def operations(server: Server) -> list[Any]:
    schema = schemathesis.openapi.from_url(f"{server.address}openapi.json")
    found: list[Any] = list(schema.get_all_operations())
    return [one.ok() for one in found]


def statuses_of(server: Server, operation: Any, known: dict[str, str]) -> set[int]:
    """Ask some requests of an operation, half of them about things that are there."""
    found: set[int] = set()

    @seed(1)
    @settings(
        max_examples=_EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(), is_known=st.booleans())
    def ask(case: Any, is_known: bool) -> None:
        if is_known and case.method != "DELETE" and case.path_parameters:
            id = known[case.path.split("/")[2]]
            case.path_parameters = dict.fromkeys(case.path_parameters, id)
        if is_known and isinstance(case.body, dict):
            for name, part in (("scene", "scenes"), ("map", "maps"), ("start", "jobs")):
                if case.body.get(name) is not None:
                    case.body[name] = known[part]
            if "seconds" in case.body:
                case.body["seconds"] = 0.01
        answer = case.call(base_url=server.address)
        assert answer.status_code < 500, answer.text
        if answer.status_code >= 400:
            assert set(answer.json()["error"]) == {"type", "message", "field"}
        found.add(answer.status_code)

    ask()
    return found


def test_no_request_ends_in_a_server_error(
    server: Server, scene: Json, solved_job: Json
) -> None:
    known = {"maps": scene["map"], "scenes": scene["id"], "jobs": solved_job["id"]}
    found = {
        f"{operation.method.upper()} {operation.path}": statuses_of(
            server, operation, known
        )
        for operation in operations(server)
    }
    assert len(found) == 20
    # The requests reached more than the checks of their form.
    assert 200 in found["GET /v1/jobs/{id}/plan"]
    assert 200 in found["GET /v1/scenes/{id}"]
