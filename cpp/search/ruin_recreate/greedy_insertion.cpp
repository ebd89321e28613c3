#include "search/ruin_recreate/greedy_insertion.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace arcfleet {

namespace {

// More places than any search looks at.
constexpr double kNeverBlinks = 1e18;

// So many of the tasks nearest to one are looked at before it is put back.
constexpr int32_t kNearest = 40;
// In one of so many iterations all places are looked at.
constexpr uint32_t kAnywhere = 32;
// So many tasks at a time.
constexpr int32_t kTogether = 8;

} // namespace

GreedyInsertion::GreedyInsertion(const RuinRecreateTables &tables)
    : tables_(tables), tasks_(tables.tasks), rules_(tables.rules),
      log_open_(std::log1p(-tables.settings.blink_rate)),
      looked_in_front_of_(idx(tables.tasks.num_tasks()), 0) {}

// Blinks are drawn by the number of places between them, so that most routes are looked
// through without asking.
inline InsertionPlace GreedyInsertion::cheapest_place(const LabelledRoute &route,
                                                      int32_t task, Random &random) {
    const InsertionPlace cheapest = cheapest_insertion(tasks_, task, route);
    const int64_t places = static_cast<int64_t>(route.visits.size()) - 1;
    if (places_to_blink_ >= places) {
        places_to_blink_ -= places;
        return cheapest;
    }
    return blink(cheapest, route, task, random);
}

// Blinks matter only where the cheapest place is one that is overlooked. A route whose
// places were all overlooked has a cost beyond any other.
InsertionPlace GreedyInsertion::blink(InsertionPlace cheapest,
                                      const LabelledRoute &route, int32_t task,
                                      Random &random) {
    const auto end = static_cast<int32_t>(route.visits.size());
    overlooked_.clear();
    int64_t place = 1 + places_to_blink_;
    for (; place < end; place += 1 + draw_places_to_blink(random)) {
        overlooked_.push_back(static_cast<int32_t>(place));
    }
    places_to_blink_ = place - end;
    if (std::find(overlooked_.begin(), overlooked_.end(), cheapest.place) ==
        overlooked_.end()) {
        return cheapest;
    }
    return cheapest_other_insertion(tasks_, task, route, overlooked_);
}

int64_t GreedyInsertion::draw_places_to_blink(Random &random) const {
    // Where none is overlooked, infinity.
    const double places = std::log(1.0 - random.unit()) / log_open_;
    return static_cast<int64_t>(std::min(kNeverBlinks, places));
}

bool GreedyInsertion::overlooks(Random &random) {
    if (places_to_blink_ > 0) {
        --places_to_blink_;
        return false;
    }
    places_to_blink_ = draw_places_to_blink(random);
    return true;
}

bool GreedyInsertion::insert_all(const std::vector<int32_t> &removed, double limit,
                                 const Penalties &penalties, CurrentPlan &plan,
                                 Random &random) {
    const bool nearby = tables_.inserts_nearby && random.below(kAnywhere) != 0;
    for (const int32_t task : removed) {
        Found found;
        if (nearby) {
            found = find_nearby(task, penalties, plan, random);
        }
        // Where nothing near takes it, a route of its own is a last resort.
        if (found.slot < 0) {
            found = find_anywhere(task, penalties, plan, random);
        }
        if (tasks_.removal_never_costs() &&
            penalties.penalised_cost(plan) + found.price >= limit) {
            return false;
        }
        plan.insert(found.slot, task, found.place);
    }
    return true;
}

