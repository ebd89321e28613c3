"""The checker's costs against shortest paths of networkx."""

import random
from dataclasses import replace

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from arcfleet.instance.instance import Instance, Link
from arcfleet.solution.checker import check
from arcfleet.solution.solution import Route, Service, Solution


def random_instance(rng: random.Random) -> Instance:
    """Strongly connected through a ring of random streets, with chords and loops."""
    count = rng.randint(1, 12)
    nodes = rng.sample(range(1000), count)
    pairs = list(zip(nodes, nodes[1:] + nodes[:1], strict=True))
    pairs += [(rng.choice(nodes), rng.choice(nodes)) for _ in range(rng.randint(0, 15))]
    links = []
    for tail, head in pairs:
        one_way = rng.random() < 0.4
        required = rng.random() < 0.6
        links.append(
            Link(
                tail=tail,
                head=head,
                cost=rng.randint(0, 30),
                reverse_cost=None if one_way else rng.randint(0, 30),
                one_way=one_way,
                required=required,
                demand=rng.randint(0, 5) if required else 0,
                service_cost=rng.randint(0, 50) if required else None,
                reverse_service_cost=rng.randint(0, 50)
                if required and not one_way
                else None,
            )
        )
    return Instance(
        name="random",
        nodes=tuple(nodes),
        links=tuple(links),
        depot=rng.choice(nodes),
        capacity=10,
        route_cost=rng.choice([0, 7]),
    )


def street_graph(instance: Instance) -> "nx.MultiDiGraph[int]":
    graph: nx.MultiDiGraph[int] = nx.MultiDiGraph()
    graph.add_nodes_from(instance.nodes)
    for link in instance.links:
        graph.add_edge(link.tail, link.head, weight=link.cost)
        if not link.one_way:
            graph.add_edge(link.head, link.tail, weight=link.reverse_cost)
    return graph


def random_plan(instance: Instance, rng: random.Random) -> Solution:
    """Serve all links in random order and directions, with costs from networkx."""
    distances = dict(nx.all_pairs_dijkstra_path_length(street_graph(instance)))
    waiting = rng.sample(instance.required, len(instance.required))
    routes = []
    deadhead = service_cost = 0
    while waiting:
        services = []
        at = instance.depot
        load = route_deadhead = route_service = 0
        while waiting and load + instance.links[waiting[-1]].demand <= instance.capacity:
            index = waiting.pop()
            link = instance.links[index]
            reverse = not link.one_way and rng.random() < 0.5
            start, end = (link.head, link.tail) if reverse else (link.tail, link.head)
            route_deadhead += int(distances[at][start])
            cost = link.reverse_service_cost if reverse else link.service_cost
            assert cost is not None
            route_service += cost
            load += link.demand
            at = end
            services.append(Service(index, reverse))
        route_deadhead += int(distances[at][instance.depot])
        cost = route_deadhead + route_service + instance.route_cost
        routes.append(Route(services=tuple(services), load=load, cost=cost))
        deadhead += route_deadhead
        service_cost += route_service
    return Solution(
        routes=tuple(routes),
        cost=sum(route.cost for route in routes),
        deadhead=deadhead,
        service_cost=service_cost,
    )


@given(seed=st.integers(0, 2**32))
def test_costs_equal_networkx(seed: int) -> None:
    rng = random.Random(seed)
    instance = random_instance(rng)
    plan = random_plan(instance, rng)
    report = check(instance, plan)
    assert report.faults == ()
    assert report.cost == plan.cost
    assert report.deadhead == plan.deadhead
    assert report.service_cost == plan.service_cost


@given(seed=st.integers(0, 2**32), error=st.integers(-5, 5).filter(bool))
def test_a_wrong_total_is_found(seed: int, error: int) -> None:
    rng = random.Random(seed)
    instance = random_instance(rng)
    plan = random_plan(instance, rng)
    report = check(instance, replace(plan, cost=plan.cost + error))
    assert report.faults == (
        f"total cost is stated as {plan.cost + error}, recomputed it is {plan.cost}",
    )
