// Exchange of tails: two routes are cut where they come near each other and joined
// crosswise. Taking a few tasks out and putting them back hardly ever gets there, and a
// try costs next to nothing: the labels on both sides of a cut give the new costs.
#include "search/ruin_recreate.h"

#include <cmath>

namespace arcfleet {

namespace {

constexpr size_t idx(int32_t i) { return static_cast<size_t>(i); }

// Routes are cut next to a task and one of so many nearest others.
constexpr int32_t kNearTasks = 10;

// -ln of the least number that is drawn: no dearer exchange is ever accepted.
constexpr double kLongestDraw = 36.75;

// A route cut in front of visits[place].
struct Cut {
    const LabelledRoute &route;
    size_t place;
    int64_t head_load;

    const Visit &before() const { return route.visits[place - 1]; }
    const Visit &after() const { return route.visits[place]; }
    int64_t tail_load() const { return route.load - head_load; }
    bool has_head() const { return place > 1; }
    bool has_tail() const { return place + 1 < route.visits.size(); }
    auto middle() const {
        return route.visits.begin() + static_cast<std::ptrdiff_t>(place);
    }
};

Cut cut_at(const LabelledRoute &route, int32_t task, bool behind) {
    Cut cut{route, 1, 0};
    while (route.visits[cut.place].task != task) {
        cut.head_load += route.visits[cut.place++].demand;
    }
    if (behind) {
        cut.head_load += route.visits[cut.place++].demand;
    }
    return cut;
}

} // namespace

// The visits are swapped for those of the route in this slot.
void Chain::replace_route(int32_t slot, std::vector<Visit> &visits) {
    LabelledRoute &route = routes_[idx(slot)];
    route_costs_ -= route.cost;
    excess_ -= excess(route);
    std::swap(route.visits, visits);
    if (route.empty()) {
        route.clear();
        --num_routes_;
    } else {
        route.load = 0;
        for (size_t i = 1; i + 1 < route.visits.size(); ++i) {
            route.load += route.visits[i].demand;
            slot_of_[idx(route.visits[i].task)] = slot;
        }
        route.refresh(tasks_);
    }
    route_costs_ += route.cost;
    excess_ += excess(route);
    loads_[idx(slot)] = route.load;
}

// One try; true if it found a new best.
bool Chain::exchange_tails(double temperature) {
    const int32_t near = std::min(kNearTasks, tables_.row - 1);
    if (near < 1) {
        return false;
    }
    const uint32_t task = random_.below(static_cast<uint32_t>(tasks_.num_tasks()));
    const int32_t *row = tables_.nearest.data() + task * idx(tables_.row);
    const int32_t other = row[1 + random_.below(static_cast<uint32_t>(near))];
    const int32_t first_slot = slot_of_[task];
    const int32_t second_slot = slot_of_[idx(other)];
    if (first_slot == second_slot) {
        return false;
    }
    // Either the first head goes on with the second tail and the second head with the
    // first tail, or both heads are joined and both tails, one of each driven
    // backwards.
    const bool backwards = tasks_.reversible() && random_.below(2) == 1;
    const Cut first = cut_at(routes_[idx(first_slot)], row[0], true);
    const Cut second = cut_at(routes_[idx(second_slot)], other, backwards);
    const int64_t first_load =
        first.head_load + (backwards ? second.head_load : second.tail_load());
    const int64_t second_load =
        first.tail_load() + (backwards ? second.tail_load() : second.head_load);
    const int64_t most = int64_t{capacity_} + most_excess_;
    if (std::max(first_load, second_load) > most) {
        return false;
    }
    int64_t cost = 0;
    if (backwards) {
        cost = joined_cost(tasks_, head(first.before()), head(second.before())) +
               joined_cost(tasks_, tail(first.after()), tail(second.after()));
    } else {
        cost = joined_cost(tasks_, head(first.before()), tail(second.after())) +
               joined_cost(tasks_, head(second.before()), tail(first.after()));
    }
    // The first route keeps a task, the second may be left with none.
    const bool empties =
        !first.has_tail() && !(backwards ? second.has_tail() : second.has_head());
    cost += fixed_cost(num_routes_ - (empties ? 1 : 0));
    cost -= first.route.cost + second.route.cost + fixed_cost(num_routes_);
    const int64_t more_excess = std::max<int64_t>(0, first_load - capacity_) +
                                std::max<int64_t>(0, second_load - capacity_) -
                                excess(first.route) - excess(second.route);
    const double dearer =
        static_cast<double>(cost) + excess_price_ * static_cast<double>(more_excess);
    if (dearer > kLongestDraw * temperature ||
        dearer >= -temperature * std::log(1.0 - random_.unit())) {
        return false;
    }
    first_visits_.assign(first.route.visits.begin(), first.middle());
    if (backwards) {
        first_visits_.insert(first_visits_.end(),
                             std::reverse_iterator(second.middle()),
                             second.route.visits.rend());
        second_visits_.assign(first.route.visits.rbegin(),
                              std::reverse_iterator(first.middle()));
        // What was a depot's start has become its end.
        first_visits_.back() = second_visits_.front() = Visit{-1, 0, 0, 0, 0, 0, 0, 0};
    } else {
        first_visits_.insert(first_visits_.end(), second.middle(),
                             second.route.visits.end());
        second_visits_.assign(second.route.visits.begin(), second.middle());
    }
    const Cut &last = backwards ? second : first;
    second_visits_.insert(second_visits_.end(), last.middle(), last.route.visits.end());
    replace_route(first_slot, first_visits_);
    replace_route(second_slot, second_visits_);
    if (empties) {
        tidy_slots();
    }
    cost_ = penalised_cost();
    return keep_if_best();
}

} // namespace arcfleet
