from pathlib import Path

import pytest
from hypothesis import given, settings

from arcfleet import METHODS, Stop, check
from arcfleet.instance import Instance
from arcfleet.network import Network
from arcfleet.solution.plan import from_plan, to_plan, with_street_paths
from tests.helpers import solved
from tests.strategies import connected_instances
from tests.tiny_model import tiny_model_file


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    types = {method.model_type for method in METHODS.values()} - {None}
    return {name: tiny_model_file(folder, name) for name in types if name}


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=40)
@given(instance=connected_instances(max_nodes=9, max_extra_links=12))
def test_plans_and_their_street_paths_are_verified(
    method: str, instance: Instance, models: dict[str, Path]
) -> None:
    stop = Stop(iterations=7)
    kind = METHODS[method].model_type
    options = {} if kind is None else {"model": models[kind], "device": "cpu"}
    result = solved(instance, method, stop=stop, seed=3, **options)
    network = Network(instance)
    expanded = with_street_paths(network, result.solution)
    assert all(route.path for route in expanded.routes)
    assert check(instance, expanded).faults == ()


@given(instance=connected_instances())
def test_plans_survive_flattening(instance: Instance) -> None:
    network = Network(instance)
    solution = solved(instance, "ps-random-arc", stop=Stop(iterations=1)).solution
    assert from_plan(network, *to_plan(network, solution)) == solution
