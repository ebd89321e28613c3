#include "network/elimination.h"

#include "base/index.h"
#include "network/dijkstra.h"

#include <algorithm>
#include <utility>

// The program picks the clone for its processor when it is loaded, before the
// sanitizer is ready for it.
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) &&                \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define ARCFLEET_WIDE_CLONES __attribute__((target_clones("default", "avx2")))
#else
#define ARCFLEET_WIDE_CLONES
#endif

namespace arcfleet {

namespace {

// Fewer sources are searched from one by one before all nodes are eliminated.
constexpr size_t kFewestSources = 100;

// Entries of lists looked at for each node of a search that is saved. On street maps a
// search takes as long as 25 of them, so that giving up costs a third of what follows.
constexpr size_t kWorkOfSearch = 8;

struct Neighbour {
    int32_t node;
    int32_t to;   // cost of driving there, kFar where there is no edge
    int32_t from; // and back
};

using Neighbours = std::vector<Neighbour>;

Neighbour &entry(Neighbours &neighbours, int32_t node) {
    for (Neighbour &each : neighbours) {
        if (each.node == node) {
            return each;
        }
    }
    return neighbours.emplace_back(
        Neighbour{node, Elimination::kFar, Elimination::kFar});
}

// Nodes by their number of neighbours; outdated entries are skipped.
class ByDegree {
  public:
    explicit ByDegree(const std::vector<Neighbours> &neighbours)
        : neighbours_(neighbours) {}

    void put(int32_t node) {
        const size_t degree = neighbours_[idx(node)].size();
        if (degree >= buckets_.size()) {
            buckets_.resize(degree + 1);
        }
        buckets_[degree].push_back(node);
        least_ = std::min(least_, degree);
    }

    int32_t take(const std::vector<uint8_t> &eliminated) {
        for (;; ++least_) {
            auto &bucket = buckets_[least_];
            while (!bucket.empty()) {
                const int32_t node = bucket.back();
                bucket.pop_back();
                if (!eliminated[idx(node)] && neighbours_[idx(node)].size() == least_) {
                    return node;
                }
            }
        }
    }

