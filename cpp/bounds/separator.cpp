#include "bounds/separator.h"

#include "base/index.h"
#include "bounds/max_flow.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

namespace arcfleet {

namespace {

constexpr int64_t kOne = int64_t{1} << 20; // one drive
constexpr int64_t kLeastViolation = kOne / 200;

class Groups {
  public:
    explicit Groups(int32_t count) : parent_(idx(count)) {
        std::iota(parent_.begin(), parent_.end(), 0);
    }
    int32_t find(int32_t i) {
        while (parent_[idx(i)] != i) {
            parent_[idx(i)] = parent_[idx(parent_[idx(i)])];
            i = parent_[idx(i)];
        }
        return i;
    }
    void join(int32_t a, int32_t b) { parent_[idx(find(a))] = find(b); }

  private:
    std::vector<int32_t> parent_;
};

} // namespace

Separator::Separator(int32_t num_nodes, const BoundLinks &links,
                     std::span<const int32_t> pair_tail,
                     std::span<const int32_t> pair_head,
                     std::span<const uint8_t> outside, int64_t vehicle_capacity)
    : num_nodes_(num_nodes), capacity_(vehicle_capacity),
      outside_(outside.begin(), outside.end()), loop_demand_(idx(num_nodes)),
      loop_links_(idx(num_nodes)), odd_(idx(num_nodes)), label_(idx(num_nodes)),
      mark_(idx(num_nodes)) {
    std::map<std::pair<int32_t, int32_t>, size_t> position;
    const auto edge_of = [&](int32_t tail, int32_t head) -> Edge & {
        const std::pair key(std::min(tail, head), std::max(tail, head));
        const auto [place, is_new] = position.try_emplace(key, edges_.size());
        if (is_new) {
            edges_.push_back({key.first, key.second, -1, 0, 0});
        }
        return edges_[place->second];
    };
    for (size_t pair = 0; pair < pair_tail.size(); ++pair) {
        edge_of(pair_tail[pair], pair_head[pair]).pair = static_cast<int32_t>(pair);
    }
    for (size_t link = 0; link < links.tail.size(); ++link) {
        const int32_t tail = links.tail[link], head = links.head[link];
        if (tail == head) {
            loop_demand_[idx(tail)] += links.demand[link];
            ++loop_links_[idx(tail)];
            continue;
        }
        Edge &edge = edge_of(tail, head);
        ++edge.required;
        edge.demand += links.demand[link];
        odd_[idx(tail)] ^= 1;
        odd_[idx(head)] ^= 1;
    }
    edge_starts_.assign(idx(num_nodes) + 1, 0);
    for (const Edge &edge : edges_) {
        ++edge_starts_[idx(edge.tail) + 1];
        ++edge_starts_[idx(edge.head) + 1];
    }
    for (size_t node = 0; node < idx(num_nodes); ++node) {
        edge_starts_[node + 1] += edge_starts_[node];
    }
    neighbours_.resize(2 * edges_.size());
    std::vector<int32_t> place(edge_starts_.begin(), edge_starts_.end() - 1);
    for (size_t e = 0; e < edges_.size(); ++e) {
        const Edge &edge = edges_[e];
        const auto number = static_cast<int32_t>(e);
        neighbours_[idx(place[idx(edge.tail)]++)] = {edge.head, number};
        neighbours_[idx(place[idx(edge.head)]++)] = {edge.tail, number};
    }
    uint64_t state = 1;
    for (size_t node = 0; node < idx(num_nodes); ++node) {
        label_[node] = split_mix(state);
        num_outside_ += outside_[node] != 0;
    }
    deadheads_.resize(edges_.size());
    weight_.resize(edges_.size());
}

std::vector<uint8_t> Separator::odd_nodes() const { return odd_; }

void Separator::read(std::span<const double> deadheads) {
    for (size_t e = 0; e < edges_.size(); ++e) {
        const int32_t pair = edges_[e].pair;
        const double driven = pair < 0 ? 0.0 : std::max(0.0, deadheads[idx(pair)]);
        deadheads_[e] = std::llround(std::min(driven, 1e6) * kOne);
        weight_[e] = deadheads_[e] + kOne * edges_[e].required;
    }
    found_.clear();
    offered_.clear();
}

int64_t Separator::trips(int64_t demand, int64_t links) const {
    return std::max<int64_t>(links > 0, (demand + capacity_ - 1) / capacity_);
}

// --- What is found
// --------------------------------------------------------------------

// Offers the connected parts of a set, each with what it encloses: a set with a hole is
// no better than the set without, nor one of two parts than the better of them.
void Separator::offer(const std::vector<uint8_t> &inside, Family family) {
    std::vector<uint8_t> seen(idx(num_nodes_), 0);
    std::vector<int32_t> part;
    const auto flood = [&](int32_t from, auto &&in) {
        part.assign(1, from);
        seen[idx(from)] = 1;
        for (size_t i = 0; i < part.size(); ++i) {
            const size_t node = idx(part[i]);
            for (int32_t k = edge_starts_[node]; k < edge_starts_[node + 1]; ++k) {
                const int32_t other = neighbours_[idx(k)].node;
                if (!seen[idx(other)] && in(other)) {
                    seen[idx(other)] = 1;
                    part.push_back(other);
                }
            }
        }
    };
    std::vector<std::vector<int32_t>> parts;
    for (int32_t node = 0; node < num_nodes_; ++node) {
        if (inside[idx(node)] && !seen[idx(node)]) {
            flood(node, [&](int32_t other) { return inside[idx(other)] != 0; });
            parts.push_back(part);
        }
    }
    for (const std::vector<int32_t> &each : parts) {
        std::fill(seen.begin(), seen.end(), 0);
        for (const int32_t node : each) {
            seen[idx(node)] = 1;
        }
        std::vector<int32_t> filled = each;
        for (int32_t node = 0; node < num_nodes_; ++node) {
            if (seen[idx(node)]) {
                continue;
            }
            flood(node, [](int32_t) { return true; });
            const bool is_hole = std::none_of(
                part.begin(), part.end(), [&](int32_t i) { return outside_[idx(i)]; });
            if (is_hole) {
                filled.insert(filled.end(), part.begin(), part.end());
            }
        }
        offer_part(filled, family);
    }
}

void Separator::offer_part(const std::vector<int32_t> &part, Family family) {
    uint64_t hash = 0;
    for (const int32_t node : part) {
        hash ^= label_[idx(node)];
    }
    const int64_t violation = violation_of(part);
    if (violation > kLeastViolation && !known_.contains(hash) &&
        offered_.insert(hash).second) {
        found_.push_back({violation, part, family});
    }
}

// By how much the deadheads violate the capacity cut of a set.
int64_t Separator::violation_of(const std::vector<int32_t> &part) {
    for (const int32_t node : part) {
        mark_[idx(node)] = 1;
    }
    int64_t crossings = 0, demand = 0, links = 0;
    for (const int32_t node : part) {
        demand += 2 * loop_demand_[idx(node)];
        links += loop_links_[idx(node)];
        for (int32_t k = edge_starts_[idx(node)]; k < edge_starts_[idx(node) + 1];
             ++k) {
            const Edge &edge = edges_[idx(neighbours_[idx(k)].edge)];
            const bool leaves = !mark_[idx(neighbours_[idx(k)].node)];
            demand += leaves ? 2 * edge.demand : edge.demand;
            links += edge.required;
            if (leaves) {
                crossings += weight_[idx(neighbours_[idx(k)].edge)];
            }
        }
    }
    for (const int32_t node : part) {
        mark_[idx(node)] = 0;
    }
    return 2 * kOne * trips(demand / 2, links) - crossings;
}

// Offers a set with an odd number of required links across its border.
void Separator::offer_odd(const std::vector<uint8_t> &inside) {
    uint64_t hash = 0;
    bool is_odd = false;
    int64_t driven = 0;
    bool has_outside = false;
    std::vector<int32_t> nodes;
    for (size_t node = 0; node < idx(num_nodes_); ++node) {
        if (inside[node]) {
            is_odd ^= odd_[node] != 0;
            has_outside |= outside_[node] != 0;
        }
    }
    if (!is_odd) {
        return;
    }
    for (size_t e = 0; e < edges_.size(); ++e) {
        if (inside[idx(edges_[e].tail)] != inside[idx(edges_[e].head)]) {
            driven += deadheads_[e];
        }
    }
    // The side without the depot, if there is one: its capacity may ask for more.
    for (size_t node = 0; node < idx(num_nodes_); ++node) {
        if ((inside[node] != 0) != has_outside) {
            nodes.push_back(static_cast<int32_t>(node));
            hash ^= label_[node];
        }
    }
    if (kOne - driven > kLeastViolation && !known_.contains(hash) &&
        offered_.insert(hash).second) {
        found_.push_back({kOne - driven, std::move(nodes), odd});
    }
}

int32_t Separator::keep_best(int32_t most) {
    std::stable_sort(found_.begin(), found_.end(), [](const Found &a, const Found &b) {
        return a.violation > b.violation;
    });
    int32_t kept = 0;
    for (const Found &each : found_) {
        if (kept >= most) {
            break;
        }
        kept += add_row(each.nodes, each.family);
    }
    found_.clear();
    return kept;
}

// Adds the row of a set to the pool, unless it is there or asks for nothing.
bool Separator::add_row(const std::vector<int32_t> &nodes, Family family) {
    uint64_t hash = 0;
    bool has_outside = false;
    for (const int32_t node : nodes) {
        hash ^= label_[idx(node)];
        mark_[idx(node)] = 1;
        has_outside |= outside_[idx(node)] != 0;
    }
    int64_t demand = 0, links = 0, across = 0;
    std::vector<int32_t> pairs;
    for (const int32_t node : nodes) {
        demand += 2 * loop_demand_[idx(node)];
        links += loop_links_[idx(node)];
        for (int32_t k = edge_starts_[idx(node)]; k < edge_starts_[idx(node) + 1];
             ++k) {
            const Edge &edge = edges_[idx(neighbours_[idx(k)].edge)];
            const bool leaves = !mark_[idx(neighbours_[idx(k)].node)];
            demand += leaves ? 2 * edge.demand : edge.demand;
            links += edge.required;
            if (leaves) {
                across += edge.required;
                if (edge.pair >= 0) {
                    pairs.push_back(edge.pair);
                }
            }
        }
    }
    for (const int32_t node : nodes) {
        mark_[idx(node)] = 0;
    }
    int64_t least = across % 2;
    if (!has_outside) {
        least = std::max(least, 2 * trips(demand / 2, links) - across);
    }
    if (least <= 0 || !known_.insert(hash).second) {
        return false;
    }
    std::sort(pairs.begin(), pairs.end());
    pairs_.insert(pairs_.end(), pairs.begin(), pairs.end());
    starts_.push_back(static_cast<int64_t>(pairs_.size()));
    least_.push_back(least);
    family_.push_back(family);
    return true;
}

std::vector<double> Separator::violations(std::span<const double> deadheads) const {
    std::vector<double> found(least_.size());
    for (size_t row = 0; row < least_.size(); ++row) {
        double driven = 0.0;
        for (int64_t k = starts_[row]; k < starts_[row + 1]; ++k) {
            driven += deadheads[idx(pairs_[idx(k)])];
        }
        found[row] = static_cast<double>(least_[row]) - driven;
    }
    return found;
}

// --- Connected components
// -------------------------------------------------------------

int32_t Separator::find_first() {
    int32_t added = 0;
    std::vector<int32_t> others;
    for (int32_t node = 0; node < num_nodes_; ++node) {
        added += add_row({node}, odd_[idx(node)] ? odd : connected);
        if (!outside_[idx(node)]) {
            others.push_back(node);
        }
    }
    return added + add_row(others, capacity);
}

int32_t Separator::find_components(std::span<const double> deadheads, int32_t most) {
    read(deadheads);
    std::vector<uint8_t> inside(idx(num_nodes_), 0);
    // Of all that is driven, then of the deadheads alone.
    for (const auto *weights : {&weight_, &deadheads_}) {
        for (const int64_t least : {int64_t{0}, kOne / 10, kOne / 3}) {
            Groups groups(num_nodes_);
            for (size_t e = 0; e < edges_.size(); ++e) {
                if ((*weights)[e] > least) {
                    groups.join(edges_[e].tail, edges_[e].head);
                }
            }
            std::map<int32_t, std::vector<int32_t>> parts;
            for (int32_t node = 0; node < num_nodes_; ++node) {
                parts[groups.find(node)].push_back(node);
            }
            for (const auto &[root, part] : parts) {
                if (part.size() == 1) {
                    continue; // a row from the beginning
                }
                bool has_outside = false, is_odd = false;
                for (const int32_t node : part) {
                    inside[idx(node)] = 1;
                    has_outside |= outside_[idx(node)] != 0;
                    is_odd ^= odd_[idx(node)] != 0;
                }
                if (is_odd) {
                    offer_odd(inside);
                }
                // Of parts without violation, what they enclose is not looked for.
                if (!has_outside && violation_of(part) > kLeastViolation) {
                    offer(inside, connected);
                }
                for (const int32_t node : part) {
                    inside[idx(node)] = 0;
                }
            }
        }
    }
    return keep_best(most);
}

// --- Odd cuts
// -------------------------------------------------------------------------

// The minimum odd cut is one of a cut tree (Padberg and Rao 1982), here by Gusfield's
// method (1990). Nodes with a deadhead between them are one: no cut below 1 parts them.
int32_t Separator::find_odd(std::span<const double> deadheads, int32_t most) {
    read(deadheads);
    Groups groups(num_nodes_), parts(num_nodes_);
    for (size_t e = 0; e < edges_.size(); ++e) {
        if (deadheads_[e] >= kOne - kLeastViolation) {
            groups.join(edges_[e].tail, edges_[e].head);
        }
        if (deadheads_[e] > 0) {
            parts.join(edges_[e].tail, edges_[e].head);
        }
    }
    std::map<int32_t, std::vector<int32_t>> members; // of each part: its groups
    for (int32_t node = 0; node < num_nodes_; ++node) {
        if (groups.find(node) == node) {
            members[parts.find(node)].push_back(node);
        }
    }
    std::vector<int32_t> local(idx(num_nodes_), -1);
    for (const auto &[root, nodes] : members) {
        const auto count = static_cast<int32_t>(nodes.size());
        for (int32_t i = 0; i < count; ++i) {
            local[idx(nodes[idx(i)])] = i;
        }
        // Nothing is driven between a part and the others.
        std::vector<uint8_t> part(idx(num_nodes_), 0);
        for (int32_t node = 0; node < num_nodes_; ++node) {
            part[idx(node)] = parts.find(node) == root;
        }
        offer_odd(part);
        if (count < 2) {
            continue;
        }
        std::map<std::pair<int32_t, int32_t>, int64_t> joined;
        for (size_t e = 0; e < edges_.size(); ++e) {
            const int32_t a = groups.find(edges_[e].tail);
            const int32_t b = groups.find(edges_[e].head);
            if (deadheads_[e] > 0 && a != b && parts.find(a) == root) {
                joined[std::minmax(local[idx(a)], local[idx(b)])] += deadheads_[e];
            }
        }
        MaxFlow flow(count);
        for (const auto &[ends, weight] : joined) {
            flow.add_edge(ends.first, ends.second, weight, weight);
        }
        flow.finish();
        std::vector<int32_t> parent(idx(count), 0);
        std::vector<int64_t> value(idx(count), 0);
        for (int32_t i = 1; i < count && !cancelled_; ++i) {
            const int32_t to = parent[idx(i)];
            value[idx(i)] = flow.run(i, to);
            for (int32_t j = 0; j < count; ++j) {
                if (j != i && parent[idx(j)] == to && flow.on_source_side(j)) {
                    parent[idx(j)] = i;
                }
            }
            if (to != parent[idx(to)] && flow.on_source_side(parent[idx(to)])) {
                parent[idx(i)] = parent[idx(to)];
                parent[idx(to)] = i;
                std::swap(value[idx(i)], value[idx(to)]);
            }
        }
        for (int32_t i = 1; i < count && !cancelled_; ++i) {
            if (value[idx(i)] >= kOne - kLeastViolation) {
                continue;
            }
            // Below i in the tree.
            std::vector<uint8_t> below(idx(count), 0);
            for (int32_t j = 0; j < count; ++j) {
                int32_t up = j;
                for (int32_t steps = 0; up != i && up != 0 && steps < count; ++steps) {
                    up = parent[idx(up)];
                }
                below[idx(j)] = up == i;
            }
            std::vector<uint8_t> inside(idx(num_nodes_), 0);
            for (int32_t node = 0; node < num_nodes_; ++node) {
                const int32_t group = groups.find(node);
                inside[idx(node)] =
                    parts.find(group) == root && below[idx(local[idx(group)])];
            }
            offer_odd(inside);
        }
    }
    return keep_best(most);
}

// --- Capacity cuts by maximum flow
// ----------------------------------------------------

// A link with demand d counts for S with d [an end in S] = d/2 ([tail in S] + [head in
// S])
// + d/2 [it crosses the border]. So the set of least crossings(S) - price d(R(S)) is a
// minimum cut; with a price of 2/Q it is the one that violates the fractional capacity
// cuts most, with higher prices larger ones, whose number of trips is rounded up.
int32_t Separator::find_by_flow(std::span<const double> deadheads, uint64_t seed,
                                int32_t attempts, int32_t most) {
    read(deadheads);
    Random random(seed);
    const int32_t source = num_nodes_, sink = num_nodes_ + 1;
    MaxFlow flow(num_nodes_ + 2);
    for (const Edge &edge : edges_) {
        flow.add_edge(edge.tail, edge.head, 0, 0);
    }
    for (int32_t node = 0; node < num_nodes_; ++node) {
        flow.add_edge(source, node, 0, 0);
        if (outside_[idx(node)]) {
            flow.add_edge(node, sink, MaxFlow::kEndless, 0);
        }
    }
    flow.finish();
    std::vector<int64_t> prize(idx(num_nodes_));
    std::vector<uint8_t> inside(idx(num_nodes_)), side;
    constexpr double kPrices[] = {1.0, 1.15, 1.35, 1.6, 2.0};
    constexpr int32_t kNumPrices = 5;
    for (int32_t attempt = 0; attempt < kNumPrices + attempts && !cancelled_;
         ++attempt) {
        const double price =
            kPrices[attempt % kNumPrices] * 2.0 * kOne / static_cast<double>(capacity_);
        for (size_t node = 0; node < idx(num_nodes_); ++node) {
            prize[node] = std::llround(price * static_cast<double>(loop_demand_[node]));
        }
        for (size_t e = 0; e < edges_.size(); ++e) {
            const Edge &edge = edges_[e];
            const int64_t half =
                std::llround(price * static_cast<double>(edge.demand) / 2.0);
            prize[idx(edge.tail)] += half;
            prize[idx(edge.head)] += half;
            const int64_t width = std::max<int64_t>(0, weight_[e] - half);
            flow.set_capacity(static_cast<int32_t>(e), width, width);
        }
        // Later attempts force a node into the set.
        const int32_t forced =
            attempt < kNumPrices
                ? -1
                : static_cast<int32_t>(random.below(static_cast<uint32_t>(num_nodes_)));
        auto edge = static_cast<int32_t>(edges_.size());
        for (int32_t node = 0; node < num_nodes_; ++node) {
            flow.set_capacity(
                edge, node == forced ? MaxFlow::kEndless / 4 : prize[idx(node)], 0);
            edge += 1 + (outside_[idx(node)] != 0);
        }
        if (forced >= 0 && outside_[idx(forced)]) {
            continue;
        }
        flow.run(source, sink);
        flow.find_sink_side(side);
        for (const bool largest : {false, true}) {
            for (int32_t node = 0; node < num_nodes_; ++node) {
                inside[idx(node)] =
                    largest ? !side[idx(node)] : flow.on_source_side(node);
            }
            offer(inside, capacity);
        }
    }
    return keep_best(most);
}

// --- Capacity cuts by growth
// ----------------------------------------------------------

struct Separator::Region {
    const Separator &of;
    std::vector<uint8_t> inside;
    std::vector<int64_t> joined;     // of each node: weight of its edges into the set
    std::vector<int64_t> new_demand; // what R(S) gains or loses with the node
    std::vector<int32_t> new_links;
    std::vector<int32_t> touching; // of each node: number of its neighbours inside
    std::vector<int64_t> degree;   // of each node: weight of all its edges
    std::vector<int32_t> border;   // nodes that may be next to the border
    std::vector<uint8_t> listed;
    int64_t crossings = 0, demand = 0, links = 0;
    int32_t size = 0;

