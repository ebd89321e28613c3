"""The API from upload to download, with real worker processes."""

import csv
import io
import json
import threading
import zipfile
from pathlib import Path

import pytest

import arcfleet
from tests.serve.conftest import make_town_scene
from tests.serve.running import Json, Server, town, until


def test_health_tells_version_and_queue(server: Server) -> None:
    found = server.get("/health")
    assert found["status"] == "ok"
    assert found["version"] == arcfleet.__version__
    assert found["workers"] == 2


# --- Maps ---------------------------------------------------------------------------------


def test_the_bundled_map_is_ready_and_credited(server: Server) -> None:
    until(lambda: server.get("/maps/m_denver")["state"] == "ready")
    streets = server.get("/maps/m_denver/streets")["features"]
    found = next(one for one in server.get("/maps")["maps"] if one["id"] == "m_denver")
    assert found["bundled"]
    assert found["streets"] == len(streets) == 815
    assert "OpenStreetMap" in found["attribution"]
    assert server.client.delete("/v1/maps/m_denver").status_code == 409


def test_every_street_of_the_bundled_map_can_be_served(server: Server) -> None:
    until(lambda: server.get("/maps/m_denver")["state"] == "ready")
    found = server.post("/scenes", {"map": "m_denver", "capacity": 9000})
    assert (found["streets"], found["warnings"]) == (815, [])


def test_an_uploaded_map_is_read(server: Server, town_map: Json) -> None:
    assert town_map["state"] == "ready"
    assert town_map["name"] == "town"
    assert {one["kind"]: one["streets"] for one in town_map["kinds"]} == {
        "residential": 20,
        "tertiary": 20,
    }
    collection = server.get(f"/maps/{town_map['id']}/streets")
    assert [one["id"] for one in collection["features"]] == list(range(40))
    facts = collection["features"][0]["properties"]
    assert set(facts) == {"name", "kind", "one_way", "length"}
    west, south, east, north = town_map["bounds"]
    assert (west, south) == (7, 50)
    assert east == pytest.approx(7.008)
    assert north == pytest.approx(50.0056)


def test_an_extract_is_read(server: Server, tmp_path: Path) -> None:
    osmium = pytest.importorskip("osmium")
    file = tmp_path / "town.osm.pbf"
    writer = osmium.SimpleWriter(str(file))
    for id, place in enumerate(((7.0, 50.0), (7.01, 50.0), (7.01, 50.01)), start=1):
        writer.add_node(osmium.osm.mutable.Node(id=id, location=place, version=1))
    tags = {"highway": "residential", "name": "Lane"}
    writer.add_way(osmium.osm.mutable.Way(id=1, nodes=[1, 2, 3], tags=tags, version=1))
    writer.close()
    found = server.upload("a town.osm.pbf", file.read_bytes())
    assert (found["state"], found["name"], found["streets"]) == ("ready", "a town", 1)
    assert "OpenStreetMap" in found["attribution"]


def test_a_map_that_is_none_fails_with_a_sentence(server: Server) -> None:
    found = server.upload("photo.osm.pbf", b"\x89PNG nothing to see here")
    assert found["state"] == "failed"
    assert found["error"]["type"] == "invalid"
    message = found["error"]["message"]
    assert message.startswith("photo.osm.pbf: expected an OpenStreetMap extract")
    refused = server.client.get(f"/v1/maps/{found['id']}/streets")
    assert refused.status_code == 409
    assert server.client.delete(f"/v1/maps/{found['id']}").status_code == 204
    assert server.client.get(f"/v1/maps/{found['id']}").status_code == 404


def test_an_error_names_the_uploaded_file_and_the_line(server: Server) -> None:
    found = server.upload("my town.geojson", b'{"type":\n"Feature')
    message = found["error"]["message"]
    assert message.startswith("my town.geojson: line 2: expected GeoJSON")
    assert found["name"] == "my town"


