#include "search/maens/rule_scanner.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace arcfleet {

namespace {

// Rows are a multiple of this long: no rest that vector instructions cannot take.
constexpr size_t kStep = 8;
constexpr size_t kBits = 64;

// A bit for each of the cells, at most 64, that fit and are as near as that.
template <typename Cell>
uint64_t nearest_cells(const Cell *distance, const Cell *open, size_t width,
                       Cell remaining, Cell nearest) {
    uint64_t bits = 0;
#if defined(__SSE2__)
    if constexpr (sizeof(Cell) == 2) {
        const __m128i most = _mm_set1_epi16(remaining);
        const __m128i wanted = _mm_set1_epi16(nearest);
        for (size_t i = 0; i < width; i += kStep) {
            const auto load = [&](const Cell *cells) {
                return _mm_loadu_si128(reinterpret_cast<const __m128i *>(cells + i));
            };
            const __m128i both = _mm_and_si128(_mm_cmplt_epi16(load(open), most),
                                               _mm_cmpeq_epi16(load(distance), wanted));
            const auto eight = static_cast<uint64_t>(
                _mm_movemask_epi8(_mm_packs_epi16(both, _mm_setzero_si128())));
            bits |= eight << i;
        }
        return bits;
    }
#endif
    for (size_t i = 0; i < width; ++i) {
        bits |= uint64_t{open[i] < remaining && distance[i] == nearest} << i;
    }
    return bits;
}

} // namespace

template <typename Cell> bool RuleScanner<Cell>::fits(const MaensTables &tables) {
    const Network &network = tables.network();
    constexpr auto most = int64_t{std::numeric_limits<Cell>::max()};
    return tables.rules().capacity() <= most &&
           static_cast<int64_t>(network.arcs().size()) <= most &&
           std::all_of(network.distances().begin(), network.distances().end(),
                       [](int32_t distance) { return distance < most; });
}

template <typename Cell>
RuleScanner<Cell>::RuleScanner(const MaensTables &tables, size_t most_cells)
    : tables_(tables), most_cells_(most_cells) {
    order_.reserve(idx(tables.num_tasks()));
    const size_t arcs = tables.network().arcs().size();
    place_.resize(arcs);
    for (size_t number = 0; number < kOrders; ++number) {
        const auto rule = static_cast<TieRule>(number);
        Preference &preference = preferences_[number];
        preference.arc.resize(arcs);
        std::iota(preference.arc.begin(), preference.arc.end(), 0);
        std::stable_sort(preference.arc.begin(), preference.arc.end(),
                         [&](int32_t a, int32_t b) { return better(rule, a, b); });
        preference.rank.resize(arcs);
        for (size_t rank = 0; rank < arcs; ++rank) {
            preference.rank[idx(preference.arc[rank])] = static_cast<int32_t>(rank);
        }
    }
}

template <typename Cell> TieKey RuleScanner<Cell>::tie_key(int32_t a) const {
    const Arc &arc = tables_.arc(a);
    // No demand at no cost counts as little demand, so that the rules are orders.
    const int32_t cost =
        arc.demand == 0 ? std::max(1, arc.service_cost) : arc.service_cost;
    return {arc.demand, cost, tables_.from(a)[0]};
}

// Arcs that end at the depot come last: they would waste the rest of the route.
template <typename Cell>
bool RuleScanner<Cell>::better(TieRule rule, int32_t a, int32_t b) const {
    const bool a_ends = tables_.arc(a).end == 0;
    const bool b_ends = tables_.arc(b).end == 0;
    return a_ends != b_ends ? b_ends : prefers(rule, tie_key(a), tie_key(b));
}

template <typename Cell>
int32_t RuleScanner<Cell>::least_service_cost(int32_t a) const {
    const Arc &arc = tables_.arc(a);
    return arc.inverse < 0
               ? arc.service_cost
               : std::min(arc.service_cost, tables_.arc(arc.inverse).service_cost);
}

