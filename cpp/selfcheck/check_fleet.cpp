#include "search/fleet/fleet_scanning.h"
#include "search/fleet/fleet_search.h"

#include "selfcheck/selfcheck.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace arcfleet {

namespace {

constexpr int32_t kAny = std::numeric_limits<int32_t>::max();
constexpr double kForever = 1e6;
constexpr RuinRecreateSettings kSettings{10.0, 10.0, 0.8, 0.99, 0.05,
                                         0.1,  0.01, 0.2, 0.5};

// Random streets with a fleet: some vehicle types may not use all links, depots and
// facilities are anywhere, and all other rules come and go.
struct RandomFleet {
    RandomStreets streets;
    std::vector<std::unique_ptr<Network>> networks;
    FleetRules rules;

    RandomFleet(Random &random, uint64_t round) : streets(random) {
        streets.vary(round);
        const auto draw = [&](int32_t least, int32_t most) {
            return least + static_cast<int32_t>(
                               random.below(static_cast<uint32_t>(most - least + 1)));
        };
        const int32_t types = draw(1, 3);
        const int32_t stops = draw(0, 1) * draw(1, 3);
        std::vector<int32_t> places{streets.vehicle.depot};
        for (int32_t i = 0; i < 2 * types + stops; ++i) {
            places.push_back(draw(0, streets.num_nodes - 1));
        }
        // The first vehicle type may go everywhere, so that there is a plan.
        const size_t num_links = streets.tail.size();
        std::vector<uint8_t> closed(num_links, 0);
        for (int32_t driving = draw(0, 1); driving >= 0; --driving) {
            LinkArrays links = streets.links();
            links.closed = closed;
            const ServiceArrays services{streets.required, streets.demand,
                                         streets.service_cost,
                                         streets.reverse_service_cost};
            networks.push_back(std::make_unique<Network>(
                streets.num_nodes, links, services, streets.vehicle, streets.turns(), 1,
                places, 1 << 27));
            for (size_t link = 0; link < num_links; ++link) {
                if (streets.required[link] != 0) {
                    rules.may_serve.push_back(closed[link] == 0);
                }
            }
            for (uint8_t &each : closed) {
                each = random.below(8) == 0;
            }
        }
        const Network &network = *networks[0];
        const std::vector<int32_t> &at = network.place_terminals();
        for (int32_t type = 0; type < types; ++type) {
            const size_t place = 1 + 2 * idx(type);
            rules.vehicles.push_back(
                {at[place], at[draw(0, 1) ? place : place + 1],
                 type == 0 ? streets.vehicle.capacity : draw(5, 60),
                 type == 0 ? kAny : draw(1, 4), draw(0, 1) * draw(0, 50), kAny,
                 type == 0 ? 0 : draw(0, static_cast<int32_t>(networks.size()) - 1)});
        }
        for (int32_t i = 0; i < stops; ++i) {
            rules.facilities.push_back({at[1 + idx(2 * types + i)], draw(0, 20)});
        }
        const auto n = idx(network.num_tasks());
        rules.empty_at_end = draw(0, 1) == 1;
        if (draw(0, 4) == 0) {
            rules.exact_fleet = true;
            rules.vehicles[0].count = draw(1, 6);
        }
        rules.fewest_routes = draw(0, 3) == 0;
        rules.balance = draw(0, 3) == 0 ? 2.5 : 0.0;
        rules.compactness = draw(0, 3) == 0 ? draw(1, 50) : 0;
        rules.change_price = draw(0, 3) == 0 ? draw(1, 50) : 0;
        rules.home.assign(n, -1);
        rules.pin.assign(n, -1);
        rules.locked.assign(n, 0);
        const int32_t numbered = draw(0, 3) == 0 ? draw(1, 3) : 0;
        for (int32_t slot = 0; slot < numbered; ++slot) {
            rules.numbered_slots.push_back(0);
        }
        for (size_t task = 0; task < n && numbered > 0; ++task) {
            rules.home[task] = draw(-1, numbered - 1);
            rules.pin[task] = draw(0, 5) == 0 ? draw(0, numbered - 1) : -1;
        }
        for (size_t task = 0; task < n; ++task) {
            if (rules.pin[task] < 0 && round % 5 == 3 && draw(0, 4) == 0) {
                rules.locked[task] = draw(1, 2);
            }
        }
        if (draw(0, 2) == 0) {
            // A little more than the longest route that serves one task.
            const FleetTables tables(pointers(), rules, kSettings);
            int32_t longest = 1;
            for (int32_t task = 0; task < tables.num_tasks(); ++task) {
                longest = std::max(longest, tables.alone(0, task));
            }
            for (VehicleType &vehicle : rules.vehicles) {
                vehicle.max_route_cost = longest + draw(0, 2) * longest / 2;
            }
        }
    }

