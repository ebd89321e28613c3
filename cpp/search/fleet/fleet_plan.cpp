#include "search/fleet/fleet_plan.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace arcfleet {

namespace {

constexpr int32_t kOut = -1;
// Below any demand, and above any.
constexpr int32_t kNoRoom = -1;
constexpr int32_t kAnyRoom = std::numeric_limits<int32_t>::max();

double square(int32_t cost) {
    return static_cast<double>(cost) * static_cast<double>(cost);
}

} // namespace

FleetPlan::FleetPlan(const FleetTables &tables)
    : tables_(tables),
      tracks_shape_(tables.rules.change_price > 0 || tables.rules.compactness > 0),
      numbered_(static_cast<int32_t>(tables.rules.numbered_slots.size())),
      spots_(idx(tables.num_tasks())), slot_of_(idx(tables.num_tasks()), kOut),
      routes_of_(tables.rules.vehicles.size(), 0) {
    for (const int32_t type : tables.rules.numbered_slots) {
        add_slot(type);
    }
    for (int32_t task = 0; task < tables.num_tasks(); ++task) {
        const int32_t locked = tables.rules.locked[idx(task)];
        if (locked > 0) {
            slot_of_[idx(task)] = kOut - locked;
        }
    }
    for (const int32_t cost : tables.rules.locked_costs) {
        locked_.add(cost);
    }
    // Mates that are both locked count for nothing, since nothing changes them.
    open_empty_slots();
}

void FleetPlan::add_slot(int32_t type) {
    routes_.emplace_back(tables_, type);
    is_touched_.push_back(0);
    const size_t padded = padded_slots(routes_.size());
    numbers_.most_room.resize(padded, kNoRoom);
    numbers_.least_room.resize(padded, kAnyRoom);
    numbers_.least_between.resize(padded, kAnyRoom);
    note_slot(num_slots() - 1);
}

void FleetPlan::open_empty_slots() {
    std::vector<uint8_t> found(tables_.rules.vehicles.size(), 0);
    for (int32_t slot = 0; slot < num_slots(); ++slot) {
        const TripRoute &here = route(slot);
        // A numbered slot is a vehicle of its own, whether empty or not.
        if (!here.empty() || slot < numbered_) {
            note_slot(slot);
            continue;
        }
        note_slot(slot, found[idx(here.type)] == 0);
        found[idx(here.type)] = 1;
    }
    for (int32_t type = 0; type < tables_.num_types(); ++type) {
        if (found[idx(type)] == 0) {
            add_slot(type);
        }
    }
    opened_or_closed_ = false;
}

void FleetPlan::load(const Plan &plan) {
    for (int32_t slot = 0; slot < num_slots(); ++slot) {
        if (!route(slot).empty()) {
            forget(slot);
            for (size_t i = 1; i + 1 < routes_[idx(slot)].visits.size(); ++i) {
                take(routes_[idx(slot)].visits[i].task);
            }
            routes_[idx(slot)].clear();
            note_slot(slot);
        }
    }
    sums_.squares = 0.0; // what rounding left of plans before
    const bool has_slots = plan.slots.size() == plan.num_routes();
    int32_t next = numbered_;
    for (size_t number = 0; number < plan.num_routes(); ++number) {
        const int32_t type = plan.vehicles.empty() ? 0 : plan.vehicles[number];
        int32_t slot = has_slots ? plan.slots[number] : -1;
        if (slot < 0 || slot >= numbered_) {
            while (next < num_slots() && route(next).type != type) {
                ++next;
            }
            if (next == num_slots()) {
                add_slot(type);
            }
            slot = next++;
        }
        if (route(slot).empty()) {
            retype(slot, type);
        }
        // Several routes of one number become one.
        forget(slot);
        TripRoute &here = routes_[idx(slot)];
        const std::span<const int32_t> arcs = plan.route(number);
        for (size_t i = 0; i < arcs.size(); ++i) {
            const int32_t task =
                tables_.driving(type).tasks().network().arc(arcs[i]).task;
            TripPlace place;
            place.place = static_cast<int32_t>(here.visits.size()) - 1;
            const size_t position = idx(plan.route_starts[number]) + i;
            place.via_before = !plan.vias.empty() && plan.vias[position] != 0;
            here.insert(tables_, task, place);
        }
        renew(slot);
    }
    open_empty_slots();
}

