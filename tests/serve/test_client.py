"""The client in the documentation."""

from pathlib import Path

import pytest

from examples.serve_client import Client, ServerError
from tests.helpers import ROOT
from tests.serve.running import Json, Server, town

CLIENT = ROOT / "examples" / "serve_client.py"


def test_the_page_shows_the_client_as_it_is() -> None:
    text = CLIENT.read_text("utf-8")
    assert f"```python\n{text}```" in (ROOT / "docs/reference/http-api.md").read_text(
        "utf-8"
    )
    assert len(text.splitlines()) <= 100


def test_the_client_goes_from_a_map_to_a_file(server: Server, tmp_path: Path) -> None:
    client = Client(server.address)
    file = tmp_path / "town.geojson"
    file.write_bytes(town())
    rules = {"map": client.upload(file), "capacity": 2000}
    scene = client.post("/scenes", rules, key="client")
    assert client.post("/scenes", rules, key="client") == scene
    done = client.solve(scene["id"], iterations=50)
    assert done["state"] == "done"
    client.download(done["id"], "xlsx", tmp_path / "plan.xlsx")
    assert (tmp_path / "plan.xlsx").read_bytes().startswith(b"PK")


def test_the_client_raises_the_sentence(
    server: Server, scene: Json, tmp_path: Path
) -> None:
    client = Client(server.address)
    with pytest.raises(ServerError, match="no such job"):
        client.get("/jobs/j_none")
    with pytest.raises(ServerError, match="expected the name of a method"):
        client.solve(scene["id"], method="none")
    (tmp_path / "bad.geojson").write_text("{}")
    with pytest.raises(ServerError, match="expected GeoJSON"):
        client.upload(tmp_path / "bad.geojson")