    std::vector<const Network *> pointers() const {
        std::vector<const Network *> found;
        for (const auto &network : networks) {
            found.push_back(network.get());
        }
        return found;
    }
};

// ---- routes ----

TripRoute refreshed(const FleetTables &tables, TripRoute route) {
    if (route.empty()) {
        route.clear();
        return route;
    }
    route.tidy(tables);
    route.refresh(tables);
    return route;
}

void check_same(const TripRoute &found, const TripRoute &expected) {
    ARCFLEET_EQUAL(found.visits.size(), expected.visits.size());
    ARCFLEET_EQUAL(found.cost, expected.cost);
    ARCFLEET_EQUAL(found.excess, expected.excess);
    ARCFLEET_EQUAL(found.trip_ends == expected.trip_ends, true);
    ARCFLEET_EQUAL(found.notes == expected.notes, true);
    ARCFLEET_EQUAL(found.stops == expected.stops, true);
    for (size_t i = 0; i < found.visits.size(); ++i) {
        const TripVisit &a = found.visits[i];
        const TripVisit &b = expected.visits[i];
        ARCFLEET_EQUAL(a.task, b.task);
        ARCFLEET_EQUAL(a.via, b.via);
        ARCFLEET_EQUAL(a.done_at_u, b.done_at_u);
        ARCFLEET_EQUAL(a.done_at_v, b.done_at_v);
        if (i > 0) {
            ARCFLEET_EQUAL(a.from_u, b.from_u);
            ARCFLEET_EQUAL(a.from_v, b.from_v);
            ARCFLEET_EQUAL(a.trip, b.trip);
            ARCFLEET_EQUAL(a.load, b.load);
        }
    }
}

// The cost of driving on, by way of each facility in turn where there is a visit.
int64_t drive(const FleetTables &tables, int32_t type, int32_t from, int32_t to,
              bool via) {
    const Network &network = tables.driving(type).streets();
    if (!via) {
        return network.distances_from(from)[to];
    }
    int64_t least = INT64_MAX;
    for (const FacilityStop &stop : tables.rules.facilities) {
        least =
            std::min(least, int64_t{network.distances_from(from)[stop.terminal]} +
                                stop.cost + network.distances_from(stop.terminal)[to]);
    }
    return least;
}

// To the end of a route, by way of a facility if that must be or is shorter.
int64_t drive_home(const FleetTables &tables, int32_t type, int32_t from) {
    const int32_t end = tables.vehicle(type).end;
    const int64_t by_facility = drive(tables, type, from, end, true);
    return tables.rules.ends_at_facility()
               ? by_facility
               : std::min(by_facility, drive(tables, type, from, end, false));
}

// The cheapest cost of a route over all directions tried out, and what it carries too
// much.
void check_totals(const FleetTables &tables, const TripRoute &route) {
    const Network &network = tables.driving(route.type).tasks().network();
    const VehicleType &vehicle = tables.vehicle(route.type);
    const auto n = idx(route.num_tasks());
    int64_t best = INT64_MAX;
    for (uint32_t choice = 0; choice < (1U << n); ++choice) {
        int64_t cost = 0;
        int32_t at = vehicle.start;
        bool legal = true;
        for (size_t i = 0; i < n && legal; ++i) {
            const TripVisit &visit = route.visits[i + 1];
            const int32_t first = network.task_arc(visit.task);
            const bool turned = (choice >> i & 1U) != 0;
            legal = !turned || network.arc(first).inverse >= 0;
            if (legal) {
                const Arc &arc = network.arc(turned ? first + 1 : first);
                cost += drive(tables, route.type, at, arc.start, visit.via) +
                        arc.service_cost;
                at = arc.end;
            }
        }
        if (legal) {
            cost += drive_home(tables, route.type, at);
            best = std::min(best, cost);
        }
    }
    ARCFLEET_EQUAL(int64_t{route.cost}, std::min<int64_t>(best, kMostCost));
    int64_t excess = 0;
    int64_t load = 0;
    for (size_t i = 1; i < route.visits.size(); ++i) {
        const TripVisit &visit = route.visits[i];
        if (visit.via || !is_task(visit)) {
            excess += std::max<int64_t>(0, load - vehicle.capacity);
            load = 0;
        }
        load += is_task(visit) ? tables.ends(visit.task).demand : 0;
    }
    ARCFLEET_EQUAL(int64_t{route.excess}, excess);
}

// Every place for a task costs what the route costs with the task there, and the
// cheapest is found, with and without one that is overlooked.
void check_places(const FleetTables &tables, const TripRoute &route, int32_t task,
                  int32_t overlooked, double price) {
    double least = kForever * kForever;
    double least_other = least;
    for (int32_t place = 1; place < static_cast<int32_t>(route.visits.size());
         ++place) {
        const TripVisit &right = route.visits[idx(place)];
        for (const bool before : {false, true}) {
            for (const bool after : {false, true}) {
                const bool ends = !is_task(right);
                const bool keeps_visits = before || after == right.via;
                const bool may_before =
                    place > 1 && tables.has_facilities() && (right.via || ends);
                if (!keeps_visits || (before && !may_before) ||
                    (ends && after != tables.rules.ends_at_facility()) ||
                    (!right.via && after)) {
                    continue;
                }
                const TripPlace there =
                    route.at_place(tables, task, place, before, after);
                TripRoute longer = route;
                longer.insert(tables, task, there);
                longer.refresh(tables, place, place);
                check_same(longer, refreshed(tables, longer));
                ARCFLEET_EQUAL(longer.cost, there.cost);
                ARCFLEET_EQUAL(longer.excess, there.excess);
                const double priced =
                    there.cost - route.cost + price * (there.excess - route.excess);
                if (there.cost >= kMostCost) {
                    continue; // there is no way
                }
                least = std::min(least, priced);
                if (place != overlooked) {
                    least_other = std::min(least_other, priced);
                }
            }
        }
    }
    const TripInsertion insertion(tables, task, route.type);
    const auto found = [&](double most, int32_t but_for) {
        for (const Trips trips : {Trips::fitting, Trips::exceeding, Trips::own}) {
            if (trips == Trips::own && !tables.has_facilities()) {
                continue;
            }
            const TripPlace place =
                insertion.cheapest(route, trips, price, most, but_for);
            if (place.place >= 0) {
                most = place.cost - route.cost + price * (place.excess - route.excess);
            }
        }
        return most;
    };
    const double most = kForever * kForever;
    ARCFLEET_EQUAL(found(most, -1), least);
    ARCFLEET_EQUAL(found(most, overlooked), least_other);
    for (const Trips trips : {Trips::fitting, Trips::exceeding}) {
        ARCFLEET_EQUAL(insertion.cheapest(route, trips, price, least).place, -1);
    }
}

void check_changes(const FleetTables &tables, const TripRoute &route, int32_t task) {
    for (int32_t place = 1; place <= route.num_tasks(); ++place) {
        const TripTotals without = route.without(tables, place);
        TripRoute shorter = route;
        shorter.erase(place);
        shorter = refreshed(tables, shorter);
        ARCFLEET_EQUAL(without.cost, shorter.cost);
        ARCFLEET_EQUAL(without.excess, shorter.excess);
        std::vector<uint8_t> marked(idx(tables.num_tasks()), 0);
        marked[idx(route.visits[idx(place)].task)] = 1;
        TripRoute other = route;
        const auto changed = other.erase_marked(tables, marked, place, place);
        check_same(refreshed(tables, other), shorter);
        if (!other.empty()) {
            other.refresh(tables, changed.first, changed.second);
            check_same(other, shorter);
        }
        const TripTotals replaced = route.replaced(tables, place, task);
        other = route;
        TripVisit &visit = other.visits[idx(place)];
        visit.task = task;
        visit.u = tables.ends(task).u;
        visit.v = tables.ends(task).v;
        visit.demand = tables.ends(task).demand;
        other = refreshed(tables, other);
        ARCFLEET_EQUAL(replaced.cost, other.cost);
        ARCFLEET_EQUAL(replaced.excess, other.excess);
        const TripTotals whole =
            joined(tables, route.type, route.head(place - 1), route.tail(place),
                   route.visits[idx(place)].via);
        ARCFLEET_EQUAL(whole.cost, route.cost);
        ARCFLEET_EQUAL(whole.excess, route.excess);
    }
}

// Moves within each trip, at any two places of it.
void check_reordering(const FleetTables &tables, const TripRoute &route,
                      Random &random) {
    for (int32_t one = 1; one <= route.num_tasks(); ++one) {
        const int32_t trip = route.visits[idx(one)].trip;
        const int32_t end = route.trip_ends[idx(trip)];
        for (int32_t other = route.trip_start(trip); other < end; ++other) {
            for (uint32_t draw = 0; draw < 8; ++draw) {
                const auto move = one == other
                                      ? std::nullopt
                                      : WithinRoute::draw(draw / 4, one, other, end,
                                                          draw % 4, random);
                if (move) {
                    TripRoute after = route;
                    after.reorder(tables, *move);
                    check_same(after, refreshed(tables, after));
                    ARCFLEET_EQUAL(route.reordered(tables, *move), after.cost);
                    ARCFLEET_EQUAL(after.excess, route.excess);
                }
            }
        }
    }
}

// Mending finds the best of all ways to put in, drop or move one facility visit of a
// trip.
void check_mending(const FleetTables &tables, const TripRoute &route, int32_t place,
                   double price) {
    const auto priced = [&](const TripRoute &each) {
        return each.cost + price * each.excess;
    };
    const auto with = [&](int32_t dropped, int32_t added) {
        TripRoute other = route;
        if (dropped > 0) {
            other.visits[idx(dropped)].via = false;
        }
        if (added > 0) {
            other.visits[idx(added)].via = true;
        }
        return priced(refreshed(tables, other));
    };
    const int32_t trip = route.visits[idx(place)].trip;
    const int32_t first = route.trip_start(trip);
    double best = priced(route);
    for (int32_t x = first + 1; x < route.trip_ends[idx(trip)]; ++x) {
        best = std::min(best, with(0, x));
    }
    if (trip > 0) {
        best = std::min(best, with(first, 0));
        for (int32_t x = route.trip_start(trip - 1) + 1; x < route.trip_ends[idx(trip)];
             ++x) {
            if (x != first) {
                best = std::min(best, with(first, x));
            }
        }
    }
    TripRoute mended = route;
    const bool changed = mended.mend_visits(tables, place, price);
    ARCFLEET_EQUAL(changed, best < priced(route) - 1e-6);
    check_same(mended, refreshed(tables, mended));
    if (changed) {
        ARCFLEET_EQUAL(priced(mended), best);
    }
}

void check_routes(const FleetTables &tables, Random &random) {
    const int32_t n = tables.num_tasks();
    for (int32_t type = 0; type < tables.num_types(); ++type) {
        TripRoute route(tables, type);
        for (int32_t task = 0; task + 1 < std::min(8, n); ++task) {
            const auto place = 1 + static_cast<int32_t>(random.below(
                                       static_cast<uint32_t>(route.visits.size()) - 1));
            const double price = 0.5 * static_cast<double>(random.below(20));
            if (!route.empty()) {
                check_places(tables, route, task, place, price);
            }
            TripPlace where;
            where.place = place;
            where.via_before = tables.has_facilities() && random.below(3) == 0;
            where.via_after = route.visits[idx(place)].via;
            route.insert(tables, task, where);
            route.refresh(tables);
            check_totals(tables, route);
            check_changes(tables, route, n - 1);
            check_reordering(tables, route, random);
            if (tables.has_facilities()) {
                check_mending(tables, route, place, price);
            }
        }
    }
}

// ---- searches ----

// Throws unless a plan keeps all rules; returns its cost.
int64_t check_fleet_plan(const FleetTables &tables, const Plan &plan) {
    const FleetRules &rules = tables.rules;
    std::vector<int32_t> times(idx(tables.num_tasks()), 0);
    std::vector<int32_t> used(rules.vehicles.size(), 0);
    std::vector<uint8_t> taken(rules.numbered_slots.size(), 0);
    int64_t total = 0;
    for (size_t number = 0; number < plan.num_routes(); ++number) {
        const int32_t type = plan.vehicles[number];
        const int32_t slot = plan.slots[number];
        const VehicleType &vehicle = tables.vehicle(type);
        const Network &network = tables.driving(type).tasks().network();
        ++used[idx(type)];
        if (slot >= 0) {
            ARCFLEET_EQUAL(int{taken[idx(slot)]++}, 0);
        }
        ARCFLEET_EQUAL(plan.route(number).empty(), false);
        int64_t cost = 0;
        int64_t load = 0;
        int32_t at = vehicle.start;
        for (size_t i = 0; i < plan.route(number).size(); ++i) {
            const Arc &arc = network.arc(plan.route(number)[i]);
            const bool via = plan.vias[idx(plan.route_starts[number]) + i] != 0;
            ARCFLEET_EQUAL(via && i == 0, false);
            load = (via ? 0 : load) + arc.demand;
            ARCFLEET_EQUAL(load <= vehicle.capacity, true);
            cost += drive(tables, type, at, arc.start, via) + arc.service_cost;
            at = arc.end;
            ++times[idx(arc.task)];
            ARCFLEET_EQUAL(tables.may_serve(type, arc.task), true);
            ARCFLEET_EQUAL(
                rules.pin[idx(arc.task)] < 0 || rules.pin[idx(arc.task)] == slot, true);
        }
        cost += drive_home(tables, type, at);
        ARCFLEET_EQUAL(cost <= vehicle.max_route_cost, true);
        total += cost + vehicle.fixed_cost;
    }
    for (size_t type = 0; type < used.size(); ++type) {
        const int32_t count = rules.vehicles[type].count;
        ARCFLEET_EQUAL(used[type] <= count, true);
        ARCFLEET_EQUAL(rules.exact_fleet && used[type] != count, false);
    }
    for (size_t task = 0; task < times.size(); ++task) {
        ARCFLEET_EQUAL(times[task], rules.locked[task] == 0 ? 1 : 0);
    }
    return total;
}

// What a chain keeps up to date from step to step equals what is computed from scratch.
void check_chain(const FleetTables &tables, uint64_t seed) {
    FleetChain chain(tables, seed, 0);
    chain.start(scanned_plan(tables, seed));
    ARCFLEET_EQUAL(chain.current().notes_hold(), true);
    Objective best{INT32_MAX, 0.0};
    if (chain.best_fits_fleet()) {
        best = chain.best_objective();
    }
    for (int step = 0; step < 120; ++step) {
        if (step == 60 && chain.best_fits_fleet()) {
            chain.continue_from(chain.best_plan());
        }
        const bool improved = chain.step(step % 3 == 0 ? 20.0 : 1.0);
        ARCFLEET_EQUAL(chain.current().notes_hold(), true);
        ARCFLEET_EQUAL(chain.cost_holds(), true);
        for (int32_t slot = 0; slot < chain.current().num_slots(); ++slot) {
            const TripRoute &route = chain.current().route(slot);
            if (!route.empty()) {
                check_same(route, refreshed(tables, route));
            }
        }
        if (improved) {
            ARCFLEET_EQUAL(chain.best_objective() < best, true);
            best = chain.best_objective();
            ARCFLEET_EQUAL(check_fleet_plan(tables, chain.best_plan()),
                           chain.best_cost());
        }
    }
}

// Slices of any length give the same search.
void check_slices(const RandomFleet &fleet, uint64_t seed, int chains) {
    const Horizon horizon{600, 0.0};
    FleetSearch whole(fleet.pointers(), fleet.rules, kSettings, seed, chains, horizon,
                      Plan{});
    whole.run(600, kForever, -1, chains);
    FleetSearch sliced(fleet.pointers(), fleet.rules, kSettings, seed, chains, horizon,
                       Plan{});
    for (const int64_t slice : {1, 99, 0, 250, 7, 243}) {
        sliced.run(slice, kForever, -1, 1);
    }
    ARCFLEET_EQUAL(whole.has_plan(), sliced.has_plan());
    if (whole.has_plan()) {
        ARCFLEET_EQUAL(whole.best_cost(), sliced.best_cost());
        ARCFLEET_EQUAL(whole.best_plan().arcs == sliced.best_plan().arcs, true);
    }
}

// Costs at the limit of what is computed with are searched; beyond it they are refused.
void check_range() {
    for (const int32_t cost : {(kMostCost - 1) / 12, kMostCost / 12 + 1}) {
        Random random(12, 0);
        RandomStreets streets(random);
        streets.num_nodes = 5;
        streets.tail = {0, 1, 2, 3};
        streets.head = {1, 2, 3, 4};
        streets.cost = streets.reverse_cost = {cost, 0, 0, 0};
        streets.required = {0, 1, 1, 1};
        streets.demand = {0, 1, 1, 1};
        streets.service_cost =
            streets.reverse_service_cost = {0, 2 * cost, 2 * cost, 2 * cost};
        streets.vehicle = {0, 2, 0, 0};
        streets.turn_in = streets.turn_out = streets.turn_penalty = {};
        streets.u_turns = UTurns::allowed;
        streets.u_turn_penalty = 0;
        const auto network = streets.network();
        FleetRules rules;
        rules.vehicles = {{0, 0, 2, kAny, 0, kAny, 0}};
        rules.home = rules.pin = {-1, -1, -1};
        rules.locked = {0, 0, 0};
        rules.may_serve = {1, 1, 1};
        bool refused = false;
        try {
            const FleetTables tables({network.get()}, rules, kSettings);
            check_chain(tables, 1);
        } catch (const std::overflow_error &) {
            refused = true;
        }
        ARCFLEET_EQUAL(refused, cost > kMostCost / 12);
    }
}

} // namespace

void check_fleet() {
    check_range();
    std::vector<uint64_t> rounds(150);
    std::iota(rounds.begin(), rounds.end(), 0);
    // A plan has more routes than the best when that comes to have one less; tasks
    // between which there is no way at all.
    rounds.insert(rounds.end(), {926, 1404});
    for (const uint64_t round : rounds) {
        Random random(11, round);
        RandomFleet fleet(random, round);
        if (fleet.networks[0]->num_tasks() == 0) {
            continue;
        }
        const FleetTables tables(fleet.pointers(), fleet.rules, kSettings);
        for (int32_t task = 0; task < tables.num_tasks(); ++task) {
            ARCFLEET_EQUAL(tables.nearest_to(task)[0], task);
        }
        check_routes(tables, random);
        check_chain(tables, round);
        check_slices(fleet, round, 1 + static_cast<int>(round % 3));
    }
}

} // namespace arcfleet
