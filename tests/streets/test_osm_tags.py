import pytest

from arcfleet.errors import OptionError
from arcfleet.streets.osm_tags import (
    DRIVABLE_KINDS,
    check_rule,
    driving_direction,
    is_wanted,
)


@pytest.mark.parametrize(
    ("tags", "direction"),
    [
        ("highway=residential", 0),
        ("highway=residential oneway=yes", 1),
        ("highway=residential oneway=true", 1),
        ("highway=residential oneway=1", 1),
        ("highway=residential oneway=-1", -1),
        ("highway=residential oneway=reverse", -1),
        ("highway=residential oneway=no", 0),
        ("highway=residential oneway=alternating", 0),
        ("highway=tertiary junction=roundabout", 1),
        ("highway=tertiary junction=circular", 1),
        ("highway=tertiary junction=roundabout oneway=no", 0),
        ("highway=tertiary junction=roundabout oneway=-1", -1),
        ("highway=tertiary junction=jughandle", 0),
        ("highway=motorway", 1),
        ("highway=motorway_link", 1),
        ("highway=motorway oneway=no", 0),
        ("highway=motorway oneway=reversible", 0),
        ("highway=trunk", 0),
    ],
)
def test_driving_direction(tags: str, direction: int) -> None:
    assert driving_direction(dict(tag.split("=") for tag in tags.split())) == direction


@pytest.mark.parametrize(
    ("tags", "wanted"),
    [
        ("highway=residential", True),
        ("highway=secondary_link", True),
        ("highway=living_street", True),
        ("highway=service", False),
        ("highway=footway", False),
        ("highway=residential area=yes", False),
        ("highway=residential access=private", False),
        ("highway=residential motor_vehicle=no", False),
        ("highway=residential access=no motor_vehicle=yes", True),
        ("highway=residential access=destination", True),
        ("building=yes", False),
    ],
)
def test_what_is_a_street_by_default(tags: str, wanted: bool) -> None:
    pairs = dict(tag.split("=") for tag in tags.split())
    assert is_wanted(pairs, DRIVABLE_KINDS) is wanted


def test_the_rule_can_be_changed() -> None:
    service = {"highway": "service", "access": "private"}
    assert not is_wanted(service, {"service"})
    assert is_wanted({"highway": "service"}, {"service"})
    assert is_wanted(service, lambda tags: tags.get("highway") == "service")
    assert not is_wanted({"highway": "service", "area": "yes"}, lambda tags: True)


def test_rules_that_can_only_be_mistakes_are_errors() -> None:
    with pytest.raises(OptionError, match="got the text 'residential'; write"):
        check_rule("residential")
    with pytest.raises(OptionError, match="at least one highway value"):
        check_rule(set())
