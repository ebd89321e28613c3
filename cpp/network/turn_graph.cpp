#include "network/turn_graph.h"

#include "base/huge_pages.h"
#include "base/index.h"
#include "base/parallel.h"
#include "network/dijkstra.h"
#include "network/elimination.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace arcfleet {

namespace {

constexpr int32_t kNone = -1;

// Costs of turns, and which edges arrive at a node.
class TurnTable {
  public:
    TurnTable(const StreetGraph &streets, size_t num_edges, const TurnArrays &turns)
        : streets_(streets), turns_(turns), target_(num_edges, kNone),
          source_(num_edges, kNone), named_at_(num_edges + 1, 0),
          arriving_(idx(streets.num_nodes())) {
        for (int32_t node = 0; node < streets.num_nodes(); ++node) {
            for (const DirectedEdge &edge : streets.leaving(node)) {
                source_[idx(edge.edge)] = node;
                target_[idx(edge.edge)] = edge.target;
            }
        }
        for (size_t edge = 0; edge < num_edges; ++edge) {
            if (target_[edge] != kNone) {
                arriving_[idx(target_[edge])].push_back(static_cast<int32_t>(edge));
            }
        }
        check_turns();
        for (const int32_t edge : turns.edge_in) {
            ++named_at_[idx(edge) + 1];
        }
        for (size_t edge = 0; edge < num_edges; ++edge) {
            named_at_[edge + 1] += named_at_[edge];
        }
        named_.resize(turns.edge_in.size());
        std::vector<size_t> next(named_at_.begin(), named_at_.end() - 1);
        for (size_t i = 0; i < turns.edge_in.size(); ++i) {
            named_[next[idx(turns.edge_in[i])]++] = {turns.edge_out[i],
                                                     turns.penalty[i]};
        }
    }

    int32_t target(int32_t edge) const { return target_[idx(edge)]; }
    const std::vector<int32_t> &arriving(int32_t node) const {
        return arriving_[idx(node)];
    }

    // Cost of a turn between edges that meet; negative if it is forbidden.
    int32_t cost(int32_t in, int32_t out) const {
        for (size_t i = named_at_[idx(in)]; i < named_at_[idx(in) + 1]; ++i) {
            if (named_[i].first == out) {
                return named_[i].second;
            }
        }
        if ((in ^ 1) != out) {
            return 0;
        }
        if (turns_.u_turns == UTurns::forbidden ||
            (turns_.u_turns == UTurns::dead_ends && leads_on(in))) {
            return -1;
        }
        return turns_.u_turn_penalty;
    }

  private:
    void check_turns() const {
        if (turns_.edge_out.size() != turns_.edge_in.size() ||
            turns_.penalty.size() != turns_.edge_in.size()) {
            throw std::invalid_argument("turn arrays differ in length");
        }
        const auto known = [&](int32_t edge) {
            return edge >= 0 && idx(edge) < target_.size() &&
                   target_[idx(edge)] != kNone;
        };
        for (size_t i = 0; i < turns_.edge_in.size(); ++i) {
            const int32_t in = turns_.edge_in[i];
            const int32_t out = turns_.edge_out[i];
            if (!known(in) || !known(out) || target_[idx(in)] != source_[idx(out)]) {
                throw std::invalid_argument("a turn between edges that do not meet");
            }
        }
    }

    // Whether another link leaves the node where an edge ends.
    bool leads_on(int32_t in) const {
        const auto leaving = streets_.leaving(target(in));
        return std::any_of(
            leaving.begin(), leaving.end(),
            [&](const DirectedEdge &edge) { return edge.edge / 2 != in / 2; });
    }

    const StreetGraph &streets_;
    const TurnArrays &turns_;
    std::vector<int32_t> target_;
    std::vector<int32_t> source_;
    std::vector<std::pair<int32_t, int32_t>> named_; // by edge in: edge out, penalty
    std::vector<size_t> named_at_;
    std::vector<std::vector<int32_t>> arriving_;
};

int32_t capped(int64_t cost) {
    return static_cast<int32_t>(
        std::min<int64_t>(cost, std::numeric_limits<int32_t>::max()));
}

} // namespace

