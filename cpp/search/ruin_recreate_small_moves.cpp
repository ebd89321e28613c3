// Small moves between two routes that come near each other: tails are exchanged, two
// tasks are swapped, or one is moved. Most often tasks that were taken out go back to
// where they were; a small move always changes the plan, and a try costs next to
// nothing: the labels on both sides of a cut give the cost of the new routes.
#include "search/ruin_recreate.h"

#include <cmath>

namespace arcfleet {

namespace {

// The two routes meet at a task and one of so many nearest others.
constexpr int32_t kNearTasks = 10;

// -ln of the least number that is drawn: no dearer move is ever accepted.
constexpr double kLongestDraw = 36.75;

// A route cut in front of visits[place].
struct Cut {
    const LabelledRoute &route;
    size_t place;

    const Visit &before() const { return route.visits[place - 1]; }
    const Visit &after() const { return route.visits[place]; }
    int64_t head_load() const { return before().load; }
    int64_t tail_load() const { return route.load - before().load; }
    bool has_head() const { return place > 1; }
    bool has_tail() const { return place + 1 < route.visits.size(); }
    auto middle() const {
        return route.visits.begin() + static_cast<std::ptrdiff_t>(place);
    }
};

} // namespace

// One try; true if it found a new best. Half of the four kinds exchange tails.
bool Chain::small_move(uint32_t kind, double temperature) {
    const int32_t near = std::min(kNearTasks, tables_.row - 1);
    if (near < 1) {
        return false;
    }
    // One draw serves all choices: its high half, its low half and the lowest bits.
    const uint64_t draw = random_.bits();
    const uint64_t seed = (draw >> 32) * idx(tasks_.num_tasks()) >> 32;
    const uint64_t nearness = (draw & 0xFFFFFFFF) * idx(near) >> 32;
    const auto rest = static_cast<uint32_t>(draw % 4);
    const int32_t *row = tables_.nearest.data() + seed * idx(tables_.row);
    const Spot first = spots_[seed];
    const Spot second = spots_[idx(row[1 + nearness])];
    if (first.slot == second.slot) {
        return false;
    }
    const bool accepted = kind < 2    ? exchange_tails(first, second, rest, temperature)
                          : kind == 2 ? swap_tasks(first, second, rest, temperature)
                                      : move_task(first, second, rest, temperature);
    if (!accepted) {
        return false;
    }
    replace_route(first.slot, first_visits_);
    replace_route(second.slot, second_visits_);
    if (routes_[idx(first.slot)].empty() || routes_[idx(second.slot)].empty()) {
        open_one_empty_slot();
    }
    cost_ = penalised_cost();
    return keep_if_best();
}

bool Chain::exchange_tails(const Spot &first_spot, const Spot &second_spot,
                           uint32_t draw, double temperature) {
    // Either the first head goes on with the second tail and the second head with the
    // first tail, or both heads are joined and both tails, one of each driven
    // backwards.
    const bool backwards = tasks_.reversible() && draw % 2 == 1;
    const LabelledRoute &first_route = routes_[idx(first_spot.slot)];
    const LabelledRoute &second_route = routes_[idx(second_spot.slot)];
    const Cut first{first_route, idx(first_spot.place) + 1};
    const Cut second{second_route, idx(second_spot.place) + (backwards ? 1 : 0)};
    Loads loads{first.head_load(), first.tail_load()};
    loads.first += backwards ? second.head_load() : second.tail_load();
    loads.second += backwards ? second.tail_load() : second.head_load();
    if (too_full(loads)) {
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
    if (!first.has_tail() && !(backwards ? second.has_tail() : second.has_head())) {
        cost += fixed_cost(num_routes_ - 1) - fixed_cost(num_routes_);
    }
    if (!accepts(first_route, second_route, cost, loads, temperature)) {
        return false;
    }
    first_visits_.assign(first_route.visits.begin(), first.middle());
    if (backwards) {
        first_visits_.insert(first_visits_.end(),
                             std::reverse_iterator(second.middle()),
                             second_route.visits.rend());
        second_visits_.assign(first_route.visits.rbegin(),
                              std::reverse_iterator(first.middle()));
        // Where a route started, one now ends, and the other way round.
        first_visits_.back() = second_visits_.front() = Visit{-1, 0, 0, 0, 0, 0, 0, 0};
    } else {
        first_visits_.insert(first_visits_.end(), second.middle(),
                             second_route.visits.end());
        second_visits_.assign(second_route.visits.begin(), second.middle());
    }
    const Cut &last = backwards ? second : first;
    second_visits_.insert(second_visits_.end(), last.middle(), last.route.visits.end());
    return true;
}

// Swaps the task with the other, or with the one before or after the other: each takes
// the place of the other.
bool Chain::swap_tasks(const Spot &first, const Spot &second, uint32_t draw,
                       double temperature) {
    const LabelledRoute &first_route = routes_[idx(first.slot)];
    const LabelledRoute &second_route = routes_[idx(second.slot)];
    const size_t place = idx(first.place);
    size_t other_place = idx(second.place);
    if (draw == 0 && other_place + 2 < second_route.visits.size()) {
        ++other_place;
    } else if (draw == 1 && other_place > 1) {
        --other_place;
    }
    const Visit *here = &first_route.visits[place];
    const Visit *there = &second_route.visits[other_place];
    const int64_t more =
        int64_t{tasks_.ends(there->task).demand} - tasks_.ends(here->task).demand;
    const Loads loads{first_route.load + more, second_route.load - more};
    if (too_full(loads)) {
        return false;
    }
    const int64_t cost = Insertion(tasks_, there->task).cost(here[-1], here[1]) +
                         Insertion(tasks_, here->task).cost(there[-1], there[1]);
    if (!accepts(first_route, second_route, cost, loads, temperature)) {
        return false;
    }
    first_visits_ = first_route.visits;
    second_visits_ = second_route.visits;
    std::swap(first_visits_[place], second_visits_[other_place]);
    return true;
}

// Moves the task in front of the other or behind it.
bool Chain::move_task(const Spot &first, const Spot &second, uint32_t draw,
                      double temperature) {
    const LabelledRoute &first_route = routes_[idx(first.slot)];
    const LabelledRoute &second_route = routes_[idx(second.slot)];
    const size_t place = idx(first.place);
    const size_t gap = idx(second.place) + draw % 2;
    const Visit *here = &first_route.visits[place];
    const Visit *there = &second_route.visits[gap];
    const int64_t demand = tasks_.ends(here->task).demand;
    const Loads loads{first_route.load - demand, second_route.load + demand};
    if (too_full(loads)) {
        return false;
    }
    int64_t cost = joined_cost(tasks_, head(here[-1]), tail(here[1])) +
                   Insertion(tasks_, here->task).cost(there[-1], there[0]);
    if (first_route.num_tasks() == 1) {
        cost += fixed_cost(num_routes_ - 1) - fixed_cost(num_routes_);
    }
    if (!accepts(first_route, second_route, cost, loads, temperature)) {
        return false;
    }
    first_visits_ = first_route.visits;
    second_visits_ = second_route.visits;
    second_visits_.insert(second_visits_.begin() + static_cast<std::ptrdiff_t>(gap),
                          *here);
    first_visits_.erase(first_visits_.begin() + static_cast<std::ptrdiff_t>(place));
    return true;
}

// Whether two routes are to be exchanged for others, which cost `cost` together.
bool Chain::accepts(const LabelledRoute &first, const LabelledRoute &second,
                    int64_t cost, const Loads &loads, double temperature) {
    const int64_t more_excess = std::max<int64_t>(0, loads.first - capacity_) +
                                std::max<int64_t>(0, loads.second - capacity_) -
                                excess(first) - excess(second);
    const double dearer = static_cast<double>(cost - first.cost - second.cost) +
                          excess_price_ * static_cast<double>(more_excess);
    return dearer < kLongestDraw * temperature &&
           dearer < -temperature * std::log(1.0 - random_.unit());
}

// Swaps the visits for those of the route in this slot.
void Chain::replace_route(int32_t slot, std::vector<Visit> &visits) {
    LabelledRoute &route = routes_[idx(slot)];
    route_costs_ -= route.cost;
    excess_ -= excess(route);
    std::swap(route.visits, visits);
    if (route.empty()) {
        route.clear();
        --num_routes_;
    } else {
        route.refresh(tasks_);
        note_spots(slot);
    }
    route_costs_ += route.cost;
    excess_ += excess(route);
    loads_[idx(slot)] = route.load;
}

} // namespace arcfleet
