import math
from dataclasses import replace
from typing import Any

import geopandas
import networkx
import numpy as np
import pandas
import pytest
from hypothesis import given
from shapely import LineString

from arcfleet import Instance, Link, Stop, check, from_networkx, from_pandas, solve
from arcfleet.errors import InstanceError
from tests.strategies import instances

FIELDS = (
    *("tail", "head", "cost", "one_way", "required", "demand", "name"),
    *("reverse_cost", "service_cost", "reverse_service_cost", "metres"),
)


def streets() -> pandas.DataFrame:
    return pandas.DataFrame(
        {
            "id": ["a", "b", "c"],
            "tail": [1, 2, 3],
            "head": [2, 3, 1],
            "cost": [10.0, 20.0, 30.0],
            "demand": [2, 0, 3],
            "one_way": [False, True, False],
            "metres": [100, math.nan, 300],
        }
    )


@given(instances())
def test_any_instance_is_found_again_from_its_table(instance: Instance) -> None:
    rows = [{name: getattr(link, name) for name in FIELDS} for link in instance.links]
    table = pandas.DataFrame(rows, columns=list(FIELDS))
    again = from_pandas(table, depot=instance.depot, capacity=instance.capacity)
    for link, other in zip(instance.links, again.links, strict=True):
        for name in FIELDS:
            assert getattr(link, name) == getattr(other, name)


def test_a_plan_joins_back_to_the_table() -> None:
    table = streets()
    instance = from_pandas(table, depot=1, capacity=5, name="own")
    assert [link.required for link in instance.links] == [True, False, True]
    assert [link.metres for link in instance.links] == [100, None, 300]
    plan = solve(instance, stop=Stop(iterations=20)).solution
    assert check(instance, plan).ok
    served = {service.link for route in plan.routes for service in route.services}
    assert set(table.iloc[sorted(served)]["id"]) == {"a", "c"}


def test_places_come_from_a_table_of_nodes_or_from_lines() -> None:
    nodes = pandas.DataFrame({"x": [5.0, 5.1, 5.2], "y": [51.0, 51.1, 51.2]}, [1, 2, 3])
    instance = from_pandas(streets(), depot=1, capacity=5, nodes=nodes)
    places = dict(zip(instance.nodes, instance.coordinates, strict=True))
    assert places == {1: (5.0, 51.0), 2: (5.1, 51.1), 3: (5.2, 51.2)}
    lines = [
        LineString([(places[row.tail]), (5.5, 51.5), places[row.head]])
        for row in streets().itertuples()
    ]
    drawn = geopandas.GeoDataFrame(streets(), geometry=lines, crs=4326)
    again = from_pandas(drawn, depot=1, capacity=5)
    assert dict(zip(again.nodes, again.coordinates, strict=True)) == places
    assert again.links[0].geometry == ((5.0, 51.0), (5.5, 51.5), (5.1, 51.1))


@pytest.mark.parametrize("directed", [False, True])
def test_graphs(directed: bool) -> None:
    graph = networkx.MultiDiGraph() if directed else networkx.Graph()
    for node, place in {"a": (5.0, 51.0), "b": (5.1, 51.0), "c": (5.1, 51.1)}.items():
        graph.add_node(node, x=place[0], y=place[1])
    networkx.add_cycle(graph, "abc", length=99.6, demand=np.int64(1))
    instance = from_networkx(graph, depot="b", capacity=2, cost="length")
    assert instance.depot == 1
    assert all(link.cost == 100 and link.required for link in instance.links)
    assert all(link.one_way == directed for link in instance.links)
    assert instance.coordinates[1] == (5.1, 51.0)
    assert check(instance, solve(instance, stop=Stop(iterations=20)).solution).ok


