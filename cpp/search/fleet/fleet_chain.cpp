#include "search/fleet/fleet_chain.h"

#include "search/ruin_recreate/string_removal.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>

namespace arcfleet {

namespace {

constexpr uint32_t kMovesPerStep = 10;
constexpr uint32_t kMendsPerStep = 1;
// A split of a route is tried once in so many iterations, and whole routes are taken
// out together that serve at most so many tasks. Places and vehicles for these are then
// overlooked more often, so that other routes come of it.
constexpr int64_t kSplitPause = 16;
constexpr int64_t kWholePause = 32;
constexpr size_t kMostOfWhole = 12;
constexpr double kBlinkOfWhole = 0.3;
constexpr int32_t kNearTasks = 10;
constexpr int32_t kFirstLooks = 4;
constexpr double kLongestDraw = 36.75; // as in chain.cpp
// A trip may lose more than one string if it is longer than this.
constexpr int32_t kSegment = 40;
// Iterations of the first attempt to do with one route less, and by task.
constexpr int64_t kAttempt = 1000;
constexpr int64_t kAttemptByTask = 20;
// From this price of balance on, limits are dearer, too.
constexpr double kDearBalance = 100.0;
constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr int32_t kAll = std::numeric_limits<int32_t>::max();

double cost_by_demand(const FleetTables &tables) {
    double demand = 1.0;
    for (const int32_t task : tables.planned) {
        demand += tables.ends(task).demand;
    }
    return static_cast<double>(tables.all_alone) / demand;
}

// One route for all streets is as even as can be, and would not be left while a load
// too large costs less than routes that differ.
double price_of_uneven(const FleetTables &tables) {
    return std::max(1.0, tables.rules.balance / kDearBalance);
}

} // namespace

FleetChain::FleetChain(const FleetTables &tables, uint64_t seed, uint64_t stream)
    : tables_(tables), random_(seed, stream), plan_(tables),
      order_(tables.drivings[0]->tasks()), fleet_price_(tables.route_price()),
      prices_(cost_by_demand(tables), price_of_uneven(tables),
              tables.settings.target_fit),
      blink_rate_(tables.settings.blink_rate), marked_(idx(tables.num_tasks()), 0),
      most_routes_(std::numeric_limits<int32_t>::max()),
      attempt_length_(kAttempt + kAttemptByTask * tables.num_tasks()) {}

// ---- what a plan costs ----

double FleetChain::penalised() const {
    const FleetSums &sums = plan_.sums();
    double faults = static_cast<double>(plan_.fleet_faults());
    faults += std::max(0, sums.routes - most_routes_);
    const auto cost = static_cast<double>(sums.route_costs + sums.fixed_costs);
    return prices_.added_to(cost, sums.excess) +
           tables_.rules.balance * plan_.unevenness() + shape_price(sums) +
           fleet_price_ * faults;
}

bool FleetChain::cost_holds() const {
    return std::abs(cost_ - penalised()) <= 1e-6 * (1.0 + std::abs(cost_));
}

double FleetChain::shape_price(const FleetSums &change) const {
    return static_cast<double>(tables_.rules.change_price * change.moved +
                               tables_.rules.compactness * change.interleaved);
}

double FleetChain::price_of(int32_t type, const TripTotals &route) const {
    return prices_.added_to(static_cast<double>(route.cost),
                            excesses(tables_.vehicle(type), route));
}

double FleetChain::balance_price(const RouteChange &change) const {
    const double price = tables_.rules.balance;
    return price > 0.0 ? price * (plan_.unevenness(change) - plan_.unevenness()) : 0.0;
}

double FleetChain::opening_price(int32_t type) const {
    const auto faults = static_cast<double>(plan_.faults_of(type, 1) +
                                            (plan_.sums().routes >= most_routes_));
    return static_cast<double>(tables_.vehicle(type).fixed_cost) +
           fleet_price_ * faults;
}

double FleetChain::closing_price(int32_t type) const {
    const auto faults = static_cast<double>(plan_.faults_of(type, -1) -
                                            (plan_.sums().routes > most_routes_));
    return fleet_price_ * faults -
           static_cast<double>(tables_.vehicle(type).fixed_cost);
}

bool FleetChain::may_be_in(int32_t task, int32_t slot) const {
    const int32_t pin = tables_.rules.pin[idx(task)];
    return (pin < 0 || pin == slot) && tables_.may_serve(plan_.route(slot).type, task);
}

// ---- one iteration ----

void FleetChain::start(const Plan &plan) {
    continue_from(plan);
    keep_if_best();
}

void FleetChain::continue_from(const Plan &plan) {
    plan_.load(plan);
    insert_missing();
    if (!attempting_ && tables_.rules.fewest_routes && best_cost_ >= 0) {
        most_routes_ = best_routes_;
    }
    attempting_ = false;
    cost_ = penalised();
}

void FleetChain::insert_missing() {
    removed_.clear();
    for (const int32_t task : tables_.planned) {
        if (!plan_.has(task)) {
            removed_.push_back(task);
        }
    }
    if (!removed_.empty()) {
        order_.sort(removed_, random_);
        plan_.begin();
        stuck_ = !insert_all(kNever, true);
        plan_.keep();
    }
}

bool FleetChain::step(double temperature) {
    ++iterations_;
    if (stuck_) {
        return false; // some task has no place at all
    }
    bool improved = tables_.rules.fewest_routes && manage_fleet();
    improved = ruin_and_recreate(temperature) || improved;
    const auto turn = static_cast<uint32_t>(iterations_) * kMovesPerStep;
    for (uint32_t i = 0; i < kMovesPerStep; ++i) {
        improved = small_move((turn + i) % 4, temperature) || improved;
    }
    for (uint32_t i = 0; tables_.has_facilities() && i < kMendsPerStep; ++i) {
        improved = mend_somewhere() || improved;
    }
    if (tables_.num_types() > 1) {
        improved = change_vehicle(temperature) || improved;
    }
    if (iterations_ % kSplitPause == 0) {
        improved = split_route(temperature) || improved;
    }
    if (prices_.adapt(plan_.sums().excess)) {
        cost_ = penalised();
    }
    return improved;
}

bool FleetChain::ruin_and_recreate(double temperature) {
    if (tables_.planned.empty()) {
        return false;
    }
    removed_.clear();
    ruined_.clear();
    plan_.begin();
    blink_rate_ = tables_.settings.blink_rate;
    if (iterations_ % kWholePause == 0) {
        mark_routes();
    }
    if (removed_.empty()) {
        mark_strings();
    } else {
        blink_rate_ = kBlinkOfWhole;
    }
    for (const Ruined &each : ruined_) {
        plan_.remove_marked(each.slot, marked_, each.first, each.last);
    }
    for (const int32_t task : removed_) {
        marked_[idx(task)] = 0;
    }
    order_.sort(removed_, random_);
    const double limit = cost_ - temperature * std::log(1.0 - random_.unit());
    bool taken = insert_all(limit, true);
    if (taken) {
        mend_touched(prices_.of(kLoad));
        taken = penalised() < limit;
    }
    if (!taken) {
        plan_.undo();
        return false;
    }
    plan_.keep();
    cost_ = penalised();
    return keep_if_best();
}

// As remove_strings of ruin-recreate; trips, and parts of long ones, stand for routes.
void FleetChain::mark_strings() {
    segments_.clear();
    const auto n = static_cast<uint32_t>(tables_.planned.size());
    const int32_t seed = tables_.planned[random_.below(n)];
    const RuinRecreateSettings &settings = tables_.settings;
    const double mean_length =
        static_cast<double>(n) / std::max(1, plan_.sums().routes);
    const double longest = std::min(settings.longest_string, mean_length);
    const double most_strings = 4.0 * settings.average_removed / (1.0 + longest) - 1.0;
    const auto strings = static_cast<size_t>(random_.unit() * most_strings + 1.0);
    const int32_t *near = tables_.nearest_to(seed);
    for (int32_t i = 0; i < tables_.row && segments_.size() < strings; ++i) {
        const int32_t task = near[i];
        if (tables_.rules.locked[idx(task)] != 0 || marked_[idx(task)] != 0) {
            continue;
        }
        const Spot spot = plan_.spot(task);
        const TripRoute &route = plan_.route(spot.slot);
        const Segment segment{spot.slot, route.visits[idx(spot.place)].trip,
                              spot.place / kSegment};
        if (std::find(segments_.begin(), segments_.end(), segment) == segments_.end()) {
            segments_.push_back(segment);
            mark_string(route, spot.slot, spot.place, longest);
        }
    }
}

// The routes of a task and of its neighbours, as long as they are short.
void FleetChain::mark_routes() {
    const auto n = static_cast<uint32_t>(tables_.planned.size());
    const int32_t *near = tables_.nearest_to(tables_.planned[random_.below(n)]);
    for (int32_t i = 0; i < std::min(kNearTasks, tables_.row); ++i) {
        if (tables_.rules.locked[idx(near[i])] != 0 || marked_[idx(near[i])] != 0) {
            continue;
        }
        const int32_t slot = plan_.spot(near[i]).slot;
        const TripRoute &route = plan_.route(slot);
        if (removed_.size() + idx(route.num_tasks()) > kMostOfWhole) {
            return;
        }
        for (int32_t place = 1; place <= route.num_tasks(); ++place) {
            const int32_t task = route.visits[idx(place)].task;
            marked_[idx(task)] = 1;
            removed_.push_back(task);
        }
        ruined_.push_back({slot, 1, route.num_tasks()});
    }
}

void FleetChain::mark_string(const TripRoute &route, int32_t slot, int32_t place,
                             double longest) {
    const int32_t trip = route.visits[idx(place)].trip;
    const int32_t before = route.trip_start(trip) - 1;
    const TaskString string =
        draw_string(tables_.settings, route.trip_ends[idx(trip)] - 1 - before,
                    place - before, longest, random_);
    for (int32_t i = string.first; i < string.last; ++i) {
        const int32_t task = route.visits[idx(before + i)].task;
        const bool stays = i >= string.kept_from && i < string.kept_from + string.kept;
        if (!stays && marked_[idx(task)] == 0) {
            marked_[idx(task)] = 1;
            removed_.push_back(task);
        }
    }
    const int32_t first = before + string.first;
    const int32_t last = before + string.last - 1;
    for (Ruined &each : ruined_) {
        if (each.slot == slot) {
            each.first = std::min(each.first, first);
            each.last = std::max(each.last, last);
            return;
        }
    }
    ruined_.push_back({slot, first, last});
}

bool FleetChain::insert_all(double limit, bool may_open) {
    const bool balanced = tables_.rules.balance > 0.0;
    const bool shaped = tables_.rules.change_price > 0 || tables_.rules.compactness > 0;
    const bool blinks_at_vehicles = blink_rate_ > tables_.settings.blink_rate;
    double so_far = penalised();
    const bool bounded = tables_.drivings.size() == 1 && !balanced &&
                         !tables_.rules.exact_fleet &&
                         tables_.driving(0).via_never_pays();
    const bool prunes = tables_.insertion_never_pays;
    for (const int32_t task : removed_) {
        double best = kNever;
        int32_t best_slot = -1;
        int32_t best_type = -1;
        TripPlace best_place;
        const int32_t pin = tables_.rules.pin[idx(task)];
        const int32_t demand = tables_.ends(task).demand;
        // No place costs less.
        const double least = bounded  ? tables_.ends(task).least_extra
                             : prunes ? 0.0
                                      : -kNever;
        // The least that it costs between facilities, or one and the end.
        int32_t least_own = 0;
        if (tables_.has_facilities()) {
            least_own = kAll;
            for (const auto &table : tables_.drivings) {
                least_own = std::min(least_own, tables_.rules.ends_at_facility()
                                                    ? table->own_trip(task)
                                                    : table->first_of_trip(task));
            }
        }
        const auto look_at_empty = [&](int32_t slot, int32_t type, double shape,
                                       bool blinks) {
            if (!tables_.may_serve(type, task) ||
                (blinks && random_.unit() < blink_rate_)) {
                return;
            }
            TripPlace place;
            place.cost = tables_.alone(type, task);
            place.excess =
                std::max(0, tables_.ends(task).demand - tables_.vehicle(type).capacity);
            place.place = 1;
            const double delta = shape + price_of(type, {place.cost, place.excess}) +
                                 opening_price(type) +
                                 balance_price(RouteChange{}.add(place.cost));
            if (delta < best) {
                best = delta;
                best_slot = slot;
                best_type = type;
                best_place = place;
            }
        };
        std::optional<TripInsertion> insertion; // for the vehicle type last looked at
        const auto look_at = [&](int32_t slot, Trips trips, bool blinks) {
            if (pin >= 0 && pin != slot) {
                return;
            }
            double shape = 0.0;
            if (shaped) {
                FleetSums change;
                change.moved = plan_.moves_in(task, slot);
                change.interleaved = plan_.mates_apart(task, slot);
                shape = shape_price(change);
            }
            const TripRoute &route = plan_.route(slot);
            if (route.empty()) {
                // A route with a number may be any vehicle's.
                const bool any = plan_.is_numbered(slot);
                for (int32_t type = 0; may_open && type < tables_.num_types(); ++type) {
                    if (any || type == route.type) {
                        look_at_empty(slot, type, shape, blinks && blinks_at_vehicles);
                    }
                }
                return;
            }
            if (!tables_.all_may_serve && !tables_.may_serve(route.type, task)) {
                return;
            }
            if (!insertion || insertion->type() != route.type) {
                insertion.emplace(tables_, task, route.type);
            }
            const double most = balanced ? kNever : best - shape;
            TripPlace place =
                insertion->cheapest(route, trips, prices_.of(kLoad), most);
            if (place.place >= 0 && blinks && random_.unit() < blink_rate_) {
                place = insertion->cheapest(route, trips, prices_.of(kLoad), most,
                                            place.place);
            }
            if (place.place < 0) {
                return;
            }
            const double delta =
                shape + price_of(route.type, {place.cost, place.excess}) -
                price_of(route.type, route.totals()) +
                balance_price(RouteChange{}.drop(route.cost).add(place.cost));
            if (delta < best) {
                best = delta;
                best_slot = slot;
                best_type = route.type;
                best_place = place;
            }
        };
        // The slots where some trip may be the best place, by their numbers.
        struct Range {
            const std::vector<int32_t> &numbers;
            int32_t from;
            int32_t to;
        };
        const SlotNumbers &slots = plan_.slot_numbers();
        const auto range_of = [&](Trips trips) -> Range {
            switch (trips) {
            case Trips::fitting:
                return {slots.most_room, demand, kAll};
            case Trips::exceeding:
                return {slots.least_room, -kAll,
                        least + prices_.of(kLoad) < best ? demand - 1 : -kAll};
            default: {
                const double most = prunes ? best - least_own : kNever;
                return {slots.least_between, -kAll,
                        static_cast<int32_t>(std::min<double>(most, kAll - 1))};
            }
            }
        };
        // The route of a neighbour first: the sooner a good place is found, the less is
        // looked at.
        int32_t near = 0;
        for (int32_t i = std::min(kFirstLooks, tables_.row - 1); i > 0; --i) {
            const int32_t slot = plan_.slot_of(tables_.nearest_to(task)[i]);
            near = slot >= 0 ? slot : near;
        }
        // Trips where it fits first: most others are then ruled out by the price of
        // their excess alone. All once more if all were overlooked.
        const int kinds = tables_.has_facilities() ? 3 : 2; // of Trips
        for (int look = 0; look < 2 * kinds && (look != kinds || best_slot < 0);
             ++look) {
            const auto trips = static_cast<Trips>(look % kinds);
            const Range range = range_of(trips);
            for_slots_within(range.numbers, idx(near), range.from, range.to,
                             [&](int32_t slot) {
                                 if (best > least) {
                                     look_at(slot, trips, look < kinds);
                                 }
                                 return best > least;
                             });
        }
        if (best_slot < 0 || (tables_.insertion_never_pays && so_far + best >= limit)) {
            return false;
        }
        so_far += best;
        plan_.retype(best_slot, best_type);
        plan_.insert(best_slot, task, best_place);
    }
    return true;
}

// Where a trip carries too much, a facility visit elsewhere may be all it takes.
void FleetChain::mend_touched(double load_price) {
    if (!tables_.has_facilities()) {
        return;
    }
    for (size_t i = 0; i < plan_.touched().size(); ++i) {
        const int32_t slot = plan_.touched()[i];
        for (int tries = 0; plan_.route(slot).excess > 0 && tries < kMostMends;
             ++tries) {
            const TripRoute &route = plan_.route(slot);
            const int32_t capacity = tables_.vehicle(route.type).capacity;
            bool mended = false;
            for (size_t trip = 0; trip < route.trip_ends.size() && !mended; ++trip) {
                const int32_t last = route.trip_ends[trip] - 1;
                if (route.notes[trip].load > capacity) {
                    mended = plan_.mend_visits(slot, last, load_price);
                    const bool has_next = trip + 1 < plan_.route(slot).trip_ends.size();
                    if (!mended && has_next) {
                        mended = plan_.mend_visits(slot, last + 1, load_price);
                    }
                }
            }
            if (!mended) {
                break;
            }
        }
    }
}

// ---- small moves ----

bool FleetChain::small_move(uint32_t number, double temperature) {
    const int32_t near = std::min(kNearTasks, tables_.row - 1);
    if (near < 1 || tables_.planned.empty()) {
        return false;
    }
    const uint64_t draw = random_.bits();
    const int32_t task = tables_.planned[(draw >> 32) * tables_.planned.size() >> 32];
    const uint64_t nearness = (draw & 0xFFFFFFFF) * idx(near) >> 32;
    const int32_t other = tables_.nearest_to(task)[1 + nearness];
    if (tables_.rules.locked[idx(other)] != 0) {
        return false;
    }
    const Spot first = plan_.spot(task);
    const Spot second = plan_.spot(other);
    if (first.slot == second.slot) {
        return move_within(number, first, second, static_cast<uint32_t>(draw % 4),
                           temperature);
    }
    switch (number) {
    case 0:
    case 1:
        return exchange_tails(first, second, temperature);
    case 2:
        return swap(first, second, temperature);
    default:
        return relocate(first, second, static_cast<uint32_t>(draw % 4), temperature);
    }
}

bool FleetChain::move_within(uint32_t number, const Spot &first, const Spot &second,
                             uint32_t draw, double temperature) {
    const TripRoute &route = plan_.route(first.slot);
    const int32_t trip = route.visits[idx(first.place)].trip;
    const int32_t end = route.trip_ends[idx(trip)];
    if (route.visits[idx(second.place)].trip != trip ||
        end - route.trip_start(trip) < WithinRoute::kLongRoute) {
        return false;
    }
    const std::optional<WithinRoute> move =
        WithinRoute::draw(number, first.place, second.place, end, draw, random_);
    if (!move) {
        return false;
    }
    const int32_t cost = route.reordered(tables_, *move);
    const double dearer = price_of(route.type, {cost, route.excess}) -
                          price_of(route.type, route.totals()) +
                          balance_price(RouteChange{}.drop(route.cost).add(cost));
    if (!accepts(dearer, temperature)) {
        return false;
    }
    plan_.reorder(first.slot, *move);
    return moved(dearer);
}

double FleetChain::priced(int32_t first, int32_t second, const Change &after) {
    const TripRoute &one = plan_.route(first);
    const TripRoute &two = plan_.route(second);
    double delta = -price_of(one.type, one.totals()) - price_of(two.type, two.totals());
    delta += after.first.cost < 0 ? closing_price(one.type)
                                  : price_of(one.type, after.first);
    delta += after.second.cost < 0 ? closing_price(two.type)
                                   : price_of(two.type, after.second);
    if (tables_.rules.balance > 0.0) {
        RouteChange change;
        change.drop(one.cost).drop(two.cost);
        for (const TripTotals &route : {after.first, after.second}) {
            if (route.cost >= 0) {
                change.add(route.cost);
            }
        }
        delta += balance_price(change);
    }
    return delta;
}

bool FleetChain::relocate(const Spot &first, const Spot &second, uint32_t draw,
                          double temperature) {
    const TripRoute &one = plan_.route(first.slot);
    const TripRoute &two = plan_.route(second.slot);
    const int32_t task = one.visits[idx(first.place)].task;
    if (!may_be_in(task, second.slot)) {
        return false;
    }
    const int32_t place = second.place + static_cast<int32_t>(draw % 2);
    const TripVisit &right = two.visits[idx(place)];
    TripPlace there = two.at_place(tables_, task, place, false, right.via);
    if (right.via && is_task(right)) {
        const TripPlace other = two.at_place(tables_, task, place, true, false);
        if (price_of(two.type, {other.cost, other.excess}) <
            price_of(two.type, {there.cost, there.excess})) {
            there = other;
        }
    }
    Change after{one.without(tables_, first.place), {there.cost, there.excess}};
    if (one.num_tasks() == 1) {
        after.first.cost = -1; // closed
    }
    double dearer = priced(first.slot, second.slot, after);
    if (tables_.rules.change_price > 0 || tables_.rules.compactness > 0) {
        placements_ = {{task, second.slot}};
        dearer += shape_price(plan_.shape_change(placements_));
    }
    if (!accepts(dearer, temperature)) {
        return false;
    }
    plan_.change(first.slot, second.slot, [&](TripRoute &from, TripRoute &to) {
        from.erase(first.place);
        to.insert(tables_, task, there);
    });
    return moved(dearer);
}

bool FleetChain::swap(const Spot &first, const Spot &second, double temperature) {
    const TripRoute &one = plan_.route(first.slot);
    const TripRoute &two = plan_.route(second.slot);
    const int32_t task = one.visits[idx(first.place)].task;
    const int32_t other = two.visits[idx(second.place)].task;
    if (!may_be_in(task, second.slot) || !may_be_in(other, first.slot)) {
        return false;
    }
    const Change after{one.replaced(tables_, first.place, other),
                       two.replaced(tables_, second.place, task)};
    double dearer = priced(first.slot, second.slot, after);
    if (tables_.rules.change_price > 0 || tables_.rules.compactness > 0) {
        placements_ = {{task, second.slot}, {other, first.slot}};
        dearer += shape_price(plan_.shape_change(placements_));
    }
    if (!accepts(dearer, temperature)) {
        return false;
    }
    plan_.change(first.slot, second.slot, [&](TripRoute &left, TripRoute &right) {
        TripVisit &here = left.visits[idx(first.place)];
        TripVisit &there = right.visits[idx(second.place)];
        std::swap(here, there);
        std::swap(here.via, there.via); // facility visits stay where they are
    });
    return moved(dearer);
}

// The first route goes on with the second from its task on; the second goes on with
// what followed in the first. For vehicles of one type.
bool FleetChain::exchange_tails(const Spot &first, const Spot &second,
                                double temperature) {
    const TripRoute &one = plan_.route(first.slot);
    const TripRoute &two = plan_.route(second.slot);
    if (one.type != two.type) {
        return false;
    }
    const auto join = [&](const TripPart &head, const TripPart &tail, bool &via) {
        const TripVisit &left = head.visit;
        const TripVisit &right = tail.visit;
        if (!is_task(left) && !is_task(right)) {
            via = false;
            return TripTotals{-1, 0}; // closed
        }
        via = !is_task(right) && tables_.rules.ends_at_facility();
        TripTotals totals = joined(tables_, one.type, head, tail, via);
        if (is_task(left) && is_task(right) && tables_.has_facilities() &&
            (totals.excess > 0 || !tables_.driving(one.type).via_never_pays())) {
            const TripTotals other = joined(tables_, one.type, head, tail, true);
            if (price_of(one.type, other) < price_of(one.type, totals)) {
                totals = other;
                via = true;
            }
        }
        return totals;
    };
    bool first_via = false;
    bool second_via = false;
    const auto cut = idx(first.place) + 1;
    const auto other_cut = idx(second.place);
    const Change after{
        join(one.head(first.place), two.tail(second.place), first_via),
        join(two.head(second.place - 1), one.tail(first.place + 1), second_via)};
    double dearer = priced(first.slot, second.slot, after);
    const bool shaped = tables_.rules.change_price > 0 || tables_.rules.compactness > 0;
    if (dearer >= kLongestDraw * temperature && !shaped) {
        return false;
    }
    if (shaped || !tables_.all_may_be_anywhere) {
        placements_.clear();
        for (size_t i = cut; i + 1 < one.visits.size(); ++i) {
            placements_.push_back({one.visits[i].task, second.slot});
        }
        for (size_t i = other_cut; i + 1 < two.visits.size(); ++i) {
            placements_.push_back({two.visits[i].task, first.slot});
        }
        for (const Placement &each : placements_) {
            if (!may_be_in(each.task, each.slot)) {
                return false;
            }
        }
    }
    if (shaped) {
        dearer += shape_price(plan_.shape_change(placements_));
    }
    if (!accepts(dearer, temperature)) {
        return false;
    }
    plan_.change(first.slot, second.slot, [&](TripRoute &left, TripRoute &right) {
        left.visits[cut].via = second_via;
        right.visits[other_cut].via = first_via;
        const std::vector<TripVisit> tail(
            left.visits.begin() + static_cast<std::ptrdiff_t>(cut), left.visits.end());
        left.visits.resize(cut);
        left.visits.insert(left.visits.end(),
                           right.visits.begin() +
                               static_cast<std::ptrdiff_t>(other_cut),
                           right.visits.end());
        right.visits.resize(other_cut);
        right.visits.insert(right.visits.end(), tail.begin(), tail.end());
    });
    return moved(dearer);
}

bool FleetChain::mend_somewhere() {
    const auto n = static_cast<uint32_t>(tables_.planned.size());
    if (n == 0) {
        return false;
    }
    const Spot spot = plan_.spot(tables_.planned[random_.below(n)]);
    if (!plan_.mend_visits(spot.slot, spot.place, prices_.of(kLoad))) {
        return false;
    }
    cost_ = penalised();
    return keep_if_best();
}

// After a change that was reckoned to make the plan dearer by so much. Builds with
// sanitizers hold the reckoning against the plan.
bool FleetChain::moved(double dearer) {
    [[maybe_unused]] const double reckoned = cost_ + dearer;
    cost_ = penalised();
#ifdef __SANITIZE_ADDRESS__
    if (std::abs(cost_ - reckoned) > 1e-6 * (1.0 + std::abs(cost_))) {
        throw std::logic_error("a move has another price than it was reckoned to have");
    }
#endif
    return keep_if_best();
}

bool FleetChain::accepts(double dearer, double temperature) {
    return dearer < kLongestDraw * temperature &&
           dearer < -temperature * std::log(1.0 - random_.unit());
}

bool FleetChain::keep_if_best() {
    const FleetSums &sums = plan_.sums();
    if (!sums.excess.none() || plan_.fleet_faults() > 0) {
        return false;
    }
    const Objective objective = plan_.objective();
    const Objective to_beat{best_objective_.first, best_objective_.second - 1e-9};
    if ((best_cost_ >= 0 && objective >= to_beat) || !plan_.is_sound()) {
        return false;
    }
    best_ = plan_.to_plan();
    best_cost_ = plan_.cost();
    best_objective_ = objective;
    best_routes_ = sums.routes;
    best_route_costs_ = sums.route_costs;
    return true;
}

} // namespace arcfleet
