#include "network/dijkstra.h"

#include "base/huge_pages.h"
#include "base/parallel.h"
#include "network/elimination.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <stdexcept>

namespace arcfleet {

namespace {

// A binary heap without decrease-key: outdated entries are skipped when they surface.
// Street graphs have about three edges per node, so few are outdated.
void push(std::vector<uint64_t> &heap, uint64_t entry) {
    size_t hole = heap.size();
    heap.push_back(entry);
    while (hole > 0) {
        const size_t parent = (hole - 1) / 2;
        if (heap[parent] <= entry) {
            break;
        }
        heap[hole] = heap[parent];
        hole = parent;
    }
    heap[hole] = entry;
}

uint64_t pop(std::vector<uint64_t> &heap) {
    const uint64_t top = heap.front();
    const uint64_t last = heap.back();
    heap.pop_back();
    const size_t size = heap.size();
    if (size == 0) {
        return top;
    }
    size_t hole = 0;
    for (size_t child = 1; child < size; child = 2 * hole + 1) {
        if (child + 1 < size && heap[child + 1] < heap[child]) {
            ++child;
        }
        if (heap[child] >= last) {
            break;
        }
        heap[hole] = heap[child];
        hole = child;
    }
    heap[hole] = last;
    return top;
}

} // namespace

Dijkstra::Dijkstra(const StreetGraph &graph)
    : graph_(graph), distance_(static_cast<size_t>(graph.num_nodes()), kUnreachable) {
    heap_.reserve(distance_.size());
}

// Ends at the first node, nearest first, that `ends_at` says it of, and passes by those
// to which an edge does not lead.
template <bool with_parents, typename Ends, typename Leads>
void Dijkstra::run(int32_t source, const Ends &ends_at, const Leads &leads) {
    // Most searches end near by: only what the last one reached is reset.
    for (const int32_t node : reached_) {
        distance_[static_cast<size_t>(node)] = kUnreachable;
    }
    reached_.assign(1, source);
    if constexpr (with_parents) {
        parent_edge_.resize(distance_.size());
        parent_node_.resize(distance_.size());
        parent_node_[static_cast<size_t>(source)] = -1;
    }
    heap_.clear();
    distance_[static_cast<size_t>(source)] = 0;
    push(heap_, static_cast<uint64_t>(source));
    while (!heap_.empty()) {
        const uint64_t entry = pop(heap_);
        const auto node = static_cast<int32_t>(entry & 0xFFFFFFFFU);
        const auto here = static_cast<int32_t>(entry >> 32);
        if (here != distance_[static_cast<size_t>(node)]) {
            continue;
        }
        if (ends_at(node, here)) {
            return;
        }
        if (here > kMaxDistance) {
            throw std::overflow_error("shortest path longer than 2^29 - 1");
        }
        for (const DirectedEdge &edge : graph_.leaving(node)) {
            // Beyond kUnreachable - 1 the sum is of no use and must not wrap around.
            const int64_t there = static_cast<int64_t>(here) + edge.cost;
            const auto next =
                static_cast<int32_t>(std::min<int64_t>(there, kUnreachable - 1));
            int32_t &known = distance_[static_cast<size_t>(edge.target)];
            if (next < known && leads(edge.target, next)) {
                if (known == kUnreachable) {
                    reached_.push_back(edge.target);
                }
                known = next;
                push(heap_, static_cast<uint64_t>(next) << 32 |
                                static_cast<uint32_t>(edge.target));
                if constexpr (with_parents) {
                    parent_edge_[static_cast<size_t>(edge.target)] = edge.edge;
                    parent_node_[static_cast<size_t>(edge.target)] = node;
                }
            }
        }
    }
}

namespace {

constexpr auto kNowhere = [](int32_t, int32_t) { return false; };
constexpr auto kEverywhere = [](int32_t, int32_t) { return true; };

} // namespace

std::span<const int32_t> Dijkstra::distances(int32_t source) {
    run<false>(source, kNowhere, kEverywhere);
    return distance_;
}

int32_t Dijkstra::search(int32_t source, std::span<const WayEnd> ends) {
    int64_t least = kUnreachable;
    const auto ends_at = [&](int32_t node, int32_t here) {
        for (const WayEnd &end : ends) {
            if (end.node == node) {
                least = std::min(least, int64_t{here} + end.addition);
            }
        }
        return here > std::min<int64_t>(least, kMaxDistance);
    };
    run<true>(source, ends_at, kEverywhere);
    return static_cast<int32_t>(least);
}

int32_t Dijkstra::cost_of(std::span<const WayEnd> ends) const {
    int64_t least = kUnreachable;
    for (const WayEnd &end : ends) {
        const int64_t here = distance_[static_cast<size_t>(end.node)];
        least = std::min(least, here + end.addition);
    }
    return static_cast<int32_t>(least);
}

// Only nodes on a cheapest way are looked at, in the order of a search of all.
void Dijkstra::follow(int32_t source, std::span<const int32_t> rest) {
    const int64_t cost = rest[static_cast<size_t>(source)];
    const auto leads = [&](int32_t node, int32_t there) {
        return int64_t{there} + rest[static_cast<size_t>(node)] <= cost;
    };
    run<true>(source, kNowhere, leads);
}

std::vector<int32_t> Dijkstra::path(int32_t source, int32_t target) {
    const WayEnd end{target, 0};
    return path_to({&end, 1}, search(source, {&end, 1}));
}

std::vector<int32_t> Dijkstra::path_to(std::span<const WayEnd> ends,
                                       int32_t cost) const {
    for (const WayEnd &end : ends) {
        const int64_t reached =
            int64_t{distance_[static_cast<size_t>(end.node)]} + end.addition;
        if (cost != kUnreachable && reached == cost) {
            return path_to(end.node);
        }
    }
    throw std::invalid_argument("no way between two places");
}

std::vector<int32_t> Dijkstra::path_to(int32_t target) const {
    std::vector<int32_t> edges;
    // Only the source has no parent.
    for (int32_t node = target; parent_node_[static_cast<size_t>(node)] >= 0;
         node = parent_node_[static_cast<size_t>(node)]) {
        edges.push_back(parent_edge_[static_cast<size_t>(node)]);
    }
    std::reverse(edges.begin(), edges.end());
    return edges;
}

namespace {

void fill_by_sweeps(const Elimination &elimination, std::span<const int32_t> sources,
                    std::span<const int32_t> targets, int threads,
                    const Allowance &allowance, std::vector<int32_t> &matrix) {
    constexpr size_t kLanes = Elimination::kLanes;
    std::atomic<size_t> next{0};
    run_workers(threads, [&](int) {
        std::vector<int32_t> lanes;
        for (size_t first = next.fetch_add(kLanes); first < sources.size();
             first = next.fetch_add(kLanes)) {
            check_or_end(allowance, next, first, sources.size());
            const size_t count = std::min(kLanes, sources.size() - first);
            elimination.sweep(sources.subspan(first, count), lanes);
            int32_t *out = matrix.data() + first * targets.size();
            for (size_t column = 0; column < targets.size(); ++column) {
                const int32_t *here =
                    lanes.data() + elimination.row_of(targets[column]);
                for (size_t lane = 0; lane < count; ++lane) {
                    out[lane * targets.size() + column] =
                        here[lane] < Elimination::kFar ? here[lane] : kUnreachable;
                }
            }
        }
    });
}

} // namespace

std::vector<int32_t> distance_matrix(const StreetGraph &graph,
                                     std::span<const int32_t> sources,
                                     std::span<const int32_t> targets, int threads,
                                     Allowance allowance) {
    const auto in_graph = [&](int32_t node) {
        return node >= 0 && node < graph.num_nodes();
    };
    if (!std::all_of(sources.begin(), sources.end(), in_graph) ||
        !std::all_of(targets.begin(), targets.end(), in_graph)) {
        throw std::invalid_argument("unknown node");
    }
    std::vector<int32_t> matrix;
    reserve_huge(matrix, sources.size() * targets.size());
    resize_in_time(matrix, sources.size() * targets.size(), allowance);
    const auto most = static_cast<int>(std::max<size_t>(1, sources.size()));
    if (Elimination::suits(graph, sources.size(), 0)) {
        const Elimination elimination(graph, sources.size());
        allowance.start_parts();
        if (elimination.is_complete()) {
            fill_by_sweeps(elimination, sources, targets, std::min(threads, most),
                           allowance, matrix);
            return matrix;
        }
    }
    std::atomic<size_t> next_row{0};
    run_workers(std::min(threads, most), [&](int) {
        Dijkstra dijkstra(graph);
        for (size_t row = next_row++; row < sources.size(); row = next_row++) {
            check_or_end(allowance, next_row, row, sources.size());
            const auto from_source = dijkstra.distances(sources[row]);
            int32_t *out = matrix.data() + row * targets.size();
            for (size_t column = 0; column < targets.size(); ++column) {
                out[column] = from_source[static_cast<size_t>(targets[column])];
            }
        }
    });
    return matrix;
}

std::vector<int32_t> distances_among(const StreetGraph &graph,
                                     std::span<const int32_t> nodes,
                                     const Elimination *elimination, int32_t farthest) {
    if (elimination == nullptr) {
        return distance_matrix(graph, nodes, nodes, 1);
    }
    constexpr size_t kLanes = Elimination::kLanes;
    const size_t size = nodes.size();
    std::vector<int32_t> matrix(size * size);
    Elimination::Among search(*elimination, nodes, nodes,
                              std::min(farthest, Elimination::kFar));
    for (size_t first = 0; first < size; first += kLanes) {
        const size_t count = std::min(kLanes, size - first);
        search.sweep(nodes.subspan(first, count));
        for (size_t j = 0; j < size; ++j) {
            const int32_t *row = search.row(nodes[j]);
            for (size_t lane = 0; lane < count; ++lane) {
                matrix[(first + lane) * size + j] =
                    row[lane] < Elimination::kFar ? row[lane] : kUnreachable;
            }
        }
    }
    return matrix;
}

} // namespace arcfleet