    explicit Region(const Separator &separator)
        : of(separator), degree(idx(separator.num_nodes_), 0) {
        for (size_t e = 0; e < of.edges_.size(); ++e) {
            degree[idx(of.edges_[e].tail)] += of.weight_[e];
            degree[idx(of.edges_[e].head)] += of.weight_[e];
        }
    }

    void clear() {
        const size_t nodes = idx(of.num_nodes_);
        inside.assign(nodes, 0);
        listed.assign(nodes, 0);
        joined.assign(nodes, 0);
        touching.assign(nodes, 0);
        new_demand.assign(of.loop_demand_.begin(), of.loop_demand_.end());
        new_links.assign(of.loop_links_.begin(), of.loop_links_.end());
        for (const Edge &edge : of.edges_) {
            new_demand[idx(edge.tail)] += edge.demand;
            new_demand[idx(edge.head)] += edge.demand;
            new_links[idx(edge.tail)] += edge.required;
            new_links[idx(edge.head)] += edge.required;
        }
        border.clear();
        crossings = demand = links = 0;
        size = 0;
    }

    // Crossings and demand after the node has changed sides.
    int64_t crossings_after(int32_t node) const {
        const int64_t change = degree[idx(node)] - 2 * joined[idx(node)];
        return inside[idx(node)] ? crossings - change : crossings + change;
    }
    int64_t demand_after(int32_t node) const {
        return inside[idx(node)] ? demand - new_demand[idx(node)]
                                 : demand + new_demand[idx(node)];
    }
    int64_t links_after(int32_t node) const {
        return inside[idx(node)] ? links - new_links[idx(node)]
                                 : links + new_links[idx(node)];
    }
    int64_t violation() const { return 2 * kOne * of.trips(demand, links) - crossings; }
    int64_t violation_after(int32_t node) const {
        return 2 * kOne * of.trips(demand_after(node), links_after(node)) -
               crossings_after(node);
    }