  private:
    const std::vector<Neighbours> &neighbours_;
    std::vector<std::vector<int32_t>> buckets_;
    size_t least_ = 0;
};

} // namespace

bool Elimination::suits(const StreetGraph &graph, size_t sources, int64_t addition) {
    if (sources < kFewestSources) {
        return false;
    }
    // A path leaves every node once at most.
    int64_t longest = addition;
    for (int32_t node = 0; node < graph.num_nodes(); ++node) {
        int64_t dearest = 0;
        for (const DirectedEdge &edge : graph.leaving(node)) {
            dearest = std::max<int64_t>(dearest, edge.cost);
        }
        longest += dearest;
    }
    return longest <= kMaxDistance;
}

Elimination::Elimination(const StreetGraph &graph, size_t sources) {
    const auto n = idx(graph.num_nodes());
    size_t work = 0; // entries of lists looked at
    const size_t most_work = kWorkOfSearch * sources * n;
    std::vector<Neighbours> neighbours(n);
    for (int32_t node = 0; node < graph.num_nodes(); ++node) {
        for (const DirectedEdge &edge : graph.leaving(node)) {
            if (edge.target == node) {
                continue;
            }
            work += neighbours[idx(node)].size() + neighbours[idx(edge.target)].size();
            if (work > most_work) {
                return;
            }
            int32_t &there = entry(neighbours[idx(node)], edge.target).to;
            there = std::min(there, edge.cost);
            int32_t &here = entry(neighbours[idx(edge.target)], node).from;
            here = std::min(here, edge.cost);
        }
    }
    ByDegree queue(neighbours);
    for (int32_t node = 0; node < graph.num_nodes(); ++node) {
        queue.put(node);
    }
    std::vector<uint8_t> eliminated(n, 0);
    std::vector<int32_t> order;
    order.reserve(n);
    std::vector<int32_t> place(n, -1); // of a node among the neighbours of another
    while (order.size() < n) {
        const int32_t node = queue.take(eliminated);
        eliminated[idx(node)] = 1;
        order.push_back(node);
        const Neighbours &around = neighbours[idx(node)];
        for (const Neighbour &one : around) {
            Neighbours &others = neighbours[idx(one.node)];
            work += others.size() + around.size();
            for (size_t i = 0; i < others.size();) {
                if (others[i].node == node) {
                    others[i] = others.back();
                    others.pop_back();
                } else {
                    place[idx(others[i].node)] = static_cast<int32_t>(i);
                    ++i;
                }
            }
            for (const Neighbour &other : around) {
                // Both ways at once, so that each pair stands in both lists.
                const int32_t to = std::min(kFar, one.from + other.to);
                const int32_t from = std::min(kFar, other.from + one.to);
                if (other.node == one.node || (to == kFar && from == kFar)) {
                    continue;
                }
                int32_t &at = place[idx(other.node)];
                if (at < 0) {
                    at = static_cast<int32_t>(others.size());
                    others.push_back({other.node, kFar, kFar});
                }
                others[idx(at)].to = std::min(others[idx(at)].to, to);
                others[idx(at)].from = std::min(others[idx(at)].from, from);
            }
            for (const Neighbour &other : others) {
                place[idx(other.node)] = -1;
            }
            queue.put(one.node);
        }
        if (work > most_work) {
            return;
        }
    }
    is_complete_ = true;
    rank_.resize(n);
    for (size_t i = 0; i < n; ++i) {
        rank_[idx(order[i])] = static_cast<int32_t>(n - 1 - i);
    }
    up_at_.push_back(0);
    down_at_.push_back(0);
    for (size_t rank = 0; rank < n; ++rank) {
        for (const Neighbour &later : neighbours[idx(order[n - 1 - rank])]) {
            if (later.to < kFar) {
                up_.push_back({rank_[idx(later.node)], later.to});
            }
            if (later.from < kFar) {
                down_.push_back({rank_[idx(later.node)], later.from});
            }
        }
        up_at_.push_back(static_cast<uint32_t>(up_.size()));
        down_at_.push_back(static_cast<uint32_t>(down_.size()));
    }
}

ARCFLEET_WIDE_CLONES void Elimination::sweep_down(int32_t *lanes) const {
    const size_t n = rank_.size();
    for (size_t rank = 0; rank < n; ++rank) {
        int32_t *here = lanes + rank * kLanes;
        int32_t least[kLanes];
        std::copy_n(here, kLanes, least);
        for (uint32_t i = down_at_[rank]; i < down_at_[rank + 1]; ++i) {
            const int32_t *there = lanes + idx(down_[i].rank) * kLanes;
            const int32_t cost = down_[i].cost;
            for (size_t lane = 0; lane < kLanes; ++lane) {
                least[lane] = std::min(least[lane], there[lane] + cost);
            }
        }
        std::copy_n(least, kLanes, here);
    }
}

void Elimination::sweep(std::span<const int32_t> sources,
                        std::vector<int32_t> &lanes) const {
    const size_t n = rank_.size();
    lanes.assign(n * kLanes, kFar);
    std::vector<uint8_t> reached(n, 0);
    size_t lowest = 0;
    for (size_t lane = 0; lane < sources.size(); ++lane) {
        const auto rank = idx(rank_[idx(sources[lane])]);
        lanes[rank * kLanes + lane] = 0;
        reached[rank] = 1;
        lowest = std::max(lowest, rank);
    }
    for (size_t rank = lowest + 1; rank-- > 0;) {
        if (!reached[rank]) {
            continue;
        }
        const int32_t *here = lanes.data() + rank * kLanes;
        for (uint32_t i = up_at_[rank]; i < up_at_[rank + 1]; ++i) {
            int32_t *there = lanes.data() + idx(up_[i].rank) * kLanes;
            for (size_t lane = 0; lane < kLanes; ++lane) {
                there[lane] = std::min(there[lane], here[lane] + up_[i].cost);
            }
            reached[idx(up_[i].rank)] = 1;
        }
    }
    sweep_down(lanes.data());
}

// A way leads up from a source, then down to a target. Edges are kept where the least
// that leads to them from any source, and from them to any target, is not too far: most
// nodes eliminated last, which have most edges, lie on ways round the whole city.
Elimination::Among::Among(const Elimination &elimination,
                          std::span<const int32_t> sources,
                          std::span<const int32_t> targets, int32_t farthest)
    : elimination_(elimination), row_(elimination.rank_.size(), -1) {
    const Elimination &all = elimination;
    const size_t n = all.rank_.size();
    const auto end_of = [&](std::span<const int32_t> nodes) {
        int32_t most = -1;
        for (const int32_t node : nodes) {
            most = std::max(most, all.rank_[idx(node)]);
        }
        return idx(most + 1);
    };
    const size_t sources_end = end_of(sources);
    const size_t targets_end = end_of(targets);
    // From the sources, up; to the targets, down, and from anywhere.
    std::vector<int32_t> from(n, kFar);
    std::vector<int32_t> down_from(n, kFar);
    for (const int32_t source : sources) {
        from[idx(all.rank_[idx(source)])] = 0;
    }
    for (const int32_t target : targets) {
        down_from[idx(all.rank_[idx(target)])] = 0;
    }
    const auto relax = [&](std::vector<int32_t> &costs, const std::vector<Step> &steps,
                           const std::vector<uint32_t> &at, size_t rank) {
        if (costs[rank] <= farthest && costs[rank] < kFar) {
            for (uint32_t i = at[rank]; i < at[rank + 1]; ++i) {
                int32_t &there = costs[idx(steps[i].rank)];
                there = std::min(there, costs[rank] + steps[i].cost);
            }
        }
    };
    for (size_t rank = sources_end; rank-- > 0;) {
        relax(from, all.up_, all.up_at_, rank);
    }
    for (size_t rank = targets_end; rank-- > 0;) {
        relax(down_from, all.down_, all.down_at_, rank);
    }
    std::vector<int32_t> to = down_from;
    const auto numbered = [&](int32_t rank) {
        int32_t &row = row_[idx(rank)];
        if (row < 0) {
            row = static_cast<int32_t>(is_reached_.size() * kLanes);
            is_reached_.push_back(0);
        }
        return row;
    };
    for (const int32_t target : targets) {
        numbered(all.rank_[idx(target)]);
    }
    for (const int32_t source : sources) {
        numbered(all.rank_[idx(source)]);
    }
    const size_t end = std::max(sources_end, targets_end);
    for (size_t rank = 0; rank < end; ++rank) {
        if (from[rank] == kFar) {
            continue;
        }
        for (uint32_t i = all.up_at_[rank]; i < all.up_at_[rank + 1]; ++i) {
            const int32_t rest = to[idx(all.up_[i].rank)];
            to[rank] = std::min(to[rank], all.up_[i].cost + rest);
        }
    }
    const auto is_near = [&](int32_t before, int32_t cost, int32_t after) {
        return before < kFar && after < kFar &&
               int64_t{before} + cost + after <= farthest;
    };
    for (size_t rank = sources_end; rank-- > 0;) {
        const auto first = static_cast<uint32_t>(up_edges_.size());
        for (uint32_t i = all.up_at_[rank]; i < all.up_at_[rank + 1]; ++i) {
            if (is_near(from[rank], all.up_[i].cost, to[idx(all.up_[i].rank)])) {
                up_edges_.push_back({numbered(all.up_[i].rank), all.up_[i].cost});
            }
        }
        if (up_edges_.size() > first) {
            up_.push_back({numbered(static_cast<int32_t>(rank)), first,
                           static_cast<uint32_t>(up_edges_.size())});
        }
    }
    for (size_t rank = 0; rank < targets_end; ++rank) {
        if (down_from[rank] == kFar) {
            continue;
        }
        const auto first = static_cast<uint32_t>(down_edges_.size());
        for (uint32_t i = all.down_at_[rank]; i < all.down_at_[rank + 1]; ++i) {
            int32_t &there = from[rank];
            const int32_t before = from[idx(all.down_[i].rank)];
            if (is_near(before, all.down_[i].cost, down_from[rank])) {
                there = std::min(there, before + all.down_[i].cost);
                down_edges_.push_back({numbered(all.down_[i].rank), all.down_[i].cost});
            }
        }
        if (down_edges_.size() > first) {
            down_.push_back({numbered(static_cast<int32_t>(rank)), first,
                             static_cast<uint32_t>(down_edges_.size())});
        }
    }
    lanes_.assign(is_reached_.size() * kLanes, kFar);
}

void Elimination::Among::sweep(std::span<const int32_t> sources) {
    std::fill(lanes_.begin(), lanes_.end(), kFar);
    std::fill(is_reached_.begin(), is_reached_.end(), uint8_t{0});
    for (size_t lane = 0; lane < sources.size(); ++lane) {
        const auto row = idx(row_[idx(elimination_.rank_[idx(sources[lane])])]);
        lanes_[row + lane] = 0;
        is_reached_[row / kLanes] = 1;
    }
    for (const Node &node : up_) {
        if (!is_reached_[idx(node.row) / kLanes]) {
            continue;
        }
        const int32_t *here = lanes_.data() + node.row;
        for (uint32_t i = node.first; i < node.last; ++i) {
            int32_t *there = lanes_.data() + up_edges_[i].row;
            for (size_t lane = 0; lane < kLanes; ++lane) {
                there[lane] = std::min(there[lane], here[lane] + up_edges_[i].cost);
            }
            is_reached_[idx(up_edges_[i].row) / kLanes] = 1;
        }
    }
    sweep_down();
}

ARCFLEET_WIDE_CLONES void Elimination::Among::sweep_down() {
    int32_t *const lanes = lanes_.data();
    const Edge *const edges = down_edges_.data();
    for (const Node &node : down_) {
        int32_t *here = lanes + node.row;
        int32_t least[kLanes];
        std::copy_n(here, kLanes, least);
        for (uint32_t i = node.first; i < node.last; ++i) {
            const int32_t *there = lanes + edges[i].row;
            const int32_t cost = edges[i].cost;
            for (size_t lane = 0; lane < kLanes; ++lane) {
                least[lane] = std::min(least[lane], there[lane] + cost);
            }
        }
        std::copy_n(least, kLanes, here);
    }
}

} // namespace arcfleet
