import warnings
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arcfleet.errors import FormatWarning, InstanceError
from arcfleet.instance.files import read, write
from arcfleet.instance.instance import Instance, Link
from arcfleet.instance.operations import Facility
from tests.strategies import connected_instances, instances, operations


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("round_trip") / "copy"


def sorted_links(instance: Instance) -> Instance:
    """Return the instance in the order in which the text formats list links."""
    links = sorted(instance.links, key=lambda link: (link.one_way, not link.required))
    return replace(instance, links=tuple(links))


def bare(link: Link) -> Link:
    return replace(
        link,
        name="",
        geometry=(),
        metres=None,
        seconds=None,
        reverse_seconds=None,
        service_seconds=None,
        kind="",
        ways=(),
        speed_kmh=None,
        reverse_speed_kmh=None,
        ids=(),
        attributes={},
    )


@given(instance=instances() | connected_instances() | instances().flatmap(operations))
def test_json_holds_everything(file: Path, instance: Instance) -> None:
    write(instance, file, "json")
    assert read(file) == instance


@given(
    instance=instances(
        one_way=False,
        by_direction=False,
        separate_service=False,
        decorated=False,
        any_nodes=False,
        limits=False,
    )
)
def test_carplib_holds_classical_instances(file: Path, instance: Instance) -> None:
    instance = sorted_links(instance)
    write(instance, file, "carplib")
    assert read(file) == instance


@given(
    instance=instances(by_direction=False, decorated=False, any_nodes=False, limits=False),
    route_cost=st.integers(0, 9),
)
def test_mcarp_holds_mixed_instances(
    file: Path, instance: Instance, route_cost: int
) -> None:
    instance = replace(sorted_links(instance), route_cost=route_cost)
    write(instance, file, "mcarp")
    assert read(file) == instance


@st.composite
def hauling(draw: st.DrawFn, instance: Instance) -> Instance:
    """The instance with what MCARPTIF adds to MCARP."""
    nodes = st.lists(st.sampled_from(instance.nodes), unique=True, max_size=3)
    cost = draw(st.integers(0, 9))
    facilities = tuple(Facility(node=node, cost=cost) for node in draw(nodes))
    longest = st.integers(1, 99)
    return replace(
        instance,
        max_route_cost=draw(st.none() | longest) if facilities else draw(longest),
        facilities=facilities,
        fewest_routes=True,
    )


@given(
    instance=instances(
        by_direction=False, decorated=False, any_nodes=False, limits=False
    ).flatmap(hauling)
)
def test_mcarptif_holds_facilities_and_longest_routes(
    file: Path, instance: Instance
) -> None:
    instance = sorted_links(instance)
    write(instance, file, "mcarptif")
    assert read(file) == instance


@given(
    instance=(
        instances(limits=False)
        | instances(by_direction=False, one_way=False)
        | instances(by_direction=False).flatmap(operations)
        | instances(by_direction=False, decorated=False).flatmap(hauling)
    ),
    file_format=st.sampled_from(["carplib", "mcarp", "mcarptif"]),
)
def test_text_refuses_what_it_would_change(
    file: Path, instance: Instance, file_format: str
) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            write(instance, file, file_format)
        except InstanceError:
            return
        again = read(file)
    # The problem itself is the same ...
    problem = sorted_links(replace(instance, links=tuple(map(bare, instance.links))))
    assert again == replace(
        problem,
        coordinates=(),
        name=again.name,
        comment=again.comment,
        attribution=again.attribution,
        upper_bound=again.upper_bound,
        cost_unit="",
        facilities=tuple(replace(facility, name="") for facility in problem.facilities),
        empty_at_end=True,
        previous=(),
        change_price=0,
    )
    # ... and whatever else differs was told.
    assert [warning.category for warning in caught] == [FormatWarning] * (again != instance)