def test_what_is_no_instance() -> None:
    with pytest.raises(InstanceError, match=r"did you mean 'costs'\?.*\{'costs': 'cost'\}"):
        from_pandas(streets().rename(columns={"cost": "costs"}), depot=1, capacity=5)
    with pytest.raises(InstanceError, match=r"cost .* got -1 .*in row 1"):
        from_pandas(streets().assign(cost=[1, -1, 1]), depot=1, capacity=5)
    with pytest.raises(InstanceError, match=r"rename\(columns=\{\.\.\.: 'tail'\}\)"):
        from_pandas(streets().rename(columns={"tail": "from"}), depot=1, capacity=5)
    lines = [LineString([(5, 51), (5.1, 51)])] * 3
    drawn = geopandas.GeoDataFrame({"cost": [1, 2, 3]}, geometry=lines, crs=4326)
    with pytest.raises(
        InstanceError, match=r"or make the instance of its lines by .*read_map"
    ):
        from_pandas(drawn, depot=1, capacity=5)
    with pytest.raises(
        InstanceError, match=r"got 1\.5 on .*in row 1.*: round it or take a smaller unit"
    ):
        from_pandas(streets().assign(cost=[1.0, 1.5, 1.0]), depot=1, capacity=5)
    graph = networkx.Graph([(1, 2, {"weight": 3})])
    with pytest.raises(InstanceError, match="attribute 'cost' for the cost of edges"):
        from_networkx(graph, depot=1, capacity=5)
    with pytest.raises(InstanceError, match="a node of the graph as depot, got 9"):
        from_networkx(graph, depot=9, capacity=5)
    with pytest.raises(InstanceError, match="longitude and latitude, or x and y"):
        from_pandas(streets(), depot=1, capacity=5, nodes=pandas.DataFrame({"a": [1]}))


def test_whole_numbers_of_any_type_are_taken() -> None:
    mixed: dict[str, Any] = {
        "tail": np.int64(1),
        "head": 2.0,
        "cost": np.float64(3.0),
        "required": np.bool_(True),
        "demand": np.uint8(1),
        "geometry": np.array([[5, 51], [6, 52]]),
    }
    link = Link(**mixed)
    line = ((5.0, 51.0), (6.0, 52.0))
    plain = Link(tail=1, head=2, cost=3, required=True, demand=1, geometry=line)
    assert link == plain
    assert type(link.cost) is int
    places: Any = {1: [5, 51], 2: [6, 52]}
    capacity: Any = np.int64(9)
    links: Any = [link]
    instance = Instance(links=links, depot=1, capacity=capacity, coordinates=places)
    assert instance.nodes == (1, 2)
    assert instance.coordinates == line
    assert Instance(links=(plain,), depot=1, capacity=9).nodes == (1, 2)
    values: list[Any] = [2.5, math.nan, math.inf, "3", True]
    for wrong in values:
        with pytest.raises(InstanceError, match="cost to be an integer"):
            replace(plain, cost=wrong, reverse_cost=3)
    with pytest.raises(InstanceError, match="none for node 2"):
        replace(instance, coordinates={1: (0.0, 0.0)})  # type: ignore[arg-type]


def test_ids_and_attributes_of_a_table_stay_with_the_links() -> None:
    table = streets()
    own = table.assign(surface=["gravel", None, "tar"], lanes=[1.0, 2.0, np.nan])
    named = from_pandas(own, depot=1, capacity=5, id="id", attributes=["surface", "lanes"])
    assert [link.ids for link in named.links] == [("a",), ("b",), ("c",)]
    assert [dict(link.attributes) for link in named.links] == [
        {"surface": "gravel", "lanes": 1.0},
        {"surface": None, "lanes": 2.0},
        {"surface": "tar", "lanes": None},
    ]
    one = from_pandas(own, depot=1, capacity=5, attributes="surface")
    assert dict(one.links[0].attributes) == {"surface": "gravel"}
    indexed = from_pandas(table.set_index("id"), depot=1, capacity=5)
    assert [link.ids for link in indexed.links] == [("a",), ("b",), ("c",)]
    numbered = from_pandas(table, depot=1, capacity=5)
    assert [link.ids for link in numbered.links] == [(0,), (1,), (2,)]
    assert numbered.describe_link(2) == "link 2 (3-1, id 2)"
    pairs = from_pandas(table.set_index(["tail", "id"], drop=False), depot=1, capacity=5)
    assert [link.ids for link in pairs.links] == [(), (), ()]
    some = from_pandas(own.assign(id=[7.0, np.nan, 9.0]), depot=1, capacity=5, id="id")
    assert [link.ids for link in some.links] == [(7,), (), (9,)]