def test_a_map_in_use_stays(server: Server, scene: Json) -> None:
    refused = server.client.delete(f"/v1/maps/{scene['map']}")
    assert refused.status_code == 409
    assert refused.json()["error"]["type"] == "conflict"


# --- Scenes -------------------------------------------------------------------------------


def test_a_scene_counts_what_is_served(server: Server, scene: Json) -> None:
    assert scene["streets"] == 20
    assert scene["links"] == 40
    assert scene["unit"] == {"cost": "m"}
    assert scene["least_routes"] == -(-scene["demand"] // 1000)
    assert server.get(f"/scenes/{scene['id']}") == scene
    streets = server.get(f"/scenes/{scene['id']}/streets")
    assert sum(one["properties"]["required"] for one in streets["features"]) == 20
    assert [one["id"] for one in streets["features"]] == list(range(40))
    assert [one["properties"]["street"] for one in streets["features"]] == list(range(40))
    assert len(streets["depots"]) == 1


def test_a_scene_can_be_downloaded_and_used_again(
    server: Server, scene: Json, tmp_path: Path
) -> None:
    answer = server.client.get(f"/v1/scenes/{scene['id']}/instance")
    file = tmp_path / "scene.json"
    file.write_bytes(answer.content)
    assert len(arcfleet.read(file).required) == 20
    again = server.post("/scenes", {"instance": answer.json()})
    assert again["map"] is None
    assert again["streets"] == 20
    assert server.get(f"/scenes/{again['id']}/instance") == answer.json()


def test_exactly_the_streets_that_were_picked_are_served(
    server: Server, town_map: Json
) -> None:
    picked = {"map": town_map["id"], "serve": {"streets": [3, 17, 25]}, "capacity": 1000}
    found = server.post("/scenes", picked)
    streets = server.get(f"/scenes/{found['id']}/streets")["features"]
    served = [
        one["properties"]["street"] for one in streets if one["properties"]["required"]
    ]
    assert served == [3, 17, 25]
    fewer = server.post("/scenes", picked | {"exclude": {"streets": [17]}})
    assert fewer["streets"] == 2


def test_an_area_and_all_rules_are_taken(server: Server, town_map: Json) -> None:
    ring = [[6.99, 49.99], [7.005, 49.99], [7.005, 50.1], [6.99, 50.1], [6.99, 49.99]]
    found = make_town_scene(
        server,
        town_map["id"],
        name="half of it",
        area={"type": "Polygon", "coordinates": [ring]},
        serve={"kinds": None},
        exclude={"names": ["Row 4"]},
        cost="time",
        demand=5,
        capacity=60,
        depot=[7.0, 50.0],
        operations={
            "facilities": [{"place": [7.008, 50.0], "cost": 60, "name": "landfill"}],
            "vehicles": [{"name": "van", "count": 9, "shift": "2 h", "capacity": 30}],
            "balance": 1.0,
        },
        turns={"u_turns": "dead-ends", "left": 5},
    )
    assert found["name"] == "half of it"
    assert found["unit"] == {"cost": "s"}
    assert 0 < found["streets"] < 40
    streets = server.get(f"/scenes/{found['id']}/streets")
    assert streets["facilities"] == [
        {"name": "landfill", "place": [7.008, 50.0], "cost": 60}
    ]
    done = server.solved(found["id"])
    assert done["result"]["routes"][0]["vehicle"] == "van"


def test_the_example_is_a_scene(server: Server) -> None:
    found = server.post("/scenes", {"instance": "example:denver"})
    assert found["streets"] > 0


def test_a_document_that_is_no_instance_is_told_what_one_is(server: Server) -> None:
    body = {"instance": {"format": "arcfleet-1"}}
    answer = server.client.post("/v1/scenes", json=body)
    assert answer.json()["error"]["message"] == (
        "expected format 'arcfleet-instance', found 'arcfleet-1'"
    )


# --- Jobs ---------------------------------------------------------------------------------


def test_a_job_ends_with_a_plan_that_the_checker_finds_right(
    server: Server, scene: Json, solved_job: Json, tmp_path: Path
) -> None:
    assert solved_job["result"]["stopped_by"] == "iterations"
    assert solved_job["best"]["cost"] == solved_job["result"]["cost"]
    (tmp_path / "scene.json").write_text(json.dumps(_instance(server, scene)))
    instance = arcfleet.read(tmp_path / "scene.json")
    (tmp_path / "plan.json").write_text(
        json.dumps(server.get(f"/jobs/{solved_job['id']}/plan", params={"format": "json"}))
    )
    plan = arcfleet.read_solution(tmp_path / "plan.json", instance)
    assert arcfleet.check(instance, plan).faults == ()
    assert plan.cost == solved_job["result"]["cost"]
    assert sum(route["streets"] for route in solved_job["result"]["routes"]) == 20


def _instance(server: Server, scene: Json) -> Json:
    found: Json = server.get(f"/scenes/{scene['id']}/instance")
    return found


def test_events_tell_the_whole_story_and_resume(server: Server, solved_job: Json) -> None:
    told = server.events(solved_job["id"])
    names = [name for _, name, _ in told]
    assert names[:2] == ["state", "state"]
    assert names[-1] == "end"
    assert [told[0][2]["state"], told[1][2]["state"]] == ["queued", "running"]
    assert told[-1][2]["result"] == solved_job["result"]
    assert {"plan", "progress"} <= set(names)
    costs = [data["cost"] for _, name, data in told if name == "progress"]
    assert costs == sorted(costs, reverse=True)
    numbers = [number for number, _, _ in told]
    assert numbers == list(range(1, len(told) + 1))
    assert server.events(solved_job["id"], last=3) == told[3:]
    assert server.events(solved_job["id"], last=len(told)) == []
    points = server.get(f"/jobs/{solved_job['id']}/curve")["points"]
    assert points[-1]["cost"] == solved_job["result"]["cost"]


def test_a_running_job_can_be_stopped(server: Server, scene: Json) -> None:
    job = server.job(scene["id"], seconds=600, iterations=None)
    for _, name, _ in server.watch(job["id"]):
        if name == "plan":
            break
    assert server.client.get(f"/v1/jobs/{job['id']}/plan").status_code == 200
    assert server.client.post(f"/v1/jobs/{job['id']}/stop").status_code == 202
    done = server.ended(job)
    assert done["state"] == "done"
    assert done["result"]["stopped_by"] == "user"
    assert server.client.post(f"/v1/jobs/{job['id']}/stop").status_code == 409


def test_jobs_can_be_cancelled_and_purged(server: Server, scene: Json) -> None:
    jobs = [server.job(scene["id"], seconds=600, iterations=None) for _ in range(3)]
    waiting = server.get(f"/jobs/{jobs[2]['id']}")
    assert (waiting["state"], waiting["position"]) == ("queued", 1)
    for job in reversed(jobs):
        assert server.client.delete(f"/v1/jobs/{job['id']}").status_code == 204
    for job in jobs:
        found = server.ended(job)
        assert found["state"] == "cancelled"
        assert found["result"] is None
        assert server.events(job["id"])[-1][1] == "end"
        assert server.client.delete(f"/v1/jobs/{job['id']}").status_code == 409
        gone = server.client.delete(f"/v1/jobs/{job['id']}", params={"purge": True})
        assert gone.status_code == 204
        assert server.client.get(f"/v1/jobs/{job['id']}").status_code == 404
        assert not (server.folder / "jobs" / job["id"]).exists()
    server.solved(scene["id"])  # the workers are fit again


def test_jobs_are_listed_newest_first(server: Server, scene: Json) -> None:
    made = [server.solved(scene["id"], iterations=10)["id"] for _ in range(3)]
    listed = [one["id"] for one in server.get("/jobs", params={"limit": 2})["jobs"]]
    assert listed == made[:0:-1]
    after = server.get("/jobs", params={"after": listed[-1], "limit": 1})["jobs"]
    assert [one["id"] for one in after] == made[:1]
    assert server.get("/jobs", params={"state": "running"})["jobs"] == []


def test_a_scene_without_a_plan_fails_with_a_sentence(
    server: Server, town_map: Json
) -> None:
    found = make_town_scene(
        server, town_map["id"], capacity=200, operations={"fleet_limit": 1}
    )
    job = server.ended(server.job(found["id"]))
    assert job["state"] == "failed"
    assert job["error"]["type"] == "unsolvable"
    assert job["result"] is None
    assert server.client.get(f"/v1/jobs/{job['id']}/plan").status_code == 409
    request = {"scene": found["id"], "start": job["id"]}
    refused = server.client.post("/v1/jobs", json=request)
    assert (refused.status_code, refused.json()["error"]["type"]) == (409, "conflict")


def test_a_bound_gives_a_gap(server: Server, scene: Json) -> None:
    pytest.importorskip("highspy")
    done = server.solved(scene["id"], bound=True, iterations=50)
    assert done["result"]["gap"] >= 0


# --- Changing plans -----------------------------------------------------------------------


def test_a_street_goes_to_another_route_and_comes_back_by_undo(
    server: Server, scene: Json, solved_job: Json
) -> None:
    before = server.routes(solved_job)
    link, number = next(iter(before.items()))
    other = next(route for route in before.values() if route != number)
    moved = server.solved(
        scene["id"],
        start=solved_job["id"],
        edit={"move": [{"link": link, "route": other}]},
        seconds=0,
    )
    assert moved["scene"] == scene["id"]
    assert server.routes(moved)[link] == other
    told = server.get(f"/jobs/{moved['id']}/diff/{solved_job['id']}")
    assert [(x["link"], x["before"], x["after"]) for x in told["moved"]][:1] == [
        (link, number, other)
    ]
    assert told["cost"]["before"] == solved_job["result"]["cost"]
    # Undo is going back: nothing of the earlier job has changed.
    assert server.routes(solved_job) == before
    assert server.get(f"/jobs/{solved_job['id']}") == solved_job


def test_locked_routes_stay_and_the_rest_is_searched_anew(
    server: Server, scene: Json, solved_job: Json
) -> None:
    before = server.routes(solved_job)
    locked = max(before.values())
    done = server.solved(scene["id"], start=solved_job["id"], lock=[locked], seed=7)
    after = server.routes(done)
    for link, route in before.items():
        assert (after[link] == locked) == (route == locked)


def test_streets_that_may_not_leave_their_routes_stay(
    server: Server, scene: Json, solved_job: Json
) -> None:
    done = server.solved(scene["id"], start=solved_job["id"], keep=10**6, seed=7)
    assert server.routes(done) == server.routes(solved_job)


def test_an_excluded_street_makes_a_scene_of_its_own(
    server: Server, scene: Json, solved_job: Json
) -> None:
    link = next(iter(server.routes(solved_job)))
    done = server.solved(scene["id"], start=solved_job["id"], exclude=[link])
    assert done["scene"] != scene["id"]
    assert link not in server.routes(done)
    assert server.get(f"/scenes/{done['scene']}")["streets"] == 19
    assert done["request"]["scene"] == scene["id"]
    again = server.solved(done["scene"], start=done["id"], edit={"add": [{"link": link}]})
    assert len(server.routes(again)) == 20
    # Back on the first scene, from a plan that lacks a street.
    healed = server.solved(scene["id"], start=done["id"], seconds=0)
    assert len(server.routes(healed)) == 20
    assert "inserted 1 street" in healed["repair"][0]


def test_excluded_streets_go_from_an_edited_plan_too(
    server: Server, scene: Json, solved_job: Json
) -> None:
    before = server.routes(solved_job)
    gone, moved = list(before)[:2]
    other = next(route for route in before.values() if route != before[moved])
    done = server.solved(
        scene["id"],
        start=solved_job["id"],
        exclude=[gone],
        edit={"move": [{"link": moved, "route": other}]},
        lock=[],
        seconds=0,
    )
    after = server.routes(done)
    assert gone not in after
    assert after[moved] == other


def test_a_removed_street_is_gone(server: Server, scene: Json, solved_job: Json) -> None:
    link = next(iter(server.routes(solved_job)))
    edit = {"remove": [link], "free": [1]}
    done = server.solved(scene["id"], start=solved_job["id"], edit=edit)
    assert link not in server.routes(done)


def test_an_edit_that_cannot_be_fails_with_a_sentence(
    server: Server, scene: Json, solved_job: Json
) -> None:
    job = server.job(
        scene["id"], start=solved_job["id"], edit={"move": [{"link": 10**6, "route": 1}]}
    )
    failed = server.ended(job)
    assert failed["state"] == "failed"
    assert failed["error"]["message"].startswith("expected a link from 0 to 39")


def test_the_plan_of_another_program_is_taken_if_it_is_right(
    server: Server, scene: Json, solved_job: Json
) -> None:
    plan = server.get(f"/jobs/{solved_job['id']}/plan", params={"format": "json"})
    job = server.post("/plans", {"scene": scene["id"], "plan": plan})
    assert job["state"] == "done"
    assert job["result"]["cost"] == solved_job["result"]["cost"]
    assert server.routes(job) == server.routes(solved_job)
    assert [name for _, name, _ in server.events(job["id"])][-1] == "end"
    done = server.solved(scene["id"], start=job["id"])
    assert done["result"]["cost"] <= job["result"]["cost"]
    plan["routes"][0]["services"].pop()
    refused = server.client.post("/v1/plans", json={"scene": scene["id"], "plan": plan})
    assert refused.status_code == 422
    assert refused.json()["error"]["message"].startswith(
        "expected a plan of the scene, but"
    )


# --- Downloads ----------------------------------------------------------------------------


def test_a_plan_is_written_in_every_format(server: Server, solved_job: Json) -> None:
    got = {}
    for form in ("geojson", "json", "gpx", "sheets", "pdf", "xlsx", "csv", "html", "kml"):
        answer = server.client.get(
            f"/v1/jobs/{solved_job['id']}/plan", params={"format": form}
        )
        assert answer.status_code == 200, (form, answer.text)
        got[form] = answer
    assert got["html"].headers["content-disposition"].startswith("inline")
    assert "sandbox" in got["html"].headers["content-security-policy"]
    routes = len(solved_job["result"]["routes"])
    for form, suffix in (("gpx", ".gpx"), ("sheets", ".html"), ("pdf", ".pdf")):
        names = zipfile.ZipFile(io.BytesIO(got[form].content)).namelist()
        assert len(names) >= routes
        assert all(name.endswith(suffix) for name in names)
    rows = list(csv.reader(io.StringIO(got["csv"].text)))
    assert len(rows) == 21
    steps = got["geojson"].json()["features"]
    assert {one["properties"]["kind"] for one in steps} <= {"service", "drive"}
    assert got["json"].headers["content-disposition"].startswith("attachment; filename=")
    assert got["kml"].content.startswith(b"<?xml")
    assert zipfile.is_zipfile(io.BytesIO(got["xlsx"].content))
    again = server.client.get(f"/v1/jobs/{solved_job['id']}/plan?format=gpx")
    assert again.content == got["gpx"].content


def test_two_plans_are_shown_side_by_side(
    server: Server, scene: Json, solved_job: Json
) -> None:
    other = server.solved(scene["id"], seed=2, iterations=5)
    path = f"/v1/jobs/{solved_job['id']}/diff/{other['id']}?format=html"
    answer = server.client.get(path)
    assert answer.status_code == 200
    assert "sandbox" in answer.headers["content-security-policy"]
    assert answer.text.startswith("<!")


def test_a_scene_without_places_has_plans_but_no_lines(server: Server) -> None:
    instance = arcfleet.Instance(
        links=(
            arcfleet.Link(tail=1, head=2, cost=3, required=True, demand=1),
            arcfleet.Link(tail=2, head=3, cost=4, required=True, demand=1),
        ),
        depot=1,
        capacity=2,
    )
    file = server.folder.parent / "placeless.json"
    arcfleet.write(instance, file)
    found = server.post("/scenes", {"instance": json.loads(file.read_text())})
    done = server.solved(found["id"])
    assert done["result"]["cost"] == 14
    path = f"/v1/jobs/{done['id']}/plan"
    refused = server.client.get(path)
    assert refused.status_code == 422
    assert "coordinates" in refused.json()["error"]["message"]
    assert server.client.get(path, params={"format": "csv"}).status_code == 200


# --- Idempotency keys ---------------------------------------------------------------------


def test_the_same_key_makes_one_thing(server: Server, scene: Json) -> None:
    body = {"scene": scene["id"], "seconds": 1, "iterations": 5}
    key = {"Idempotency-Key": "again and again".replace(" ", "-")}
    first = server.client.post("/v1/jobs", json=body, headers=key)
    second = server.client.post("/v1/jobs", json=body, headers=key)
    assert (first.status_code, second.status_code) == (202, 200)
    assert first.json()["id"] == second.json()["id"]
    other = server.client.post("/v1/jobs", json=body | {"seed": 1}, headers=key)
    assert other.status_code == 409
    assert other.json()["error"]["field"] == "Idempotency-Key"


def test_the_same_key_at_the_same_time_makes_one_thing(
    server: Server, scene: Json, town_map: Json
) -> None:
    requests = {
        "/jobs": {"scene": scene["id"], "seconds": 1, "iterations": 5},
        "/scenes": {"map": town_map["id"], "capacity": 1000},
    }
    for path, body in requests.items():
        found: list[Json] = []

        def ask(path: str = path, body: Json = body, found: list[Json] = found) -> None:
            found.append(server.post(path, body, **{"Idempotency-Key": f"at-once{path}"}))

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({one["id"] for one in found}) == 1
        assert len(found) == 8


def test_an_upload_has_keys_too(server: Server) -> None:
    ids = set()
    for _ in range(2):
        answer = server.client.post(
            "/v1/maps?name=keyed.geojson",
            content=town(2),
            headers={"Idempotency-Key": "upload"},
        )
        ids.add(answer.json()["id"])
    assert len(ids) == 1
    other = server.client.post(
        "/v1/maps?name=keyed.geojson",
        content=town(3),
        headers={"Idempotency-Key": "upload"},
    )
    assert other.status_code == 409


# --- Errors -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "kind", "field", "message"),
    [
        ("GET", "/nothing", None, 404, "not_found", None, "/openapi.json"),
        ("PUT", "/jobs", None, 405, "invalid", None, "method"),
        ("GET", "/jobs/j_none", None, 404, "not_found", None, "no such job"),
        ("GET", "/scenes/..%2f..%2fetc", None, 404, "not_found", None, ""),
        ("GET", "/jobs?limit=0", None, 422, "invalid", "limit", "expected limit to be"),
        ("GET", "/jobs?after=j_none", None, 404, "not_found", "after", "no job j_none"),
        ("POST", "/jobs", {"scene": "s_no"}, 404, "not_found", "scene", "no scene"),
        ("POST", "/jobs", {"scene": "x", "second": 1}, 422, "invalid", "second", ""),
        ("POST", "/jobs", {"scene": "x", "lock": [1]}, 422, "invalid", None, "with lock"),
        ("POST", "/jobs", {"scene": "x", "seconds": 0}, 422, "invalid", None, "0 seconds"),
        ("POST", "/scenes", {}, 422, "invalid", None, "either a map or an instance"),
        ("POST", "/scenes", {"map": "m_none"}, 404, "not_found", "map", "no map"),
        ("POST", "/scenes", {"map": "m_denver"}, 422, "invalid", None, "capacity"),
        ("POST", "/maps", None, 422, "invalid", "name", ""),
    ],
)
def test_every_error_has_one_shape(
    server: Server,
    method: str,
    path: str,
    body: Json | None,
    status: int,
    kind: str,
    field: str | None,
    message: str,
) -> None:
    answer = server.client.request(method, f"/v1{path}", json=body)
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert (error["type"], error["field"]) == (kind, field)
    assert message in error["message"]


