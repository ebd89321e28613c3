"""Small batches for tests of the model, made without the code that makes the real ones."""

from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from arcfleet import check
from arcfleet.instance.instance import Instance, Link
from arcfleet.network import Network
from arcfleet.neural import env as process
from arcfleet.neural.batch import ArcBatch
from arcfleet.neural.env import State
from arcfleet.neural.model import Daam
from arcfleet.neural.plans import NO_PLAN, Plans, flat_plan
from arcfleet.solution import Solution
from arcfleet.solution.plan import from_plan
from tests.tiny_model import tiny_config

MDS = 2  # coordinates of a place


# The tensors of tests are so small that more threads only wait for each other.
torch.set_num_threads(1)


def random_batch(
    tasks: Sequence[int], *, mixed: bool = False, seed: int = 0, padding: int = 0
) -> ArcBatch:
    """One instance per entry of `tasks`, padded to the largest and `padding` arcs more."""
    rng = np.random.default_rng(seed)
    return join([_random_instance(rng, count, mixed) for count in tasks], padding)


def network_batch(networks: Sequence[Network], padding: int = 0) -> ArcBatch:
    """Batch of instances, padded to the largest; their MDS coordinates are noise."""
    made = []
    for network in networks:
        inverse = network.arc_inverse
        own = np.arange(len(inverse))
        # By the size alone, so that a network is the same in every batch.
        rng = np.random.default_rng(network.num_arcs)
        place = rng.normal(size=(len(network.distances), MDS))
        names = ("arc_start", "arc_end", "arc_service_cost", "arc_demand")
        made.append(
            _instance(
                torch.from_numpy(place).float(),
                torch.as_tensor(np.array(network.distances)),
                *(torch.as_tensor(np.array(getattr(network, name))) for name in names),
                inverse=torch.as_tensor(np.where(inverse < 0, own, inverse)),
                capacity=network.instance.capacity,
                route_cost=network.instance.route_cost,
                fleet_limit=network.instance.fleet_limit or 0,
            )
        )
    return join(made, padding)


def join(batches: Sequence[ArcBatch], padding: int = 0) -> ArcBatch:
    """One batch of several that hold one instance each."""
    arcs = max(batch.num_arcs for batch in batches) + padding
    places = max(batch.distance.shape[1] for batch in batches)

    def widened(batch: ArcBatch) -> ArcBatch:
        more, far = arcs - batch.num_arcs, places - batch.distance.shape[1]
        columns = {
            name: functional.pad(getattr(batch, name), (0, more))
            for name in ("start", "end", "service_cost", "demand", "real")
        }
        return replace(
            batch,
            features=functional.pad(batch.features, (0, 0, 0, more)),
            distance=functional.pad(batch.distance, (0, far, 0, far)),
            inverse=torch.cat([batch.inverse, torch.arange(arcs - more, arcs)[None]], 1),
            **columns,
        )

    wide = [widened(batch) for batch in batches]
    names = [field.name for field in fields(ArcBatch)]
    return ArcBatch(**{x: torch.cat([getattr(batch, x) for batch in wide]) for x in names})


def random_rollout(
    batch: ArcBatch, *, capacity_mask: bool, generator: torch.Generator, samples: int = 1
) -> tuple[list[State], Tensor]:
    """All states of random plans until all are finished, and the arcs they chose.

    Fails where a plan takes more steps than any plan may.
    """
    states = [process.reset(batch, samples)]
    chosen: list[Tensor] = []
    # At worst every task is a route of its own.
    most = 2 * max(1, int(batch.num_tasks.max()))
    while not process.finished(states[-1]).all():
        assert len(chosen) < most
        allowed = process.action_mask(batch, states[-1], capacity_mask=capacity_mask)
        weights = allowed.float().flatten(0, 1)
        arcs = torch.multinomial(weights, 1, generator=generator).view(len(batch), samples)
        chosen.append(arcs)
        states.append(process.step(batch, states[-1], arcs, capacity_mask=capacity_mask))
    if not chosen:
        return states, torch.zeros(len(batch), samples, 0, dtype=torch.int64)
    return states, torch.stack(chosen, dim=-1)


