// A route as an order of tasks without directions. Labels give, at every place, what
// the best choice of all directions before and after it costs, so that every change is
// evaluated by the cost it has once all directions are chosen anew (Vidal 2017, "Node,
// edge, arc routing and turn penalties").
#pragma once

#include "base/prefetch.h"
#include "network/network.h"
#include "search/rules.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace arcfleet {

// Stands for a direction in which a task may not be served. Costs that can be reached
// stay below kMaxDistance, so sums with it neither overflow nor win.
constexpr int32_t kForbidden = (1 << 30) - 1;

// A task by its two ends: served from u to v, or from v to u.
struct TaskEnds {
    int32_t u;
    int32_t v;
    int32_t forward_cost; // serving from u to v
    int32_t reverse_cost; // serving from v to u; kForbidden if one-way
    int32_t demand;
    int32_t alone;       // cost of a route that serves nothing else, fixed cost apart
    int32_t least_extra; // no route gets dearer by less when the task is put in
};

// One task on a route, with its labels.
struct Visit {
    int32_t task;
    int32_t u;
    int32_t v;
    int32_t load; // of the route up to here, this task included
    int32_t
        done_at_u; // cheapest way from the depot to having served this task, now at u
    int32_t done_at_v;
    int32_t from_u; // cheapest way from u, this task unserved, to the end of the route
    int32_t from_v;
};

// Between a terminal and both ends of a task, either way.
struct EndDistances {
    int32_t u;
    int32_t v;
};

// Between both ends of a task and both ends of another, or the depot: to u, to v, from
// u and from v of the task, at u and at v of the other.
template <typename Number> struct PairDistances {
    Number at_u[4];
    Number at_v[4];
};
using LongPair = PairDistances<int32_t>;
using ShortPair = PairDistances<uint16_t>;
// Stands in a ShortPair for a way that turn rules close.
constexpr uint16_t kShortClosed = UINT16_MAX;

// What labels are computed from: the ends of all tasks and the distances both ways.
class TaskTable {
  public:
    // Throws std::overflow_error if the costs of a route that carries at most so much
    // might add up to more than kMaxDistance.
    explicit TaskTable(const Network &network,
                       int64_t most_load = std::numeric_limits<int64_t>::max());

    const Network &network() const { return *network_; }
    int32_t num_tasks() const { return static_cast<int32_t>(ends_.size()); }
    const TaskEnds &ends(int32_t task) const { return ends_[idx(task)]; }
    const int32_t *from(int32_t terminal) const {
        return network_->distances_from(terminal);
    }
    // Distances to a terminal: a row of the transposed matrix.
    const int32_t *to(int32_t terminal) const {
        return to_ + idx(terminal) * static_cast<size_t>(network_->num_terminals());
    }
    // By terminal, side by side; null unless distances are the same both ways and the
    // table is not too large.
    const EndDistances *end_distances(int32_t task) const {
        return end_distances_.empty()
                   ? nullptr
                   : end_distances_.data() +
                         idx(task) * static_cast<size_t>(network_->num_terminals());
    }
    // The same where distances differ by direction: by task, counted from 1, the depot
    // first; null where the others are there or the table is too large. A look at two
    // tasks then touches one line of memory, not four. Where the open distances are
    // below kShortClosed there are short pairs, else long ones: the time goes into
    // waiting for memory.
    const ShortPair *short_pairs(int32_t task) const {
        return pair_row(short_pairs_, task);
    }
    const LongPair *long_pairs(int32_t task) const {
        return pair_row(long_pairs_, task);
    }
    // Fetches what is between a task and another, or the depot: -1.
    void prefetch_pair(int32_t task, int32_t other) const {
        if (const ShortPair *pairs = short_pairs(task)) {
            prefetch(pairs + (other + 1));
        } else if (const LongPair *far = long_pairs(task)) {
            prefetch(far + (other + 1));
        }
    }
    // Whether every route costs the same when driven the other way round.
    bool reversible() const { return reversible_; }
    // Whether taking a task out of a route never makes the route dearer.
    bool removal_never_costs() const { return removal_never_costs_; }