@pytest.mark.parametrize(
    ("rules", "field", "message"),
    [
        (
            {"capacity": "many"},
            "capacity",
            "expected capacity to be a valid integer, got 'many'",
        ),
        (
            {"capacity": 0},
            "capacity",
            "expected capacity to be greater than or equal to 1, got 0",
        ),
        ({"demand": "foo"}, "demand", "expected demand to be 'length'"),
        ({"depot": [7]}, "depot.1", "expected depot.1, got none"),
        (
            {"operations": {"shift": -3}},
            "operations.shift",
            "expected operations.shift to be",
        ),
        (
            {"turns": {"u_turns": "never"}},
            "turns.u_turns",
            "expected turns.u_turns to be 'allowed', 'dead-ends' or 'forbidden', got",
        ),
        (
            {"capcity": 5},
            "capcity",
            "expected a field that /openapi.json lists, got capcity",
        ),
        ({"name": "x" * 300}, "name", "expected name to have at most 200 characters"),
    ],
)
def test_a_field_at_fault_is_named_in_the_sentence(
    server: Server, rules: Json, field: str, message: str
) -> None:
    answer = server.client.post("/v1/scenes", json={"map": "m_denver"} | rules)
    assert answer.status_code == 422
    error = answer.json()["error"]
    assert error["field"] == field
    assert error["message"].startswith(message)
    assert len(error["message"]) < 300


