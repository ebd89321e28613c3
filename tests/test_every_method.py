from pathlib import Path

import pytest
from hypothesis import given, settings

from arcfleet import METHODS, Stop, check, solve
from arcfleet.instance import Instance
from arcfleet.network import Network
from arcfleet.solution.plan import from_plan, to_plan, with_street_paths
from tests.strategies import connected_instances
from tests.tiny_model import tiny_model_file


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    kinds = {
        method.model_type for method in METHODS.values() if method.model_type is not None
    }
    return {kind: tiny_model_file(folder, kind) for kind in kinds}


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=40)
@given(instance=connected_instances(max_nodes=9, max_extra_links=12))
def test_the_judge_accepts_plans_and_their_street_paths(
    method: str, instance: Instance, models: dict[str, Path]
) -> None:
    stop = Stop(iterations=7)
    kind = METHODS[method].model_type
    if kind is not None:
        model = models[kind]
        result = solve(instance, method, stop=stop, seed=3, model=model, device="cpu")
    else:
        result = solve(instance, method, stop=stop, seed=3)
    assert check(instance, result.solution).faults == ()
    network = Network(instance)
    expanded = with_street_paths(network, result.solution)
    assert all(route.path for route in expanded.routes)
    assert check(instance, expanded).faults == ()


@given(instance=connected_instances())
def test_plans_survive_flattening(instance: Instance) -> None:
    network = Network(instance)
    solution = solve(instance, "ps-random-arc", stop=Stop(iterations=1)).solution
    assert from_plan(network, *to_plan(network, solution)) == solution
