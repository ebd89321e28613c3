#include "search/labelled_route.h"

#include "base/huge_pages.h"
#include "base/transpose.h"
#include "search/insertion_lanes.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>

namespace arcfleet {

namespace {

// Entries, eight bytes each.
constexpr size_t kMostEndDistances = 4'000'000;
// Entries, 32 bytes each at most: 256 MB.
constexpr size_t kMostPairDistances = 8'000'000;

} // namespace

TaskTable::TaskTable(const Network &network, int64_t most_load)
    : network_(&network), reversible_(true), removal_never_costs_(true) {
    const auto size = static_cast<size_t>(network.num_terminals());
    const std::vector<int32_t> &distances = network.distances();
    bool symmetric = true;
    for (size_t i = 0; i < size && symmetric; ++i) {
        for (size_t j = 0; j < i; ++j) {
            symmetric = symmetric && distances[i * size + j] == distances[j * size + i];
        }
    }
    if (!symmetric) {
        transposed_ = transpose(distances, size);
    }
    to_ = symmetric ? distances.data() : transposed_.data();
    reversible_ = symmetric;

    std::vector<int64_t> costs; // of driving and service, at most, by task
    std::vector<int32_t> demands;
    // Whether one can drive from the depot to a service, and home from it.
    const auto is_open = [&](int32_t start, int32_t end) {
        return network.is_open(from(0)[start]) && network.is_open(from(end)[0]);
    };
    for (int32_t task = 0; task < network.num_tasks(); ++task) {
        const Arc &arc = network.arc(network.task_arc(task));
        const bool two_way = arc.inverse >= 0;
        TaskEnds ends{arc.start, arc.end, arc.service_cost, kForbidden, arc.demand,
                      0,         0};
        int64_t alone =
            int64_t{from(0)[ends.u]} + ends.forward_cost + int64_t{from(ends.v)[0]};
        // Without the task one can drive past it.
        const int32_t first = network.task_arc(task);
        ends.least_extra = ends.forward_cost - network.passing_cost(first, first);
        if (two_way) {
            ends.reverse_cost = network.arc(arc.inverse).service_cost;
            alone = std::min(alone, int64_t{from(0)[ends.v]} + ends.reverse_cost +
                                        int64_t{from(ends.u)[0]});
            ends.least_extra = std::min(
                ends.least_extra,
                ends.reverse_cost - network.passing_cost(arc.inverse, arc.inverse));
        }
        removal_never_costs_ = removal_never_costs_ && ends.least_extra >= 0;
        // In the dearer direction too, sums must stay in range.
        const int64_t dearest = two_way ? std::max(ends.forward_cost, ends.reverse_cost)
                                        : ends.forward_cost;
        // Whoever serves it, the plan costs too much.
        if (dearest > kMaxDistance) {
            throw std::overflow_error("costs of a route exceed 2^29 - 1");
        }
        // A task that cannot be reached from the depot is for other vehicles.
        if (is_open(ends.u, ends.v) || (two_way && is_open(ends.v, ends.u))) {
            costs.push_back(alone + dearest);
            demands.push_back(arc.demand);
        }
        ends.alone = static_cast<int32_t>(std::min<int64_t>(alone, kForbidden));
        reversible_ = reversible_ && ends.forward_cost == ends.reverse_cost;
        ends_.push_back(ends);
    }
    check_range(std::move(costs), std::move(demands), most_load);
    if (symmetric && ends_.size() * size <= kMostEndDistances) {
        end_distances_.reserve(ends_.size() * size);
        for (const TaskEnds &ends : ends_) {
            for (size_t i = 0; i < size; ++i) {
                end_distances_.push_back({from(ends.u)[i], from(ends.v)[i]});
            }
        }
    }
    if (!symmetric && ends_.size() * (ends_.size() + 1) <= kMostPairDistances) {
        const bool are_short =
            std::all_of(distances.begin(), distances.end(), [&](int32_t distance) {
                return distance < kShortClosed || !network.is_open(distance);
            });
        if (are_short) {
            short_pairs_ = pair_distances<uint16_t>();
        } else {
            long_pairs_ = pair_distances<int32_t>();
        }
    }
}

// Driving from task to task costs at most as much as by way of the depot, so a route
// costs at most what its tasks cost one by one. It has at most as many as the smallest
// demands that it can carry.
void TaskTable::check_range(std::vector<int64_t> costs, std::vector<int32_t> demands,
                            int64_t most_load) {
    std::sort(costs.rbegin(), costs.rend());
    std::sort(demands.begin(), demands.end());
    int64_t cost = 0;
    int64_t load = 0;
    for (size_t i = 0; i < costs.size(); ++i) {
        load += demands[i];
        if (load > most_load) {
            return;
        }
        cost += costs[i];
        if (cost > kMaxDistance) {
            throw std::overflow_error("costs of a route exceed 2^29 - 1");
        }
    }
}

template <typename Number>
std::vector<PairDistances<Number>> TaskTable::pair_distances() const {
    constexpr int32_t kMost = std::numeric_limits<Number>::max();
    std::vector<PairDistances<Number>> pairs;
    reserve_huge(pairs, ends_.size() * (ends_.size() + 1));
    for (const TaskEnds &ends : ends_) {
        const int32_t *rows[] = {to(ends.u), to(ends.v), from(ends.u), from(ends.v)};
        const auto add = [&](int32_t u, int32_t v) {
            PairDistances<Number> &pair = pairs.emplace_back();
            for (size_t i = 0; i < 4; ++i) {
                pair.at_u[i] = static_cast<Number>(std::min(rows[i][u], kMost));
                pair.at_v[i] = static_cast<Number>(std::min(rows[i][v], kMost));
            }
        };
        add(0, 0);
        for (const TaskEnds &other : ends_) {
            add(other.u, other.v);
        }
    }
    return pairs;
}

namespace {

// Adds the same to loads and labels of all visits up to `end`, but for directions that
// are forbidden.
ARCFLEET_CLONES void shift_visits(Visit *first, const Visit *end, int32_t load,
                                  int32_t done, int32_t from) {
#ifdef ARCFLEET_LANES
    const Lanes by{done, done, from, from};
    const Lanes most{kForbidden, kForbidden, kForbidden, kForbidden};
    for (; first < end; ++first) {
        Lanes labels;
        std::memcpy(&labels, &first->done_at_u, sizeof labels);
        labels += (labels < most) & by;
        std::memcpy(&first->done_at_u, &labels, sizeof labels);
        first->load += load;
    }
#else
    const auto shifted = [](int32_t label, int32_t by) {
        return label < kForbidden ? label + by : label;
    };
    for (; first < end; ++first) {
        first->load += load;
        first->done_at_u = shifted(first->done_at_u, done);
        first->done_at_v = shifted(first->done_at_v, done);
        first->from_u = shifted(first->from_u, from);
        first->from_v = shifted(first->from_v, from);
    }
#endif
}

// Whether both labels moved by the same, and by how much. A direction that is forbidden
// stays so.
bool is_shift(int32_t at_u, int32_t at_v, int32_t old_at_u, int32_t old_at_v,
              int32_t &by) {
    if (at_u < kForbidden && at_v < kForbidden) {
        by = at_v - old_at_v;
        return at_u - old_at_u == by && old_at_u < kForbidden && old_at_v < kForbidden;
    }
    if (at_v < kForbidden) {
        by = at_v - old_at_v;
        return old_at_u >= kForbidden && old_at_v < kForbidden;
    }
    by = at_u - old_at_u;
    return at_u < kForbidden && old_at_v >= kForbidden && old_at_u < kForbidden;
}

// Up to so many visits are sooner computed than compared.
constexpr size_t kWorthShifting = 16;

} // namespace

void LabelledRoute::refresh(const TaskTable &tasks, int32_t first, int32_t last) {
    // Where a way that there is not comes in, labels are no more exact.
    const int32_t closed = tasks.network().closed_cost();
    const bool may_shift =
        visits.size() > kWorthShifting && (closed == 0 || cost < closed);
    refresh_forward(tasks, idx(first), idx(last), may_shift);
    refresh_backward(tasks, idx(first), idx(last), may_shift);
}

// Labels are carried from visit to visit in variables: read back from memory they would
// be waited for.
void LabelledRoute::refresh_forward(const TaskTable &tasks, size_t first, size_t last,
                                    bool may_shift) {
    Visit *here = visits.data() + first;
    Visit *const end = visits.data() + visits.size() - 1;
    // From here on, labels are those of the same visits before.
    const Visit *const known = may_shift ? visits.data() + last + 1 : end;
    const int32_t *from_u = tasks.from(here[-1].u);
    const int32_t *from_v = tasks.from(here[-1].v);
    int32_t done_at_u = here[-1].done_at_u;
    int32_t done_at_v = here[-1].done_at_v;
    int32_t sum = here[-1].load;
    for (; here < end; ++here) {
        const TaskEnds &ends = tasks.ends(here->task);
        const int32_t at_u =
            std::min(done_at_u + from_u[ends.u], done_at_v + from_v[ends.u]);
        const int32_t at_v =
            std::min(done_at_u + from_u[ends.v], done_at_v + from_v[ends.v]);
        done_at_v = at_u + ends.forward_cost;
        done_at_u = std::min(at_v + ends.reverse_cost, kForbidden);
        sum += ends.demand;
        int32_t by = 0;
        if (here >= known &&
            is_shift(done_at_u, done_at_v, here->done_at_u, here->done_at_v, by)) {
            shift_visits(here, end, sum - here->load, by, 0);
            load = end[-1].load;
            cost += by;
            end->done_at_u = end->done_at_v = cost;
            end->load = load;
            return;
        }
        from_u = tasks.from(ends.u);
        from_v = tasks.from(ends.v);
        here->done_at_u = done_at_u;
        here->done_at_v = done_at_v;
        here->load = sum;
    }
    cost = std::min(done_at_u + from_u[0], done_at_v + from_v[0]);
    load = sum;
    end->done_at_u = end->done_at_v = cost;
    end->load = load;
}

void LabelledRoute::refresh_backward(const TaskTable &tasks, size_t first, size_t last,
                                     bool may_shift) {
    const Visit *const known = visits.data() + (may_shift ? first - 1 : 0);
    const Visit *right = visits.data() + last + 1;
    int32_t right_u = right->u;
    int32_t right_v = right->v;
    int32_t right_from_u = right->from_u;
    int32_t right_from_v = right->from_v;
    for (Visit *here = visits.data() + last; here > visits.data(); --here) {
        const TaskEnds &ends = tasks.ends(here->task);
        const int32_t *from_u = tasks.from(ends.u);
        const int32_t *from_v = tasks.from(ends.v);
        const int32_t home_from_u =
            std::min(from_u[right_u] + right_from_u, from_u[right_v] + right_from_v);
        const int32_t home_from_v =
            std::min(from_v[right_u] + right_from_u, from_v[right_v] + right_from_v);
        right_u = ends.u;
        right_v = ends.v;
        right_from_u = ends.forward_cost + home_from_v;
        right_from_v = std::min(ends.reverse_cost + home_from_u, kForbidden);
        int32_t by = 0;
        if (here <= known &&
            is_shift(right_from_u, right_from_v, here->from_u, here->from_v, by)) {
            shift_visits(visits.data() + 1, here + 1, 0, 0, by);
            return;
        }
        here->from_u = right_from_u;
        here->from_v = right_from_v;
    }
}

void LabelledRoute::insert(const TaskTable &tasks, int32_t task, int32_t place) {
    const TaskEnds &ends = tasks.ends(task);
    visits.insert(visits.begin() + place, Visit{task, ends.u, ends.v, 0, 0, 0, 0, 0});
    refresh(tasks, place, place);
}

void LabelledRoute::erase(int32_t first, int32_t last) {
    visits.erase(visits.begin() + first, visits.begin() + last);
}

void LabelledRoute::append_arcs(const TaskTable &tasks,
                                std::vector<int32_t> &arcs) const {
    const Network &network = tasks.network();
    int32_t place = 0;
    for (size_t i = 1; i + 1 < visits.size(); ++i) {
        const Visit &here = visits[i];
        const int32_t *row = tasks.from(place);
        const bool forward = row[here.u] + here.from_u <= row[here.v] + here.from_v;
        const int32_t first = network.task_arc(here.task);
        arcs.push_back(forward ? first : first + 1);
        place = forward ? here.v : here.u;
    }
}

} // namespace arcfleet