def test_columns_that_are_not_there_or_unfit_are_named() -> None:
    table = streets()
    with pytest.raises(InstanceError, match="column 'idd' in the table of links, as id"):
        from_pandas(table, depot=1, capacity=5, id="idd")
    with pytest.raises(InstanceError, match="did you mean 'metres'"):
        from_pandas(table, depot=1, capacity=5, attributes=["metre"])
    when = pandas.to_datetime(["2026-01-01"] * 3)
    with pytest.raises(InstanceError, match=r"attribute 'when' to be a text.*\(in row 0\)"):
        from_pandas(table.assign(when=when), depot=1, capacity=5, attributes=["when"])


def test_a_table_in_metres_is_converted_to_degrees() -> None:
    lines = [LineString([(5, 51), (5.1, 51)])] * 3
    drawn = geopandas.GeoDataFrame(streets(), geometry=lines, crs=4326)
    plain = from_pandas(drawn, depot=1, capacity=5)
    metres = drawn.to_crs(3857).rename_geometry("shape")
    again = from_pandas(metres, depot=1, capacity=5)
    for link, other in zip(plain.links, again.links, strict=True):
        assert np.allclose(link.geometry, other.geometry, atol=1e-9)


def test_ids_of_edges_may_be_lists() -> None:
    graph = networkx.MultiDiGraph()
    graph.add_edge(1, 2, length=5, demand=1, osmid=[4, 5], lanes="2")
    graph.add_edge(2, 1, length=5, osmid=4)
    graph.add_edge(1, 1, length=5)
    made = from_networkx(
        graph, depot=1, capacity=1, cost="length", id="osmid", attributes=["lanes"]
    )
    found = {link.ids: dict(link.attributes) for link in made.links}
    assert found == {(4, 5): {"lanes": "2"}, (4,): {"lanes": None}, (): {"lanes": None}}


def test_nodes_of_a_table_may_have_names() -> None:
    table = streets()
    named = table.assign(tail=["yard", "mill", "inn"], head=["mill", "inn", "yard"])
    places = pandas.DataFrame(
        {
            "node": ["inn", "mill", "yard", "pub"],
            "x": [5.2, 5.1, 5.0, 5.3],
            "y": [51.2, 51.1, 51.0, 51.3],
        }
    )
    instance = from_pandas(named, depot="yard", capacity=5, nodes=places)
    assert [(link.tail, link.head) for link in instance.links] == [(0, 1), (1, 2), (2, 0)]
    assert instance.depot == 0
    found = dict(zip(instance.nodes, instance.coordinates, strict=True))
    assert found == {0: (5.0, 51.0), 1: (5.1, 51.1), 2: (5.2, 51.2), 3: (5.3, 51.3)}
    plans = [
        solve(each, stop=Stop(iterations=20)).solution
        for each in (instance, from_pandas(table, depot=1, capacity=5))
    ]
    assert plans[0].cost == plans[1].cost
    with pytest.raises(InstanceError, match="node of the table as depot, got 'yrad'"):
        from_pandas(named, depot="yrad", capacity=5)
    with pytest.raises(InstanceError, match="expected head to be an integer, got 'mill'"):
        from_pandas(named.assign(tail=[1, "mill", "inn"]), depot=1, capacity=5)


def test_the_demand_of_edges_may_have_another_name() -> None:
    graph = networkx.path_graph(3)
    networkx.set_edge_attributes(graph, {(0, 1): 2.0, (1, 2): 0}, "bins")
    networkx.set_edge_attributes(graph, 7, "cost")
    instance = from_networkx(graph, depot=0, capacity=3, demand="bins")
    assert [(link.demand, link.required) for link in instance.links] == [
        (2, True),
        (0, False),
    ]
    with pytest.raises(InstanceError, match=r"'bin' for the demand .*did you mean 'bins'"):
        from_networkx(graph, depot=0, capacity=3, demand="bin")
