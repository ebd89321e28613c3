"""Cut data sets for the trials: streets of both kinds, demands, capacities, depots, sizes.

The capacity of all is CAPACITY; demands are scaled so that it takes the number of routes
drawn. Only demands over the capacity matter to the model.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np

from arcfleet.datasets.dataset import pieces_to_arrays, write_dataset
from arcfleet.streets.files import read_map
from arcfleet.streets.simplify import merge_close_junctions
from arcfleet.streets.street_arrays import band, to_arrays
from arcfleet.streets.tasks import Piece, _grow, _in_large_parts, _strong_part

CAPACITY = 10_000
MAPS = Path(sys.argv[1])
OUT = Path(sys.argv[2])
TINY = len(sys.argv) > 3
TRAIN = {  # weights of the maps
    "beijing_5ring": 0.3, "jinan": 0.1, "rome": 0.1, "coquimbo": 0.08, "columbus_oh": 0.08,
    "porto_alegre": 0.1, "harrisburg_pa": 0.06, "reno_nv": 0.06, "bangor_me": 0.04,
    "apalachicola": 0.01, "cobb_county_ga": 0.02, "herrenberg": 0.01, "liechtenstein": 0.02,
    "north_bayreuth": 0.02,
}  # fmt: skip
UNSEEN = ("denver_downtown", "monaco", "paris_trocadero", "reisterstown_md", "maisons_laffitte",
          "andorra")  # fmt: skip
ROUTES = (0.7, 20.0)


class Streets:
    def __init__(self, name, mixed, split=None):
        arrays = to_arrays(merge_close_junctions(read_map(MAPS / f"{name}.edges.csv.gz"), 15.0), mixed=mixed)
        self.arrays = arrays = band(arrays, split) if split else arrays
        self.mixed = mixed
        self.neighbours = [[] for _ in arrays.longitude]
        self.leaving = [[] for _ in arrays.longitude]
        for street, (tail, head) in enumerate(zip(arrays.tail.tolist(), arrays.head.tolist(), strict=True)):
            self.neighbours[tail].append(head)
            self.neighbours[head].append(tail)
            self.leaving[tail].append((head, street))
        self.starts = _in_large_parts(self.neighbours, 60)

    def piece(self, rng, tasks, dense, depot_at):
        """Return nodes and links of an area with servable links, None where too few."""
        if dense:
            inner = math.ceil(tasks / (1.35 * rng.uniform(0.8, 1.0)))
        else:
            inner = tasks + int(rng.integers(5, 11))
        grown = inner if depot_at != "outside" else math.ceil(1.4 * inner)
        for _ in range(200):
            start = self.starts[int(rng.integers(len(self.starts)))]
            nodes = _grow(self.neighbours, start, grown)
            place = {node: i for i, node in enumerate(nodes)}
            tail, head, chosen = [], [], []
            for i, node in enumerate(nodes):
                for other, street in self.leaving[node]:
                    if other in place:
                        tail.append(i)
                        head.append(place[other])
                        chosen.append(street)
            links = np.array(chosen, dtype=np.int32)
            one_way = self.arrays.one_way[links]
            part = _strong_part(len(nodes), tail, head, one_way.tolist()) if self.mixed else set(range(len(nodes)))
            servable = [i for i in range(len(tail)) if tail[i] in part and head[i] in part
                        and tail[i] < inner and head[i] < inner]  # fmt: skip
            depots = sorted(part)
            if len(servable) < tasks:
                inner, grown = inner + 1 + inner // 20, grown + 1 + grown // 20
                continue
            if depot_at != "any":  # those grown last lie at the edge
                depots = depots[-max(1, len(depots) // 8):]
            depot = depots[int(rng.integers(len(depots)))]
            required = rng.permutation(np.array(servable, dtype=np.int32))[:tasks]
            return len(nodes), tail, head, self.arrays.cost[links], one_way, required, depot
        return None


def demands(rng, kind, costs):
    if kind == "paper":
        return rng.integers(5, 11, len(costs)).astype(float)
    if kind == "length":
        return costs.astype(float)
    if kind == "constant":
        return np.ones(len(costs))
    return rng.lognormal(0.0, 1.0, len(costs))


def cut(rng, streets, tasks, *, dense, depot_at, kind, routes):
    found = streets.piece(rng, tasks, dense, depot_at)
    if found is None:
        return None
    nodes, tail, head, cost, one_way, required, depot = found
    raw = demands(rng, kind, cost[required])
    scaled = np.clip(np.rint(raw * routes * CAPACITY / raw.sum()), 1, CAPACITY)
    demand = np.zeros(len(tail), dtype=np.int32)
    demand[required] = scaled
    zeros = np.zeros(nodes, dtype=np.float32)  # places are not needed
    return Piece(longitude=zeros, latitude=zeros, tail=np.array(tail), head=np.array(head), cost=cost,
                 one_way=one_way, demand=demand, depot=depot, capacity=CAPACITY)  # fmt: skip


def write(name, pieces):
    path = OUT / f"{name}.npz"
    write_dataset(path, pieces_to_arrays(pieces), {"name": name, "capacity": CAPACITY, "credit": "OpenStreetMap"})
    print(name, len(pieces), path.stat().st_size, flush=True)


def training(mixed, sizes, count, seed):
    rng = np.random.default_rng(seed)
    streets = TRAIN_STREETS[mixed]
    weights = np.array([TRAIN[name] for name in streets])
    pieces = []
    while len(pieces) < count:
        city = list(streets.values())[int(rng.choice(len(weights), p=weights / weights.sum()))]
        tasks = int(rng.integers(sizes[0], sizes[1] + 1))
        kind = ("paper", "length", "constant", "tail")[int(rng.integers(4))]
        most = min(ROUTES[1], tasks / 2.5)
        routes = math.exp(rng.uniform(math.log(ROUTES[0]), math.log(most)))
        if kind == "paper" and rng.random() < 0.5:
            routes = 0.075 * tasks
        depot_at = ("any", "any", "any", "edge", "outside")[int(rng.integers(5))]
        piece = cut(rng, city, tasks, dense=rng.random() < 0.5, depot_at=depot_at, kind=kind, routes=routes)
        if piece is not None:
            pieces.append(piece)
    return pieces


def scenes(mixed, sizes, each, seed):
    rng = np.random.default_rng(seed)
    pieces = []
    for name in UNSEEN:
        city = Streets(name, mixed)
        found = 0
        while found < each:
            tasks = int(rng.integers(sizes[0], sizes[1] + 1))
            routes = math.exp(rng.uniform(math.log(2), math.log(12)))
            piece = cut(rng, city, tasks, dense=True, depot_at=("any", "edge")[found % 2], kind="length", routes=routes)
            if piece is not None:
                pieces.append(piece)
                found += 1
    return pieces


def paper_sets(mixed, tasks, count, seed):
    rng = np.random.default_rng(seed)
    city = Streets("beijing_5ring", mixed, "validation")
    pieces = []
    while len(pieces) < count:
        piece = cut(rng, city, tasks, dense=False, depot_at="any", kind="paper", routes=1.0)
        if piece is None:
            continue
        # The paper's demands and capacity as they are: 5 to 10 of 100.
        demand = np.where(piece.demand > 0, rng.integers(5, 11, len(piece.demand)) * (CAPACITY // 100), 0)
        pieces.append(Piece(**{f: getattr(piece, f) for f in ("longitude", "latitude", "tail", "head", "cost",
                            "one_way", "depot", "capacity")}, demand=demand))  # fmt: skip
    return pieces


OUT.mkdir(parents=True, exist_ok=True)
few = 8 if TINY else None
for mixed in (False, True):
    way = "one-way" if mixed else "two-way"
    for tasks in (20, 50, 100):
        write(f"val-{way}-{tasks}", paper_sets(mixed, tasks, few or 200, 77 + mixed))
    write(f"val-{way}-scenes", scenes(mixed, (50, 120), few and 1 or 32, 87 + mixed))
write("val-one-way-large", scenes(True, (150, 250), few and 1 or 8, 99))
TRAIN_STREETS = {mixed: {name: Streets(name, mixed, "train" if name.startswith("beijing") else None) for name in TRAIN}
                 for mixed in (False, True)}  # fmt: skip
for mixed in (False, True):
    way = "one-way" if mixed else "two-way"
    for name, sizes, count in (("s", (10, 30), 16000), ("m", (31, 60), 16000), ("l", (61, 110), 12000)):
        write(f"train-{way}-{name}", training(mixed, sizes, 40 if TINY else count, 5 + mixed))