Plan FleetPlan::to_plan() const {
    Plan plan;
    plan.route_starts.push_back(0);
    for (int32_t slot = 0; slot < num_slots(); ++slot) {
        if (!route(slot).empty()) {
            route(slot).append_arcs(tables_, plan.arcs, plan.vias);
            plan.route_starts.push_back(static_cast<int32_t>(plan.arcs.size()));
            plan.vehicles.push_back(route(slot).type);
            plan.slots.push_back(slot < numbered_ ? slot : -1);
        }
    }
    return plan;
}

Objective FleetPlan::objective() const {
    const FleetRules &rules = tables_.rules;
    auto price = static_cast<double>(cost() + rules.change_price * sums_.moved +
                                     rules.compactness * sums_.interleaved);
    if (rules.balance > 0.0) {
        price += rules.balance * unevenness();
    }
    return {rules.fewest_routes ? sums_.routes : 0, price};
}

bool FleetPlan::is_sound() const {
    size_t served = 0;
    for (const TripRoute &route : routes_) {
        served += idx(route.num_tasks());
        for (size_t i = 1; !tables_.all_may_serve && i + 1 < route.visits.size(); ++i) {
            if (!tables_.may_serve(route.type, route.visits[i].task)) {
                return false;
            }
        }
    }
    return served == tables_.planned.size();
}

int64_t FleetPlan::fleet_faults() const {
    int64_t faults = 0;
    for (int32_t type = 0; type < tables_.num_types(); ++type) {
        faults += faults_with(type, routes_of(type));
    }
    return faults;
}

int64_t FleetPlan::faults_of(int32_t type, int32_t more) const {
    return faults_with(type, routes_of(type) + more) -
           faults_with(type, routes_of(type));
}

int64_t FleetPlan::faults_with(int32_t type, int32_t routes) const {
    const int64_t beyond = int64_t{routes} - tables_.vehicle(type).count;
    return std::max(beyond, tables_.rules.exact_fleet ? -beyond : 0);
}

// The sum of (c - m)^2 / m over k costs c with mean m and sum s is k / s times the sum
// of c^2, less s.
double FleetPlan::unevenness(const RouteChange &change) const {
    const auto sum =
        static_cast<double>(sums_.route_costs + locked_.cost + change.cost);
    const double squares = sums_.squares + locked_.squares + change.squares;
    const int32_t routes = sums_.routes + locked_.routes + change.routes;
    return sum > 0.0 ? std::max(0.0, routes * squares / sum - sum) : 0.0;
}

int64_t FleetPlan::mates_apart(int32_t task, int32_t slot) const {
    int64_t apart = 0;
    const auto look = [&](int32_t other) {
        const int32_t there = slot_of_[idx(other)];
        apart += there != kOut && there != slot;
    };
    if (tables_.mate(task) >= 0) {
        look(tables_.mate(task));
    }
    for (int32_t i = tables_.mate_of_at[idx(task)];
         i < tables_.mate_of_at[idx(task) + 1]; ++i) {
        look(tables_.mate_of[idx(i)]);
    }
    return apart;
}

void FleetPlan::put(int32_t task, int32_t slot) {
    if (tracks_shape_) {
        sums_.moved += moves_in(task, slot);
        sums_.interleaved += mates_apart(task, slot);
    }
    slot_of_[idx(task)] = slot;
}

void FleetPlan::take(int32_t task) {
    const int32_t slot = slot_of_[idx(task)];
    slot_of_[idx(task)] = kOut;
    if (tracks_shape_) {
        sums_.moved -= moves_in(task, slot);
        sums_.interleaved -= mates_apart(task, slot);
    }
}

FleetSums FleetPlan::shape_change(const std::vector<Placement> &placements) {
    const FleetSums before = sums_;
    std::vector<int32_t> old;
    for (const Placement &each : placements) {
        old.push_back(slot_of_[idx(each.task)]);
        take(each.task);
    }
    for (const Placement &each : placements) {
        put(each.task, each.slot);
    }
    FleetSums change;
    change.moved = sums_.moved - before.moved;
    change.interleaved = sums_.interleaved - before.interleaved;
    for (size_t i = 0; i < placements.size(); ++i) {
        slot_of_[idx(placements[i].task)] = old[i];
    }
    sums_ = before;
    return change;
}

