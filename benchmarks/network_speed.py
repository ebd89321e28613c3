"""Shortest paths between all terminals: ours against scipy's, on the same sources."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from arcfleet import _core, read
from arcfleet.report.tables import table
from benchmarks import describe, shared_dir

if TYPE_CHECKING:
    from collections.abc import Callable

    from arcfleet import Instance

INSTANCES = ("egl/egl-s4-A.dat", "egl-large/egl-g1-A.dat", "hefei/Hefei-10.txt")
ROUNDS = 9


def milliseconds(work: Callable[[], object]) -> float:
    """Median time of a call."""
    times = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        work()
        times.append(1000 * (time.perf_counter() - started))
    return statistics.median(times)


def measure(instance: Instance) -> tuple[object, ...]:
    """Time both on one instance, after making sure that they agree."""
    position = {node: i for i, node in enumerate(instance.nodes)}
    links = instance.links
    tail = np.array([position[link.tail] for link in links], dtype=np.int32)
    head = np.array([position[link.head] for link in links], dtype=np.int32)
    cost = np.array([link.cost for link in links], dtype=np.int32)
    required = [i for i, link in enumerate(links) if link.required]
    ends = np.concatenate([[position[instance.depot]], tail[required], head[required]])
    sources = np.unique(ends).astype(np.int32)
    size = len(instance.nodes)
    graph = csr_array((cost, (tail, head)), shape=(size, size), dtype=np.float64)

    def ours(threads: int) -> object:
        return _core.distance_matrix(
            size, tail, head, cost, cost, sources, sources, threads
        )

    def theirs() -> object:
        return dijkstra(graph, directed=False, indices=sources)

    assert np.array_equal(np.asarray(ours(1)), np.asarray(theirs())[:, sources])
    one, two, scipy = (
        milliseconds(lambda: ours(1)),
        milliseconds(lambda: ours(2)),
        milliseconds(theirs),
    )
    return (
        instance.name,
        len(sources),
        f"{scipy:.2f}",
        f"{one:.2f}",
        f"{two:.2f}",
        f"{scipy / one:.1f}",
        f"{one / two:.2f}",
    )


if __name__ == "__main__":
    print(describe())
    rows = [measure(read(shared_dir() / "carplib" / name)) for name in INSTANCES]
    header = ("instance", "sources", "scipy ms", "1 thread ms", "2 threads ms")
    print(table(rows, (*header, "scipy / ours", "2-thread speed-up")))