TurnGraph::TurnGraph(const StreetGraph &streets, const LinkArrays &links,
                     const TurnArrays &turns, std::span<const TurnPlace> places)
    : cost_(2 * links.tail.size(), kNone) {
    const auto num_edges = static_cast<int32_t>(cost_.size());
    const TurnTable table(streets, idx(num_edges), turns);
    std::vector<int32_t> offsets{0};
    std::vector<DirectedEdge> edges;
    for (int32_t node = 0; node < streets.num_nodes(); ++node) {
        for (const DirectedEdge &edge : streets.leaving(node)) {
            // No distance is longer, so a bound by it stays a bound.
            cost_[idx(edge.edge)] = std::min(edge.cost, kMaxDistance);
        }
    }
    const auto close_row = [&] {
        offsets.push_back(static_cast<int32_t>(edges.size()));
    };
    for (int32_t in = 0; in < num_edges; ++in) {
        if (table.target(in) != kNone) {
            for (const DirectedEdge &out : streets.leaving(table.target(in))) {
                const int32_t turn = table.cost(in, out.edge);
                if (turn >= 0 && links.is_open(idx(out.edge) / 2)) {
                    edges.push_back(
                        {out.edge, capped(int64_t{turn} + out.cost), out.edge});
                }
            }
        }
        close_row();
    }
    // The nodes from which driving starts without a turn are states of their own.
    std::vector<int32_t> free_state(idx(streets.num_nodes()), kNone);
    for (const TurnPlace &place : places) {
        if (place.arrived_along == kNone && free_state[idx(place.node)] == kNone) {
            free_state[idx(place.node)] = static_cast<int32_t>(offsets.size()) - 1;
            for (const DirectedEdge &out : streets.leaving(place.node)) {
                if (links.is_open(idx(out.edge) / 2)) {
                    edges.push_back({out.edge, out.cost, out.edge});
                }
            }
            close_row();
        }
        start_.push_back(place.arrived_along == kNone ? free_state[idx(place.node)]
                                                      : place.arrived_along);
    }
    graph_ = StreetGraph(std::move(offsets), std::move(edges));

    entries_at_.push_back(0);
    for (const TurnPlace &place : places) {
        const auto number = static_cast<int32_t>(entries_at_.size()) - 1;
        if (free_state[idx(place.node)] != kNone) {
            entries_.push_back({free_state[idx(place.node)], 0, number});
        }
        for (const int32_t in : table.arriving(place.node)) {
            const int32_t turn =
                place.leaves_along == kNone ? 0 : table.cost(in, place.leaves_along);
            if (turn >= 0) {
                entries_.push_back({in, turn, number});
            }
        }
        entries_at_.push_back(entries_.size());
    }
    entries_of_state_ = entries_;
    std::stable_sort(entries_of_state_.begin(), entries_of_state_.end(),
                     [](const Entry &a, const Entry &b) { return a.state < b.state; });
    of_state_at_.assign(idx(graph_.num_nodes()) + 1, 0);
    for (const Entry &entry : entries_) {
        ++of_state_at_[idx(entry.state) + 1];
    }
    std::partial_sum(of_state_at_.begin(), of_state_at_.end(), of_state_at_.begin());
}

// Which rows are searched for, and in which order the others follow from them.
struct TurnGraph::RowOrder {
    std::vector<int32_t> searched;
    std::vector<int32_t> derived;
};

// The row of a state follows from those of all states that one can drive on to. Where
// states wait for each other in a circle, the one that most others wait for is searched
// for; on street maps that is about every third.
TurnGraph::RowOrder TurnGraph::row_order() const {
    const int32_t num_states = graph_.num_nodes();
    std::vector<int32_t> waits_for(idx(num_states), 0);
    std::vector<std::vector<int32_t>> waiting(idx(num_states));
    for (int32_t state = 0; state < num_states; ++state) {
        for (const DirectedEdge &next : graph_.leaving(state)) {
            ++waits_for[idx(state)];
            waiting[idx(next.target)].push_back(state);
        }
    }
    RowOrder order;
    std::vector<uint8_t> known(idx(num_states), 0);
    std::vector<int32_t> ready;
    const auto settle = [&](int32_t state) {
        known[idx(state)] = 1;
        for (const int32_t other : waiting[idx(state)]) {
            if (--waits_for[idx(other)] == 0 && !known[idx(other)]) {
                ready.push_back(other);
            }
        }
    };
    const auto derive_all = [&] {
        while (!ready.empty()) {
            const int32_t state = ready.back();
            ready.pop_back();
            order.derived.push_back(state);
            settle(state);
        }
    };
    for (int32_t state = 0; state < num_states; ++state) {
        if (waits_for[idx(state)] == 0) {
            ready.push_back(state);
        }
    }
    derive_all();
    std::vector<int32_t> by_waiting(idx(num_states));
    std::iota(by_waiting.begin(), by_waiting.end(), 0);
    std::stable_sort(by_waiting.begin(), by_waiting.end(), [&](int32_t a, int32_t b) {
        return waiting[idx(a)].size() > waiting[idx(b)].size();
    });
    for (const int32_t state : by_waiting) {
        if (!known[idx(state)]) {
            order.searched.push_back(state);
            settle(state);
            derive_all();
        }
    }
    return order;
}