template <typename Cell>
void RuleScanner<Cell>::take(const std::vector<int32_t> &tasks) {
    num_tasks_ = tasks.size();
    const size_t most = 2 * num_tasks_ + kStep;
    if (demand_.size() < most) {
        start_.resize(most);
        end_.resize(most);
        arc_.resize(most);
        demand_.resize(most);
        open_.resize(most);
        has_row_.resize(most);
        rows_.resize(std::min(most * most, std::max(most, most_cells_)));
        nodes_.resize(5 * most); // one for each step of each rule
        for (Preference &preference : preferences_) {
            preference.here.resize(most);
        }
    }
    num_arcs_ = 0;
    service_cost_ = 0;
    home_ = INT64_MAX;
    for (const int32_t task : tasks) {
        const int32_t first = tables_.network().task_arc(task);
        service_cost_ += least_service_cost(first);
        for (int32_t a : {first, tables_.arc(first).inverse}) {
            if (a < 0) {
                continue;
            }
            const Arc &arc = tables_.arc(a);
            place_[idx(a)] = num_arcs_;
            arc_[num_arcs_] = a;
            start_[num_arcs_] = arc.start;
            end_[num_arcs_] = arc.end;
            demand_[num_arcs_] = static_cast<Cell>(arc.demand - 1);
            home_ = std::min<int64_t>(home_, tables_.distances_to(0)[arc.end]);
            for (Preference &preference : preferences_) {
                preference.here[num_arcs_] = static_cast<Cell>(preference.rank[idx(a)]);
            }
            ++num_arcs_;
        }
    }
    width_ = (num_arcs_ + kStep - 1) / kStep * kStep;
    for (size_t i = num_arcs_; i < width_; ++i) {
        start_[i] = 0;
        demand_[i] = kServed; // fits nowhere
    }
    end_[num_arcs_] = 0;
    keeps_rows_ = width_ * (num_arcs_ + 1) <= rows_.size();
    std::fill_n(has_row_.begin(), num_arcs_ + 1, uint8_t{0});
    Node &root = nodes_[0];
    root = {};
    root.at_depot = true;
    root.nearest = -1;
    root.arc.fill(-1);
    root.to_come = service_cost_ + home_;
    num_nodes_ = 1;
}

template <typename Cell> const Cell *RuleScanner<Cell>::row(size_t place) {
    Cell *row = rows_.data() + (keeps_rows_ ? place * width_ : 0);
    if (!keeps_rows_ || !has_row_[place]) {
        has_row_[place] = 1;
        const int32_t *distances = tables_.distances_from(end_[place]);
        for (size_t i = 0; i < width_; ++i) {
            row[i] = static_cast<Cell>(distances[start_[i]]);
        }
    }
    return row;
}

template <typename Cell>
int32_t RuleScanner<Cell>::new_node(int32_t before, int32_t a) {
    const Arc &arc = tables_.arc(a);
    const auto number = static_cast<int32_t>(num_nodes_++);
    const Node &last = nodes_[idx(before)];
    Node &node = nodes_[idx(number)];
    node.before = before;
    node.depth = last.depth + 1;
    node.end = arc.end;
    node.at_depot = false;
    node.load = last.load + arc.demand;
    node.nearest = -1;
    node.arc.fill(-1);
    node.next.fill(0);
    const int64_t driven = last.driven + tables_.distances_from(last.end)[arc.start];
    node.driven = driven + arc.service_cost;
    node.begun = last.cost + tables_.rules().route_cost() +
                 tables_.distances_from(0)[arc.start] - driven;
    node.load_before = last.load_after;
    node.load_after = last.load_after + arc.demand;
    node.to_come = last.to_come - least_service_cost(a);
    cut(number);
    return number;
}

// Ulusoy's split, one arc further. The cost of one route is a part that depends on its
// first arc (`begun`) plus a part that depends on its last.
template <typename Cell> void RuleScanner<Cell>::cut(int32_t number) {
    Node &node = nodes_[idx(number)];
    const auto fits = [&](int32_t first) {
        return tables_.rules().fits(node.load_after - nodes_[idx(first)].load_before);
    };
    const int32_t old = nodes_[idx(node.before)].cut;
    node.cut = number;
    if (old > 0 && nodes_[idx(old)].begun <= node.begun && fits(old)) {
        node.cut = old;
    } else if (old > 0 && nodes_[idx(old)].begun <= node.begun) {
        // Too long for the vehicle: the best of the shorter ones.
        for (int32_t first = node.before; first > 0 && fits(first);
             first = nodes_[idx(first)].before) {
            if (nodes_[idx(first)].begun <= nodes_[idx(node.cut)].begun) {
                node.cut = first;
            }
        }
    }
    const int64_t open = nodes_[idx(node.cut)].begun + node.driven;
    node.cost = open + tables_.distances_to(0)[node.end];
    node.bound = open + node.to_come;
}

// Where nothing is to be found out, the arcs on the way there need not be marked.
template <typename Cell> void RuleScanner<Cell>::mark_served() {
    if (num_marked_ == 0) {
        std::copy_n(demand_.begin(), width_, open_.begin());
    }
    for (; num_marked_ < order_.size(); ++num_marked_) {
        const int32_t arc = order_[num_marked_];
        const int32_t inverse = tables_.arc(arc).inverse;
        open_[place_[idx(arc)]] = kServed;
        open_[place_[idx(inverse >= 0 ? inverse : arc)]] = kServed;
    }
}