@pytest.mark.parametrize(
    ("body", "headers", "field", "message"),
    [
        (b'{"map": "m_denver",', {}, None, "expected JSON as body, found a mistake"),
        (b"{}", {"Content-Type": "text/plain"}, None, "expected JSON as body, got"),
        (
            b"{}",
            {"Idempotency-Key": "a b"},
            "Idempotency-Key",
            "expected Idempotency-Key to match",
        ),
    ],
)
def test_a_body_or_header_at_fault_is_named(
    server: Server, body: bytes, headers: dict[str, str], field: str | None, message: str
) -> None:
    headers = {"Content-Type": "application/json"} | headers
    answer = server.client.post("/v1/scenes", content=body, headers=headers)
    error = answer.json()["error"]
    assert (answer.status_code, error["field"]) == (422, field)
    assert error["message"].startswith(message)


def test_rules_that_fit_no_street_are_refused_with_the_sentence(
    server: Server, town_map: Json
) -> None:
    for rules, message in (
        ({"serve": {"kinds": ["motorway"]}}, "there are"),
        ({"serve": {"names": ["Row 99"]}}, "did you mean"),
        ({"serve": {"streets": [40]}}, "expected serve_streets from 0 to 39"),
        ({"depot": [50.0, 7.0]}, "depot"),
        ({"area": {"type": "Point", "coordinates": [7, 50]}}, "Polygon"),
        ({"area": {"type": "Polygon", "coordinates": [[[7, 50]]]}}, "at least 4 points"),
        ({"operations": {"shift": "2 h"}}, "costs are metres"),
    ):
        asked = {"map": town_map["id"], "capacity": 1000} | rules
        answer = server.client.post("/v1/scenes", json=asked)
        assert answer.status_code in (201, 422), answer.text
        if answer.status_code == 422:
            assert message in answer.json()["error"]["message"]
            assert str(server.folder) not in answer.text
        else:
            assert any(message in one for one in answer.json()["warnings"])