    void flip(int32_t node) {
        crossings = crossings_after(node);
        demand = demand_after(node);
        links = links_after(node);
        const bool enters = !inside[idx(node)];
        inside[idx(node)] = enters;
        size += enters ? 1 : -1;
        list(node);
        for (int32_t k = of.edge_starts_[idx(node)]; k < of.edge_starts_[idx(node) + 1];
             ++k) {
            const Neighbour &next = of.neighbours_[idx(k)];
            const Edge &edge = of.edges_[idx(next.edge)];
            const int64_t weight = of.weight_[idx(next.edge)];
            joined[idx(next.node)] += enters ? weight : -weight;
            touching[idx(next.node)] += enters ? 1 : -1;
            // The link between them is served for S by either of them alone.
            new_demand[idx(next.node)] += enters ? -edge.demand : edge.demand;
            new_links[idx(next.node)] += enters ? -edge.required : edge.required;
            list(next.node);
        }
    }

    void list(int32_t node) {
        if (!listed[idx(node)] && !of.outside_[idx(node)]) {
            listed[idx(node)] = 1;
            border.push_back(node);
        }
    }
};

// Changes sides of single nodes, always the best that is not forbidden, for a while.
void Separator::climb(Region &region, Random &random) {
    std::vector<int32_t> forbidden(idx(num_nodes_), -1);
    int64_t best = region.violation();
    const int32_t steps = std::min(60, 10 + num_nodes_ / 2);
    for (int32_t step = 0; step < steps && !cancelled_; ++step) {
        int32_t chosen = -1;
        int64_t most = 0;
        for (const int32_t node : region.border) {
            const bool inside = region.inside[idx(node)];
            if ((inside && region.size == 1) || forbidden[idx(node)] >= step ||
                (!inside && region.touching[idx(node)] == 0)) {
                continue;
            }
            const int64_t violation = region.violation_after(node);
            if (chosen < 0 || violation > most) {
                chosen = node;
                most = violation;
            }
        }
        if (chosen < 0) {
            return;
        }
        region.flip(chosen);
        forbidden[idx(chosen)] = step + 5 + static_cast<int32_t>(random.below(6));
        if (most > best || (step > 0 && most > kLeastViolation && most == best)) {
            best = most;
            if (most > kLeastViolation) {
                offer(region.inside, capacity);
            }
        }
    }
}

int32_t Separator::find_by_growth(std::span<const double> deadheads, uint64_t seed,
                                  int32_t attempts, bool perturbed, int32_t most) {
    read(deadheads);
    Random random(seed, 1);
    std::vector<int32_t> seeds;
    for (int32_t node = 0; node < num_nodes_; ++node) {
        if (!outside_[idx(node)]) {
            seeds.push_back(node);
        }
    }
    if (seeds.empty()) {
        return 0;
    }
    for (size_t i = seeds.size(); i > 1; --i) {
        std::swap(seeds[i - 1], seeds[random.below(static_cast<uint32_t>(i))]);
    }
    Region region(*this);
    std::vector<int32_t> order;
    const double per_demand = 2.0 * kOne / static_cast<double>(capacity_);
    for (int32_t attempt = 0; attempt < attempts && !cancelled_; ++attempt) {
        region.clear();
        order.clear();
        region.flip(seeds[idx(attempt) % seeds.size()]);
        order.push_back(seeds[idx(attempt) % seeds.size()]);
        const double price = perturbed ? random.unit() * 2.0 : attempt % 3 * 0.5;
        const double noise = perturbed ? random.unit() * kOne : 0.0;
        // The best length of the order for each number of trips.
        std::vector<std::pair<int64_t, size_t>> best;
        while (true) {
            const int64_t violation = region.violation();
            const size_t trips_now = idx(trips(region.demand, region.links));
            if (best.size() <= trips_now) {
                best.resize(trips_now + 1, {kLeastViolation, 0});
            }
            if (violation > best[trips_now].first) {
                best[trips_now] = {violation, order.size()};
            }
            int32_t chosen = -1;
            double least = 0.0;
            size_t kept = 0;
            for (size_t i = 0; i < region.border.size(); ++i) {
                const int32_t node = region.border[i];
                if (region.inside[idx(node)]) {
                    continue; // for good, until the climb
                }
                region.border[kept++] = node;
                const auto demand = static_cast<double>(region.new_demand[idx(node)]);
                double score = static_cast<double>(region.degree[idx(node)] -
                                                   2 * region.joined[idx(node)]) -
                               price * per_demand * demand;
                if (noise > 0.0) {
                    score += noise * random.unit();
                }
                if (chosen < 0 || score < least) {
                    chosen = node;
                    least = score;
                }
            }
            region.border.resize(kept);
            if (chosen < 0) {
                break;
            }
            region.flip(chosen);
            order.push_back(chosen);
        }
        std::pair<int64_t, size_t> top{0, 0};
        const auto rebuild = [&](size_t length) {
            region.clear();
            for (size_t i = 0; i < length; ++i) {
                region.flip(order[i]);
            }
        };
        for (const auto &[violation, length] : best) {
            if (length > 0) {
                rebuild(length);
                offer(region.inside, capacity);
                top = std::max(top, {violation, length});
            }
        }
        // Where nothing is violated, from any length: the climb may find something.
        rebuild(top.second > 0 ? top.second
                               : 1 + random.below(static_cast<uint32_t>(order.size())));
        climb(region, random);
    }
    return keep_best(most);
}

} // namespace arcfleet
