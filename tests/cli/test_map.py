import json
import shlex
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.cli.running import arcfleet, one_sentence, succeeded

BOX = "8.85,48.58,8.90,48.61"
QUERY = """\
[out:xml][timeout:180];
way["highway"~"^(motorway|trunk|primary|secondary|tertiary|unclassified|residential|\
living_street|service|road)(_link)?$"](48.58,8.85,48.61,8.9)->.streets;
rel(bw.streets)["type"="restriction"]->.rules;
(.streets; node(w.streets); .rules;);
out body;"""


def test_a_box_is_a_request_to_overpass() -> None:
    request = json.loads(succeeded("map", "fetch", "--bbox", BOX, "--json"))
    assert request["query"] == QUERY  # latitudes first
    line = QUERY.replace("\n", "")
    words = shlex.split(request["curl"])
    assert words[:4] == ["curl", "--fail", "--output", "town.osm"]
    assert words[4:] == [
        *("--data-urlencode", f"data={line}", "https://overpass-api.de/api/interpreter")
    ]
    assert parse_qs(urlsplit(request["url"]).query) == {"data": [line]}
    said = succeeded("map", "fetch", "--bbox", BOX, "-o", "my town.osm")
    assert "--output 'my town.osm'" in said
    assert request["url"] in said
    assert "large" not in said
    assert "--region" in succeeded("map", "fetch", "--bbox", "8,48,9,49")


def test_a_place_is_asked_for_by_name() -> None:
    request = json.loads(succeeded("map", "fetch", "--place", "L'Aquila", "--json"))
    second, third, *_ = request["query"].splitlines()[1:]
    assert second == 'area["boundary"="administrative"]["name"="L\'Aquila"]->.town;'
    assert third.endswith("(area.town)->.streets;")
    assert f"data={request['query']}".replace("\n", "") in shlex.split(request["curl"])


def test_a_region_is_an_extract_of_geofabrik() -> None:
    region = ("map", "fetch", "--region", "europe/germany/bremen", "--json")
    url = "https://download.geofabrik.de/europe/germany/bremen-latest.osm.pbf"
    whole = json.loads(succeeded(*region))
    assert whole["commands"] == [f"curl --fail --location --output town.osm.pbf {url}"]
    fetched, cut = json.loads(succeeded(*region, "--bbox", BOX))["commands"]
    assert fetched == f"curl --fail --location --output bremen-latest.osm.pbf {url}"
    assert cut == (
        "osmium extract --bbox 8.85,48.58,8.9,48.61 --strategy complete_ways "
        "--output town.osm.pbf bremen-latest.osm.pbf"
    )


def test_the_help_has_the_requests() -> None:
    said = succeeded("map", "fetch", "--help")
    assert 'rel(bw.streets)["type"="restriction"]->.rules;' in said
    assert "https://download.geofabrik.de/REGION-latest.osm.pbf" in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "expected a box, a place or a region, got none"),
        (["--bbox", "45.4,-122.7,45.6,-122.6"], "which looks like LAT,LON"),
        (["--bbox", "8.9,48.58,8.85,48.61"], "west < east"),
        (["--place", 'a"b'], "expected the name of a town"),
        (["--region", "Bremen"], "expected a region as Geofabrik names it"),
        (["--region", "europe", "--place", "x"], "an extract is cut by a box"),
    ],
)
def test_a_mistake_is_one_sentence(arguments: list[str], message: str) -> None:
    assert message in one_sentence(arcfleet("map", "fetch", *arguments))