void FleetPlan::begin() {
    touched_.clear();
    num_saved_ = 0;
    saved_sums_ = sums_;
    saved_routes_of_ = routes_of_;
    under_way_ = true;
}

void FleetPlan::touch(int32_t slot) {
    if (!under_way_ || is_touched_[idx(slot)] != 0) {
        return;
    }
    is_touched_[idx(slot)] = 1;
    touched_.push_back(slot);
    if (num_saved_ == saved_.size()) {
        saved_.push_back(routes_[idx(slot)]);
    } else {
        saved_[num_saved_] = routes_[idx(slot)];
    }
    ++num_saved_;
}

void FleetPlan::keep() {
    for (const int32_t slot : touched_) {
        is_touched_[idx(slot)] = 0;
        note_spots(slot);
    }
    under_way_ = false;
    if (opened_or_closed_) {
        open_empty_slots();
    }
}

void FleetPlan::undo() {
    for (size_t i = 0; i < num_saved_; ++i) {
        const int32_t slot = touched_[i];
        std::swap(routes_[idx(slot)], saved_[i]);
        note_slot(slot);
        is_touched_[idx(slot)] = 0;
    }
    for (size_t i = 0; i < num_saved_; ++i) {
        const std::vector<TripVisit> &visits = route(touched_[i]).visits;
        for (size_t place = 1; place + 1 < visits.size(); ++place) {
            slot_of_[idx(visits[place].task)] = touched_[i];
        }
    }
    sums_ = saved_sums_;
    routes_of_ = saved_routes_of_;
    under_way_ = false;
    if (opened_or_closed_) {
        open_empty_slots();
    }
}

void FleetPlan::remove_marked(int32_t slot, const std::vector<uint8_t> &marked,
                              int32_t first, int32_t last) {
    touch(slot);
    forget(slot);
    TripRoute &here = routes_[idx(slot)];
    for (int32_t place = first; place <= last; ++place) {
        const int32_t task = here.visits[idx(place)].task;
        if (marked[idx(task)] != 0) {
            take(task);
        }
    }
    const auto changed = here.erase_marked(tables_, marked, first, last);
    if (here.empty()) {
        opened_or_closed_ = true;
    } else {
        here.refresh(tables_, changed.first, changed.second);
    }
    remember(slot);
}

void FleetPlan::insert(int32_t slot, int32_t task, const TripPlace &place) {
    touch(slot);
    forget(slot);
    TripRoute &here = routes_[idx(slot)];
    const bool opens = here.empty();
    here.insert(tables_, task, place);
    here.refresh(tables_, place.place, place.place);
    remember(slot);
    put(task, slot);
    if (opens) {
        open_empty_slots();
        opened_or_closed_ = true; // it may be undone
    }
}

bool FleetPlan::mend_visits(int32_t slot, int32_t place, double price) {
    touch(slot);
    forget(slot);
    const bool mended = routes_[idx(slot)].mend_visits(tables_, place, price);
    remember(slot);
    return mended;
}

void FleetPlan::reorder(int32_t slot, const WithinRoute &move) {
    forget(slot);
    TripRoute &route = routes_[idx(slot)];
    route.reorder(tables_, move);
    for (int32_t place = move.first(); place < move.last(); ++place) {
        spots_[idx(route.visits[idx(place)].task)] = {slot, place};
    }
    remember(slot);
}

void FleetPlan::retype(int32_t slot, int32_t type) {
    if (route(slot).type != type) {
        touch(slot);
        routes_[idx(slot)] = TripRoute(tables_, type);
        note_slot(slot);
    }
}

void FleetPlan::replace(int32_t slot, TripRoute route) {
    forget(slot);
    routes_[idx(slot)] = std::move(route);
    renew(slot);
}

void FleetPlan::forget(int32_t slot) {
    const TripRoute &here = route(slot);
    if (here.empty()) {
        return;
    }
    sums_.route_costs -= here.cost;
    sums_.fixed_costs -= tables_.vehicle(here.type).fixed_cost;
    sums_.excess -= excesses(tables_.vehicle(here.type), here.totals());
    sums_.squares -= square(here.cost);
    --sums_.routes;
    --routes_of_[idx(here.type)];
}