template <typename Cell> const Cell *RuleScanner<Cell>::row_at(const Node &node) {
    return row(node.at_depot ? num_arcs_ : place_[idx(order_.back())]);
}

// The distance to the nearest arc that fits, after a return to the depot if none does.
template <typename Cell> void RuleScanner<Cell>::find_nearest(Node &node) {
    mark_served();
    const Cell *open = open_.data();
    for (;;) {
        const Cell *distance = row_at(node);
        const auto remaining =
            static_cast<Cell>(tables_.rules().remaining_capacity(node.load));
        Cell nearest = kServed;
        for (size_t i = 0; i < width_; ++i) {
            // A mask, where a condition would be compiled to a branch.
            const auto too_much = static_cast<Cell>(-(open[i] >= remaining) & kServed);
            nearest = std::min(nearest, static_cast<Cell>(distance[i] | too_much));
        }
        if (nearest < kServed) {
            node.nearest = nearest;
            if (width_ <= kBits) {
                node.ties = nearest_cells(distance, open, width_, remaining, nearest);
            }
            return;
        }
        node.at_depot = true; // no demand is above the capacity: something fits now
        node.load = 0;
    }
}

// The first of the nearest arcs in an order of preference, or in all if it is alone.
template <typename Cell> void RuleScanner<Cell>::choose(Node &node, size_t number) {
    if (width_ <= kBits) {
        choose_of_ties(node, number);
        return;
    }
    mark_served();
    const Preference &preference = preferences_[number];
    const Cell *rank = preference.here.data();
    const Cell *open = open_.data();
    const Cell *distance = row_at(node);
    const auto remaining =
        static_cast<Cell>(tables_.rules().remaining_capacity(node.load));
    const auto nearest = static_cast<Cell>(node.nearest);
    Cell first = kServed;
    Cell ties = 0;
    for (size_t i = 0; i < width_; ++i) {
        const auto other =
            static_cast<Cell>(-(open[i] >= remaining) | -(distance[i] != nearest));
        first = std::min(first, static_cast<Cell>(rank[i] | (other & kServed)));
        ties = static_cast<Cell>(ties + other + 1);
    }
    const int32_t arc = preference.arc[idx(first)];
    if (ties == 1) {
        node.arc.fill(arc);
    } else {
        node.arc[number] = arc;
    }
}

template <typename Cell>
void RuleScanner<Cell>::choose_of_ties(Node &node, size_t number) const {
    const Cell *rank = preferences_[number].here.data();
    auto first = static_cast<size_t>(std::countr_zero(node.ties));
    uint64_t others = node.ties & (node.ties - 1);
    if (others == 0) {
        node.arc.fill(arc_[first]);
        return;
    }
    for (; others != 0; others &= others - 1) {
        const auto other = static_cast<size_t>(std::countr_zero(others));
        first = rank[other] < rank[first] ? other : first;
    }
    node.arc[number] = arc_[first];
}

template <typename Cell> int64_t RuleScanner<Cell>::scan(TieRule rule, int64_t limit) {
    order_.clear();
    num_marked_ = 0;
    last_ = 0;
    while (order_.size() < num_tasks_) {
        Node &node = nodes_[idx(last_)];
        if (node.nearest < 0) {
            find_nearest(node);
        }
        const auto number =
            static_cast<size_t>(plain_rule(rule, tables_.rules(), node.load));
        if (node.arc[number] < 0) {
            choose(node, number);
        }
        const int32_t chosen = node.arc[number];
        order_.push_back(chosen);
        for (size_t k = 0; k < kOrders && node.next[number] == 0; ++k) {
            node.next[number] = node.arc[k] == chosen ? node.next[k] : 0;
        }
        if (node.next[number] == 0) {
            node.next[number] = new_node(last_, chosen);
        }
        last_ = node.next[number];
        if (nodes_[idx(last_)].bound >= limit) {
            return INT64_MAX;
        }
    }
    const int64_t cost = nodes_[idx(last_)].cost;
    return cost < limit ? cost : INT64_MAX;
}

template <typename Cell> void RuleScanner<Cell>::write(Plan &plan) const {
    plan.arcs = order_;
    plan.route_starts.clear();
    for (int32_t end = last_; end > 0; end = nodes_[idx(nodes_[idx(end)].cut)].before) {
        plan.route_starts.push_back(nodes_[idx(end)].depth);
    }
    plan.route_starts.push_back(0);
    std::reverse(plan.route_starts.begin(), plan.route_starts.end());
}

template class RuleScanner<int16_t>;
template class RuleScanner<int32_t>;

} // namespace arcfleet
