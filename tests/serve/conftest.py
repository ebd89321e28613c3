from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serve.running import Json, Server, served, town


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a map of a tiny town, for tests that leave it alive."""
    with served(tmp_path_factory.mktemp("serve") / "data") as running:
        yield running


@pytest.fixture(scope="session")
def town_map(server: Server) -> Json:
    return server.upload("town.geojson", town())


@pytest.fixture(scope="session")
def scene(server: Server, town_map: Json) -> Json:
    """Three or more routes through the residential streets of the town."""
    return make_town_scene(server, town_map["id"])


def make_town_scene(server: Server, map_id: str, **rules: object) -> Json:
    asked = {"map": map_id, "serve": {"kinds": ["residential"]}, "capacity": 1000}
    return server.post("/scenes", asked | rules)


@pytest.fixture(scope="session")
def solved_job(server: Server, scene: Json) -> Json:
    return server.solved(scene["id"], seed=1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"
