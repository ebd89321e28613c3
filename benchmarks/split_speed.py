"""Orders cut into routes per second: 103 tasks each, on one and two threads."""

from __future__ import annotations

import statistics
import time

import numpy as np

from arcfleet import read
from arcfleet.network import Network
from arcfleet.report.tables import table
from arcfleet.search.split import split_orders
from benchmarks import describe, shared_dir

ORDERS = 20_000
ROUNDS = 5


def orders_per_second(network: Network, *, choose_directions: bool, threads: int) -> float:
    """Median over the rounds, on random orders."""
    generator = np.random.default_rng(1)
    first_arcs = np.flatnonzero(np.diff(network.arc_task, prepend=-1) > 0)
    orders = np.stack([generator.permutation(first_arcs) for _ in range(ORDERS)])
    starts = np.arange(ORDERS + 1) * len(first_arcs)
    rates = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        split_orders(
            [network],
            np.zeros(ORDERS, dtype=np.int32),
            orders.ravel(),
            starts,
            choose_directions=choose_directions,
            threads=threads,
        )
        rates.append(ORDERS / (time.perf_counter() - started))
    return statistics.median(rates)


if __name__ == "__main__":
    print(describe())
    network = Network(read(shared_dir() / "carplib" / "E" / "E09.dat"))
    rows = [
        (
            "directions chosen" if choose else "directions fixed",
            *(
                f"{orders_per_second(network, choose_directions=choose, threads=n):,.0f}"
                for n in (1, 2)
            ),
        )
        for choose in (False, True)
    ]
    print(table(rows, ("split of E09 (103 tasks)", "1 thread, 1/s", "2 threads, 1/s")))