void TurnGraph::measure_row(std::span<const int32_t> distances, int32_t *out) const {
    for (size_t place = 0; place < start_.size(); ++place) {
        // Unreachable states lose against any others by themselves.
        int64_t least = kUnreachable;
        for (const Entry &entry : entries(place)) {
            const int32_t there = distances[idx(entry.state)];
            least = std::min(least, int64_t{there} + entry.turn);
        }
        if (least > kMaxDistance && least < kUnreachable) {
            throw std::overflow_error("shortest path longer than 2^29 - 1");
        }
        out[place] = static_cast<int32_t>(least);
    }
}

// The same for all sources of a sweep, whose distances are never too long.
void TurnGraph::measure_rows(const Elimination &elimination,
                             std::span<const int32_t> lanes,
                             std::span<const int32_t> sources,
                             std::span<int32_t *const> rows) const {
    constexpr size_t kLanes = Elimination::kLanes;
    for (size_t place = 0; place < start_.size(); ++place) {
        int32_t least[kLanes];
        std::fill_n(least, kLanes, Elimination::kFar);
        for (const Entry &entry : entries(place)) {
            const int32_t *there = lanes.data() + elimination.row_of(entry.state);
            for (size_t lane = 0; lane < kLanes; ++lane) {
                least[lane] = std::min(least[lane], there[lane] + entry.turn);
            }
        }
        for (size_t lane = 0; lane < sources.size(); ++lane) {
            rows[idx(sources[lane])][place] =
                least[lane] < Elimination::kFar ? least[lane] : kUnreachable;
        }
    }
}

// From a state one drives on to another, whose row is known, or is there already.
void TurnGraph::derive_row(int32_t state, std::span<const int32_t *const> rows,
                           int32_t *out) const {
    const size_t size = start_.size();
    std::fill(out, out + size, kUnreachable);
    constexpr uint32_t far = kUnreachable;
    for (const DirectedEdge &next : graph_.leaving(state)) {
        const int32_t *row = rows[idx(next.target)];
        const auto step = static_cast<uint32_t>(next.cost);
        for (size_t place = 0; place < size; ++place) {
            const auto there = static_cast<uint32_t>(row[place]);
            // What is too far to add up is not unreachable, but too long.
            const uint32_t sum = std::min(there + step, far - 1);
            const auto reached = static_cast<int32_t>(there == far ? far : sum);
            out[place] = std::min(out[place], reached);
        }
    }
    for (size_t i = of_state_at_[idx(state)]; i < of_state_at_[idx(state) + 1]; ++i) {
        int32_t &known = out[idx(entries_of_state_[i].place)];
        known = std::min(known, entries_of_state_[i].turn);
    }
    if (std::any_of(out, out + size, [](int32_t distance) {
            return distance > kMaxDistance && distance < kUnreachable;
        })) {
        throw std::overflow_error("shortest path longer than 2^29 - 1");
    }
}

