// Moves of FleetChain that change who drives: splits and merges of routes, vehicles of
// another type, and attempts to do with one route less.
#include "search/fleet/fleet_chain.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

namespace arcfleet {

namespace {

// Each next attempt to do with one route less is twice as long as the one before, and
// waits so many times that.
constexpr int64_t kAttemptPause = 3;
// An attempt is made where the cost of all routes is at most so much above what one
// vehicle less can work.
constexpr double kHopeful = 1.03;
constexpr double kNever = std::numeric_limits<double>::infinity();

} // namespace

// ---- vehicles ----

bool FleetChain::may_drive(int32_t type, const TripRoute &route) const {
    for (int32_t place = 1; place <= route.num_tasks(); ++place) {
        if (!tables_.may_serve(type, route.visits[idx(place)].task)) {
            return false;
        }
    }
    return true;
}

TripRoute FleetChain::driven_by(int32_t type, const TripRoute &route, int32_t first,
                                int32_t last) const {
    TripRoute other(tables_, type);
    other.visits.insert(other.visits.begin() + 1, route.visits.begin() + first,
                        route.visits.begin() + last + 1);
    other.tidy(tables_);
    other.refresh(tables_);
    return other;
}

// Greedy insertion opens a route for one task at a time, which may cost more than it
// saves where several tasks would pay for it.
bool FleetChain::split_route(double temperature) {
    const auto n = static_cast<uint32_t>(tables_.planned.size());
    if (n == 0) {
        return false;
    }
    const Spot spot = plan_.spot(tables_.planned[random_.below(n)]);
    const auto draw =
        static_cast<int32_t>(random_.below(static_cast<uint32_t>(plan_.num_slots())));
    if (spot.place < 2) {
        return false;
    }
    // The next empty slot from one that is drawn: each stands for a vehicle.
    int32_t slot = draw;
    while (!plan_.route(slot).empty()) {
        slot = (slot + 1) % plan_.num_slots();
    }
    const TripRoute &one = plan_.route(spot.slot);
    const int32_t type = plan_.route(slot).type;
    placements_.clear();
    for (int32_t place = spot.place; place <= one.num_tasks(); ++place) {
        const int32_t task = one.visits[idx(place)].task;
        if (!may_be_in(task, slot)) {
            return false;
        }
        placements_.push_back({task, slot});
    }
    const int32_t behind = one.num_tasks() + 1;
    const TripTotals head = joined(tables_, one.type, one.head(spot.place - 1),
                                   one.tail(behind), tables_.rules.ends_at_facility());
    // Another vehicle has other ways.
    const TripTotals tail =
        type == one.type
            ? joined(tables_, type, one.head(0), one.tail(spot.place), false)
            : driven_by(type, one, spot.place, behind - 1).totals();
    double dearer =
        price_of(one.type, head) + price_of(type, tail) + opening_price(type) -
        price_of(one.type, one.totals()) +
        balance_price(RouteChange{}.drop(one.cost).add(head.cost).add(tail.cost));
    if (tables_.rules.change_price > 0 || tables_.rules.compactness > 0) {
        dearer += shape_price(plan_.shape_change(placements_));
    }
    if (!accepts(dearer, temperature)) {
        return false;
    }
    plan_.change(spot.slot, slot, [&](TripRoute &from, TripRoute &to) {
        const auto cut = from.visits.begin() + spot.place;
        to.visits.insert(to.visits.begin() + 1, cut, from.visits.end() - 1);
        from.visits.erase(cut, from.visits.end() - 1);
    });
    return moved(dearer);
}

bool FleetChain::merge_routes(int32_t first, int32_t second, double temperature) {
    const TripRoute &one = plan_.route(first);
    const TripRoute &two = plan_.route(second);
    const auto type =
        static_cast<int32_t>(random_.below(static_cast<uint32_t>(tables_.num_types())));
    const bool two_first = random_.below(2) == 0;
    if (!may_drive(type, one) || !may_drive(type, two)) {
        return false;
    }
    placements_.clear();
    for (int32_t place = 1; place <= two.num_tasks(); ++place) {
        const int32_t task = two.visits[idx(place)].task;
        const int32_t pin = tables_.rules.pin[idx(task)];
        if (pin >= 0 && pin != first) {
            return false;
        }
        placements_.push_back({task, first});
    }
    TripRoute both = driven_by(type, one, 1, one.num_tasks());
    const auto at = both.visits.begin() + (two_first ? 1 : 1 + one.num_tasks());
    both.visits.insert(at, two.visits.begin() + 1, two.visits.end() - 1);
    const int32_t seam = 1 + (two_first ? two : one).num_tasks();
    const int64_t demand = int64_t{one.visits.back().load} + two.visits.back().load;
    both.visits[idx(seam)].via =
        tables_.has_facilities() && demand > tables_.vehicle(type).capacity;
    both.tidy(tables_);
    both.refresh(tables_);
    int64_t faults = plan_.sums().routes > most_routes_ ? -1 : 0;
    for (int32_t each = 0; each < tables_.num_types(); ++each) {
        faults +=
            plan_.faults_of(each, (each == type ? 1 : 0) - (each == one.type ? 1 : 0) -
                                      (each == two.type ? 1 : 0));
    }
    const int64_t fixed = int64_t{tables_.vehicle(type).fixed_cost} -
                          tables_.vehicle(one.type).fixed_cost -
                          tables_.vehicle(two.type).fixed_cost;
    double dearer =
        price_of(type, both.totals()) - price_of(one.type, one.totals()) -
        price_of(two.type, two.totals()) + static_cast<double>(fixed) +
        fleet_price_ * static_cast<double>(faults) +
        balance_price(RouteChange{}.drop(one.cost).drop(two.cost).add(both.cost));
    if (tables_.rules.change_price > 0 || tables_.rules.compactness > 0) {
        dearer += shape_price(plan_.shape_change(placements_));
    }
    if (!accepts(dearer, temperature)) {
        return false;
    }
    plan_.change(first, second, [&](TripRoute &merged, TripRoute &closed) {
        merged = std::move(both);
        closed.visits.erase(closed.visits.begin() + 1, closed.visits.end() - 1);
    });
    return moved(dearer);
}

bool FleetChain::change_vehicle(double temperature) {
    const auto n = static_cast<uint32_t>(tables_.planned.size());
    if (n == 0) {
        return false;
    }
    const int32_t first = plan_.spot(tables_.planned[random_.below(n)]).slot;
    const int32_t second = plan_.spot(tables_.planned[random_.below(n)]).slot;
    const TripRoute &one = plan_.route(first);
    const TripRoute &two = plan_.route(second);
    if (random_.below(2) == 0) {
        const auto others = static_cast<uint32_t>(tables_.num_types()) - 1;
        const auto drawn = static_cast<int32_t>(random_.below(others));
        const int32_t type = drawn < one.type ? drawn : drawn + 1;
        if (!may_drive(type, one)) {
            return false;
        }
        TripRoute other = driven_by(type, one, 1, one.num_tasks());
        const auto faults = static_cast<double>(plan_.faults_of(one.type, -1) +
                                                plan_.faults_of(type, 1));
        const int64_t dearer_type = int64_t{tables_.vehicle(type).fixed_cost} -
                                    tables_.vehicle(one.type).fixed_cost;
        const double dearer =
            price_of(type, other.totals()) - price_of(one.type, one.totals()) +
            static_cast<double>(dearer_type) + fleet_price_ * faults +
            balance_price(RouteChange{}.drop(one.cost).add(other.cost));
        if (!accepts(dearer, temperature)) {
            return false;
        }
        plan_.replace(first, std::move(other));
    } else if (first != second && random_.below(2) == 0) {
        return merge_routes(first, second, temperature);
    } else {
        if (one.type == two.type || !may_drive(two.type, one) ||
            !may_drive(one.type, two)) {
            return false;
        }
        TripRoute other_one = driven_by(two.type, one, 1, one.num_tasks());
        TripRoute other_two = driven_by(one.type, two, 1, two.num_tasks());
        const double dearer = price_of(two.type, other_one.totals()) +
                              price_of(one.type, other_two.totals()) -
                              price_of(one.type, one.totals()) -
                              price_of(two.type, two.totals()) +
                              balance_price(RouteChange{}
                                                .drop(one.cost)
                                                .drop(two.cost)
                                                .add(other_one.cost)
                                                .add(other_two.cost));
        if (!accepts(dearer, temperature)) {
            return false;
        }
        plan_.replace(first, std::move(other_one));
        plan_.replace(second, std::move(other_two));
    }
    cost_ = penalised();
    return keep_if_best();
}

// ---- fewest routes ----

bool FleetChain::one_route_less_seems_possible() const {
    int64_t work = 0;
    int64_t capacity = 0;
    for (const VehicleType &vehicle : tables_.rules.vehicles) {
        work = std::max<int64_t>(work, vehicle.max_route_cost);
        capacity = std::max<int64_t>(capacity, vehicle.capacity);
    }
    const double fewer = best_routes_ - 1;
    if (fewer < 1.0 || static_cast<double>(best_route_costs_) >
                           kHopeful * fewer * static_cast<double>(work)) {
        return false;
    }
    if (tables_.has_facilities()) {
        return true;
    }
    double demand = 0.0;
    for (const int32_t task : tables_.planned) {
        demand += tables_.ends(task).demand;
    }
    return demand <= fewer * static_cast<double>(capacity);
}

bool FleetChain::manage_fleet() {
    if (best_cost_ < 0) {
        return false;
    }
    if (!attempting_) {
        if (most_routes_ != best_routes_) {
            most_routes_ = best_routes_;
            cost_ = penalised(); // the plan at hand may have more
        }
        if (iterations_ >= attempt_change_ && one_route_less_seems_possible()) {
            plan_.load(best_);
            most_routes_ = best_routes_ - 1;
            dissolve_shortest_route();
            attempting_ = true;
            attempt_change_ = iterations_ + attempt_length_;
            cost_ = penalised();
            return keep_if_best();
        }
        return false;
    }
    if (best_routes_ <= most_routes_) {
        attempting_ = false; // it worked: the next one may follow soon
        attempt_change_ = iterations_ + attempt_length_;
    } else if (iterations_ >= attempt_change_) {
        attempting_ = false;
        most_routes_ = best_routes_;
        plan_.load(best_);
        attempt_length_ *= 2;
        attempt_change_ = iterations_ + kAttemptPause * attempt_length_;
        cost_ = penalised();
    }
    return false;
}

// The shortest route whose tasks others may take: pinned ones stay where they are.
void FleetChain::dissolve_shortest_route() {
    blink_rate_ = tables_.settings.blink_rate;
    std::vector<int32_t> slots;
    for (int32_t slot = 0; slot < plan_.num_slots(); ++slot) {
        if (!plan_.route(slot).empty()) {
            slots.push_back(slot);
        }
    }
    std::stable_sort(slots.begin(), slots.end(), [&](int32_t a, int32_t b) {
        return plan_.route(a).cost < plan_.route(b).cost;
    });
    for (const int32_t slot : slots) {
        removed_.clear();
        const TripRoute &route = plan_.route(slot);
        for (size_t i = 1; i + 1 < route.visits.size(); ++i) {
            removed_.push_back(route.visits[i].task);
            marked_[idx(route.visits[i].task)] = 1;
        }
        plan_.begin();
        plan_.remove_marked(slot, marked_, 1, route.num_tasks());
        for (const int32_t task : removed_) {
            marked_[idx(task)] = 0;
        }
        order_.sort(removed_, random_);
        if (insert_all(kNever, false)) {
            mend_touched(fleet_price_); // whatever driving it takes
            plan_.keep();
            for (const int32_t touched : plan_.touched()) {
                take_fitting_vehicle(touched);
            }
            return;
        }
        plan_.undo();
    }
}

// Gives a route that is above a limit to a vehicle type for which it is less so.
void FleetChain::take_fitting_vehicle(int32_t slot) {
    const TripRoute &route = plan_.route(slot);
    int64_t least = excesses(tables_.vehicle(route.type), route.totals()).total();
    std::optional<TripRoute> best;
    for (int32_t type = 0; least > 0 && type < tables_.num_types(); ++type) {
        if (type == route.type || !may_drive(type, route) ||
            plan_.faults_of(route.type, -1) + plan_.faults_of(type, 1) > 0) {
            continue;
        }
        TripRoute other = driven_by(type, route, 1, route.num_tasks());
        const int most_tries = tables_.has_facilities() ? kMostMends : 0;
        for (int tries = 0; tries < most_tries && other.excess > 0; ++tries) {
            for (int32_t place = 1; place <= other.num_tasks(); ++place) {
                other.mend_visits(tables_, place, fleet_price_);
            }
        }
        const int64_t above = excesses(tables_.vehicle(type), other.totals()).total();
        if (above < least) {
            least = above;
            best = std::move(other);
        }
    }
    if (best) {
        plan_.replace(slot, std::move(*best));
    }
}

} // namespace arcfleet
