#include "search/ruin_recreate/greedy_insertion.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace arcfleet {

namespace {

// More places than any search looks at.
constexpr double kNeverBlinks = 1e18;

} // namespace

GreedyInsertion::GreedyInsertion(const RuinRecreateTables &tables)
    : tasks_(tables.tasks), rules_(tables.rules),
      log_open_(std::log1p(-tables.settings.blink_rate)) {}

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

bool GreedyInsertion::insert_all(const std::vector<int32_t> &removed, double limit,
                                 const Penalties &penalties, CurrentPlan &plan,
                                 Random &random) {
    const double excess_price = penalties.excess_price();
    for (const int32_t task : removed) {
        const TaskEnds &ends = tasks_.ends(task);
        // The largest load beside which the task fits.
        const int32_t most_load = rules_.remaining_capacity(ends.demand);
        // Slots where it fits first, then those that would carry a little too much.
        int64_t best_delta = std::numeric_limits<int64_t>::max();
        int32_t best_slot = -1;
        int32_t best_place = -1;
        plan.for_slots(0, most_load, [&](int32_t slot) {
            const LabelledRoute &route = plan.route(slot);
            if (route.empty()) {
                const int64_t delta =
                    ends.alone + penalties.cost_of_opening(plan.num_routes());
                if (delta < best_delta) {
                    best_delta = delta;
                    best_slot = slot;
                    best_place = 1;
                }
                return true;
            }
            const InsertionPlace cheapest = cheapest_place(route, task, random);
            const int64_t delta = cheapest.cost - route.cost;
            if (delta < best_delta) {
                best_delta = delta;
                best_slot = slot;
                best_place = cheapest.place;
            }
            return best_delta > ends.least_extra;
        });
        // Last, because most are ruled out by the price of the excess alone: putting a
        // task in hardly ever makes a route cheaper.
        auto best_priced = static_cast<double>(best_delta);
        int32_t worthwhile = penalties.max_excess();
        if (excess_price > 0.0 &&
            excess_price * std::min(worthwhile, ends.demand) >= best_priced) {
            worthwhile =
                static_cast<int32_t>(std::max(0.0, best_priced) / excess_price);
        }
        const auto look_at_full = [&](int32_t slot) {
            const LabelledRoute &route = plan.route(slot);
            const double price =
                excess_price * std::min(route.load - most_load, ends.demand);
            if (price >= best_priced) {
                return true;
            }
            const InsertionPlace cheapest = cheapest_place(route, task, random);
            const double delta =
                price + static_cast<double>(cheapest.cost - route.cost);
            if (delta < best_priced) {
                best_priced = delta;
                best_slot = slot;
                best_place = cheapest.place;
            }
            return true;
        };
        if (worthwhile > 0) {
            plan.for_slots(most_load + 1, most_load + worthwhile, look_at_full);
        }
        if (tasks_.removal_never_costs() &&
            penalties.penalised_cost(plan) + best_priced >= limit) {
            return false;
        }
        plan.insert(best_slot, task, best_place);
    }
    return true;
}

} // namespace arcfleet