std::vector<int32_t> TurnGraph::distance_matrix(int threads,
                                                Allowance allowance) const {
    const size_t size = start_.size();
    const size_t num_states = idx(graph_.num_nodes());
    std::vector<int32_t> matrix;
    reserve_huge(matrix, size * size);
    resize_in_time(matrix, size * size, allowance);
    std::vector<int32_t> row_of(num_states, kNone); // the first place that starts there
    for (size_t place = size; place-- > 0;) {
        row_of[idx(start_[place])] = static_cast<int32_t>(place);
    }
    RowOrder order;
    if (num_states > 2 * size) {
        // Most streets are only driven along: their rows would be made for nothing.
        for (size_t state = 0; state < num_states; ++state) {
            if (row_of[state] != kNone) {
                order.searched.push_back(static_cast<int32_t>(state));
            }
        }
    } else {
        order = row_order();
    }
    std::vector<std::vector<int32_t>> others; // rows of states where no place starts
    others.reserve(num_states);
    std::vector<int32_t *> rows(num_states, nullptr);
    for (const auto *states : {&order.searched, &order.derived}) {
        for (const int32_t state : *states) {
            rows[idx(state)] = row_of[idx(state)] != kNone
                                   ? matrix.data() + idx(row_of[idx(state)]) * size
                                   : others.emplace_back(size).data();
        }
    }
    std::atomic<size_t> next_row{0};
    const auto most = static_cast<int>(std::max<size_t>(1, order.searched.size()));
    const size_t searched = order.searched.size();
    const bool suits = Elimination::suits(graph_, searched, dearest_turn());
    const Elimination elimination(suits ? graph_ : StreetGraph(), searched);
    const bool by_sweeps = suits && elimination.is_complete();
    allowance.start_parts();
    run_workers(std::min(threads, most), [&](int) {
        if (by_sweeps) {
            constexpr size_t kLanes = Elimination::kLanes;
            std::vector<int32_t> lanes;
            for (size_t i = next_row.fetch_add(kLanes); i < order.searched.size();
                 i = next_row.fetch_add(kLanes)) {
                check_or_end(allowance, next_row, i, order.searched.size());
                const size_t count = std::min(kLanes, order.searched.size() - i);
                const auto sources = std::span(order.searched).subspan(i, count);
                elimination.sweep(sources, lanes);
                measure_rows(elimination, lanes, sources, rows);
            }
            return;
        }
        Dijkstra dijkstra(graph_);
        for (size_t i = next_row++; i < order.searched.size(); i = next_row++) {
            check_or_end(allowance, next_row, i, order.searched.size());
            const int32_t state = order.searched[i];
            measure_row(dijkstra.distances(state), rows[idx(state)]);
        }
    });
    for (const int32_t state : order.derived) {
        derive_row(state, {rows.data(), rows.size()}, rows[idx(state)]);
    }
    for (size_t place = 0; place < size; ++place) {
        const auto first = idx(row_of[idx(start_[place])]);
        if (first != place) {
            std::copy_n(matrix.data() + first * size, size,
                        matrix.data() + place * size);
        }
    }
    return matrix;
}

int32_t TurnGraph::dearest_turn() const {
    int32_t dearest = 0;
    for (const Entry &each : entries_) {
        dearest = std::max(dearest, each.turn);
    }
    return dearest;
}

std::vector<int32_t> TurnGraph::distances_among(std::span<const int32_t> places,
                                                const Elimination *elimination,
                                                int32_t farthest) const {
    const size_t size = places.size();
    std::vector<int32_t> matrix(size * size);
    if (elimination == nullptr) {
        Dijkstra dijkstra(graph_);
        std::vector<int32_t> row(start_.size());
        for (size_t i = 0; i < size; ++i) {
            measure_row(dijkstra.distances(start_[idx(places[i])]), row.data());
            for (size_t j = 0; j < size; ++j) {
                matrix[i * size + j] = row[idx(places[j])];
            }
        }
        return matrix;
    }
    std::vector<int32_t> starts;
    std::vector<int32_t> targets;
    for (const int32_t place : places) {
        starts.push_back(start_of(place));
        for (const Entry &entry : entries(idx(place))) {
            targets.push_back(entry.state);
        }
    }
    constexpr size_t kLanes = Elimination::kLanes;
    Elimination::Among search(*elimination, starts, targets,
                              std::min(farthest, Elimination::kFar));
    for (size_t first = 0; first < size; first += kLanes) {
        const auto sources =
            std::span(starts).subspan(first, std::min(kLanes, size - first));
        search.sweep(sources);
        for (size_t j = 0; j < size; ++j) {
            int32_t least[kLanes];
            std::fill_n(least, kLanes, Elimination::kFar);
            for (const Entry &entry : entries(idx(places[j]))) {
                const int32_t *there = search.row(entry.state);
                for (size_t lane = 0; lane < kLanes; ++lane) {
                    least[lane] = std::min(least[lane], there[lane] + entry.turn);
                }
            }
            for (size_t lane = 0; lane < sources.size(); ++lane) {
                matrix[(first + lane) * size + j] =
                    least[lane] < Elimination::kFar ? least[lane] : kUnreachable;
            }
        }
    }
    return matrix;
}

std::vector<WayEnd> TurnGraph::ends_of(int32_t place) const {
    std::vector<WayEnd> ends;
    for (const Entry &entry : entries(idx(place))) {
        ends.push_back({entry.state, entry.turn});
    }
    return ends;
}

} // namespace arcfleet