// Beside the tasks nearest to it, and at the depot, where ways are long enough to pass
// by it.
GreedyInsertion::Found GreedyInsertion::find_nearby(int32_t task,
                                                    const Penalties &penalties,
                                                    const CurrentPlan &plan,
                                                    Random &random) {
    const TaskEnds &ends = tasks_.ends(task);
    const int32_t most_load = rules_.remaining_capacity(ends.demand);
    const double excess_price = penalties.excess_price();
    const auto price_of = [&](int32_t load) {
        return load <= most_load
                   ? 0.0
                   : excess_price * std::min(load - most_load, ends.demand);
    };
    Found found;
    const auto look_between = [&](int32_t slot, int32_t first, int32_t end) {
        const LabelledRoute &route = plan.route(slot);
        const InsertionPlace cheapest =
            cheapest_insertion_between(tasks_, task, route, first, end);
        const auto delta = static_cast<double>(cheapest.cost - route.cost);
        found.offer(price_of(route.load) + delta, slot, cheapest.place);
    };
    // A few at a time: their memory is asked for before the first is looked at.
    const int32_t *near = tables_.nearest_to(idx(task));
    const int32_t end = std::min(tables_.row, kNearest + 1);
    ++round_;
    for (int32_t first = 1; first < end; first += kTogether) {
        std::array<Spot, 2 * kTogether> places;
        size_t count = 0;
        for (int32_t i = first; i < std::min(end, first + kTogether); ++i) {
            const Spot spot = plan.spot(near[i]);
            if (spot.slot < 0) {
                continue; // taken out as well
            }
            const LabelledRoute &route = plan.route(spot.slot);
            if (route.load > most_load + penalties.max_excess() ||
                price_of(route.load) >= found.price) {
                continue;
            }
            const Visit *here = route.visits.data() + spot.place;
            tasks_.prefetch_pair(task, here[0].task);
            if (looked_in_front_of_[idx(near[i])] != round_) {
                looked_in_front_of_[idx(near[i])] = round_;
                tasks_.prefetch_pair(task, here[-1].task);
                places[count++] = spot;
            }
            const int32_t next = here[1].task;
            if (next < 0 || looked_in_front_of_[idx(next)] != round_) {
                if (next >= 0) {
                    looked_in_front_of_[idx(next)] = round_;
                }
                tasks_.prefetch_pair(task, next);
                places[count++] = {spot.slot, spot.place + 1};
            }
        }
        for (size_t i = 0; i < count; ++i) {
            if (!overlooks(random)) {
                look_between(places[i].slot, places[i].place, places[i].place + 1);
            }
        }
        if (found.price <= ends.least_extra) {
            return found;
        }
    }
    plan.for_slots(1, most_load + penalties.max_excess(), [&](int32_t slot) {
        const LabelledRoute &route = plan.route(slot);
        const double price = price_of(route.load);
        if (price < found.price && !overlooks(random)) {
            const auto last = route.num_tasks() + 1;
            look_between(slot, 1, 2);
            look_between(slot, last, last + 1);
        }
        return found.price > ends.least_extra;
    });
    const auto alone =
        static_cast<double>(ends.alone + penalties.cost_of_opening(plan.num_routes()));
    if (alone < found.price) {
        return {}; // look further before a route is opened
    }
    return found;
}

GreedyInsertion::Found GreedyInsertion::find_anywhere(int32_t task,
                                                      const Penalties &penalties,
                                                      const CurrentPlan &plan,
                                                      Random &random) {
    const double excess_price = penalties.excess_price();
    const TaskEnds &ends = tasks_.ends(task);
    // The largest load beside which the task fits.
    const int32_t most_load = rules_.remaining_capacity(ends.demand);
    // Slots where it fits first, then those that would carry a little too much.
    int64_t best_delta = std::numeric_limits<int64_t>::max();
    Found found;
    plan.for_slots(0, most_load, [&](int32_t slot) {
        const LabelledRoute &route = plan.route(slot);
        if (route.empty()) {
            const int64_t delta =
                ends.alone + penalties.cost_of_opening(plan.num_routes());
            if (delta < best_delta) {
                best_delta = delta;
                found.slot = slot;
                found.place = 1;
            }
            return true;
        }
        const InsertionPlace cheapest = cheapest_place(route, task, random);
        const int64_t delta = cheapest.cost - route.cost;
        if (delta < best_delta) {
            best_delta = delta;
            found.slot = slot;
            found.place = cheapest.place;
        }
        return best_delta > ends.least_extra;
    });
    // Last, because most are ruled out by the price of the excess alone: putting a
    // task in hardly ever makes a route cheaper.
    found.price = static_cast<double>(best_delta);
    int32_t worthwhile = penalties.max_excess();
    if (excess_price > 0.0 &&
        excess_price * std::min(worthwhile, ends.demand) >= found.price) {
        worthwhile = static_cast<int32_t>(std::max(0.0, found.price) / excess_price);
    }
    const auto look_at_full = [&](int32_t slot) {
        const LabelledRoute &route = plan.route(slot);
        const double price =
            excess_price * std::min(route.load - most_load, ends.demand);
        if (price >= found.price) {
            return true;
        }
        const InsertionPlace cheapest = cheapest_place(route, task, random);
        found.offer(price + static_cast<double>(cheapest.cost - route.cost), slot,
                    cheapest.place);
        return true;
    };
    if (worthwhile > 0) {
        plan.for_slots(most_load + 1, most_load + worthwhile, look_at_full);
    }
    return found;
}

} // namespace arcfleet