  private:
    static void check_range(std::vector<int64_t> costs, std::vector<int32_t> demands,
                            int64_t most_load);
    template <typename Pair>
    const Pair *pair_row(const std::vector<Pair> &pairs, int32_t task) const {
        return pairs.empty() ? nullptr : pairs.data() + idx(task) * (ends_.size() + 1);
    }
    template <typename Number>
    std::vector<PairDistances<Number>> pair_distances() const;

    const Network *network_;
    std::vector<TaskEnds> ends_;
    std::vector<int32_t> transposed_; // empty where the matrix is symmetric
    const int32_t *to_;
    std::vector<EndDistances> end_distances_;
    std::vector<ShortPair> short_pairs_;
    std::vector<LongPair> long_pairs_;
    bool reversible_;
    bool removal_never_costs_;
};

// A route between two depot visits that stand for themselves: visits.front(), back().
struct LabelledRoute {
    std::vector<Visit> visits;
    int32_t load = 0;
    int32_t cost = 0; // without the fixed cost of a route

    LabelledRoute() : visits(2, Visit{-1, 0, 0, 0, 0, 0, 0, 0}) {}

    int32_t num_tasks() const { return static_cast<int32_t>(visits.size()) - 2; }
    bool empty() const { return visits.size() == 2; }
    RouteTotals totals() const { return {load, cost}; }

    void clear() {
        visits.resize(2);
        visits[1] = visits[0];
        load = 0;
        cost = 0;
    }

    // Puts a task in front of visits[place] and refreshes the labels.
    void insert(const TaskTable &tasks, int32_t task, int32_t place);

    // Takes out visits[first] .. visits[last - 1]; the labels are then to be refreshed.
    void erase(int32_t first, int32_t last);

    // Recomputes all labels, the load and the cost.
    void refresh(const TaskTable &tasks) { refresh(tasks, 1, num_tasks()); }

    // The same where nothing changed in front of visits[first] nor behind visits[last].
    void refresh(const TaskTable &tasks, int32_t first, int32_t last);

    // Appends the arcs of the best directions.
    void append_arcs(const TaskTable &tasks, std::vector<int32_t> &arcs) const;

  private:
    // Beyond the other place labels are as before, or all of them differ by the same,
    // as soon as those of one visit do; with `may_shift` that is made use of.
    void refresh_forward(const TaskTable &tasks, size_t first, size_t last,
                         bool may_shift);
    void refresh_backward(const TaskTable &tasks, size_t first, size_t last,
                          bool may_shift);
};

// Where a part of a route may be joined to another: the ends of its outermost task, and
// what the part costs from the depot up to there, or from there to the depot.
struct Joint {
    int32_t u;
    int32_t v;
    int32_t cost_at_u;
    int32_t cost_at_v;
};

// The part of a route up to a visit.
inline Joint head(const Visit &last) {
    return {last.u, last.v, last.done_at_u, last.done_at_v};
}

// The part of a route from a visit on.
inline Joint tail(const Visit &first) {
    return {first.u, first.v, first.from_u, first.from_v};
}

// Cost of a route made of two parts. Where routes are reversible, a head may stand for
// a tail and a tail for a head: the same tasks the other way round.
inline int32_t joined_cost(const TaskTable &tasks, const Joint &left,
                           const Joint &right) {
    const int32_t *from_u = tasks.from(left.u);
    const int32_t *from_v = tasks.from(left.v);
    // One direction of each task is allowed, so the minima on the left stay in range.
    const int32_t at_u =
        std::min(left.cost_at_u + from_u[right.u], left.cost_at_v + from_v[right.u]);
    const int32_t at_v =
        std::min(left.cost_at_u + from_u[right.v], left.cost_at_v + from_v[right.v]);
    return std::min(at_u + right.cost_at_u, at_v + right.cost_at_v);
}

} // namespace arcfleet