def solution_of(network: Network, arcs: Sequence[int]) -> Solution:
    """The plan that a sequence of arcs with depot visits stands for."""
    services: list[int] = []
    route_starts = [0]
    for arc in [*arcs, 0]:
        if arc:
            services.append(arc)
        elif len(services) > route_starts[-1]:
            route_starts.append(len(services))
    return from_plan(
        network, np.array(services, dtype=np.int32), np.array(route_starts, dtype=np.int32)
    )


def verify(networks: Sequence[Network], plans: Plans) -> None:
    """Require that every sample that is a plan is valid and costs what it says."""
    for row, network in enumerate(networks):
        for number, cost in enumerate(plans.costs[row].tolist()):
            if cost != NO_PLAN:
                one = plans.at((slice(row, row + 1), slice(number, number + 1)))
                solution = from_plan(network, *flat_plan(one, 0))
                assert solution.cost == cost
                assert check(network.instance, solution).faults == ()


def toy_model(seed: int = 1) -> Daam:
    """A small model with random weights, in float64, that is far from indifferent."""
    torch.manual_seed(seed)
    model = Daam(tiny_config(MDS)).double().eval()
    with torch.no_grad():
        model.context.weight *= 3
    return model


def ring(
    demands: Sequence[int],
    *,
    capacity: int = 4,
    route_cost: int = 0,
    fleet_limit: int | None = None,
) -> Instance:
    """A ring of two-way streets, each of them to be served, the depot on it."""
    count = len(demands)
    return Instance(
        name="ring",
        nodes=tuple(range(count)),
        links=tuple(
            Link(
                tail=i,
                head=(i + 1) % count,
                cost=3 + 2 * i,
                reverse_cost=3 + 2 * i,
                required=True,
                demand=demand,
                service_cost=5 + i,
                reverse_service_cost=5 + i,
            )
            for i, demand in enumerate(demands)
        ),
        depot=0,
        capacity=capacity,
        route_cost=route_cost,
        fleet_limit=fleet_limit,
    )


def _random_instance(rng: np.random.Generator, tasks: int, mixed: bool) -> ArcBatch:
    places = 2 * tasks + 1
    start, end, inverse, demand, cost = [0], [0], [0], [0], [0]
    capacity = 10
    for _ in range(tasks):
        tail, head = (int(place) for place in rng.integers(0, places, 2))
        needs, costs = int(rng.integers(0, capacity + 1)), int(rng.integers(1, 50))
        two_way = not mixed or rng.random() < 0.5
        first = len(start)
        for at, to in [(tail, head), (head, tail)][: 2 if two_way else 1]:
            start.append(at)
            end.append(to)
            demand.append(needs)
            cost.append(costs)
        inverse.extend([first + 1, first] if two_way else [first])
    distance = torch.from_numpy(rng.integers(1, 100, (places, places), dtype=np.int32))
    distance.fill_diagonal_(0)
    columns = (torch.tensor(x, dtype=torch.int32) for x in (start, end, cost, demand))
    return _instance(
        torch.from_numpy(rng.standard_normal((places, MDS), dtype=np.float32)),
        distance,
        *columns,
        inverse=torch.tensor(inverse),
        capacity=capacity,
    )


def _instance(
    place: Tensor,
    distance: Tensor,
    start: Tensor,
    end: Tensor,
    service_cost: Tensor,
    demand: Tensor,
    *,
    inverse: Tensor,
    **rules: int,
) -> ArcBatch:
    costs = distance[end.long()][:, start.long()].float()  # (arcs, arcs)
    scale = costs.mean().clamp(min=1)
    is_depot = (torch.arange(len(start)) == 0).float()
    load = demand / rules["capacity"]
    plain = torch.stack([is_depot, service_cost / scale, load], dim=-1)
    features = torch.cat([plain, place[start.long()], place[end.long()]], dim=-1)
    return ArcBatch(
        features=features[None],
        distance=distance[None],
        start=start[None],
        end=end[None],
        service_cost=service_cost[None],
        demand=demand[None],
        inverse=inverse[None].long(),
        real=torch.ones(1, len(start), dtype=torch.bool),
        scale=scale[None],
        **{
            name: torch.tensor([rules.get(name, 0)], dtype=torch.int32)
            for name in ("capacity", "route_cost", "fleet_limit")
        },
    )