void FleetPlan::note_slot(int32_t slot, bool is_open) {
    const TripRoute &here = route(slot);
    const size_t at = idx(slot);
    if (here.empty()) {
        numbers_.most_room[at] = is_open ? kAnyRoom : kNoRoom;
        numbers_.least_room[at] = kAnyRoom;
        numbers_.least_between[at] = kAnyRoom;
        return;
    }
    const int32_t capacity = tables_.vehicle(here.type).capacity;
    numbers_.most_room[at] = capacity - here.limits.least_load;
    numbers_.least_room[at] = capacity - here.limits.most_load;
    numbers_.least_between[at] = here.limits.least_between;
}

void FleetPlan::remember(int32_t slot) {
    note_slot(slot);
    const TripRoute &here = route(slot);
    if (here.empty()) {
        return;
    }
    sums_.route_costs += here.cost;
    sums_.fixed_costs += tables_.vehicle(here.type).fixed_cost;
    sums_.excess += excesses(tables_.vehicle(here.type), here.totals());
    sums_.squares += square(here.cost);
    ++sums_.routes;
    ++routes_of_[idx(here.type)];
}

// Computes everything of a route from its visits. Both routes of a change are first
// taken out of the sums.
void FleetPlan::renew(int32_t slot) {
    TripRoute &here = routes_[idx(slot)];
    if (here.empty()) {
        here.clear();
        note_slot(slot);
        return;
    }
    here.tidy(tables_);
    here.refresh(tables_);
    note_spots(slot);
    for (size_t i = 1; i + 1 < here.visits.size(); ++i) {
        const int32_t task = here.visits[i].task;
        if (slot_of_[idx(task)] != slot) {
            if (slot_of_[idx(task)] != kOut) {
                take(task);
            }
            put(task, slot);
        }
    }
    remember(slot);
}

void FleetPlan::note_spots(int32_t slot) {
    const std::vector<TripVisit> &visits = route(slot).visits;
    for (size_t place = 1; place + 1 < visits.size(); ++place) {
        spots_[idx(visits[place].task)] = {slot, static_cast<int32_t>(place)};
    }
}

bool FleetPlan::notes_hold() const {
    FleetSums sums;
    std::vector<int32_t> counts(routes_of_.size(), 0);
    for (int32_t slot = 0; slot < num_slots(); ++slot) {
        TripRoute fresh = route(slot);
        const bool is_empty = numbers_.least_room[idx(slot)] == kAnyRoom;
        if (is_empty != fresh.empty()) {
            return false;
        }
        if (fresh.empty()) {
            continue;
        }
        fresh.refresh(tables_);
        if (fresh.cost != route(slot).cost || fresh.excess != route(slot).excess ||
            fresh.trip_ends != route(slot).trip_ends) {
            return false;
        }
        sums.route_costs += fresh.cost;
        sums.fixed_costs += tables_.vehicle(fresh.type).fixed_cost;
        ++counts[idx(fresh.type)];
        sums.excess += excesses(tables_.vehicle(fresh.type), fresh.totals());
        ++sums.routes;
        for (size_t place = 1; place + 1 < fresh.visits.size(); ++place) {
            const int32_t task = fresh.visits[place].task;
            const Spot where = spot(task);
            if (where.slot != slot || idx(where.place) != place ||
                slot_of_[idx(task)] != slot) {
                return false;
            }
            if (tracks_shape_) {
                sums.moved += moves_in(task, slot);
            }
        }
    }
    for (int32_t task = 0; task < tables_.num_tasks() && tracks_shape_; ++task) {
        const int32_t mate = tables_.mate(task);
        if (mate >= 0) {
            const int32_t here = slot_of_[idx(task)];
            const int32_t there = slot_of_[idx(mate)];
            sums.interleaved += here != there && (here >= 0 || there >= 0) ? 1 : 0;
        }
    }
    return counts == routes_of_ && sums.route_costs == sums_.route_costs &&
           sums.fixed_costs == sums_.fixed_costs && sums.excess == sums_.excess &&
           sums.routes == sums_.routes && sums.moved == sums_.moved &&
           sums.interleaved == sums_.interleaved;
}

} // namespace arcfleet
