#include "search/fleet/trip_route.h"

#include "search/insertion_lanes.h"

#include <cstring>
#include <limits>

namespace arcfleet {

namespace {

int32_t capped(int32_t cost) { return std::min(cost, kMostCost); }

// What a part of a route costs up to, or from, both ends of its outermost task.
struct Labels {
    int32_t at_u;
    int32_t at_v;
};

// Drives from a task that is served to the start of another, and serves that.
inline Labels serve_after(const DrivingTable &table, const TaskEnds &ends, bool via,
                          int32_t u, int32_t v, Labels done) {
    const int32_t *from_u = table.from(u, via);
    const int32_t *from_v = table.from(v, via);
    const int32_t at_u =
        std::min(done.at_u + from_u[ends.u], done.at_v + from_v[ends.u]);
    const int32_t at_v =
        std::min(done.at_u + from_u[ends.v], done.at_v + from_v[ends.v]);
    return {capped(capped(at_v) + ends.reverse_cost),
            capped(capped(at_u) + ends.forward_cost)};
}

// The other way round: serves a task, then drives to the start of the next.
inline Labels serve_before(const DrivingTable &table, const TaskEnds &ends, bool via,
                           int32_t u, int32_t v, Labels onward) {
    const int32_t *from_u = table.from(ends.u, via);
    const int32_t *from_v = table.from(ends.v, via);
    const int32_t home_u = std::min(from_u[u] + onward.at_u, from_u[v] + onward.at_v);
    const int32_t home_v = std::min(from_v[u] + onward.at_u, from_v[v] + onward.at_v);
    return {capped(capped(home_v) + ends.forward_cost),
            capped(capped(home_u) + ends.reverse_cost)};
}

inline int32_t join(const DrivingTable &table, bool via, int32_t left_u, int32_t left_v,
                    Labels left, int32_t right_u, int32_t right_v, Labels right) {
    const int32_t *from_u = table.from(left_u, via);
    const int32_t *from_v = table.from(left_v, via);
    const int32_t at_u =
        std::min(left.at_u + from_u[right_u], left.at_v + from_v[right_u]);
    const int32_t at_v =
        std::min(left.at_u + from_u[right_v], left.at_v + from_v[right_v]);
    return capped(std::min(capped(at_u) + right.at_u, capped(at_v) + right.at_v));
}

// Serving a task between two visits, or what else stands there.
class Between {
  public:
    Between(const DrivingTable &table, const TaskEnds &ends)
        : table_(table), ends_(ends) {}

    // The task served, at u and at v, after a visit.
    Labels reach(const TripVisit &left, bool via) const {
        const int32_t *to_u = table_.to(ends_.u, via);
        const int32_t *to_v = table_.to(ends_.v, via);
        const int32_t at_u =
            std::min(left.done_at_u + to_u[left.u], left.done_at_v + to_u[left.v]);
        const int32_t at_v =
            std::min(left.done_at_u + to_v[left.u], left.done_at_v + to_v[left.v]);
        return {capped(at_v) + ends_.reverse_cost, capped(at_u) + ends_.forward_cost};
    }

    int32_t cost(const TripVisit &left, bool via_before, const TripVisit &right,
                 bool via_after) const {
        const Labels done = reach(left, via_before);
        const int32_t *from_u = table_.from(ends_.u, via_after);
        const int32_t *from_v = table_.from(ends_.v, via_after);
        const int32_t home_u =
            std::min(from_u[right.u] + right.from_u, from_u[right.v] + right.from_v);
        const int32_t home_v =
            std::min(from_v[right.u] + right.from_u, from_v[right.v] + right.from_v);
        return capped(std::min(capped(done.at_u) + capped(home_u),
                               capped(done.at_v) + capped(home_v)));
    }

  private:
    const DrivingTable &table_;
    const TaskEnds &ends_;
};

// What a trip carries too much.
int32_t over(int64_t load, int32_t capacity) {
    return static_cast<int32_t>(std::max<int64_t>(0, load - capacity));
}

// Load above capacity of a route in which so much is served between two parts.
int32_t excess_with(int32_t capacity, const TripPart &head, bool via_before,
                    int64_t demand, bool via_after, const TripPart &tail) {
    int64_t excess = int64_t{head.excess} + tail.excess;
    int64_t load = head.load;
    if (via_before) {
        excess += over(load, capacity);
        load = 0;
    }
    load += demand;
    if (via_after) {
        excess += over(load, capacity);
        load = 0;
    }
    excess += over(load + tail.load, capacity);
    return static_cast<int32_t>(excess);
}

// Tells places apart: a visit in front of which the task is put, or the last of a trip
// and which end of the trip it is put to. Of places that cost the same the least number
// is taken.
constexpr int32_t kInside = 0;
constexpr int32_t kFirstOfTrip = 1;
constexpr int32_t kLastOfTrip = 2;
constexpr int32_t kPlaceKinds = 4;

int32_t place_number(int32_t visit, int32_t kind) { return visit * kPlaceKinds + kind; }

// Trips first .. last - 1 that carry at most so much.
struct SomeTrips {
    size_t first;
    size_t last;
    int32_t most_load;
};

#ifdef ARCFLEET_LANES
// As nearest_ends, by way of a facility behind a trip, whose last visit is given.
[[gnu::always_inline]] inline Lanes
nearest_by_facility(const TripTask &task, const TripStop *stop, const TripVisit *last) {
    static_assert(sizeof(TripStop) == 8 && sizeof(FacilityEnds) == 16);
    using Halves = int64_t __attribute__((vector_size(16)));
    const auto by = [&](size_t i) {
        Lanes ends;
        std::memcpy(&ends, task.facilities + i, sizeof ends);
        int64_t both = 0;
        std::memcpy(&both, stop + i, sizeof both);
        const auto labels = reinterpret_cast<Lanes>(Halves{both, 0});
        return __builtin_shufflevector(labels, labels, 0, 0, 1, 1) + ends;
    };
    Lanes nearest = by(0);
    for (size_t i = 1; i < task.num_facilities; ++i) {
        const Lanes other = by(i);
        nearest = other < nearest ? other : nearest;
    }
    Lanes left;
    Lanes right;
    std::memcpy(&left, &last[0].done_at_u, sizeof left);
    std::memcpy(&right, &last[1].done_at_u, sizeof right);
    const Lanes at_u = __builtin_shufflevector(left, right, 0, 0, 6, 6);
    const Lanes at_v = __builtin_shufflevector(left, right, 1, 1, 7, 7);
    nearest += at_u < at_v ? at_u : at_v;
    // Sums with it must stay in range.
    const Lanes most{kMostCost, kMostCost, kMostCost, kMostCost};
    return nearest < most ? nearest : most;
}

template <typename Distances>
[[gnu::always_inline]] inline int64_t
scan_trips(const TripTask &task, const Distances &distances, const TripRoute &route,
           const SomeTrips &trips) {
    const Lanes service{task.ends.forward_cost, task.ends.reverse_cost, 0, 0};
    const Lanes none{};
    const TripVisit *const visits = route.visits.data();
    const TripNote *const notes = route.notes.data();
    const TripStop *const stops = route.stops.data();
    const int32_t *const trip_ends = route.trip_ends.data();
    const size_t straight_end = task.ends_via ? SIZE_MAX : route.notes.size() - 1;
    LeastLanes least;
    for (size_t trip = trips.first; trip < trips.last; ++trip) {
        if (notes[trip].load > trips.most_load) {
            continue;
        }
        int32_t place = 1;
        const int32_t behind = trip_ends[trip];
        Lanes done{task.done_at_v, task.done_at_u, 0, 0};
        Lanes first{INT32_MAX, INT32_MAX, 0, 0};
        if (trip > 0) {
            place = trip_ends[trip - 1];
            const TripVisit *visit = visits + place;
            const Lanes nearest = nearest_ends(distances, *visit);
            first = nearest_by_facility(task, stops + (trip - 1) * task.num_facilities,
                                        visit - 1) +
                    service + home_lanes(nearest);
            done = nearest + service;
            ++place;
        }
        Lanes number = none + place_number(place, kInside);
        const TripVisit *const end = visits + behind;
        for (const TripVisit *visit = visits + place; visit < end; ++visit) {
            const Lanes nearest = nearest_ends(distances, *visit);
            least.offer(done + home_lanes(nearest), number);
            done = nearest + service;
            number += kPlaceKinds;
        }
        if (trip != straight_end) {
            number -= kPlaceKinds;
            least.offer(first, number + kFirstOfTrip);
            const Lanes nearest =
                nearest_by_facility(task, stops + trip * task.num_facilities, end - 1);
            least.offer(done + home_lanes(nearest), number + kLastOfTrip);
        } else {
            least.offer(done + Lanes{task.from_v, task.from_u, 0, 0}, number);
            least.offer(first, number + kFirstOfTrip);
        }
    }
    return least.packed();
}

ARCFLEET_CLONES int64_t scan_symmetric(const TripTask &task,
                                       const EndDistances *distances,
                                       const TripRoute &route, const SomeTrips &trips) {
    return scan_trips(task, SymmetricLanes{distances}, route, trips);
}

ARCFLEET_CLONES int64_t scan_long(const TripTask &task, const LongPair *pairs,
                                  const TripRoute &route, const SomeTrips &trips) {
    return scan_trips(task, LongLanes{pairs}, route, trips);
}

ARCFLEET_CLONES int64_t scan_short(const TripTask &task, const ShortPair *pairs,
                                   int32_t closed, const TripRoute &route,
                                   const SomeTrips &trips) {
    return scan_trips(task, ExactShortLanes(pairs, closed), route, trips);
}
#endif

// The least cost over the places of some trips, packed with its number; not in front of
// visits[but_for].
int64_t scan_by_place(const DrivingTable &table, const TripTask &task,
                      const TripRoute &route, const SomeTrips &trips, int32_t but_for) {
    const Between between(table, task.ends);
    const TripVisit *const visits = route.visits.data();
    int64_t least = int64_t{kMostCost} << 32;
    for (size_t trip = trips.first; trip < trips.last; ++trip) {
        if (route.notes[trip].load > trips.most_load) {
            continue;
        }
        const int32_t first = route.trip_start(static_cast<int32_t>(trip));
        const int32_t behind = route.trip_ends[trip];
        const auto offer = [&](int32_t place, bool via_before, bool via_after,
                               int32_t number) {
            if (place != but_for) {
                const int64_t cost = between.cost(visits[place - 1], via_before,
                                                  visits[place], via_after);
                least = std::min(least, cost << 32 | number);
            }
        };
        for (int32_t place = trip == 0 ? 1 : first + 1; place < behind; ++place) {
            offer(place, false, false, place_number(place, kInside));
        }
        int32_t last = behind - 1;
        if (trip + 1 == route.notes.size() && !task.ends_via) {
            offer(behind, false, false, place_number(behind, kInside));
            last = behind;
        } else {
            offer(behind, false, true, place_number(last, kLastOfTrip));
        }
        if (trip > 0) {
            offer(first, true, false, place_number(last, kFirstOfTrip));
        }
    }
    return least;
}

// The place that a scan found, in a trip that then carries so much more too much.
TripPlace place_at(const TripRoute &route, int64_t packed, int32_t more) {
    const auto number = static_cast<int32_t>(packed & 0xFFFFFFFF);
    const int32_t visit = number / kPlaceKinds;
    TripPlace place{static_cast<int32_t>(packed >> 32), route.excess + more, visit,
                    number % kPlaceKinds == kFirstOfTrip,
                    number % kPlaceKinds == kLastOfTrip};
    if (place.via_before) {
        place.place = route.trip_start(route.visits[idx(visit)].trip);
    }
    place.place += place.via_after ? 1 : 0;
    return place;
}

} // namespace

TripRoute::TripRoute(const FleetTables &tables, int32_t vehicle_type)
    : visits(2), type(vehicle_type), capacity_(tables.vehicle(vehicle_type).capacity) {
    const VehicleType &vehicle = tables.vehicle(type);
    visits[0] = {-1, vehicle.start, vehicle.start, 0, 0, 0, 0, 0, 0, 0, false};
    visits[1] = {-1, vehicle.end, vehicle.end, 0, 0, 0, 0, 0, 0, 0, false};
}

void TripRoute::clear() {
    visits[1] = visits.back();
    visits.resize(2);
    visits[1].via = false;
    visits[1].done_at_u = visits[1].done_at_v = 0;
    visits[1].trip = visits[1].load = 0;
    cost = 0;
    excess = 0;
    trip_ends.clear();
    notes.clear();
    stops.clear();
    limits = {};
}

void TripRoute::tidy(const FleetTables &tables) {
    visits[1].via = false;
    if (!empty()) {
        visits.back().via = tables.rules.ends_at_facility();
    }
}

void TripRoute::insert(const FleetTables &tables, int32_t task,
                       const TripPlace &where) {
    const TaskEnds &ends = tables.ends(task);
    const auto at = visits.begin() + where.place;
    at->via = where.via_after;
    visits.insert(at, TripVisit{task, ends.u, ends.v, ends.demand, 0, 0, 0, 0, 0, 0,
                                where.via_before});
    tidy(tables);
}

void TripRoute::erase(int32_t place) {
    visits[idx(place) + 1].via = visits[idx(place) + 1].via || visits[idx(place)].via;
    visits.erase(visits.begin() + place);
    visits[1].via = false;
}

std::pair<int32_t, int32_t> TripRoute::erase_marked(const FleetTables &tables,
                                                    const std::vector<uint8_t> &marked,
                                                    int32_t from, int32_t to) {
    TripVisit *const all = visits.data();
    int32_t kept = from;
    bool via = false;
    int32_t first = 0; // behind the first gap
    int32_t last = 0;  // in front of the last
    for (int32_t i = from; i <= to; ++i) {
        via = via || all[i].via;
        if (marked[idx(all[i].task)] != 0) {
            first = first == 0 ? kept : first;
            last = kept - 1;
            continue;
        }
        all[kept] = all[i];
        all[kept].via = via;
        via = false;
        ++kept;
    }
    all[to + 1].via = all[to + 1].via || via;
    visits.erase(visits.begin() + kept, visits.begin() + to + 1);
    if (empty()) {
        clear();
    } else {
        tidy(tables);
    }
    return {first, last};
}

namespace {

// Whether labels differ from what they were by the same number, so that all behind them
// do: labels are sums and the lesser of sums. Those of closed directions stay.
bool is_shift(Labels now, Labels before, int32_t &by) {
    const auto open = [](int32_t label) { return label < kMostCost; };
    if (open(now.at_u) != open(before.at_u) || open(now.at_v) != open(before.at_v)) {
        return false;
    }
    by = open(now.at_u) ? now.at_u - before.at_u : now.at_v - before.at_v;
    return !open(now.at_u) || !open(now.at_v) || now.at_v - before.at_v == by;
}

int32_t shifted(int32_t label, int32_t by) {
    return label < kMostCost ? capped(label + by) : label;
}

// Shifts the labels up to a number of visits, or those from them on.
ARCFLEET_CLONES void shift_labels(TripVisit *first, const TripVisit *end, int32_t done,
                                  int32_t from) {
#ifdef ARCFLEET_LANES
    const Lanes by{done, done, from, from};
    const Lanes most{kMostCost, kMostCost, kMostCost, kMostCost};
    for (; first < end; ++first) {
        Lanes labels;
        std::memcpy(&labels, &first->done_at_u, sizeof labels);
        const Lanes sums = labels + by;
        const Lanes moved = sums < most ? sums : most;
        labels = labels < most ? moved : labels;
        std::memcpy(&first->done_at_u, &labels, sizeof labels);
    }
#else
    for (; first < end; ++first) {
        first->done_at_u = shifted(first->done_at_u, done);
        first->done_at_v = shifted(first->done_at_v, done);
        first->from_u = shifted(first->from_u, from);
        first->from_v = shifted(first->from_v, from);
    }
#endif
}

} // namespace

void TripRoute::refresh(const FleetTables &tables, int32_t first, int32_t last) {
    // Where a way that there is not comes in, labels are no more exact.
    const bool may_shift = cost < tables.least_closed_cost;
    const size_t end = refresh_forward(tables, idx(first), idx(last), may_shift);
    const size_t start = refresh_backward(tables, idx(first), idx(last), may_shift);
    number_trips(idx(first), idx(last));
    note_trips(tables, start, end);
}

// Computes what lies between the labels start + 1 .. end - 1; all others were shifted
// by the same number, as was the cost of the route, so that bounds stay.
void TripRoute::note_trips(const FleetTables &tables, size_t start, size_t end) {
    const size_t trips = trip_ends.size();
    size_t first = idx(visits[start].trip);
    size_t last = idx(visits[end].trip) + (is_task(visits[end]) ? 0 : 1);
    if (notes.size() != trips) {
        notes.resize(trips);
        stops.resize(trips * tables.rules.facilities.size());
        first = 0;
        last = trips;
    }
    for (size_t trip = first; trip < last; ++trip) {
        note_stops(tables, trip);
    }
    limits = {INT32_MAX, 0, INT32_MAX};
    excess = 0;
    for (size_t trip = 0; trip < trips; ++trip) {
        TripNote &note = notes[trip];
        note.load = visits[idx(trip_ends[trip]) - 1].load;
        excess += over(note.load, capacity_);
        limits.least_load = std::min(limits.least_load, note.load);
        limits.most_load = std::max(limits.most_load, note.load);
        limits.least_between = std::min(limits.least_between, note.between);
    }
}

int32_t TripRoute::excess_in(size_t first, size_t last) const {
    int32_t sum = 0;
    for (size_t trip = first; trip < last; ++trip) {
        sum += over(notes[trip].load, capacity_);
    }
    return sum;
}

void TripRoute::note_stops(const FleetTables &tables, size_t trip) {
    const size_t facilities = tables.rules.facilities.size();
    if (facilities == 0) {
        return;
    }
    const DrivingTable &table = tables.driving(type);
    const TripVisit &left = visits[idx(trip_ends[trip]) - 1];
    const TripVisit &right = (&left)[1];
    const int32_t *left_u = table.to_facilities(left.u);
    const int32_t *left_v = table.to_facilities(left.v);
    const int32_t *right_u = table.from_facilities(right.u);
    const int32_t *right_v = table.from_facilities(right.v);
    const int32_t done = std::min(left.done_at_u, left.done_at_v);
    const int32_t from = std::min(right.from_u, right.from_v);
    // A closed direction is no way to a facility that cannot be reached from the other.
    const auto open = [](int32_t label) {
        return label < kMostCost ? label : 2 * kMostCost;
    };
    const int32_t done_u = open(left.done_at_u) - done;
    const int32_t done_v = open(left.done_at_v) - done;
    const int32_t from_u = open(right.from_u) - from;
    const int32_t from_v = open(right.from_v) - from;
    TripStop *stop = stops.data() + trip * facilities;
    TripStop least{kMostCost, kMostCost};
    for (size_t i = 0; i < facilities; ++i) {
        stop[i] = {std::min(done_u + left_u[i], done_v + left_v[i]),
                   std::min(from_u + right_u[i], from_v + right_v[i])};
        least.there = std::min(least.there, stop[i].there);
        least.onward = std::min(least.onward, stop[i].onward);
    }
    // Without a visit there the vehicle drives on in any way.
    notes[trip].between =
        done + least.there + from + (right.via ? least.onward : 0) - cost;
}

size_t TripRoute::refresh_forward(const FleetTables &tables, size_t first, size_t last,
                                  bool may_shift) {
    const DrivingTable &table = tables.driving(type);
    TripVisit *here = visits.data() + first;
    Labels done{here[-1].done_at_u, here[-1].done_at_v};
    int32_t u = here[-1].u;
    int32_t v = here[-1].v;
    TripVisit *const end = visits.data() + visits.size() - 1;
    const TripVisit *const settled = may_shift ? visits.data() + last + 1 : end;
    for (; here < end; ++here) {
        done = serve_after(table, tables.ends(here->task), here->via, u, v, done);
        const Labels before{here->done_at_u, here->done_at_v};
        here->done_at_u = done.at_u;
        here->done_at_v = done.at_v;
        int32_t by = 0;
        if (here >= settled && is_shift(done, before, by)) {
            ++here;
            shift_labels(here, end, by, 0);
            cost = shifted(cost, by);
            end->done_at_u = end->done_at_v = cost;
            return static_cast<size_t>(here - visits.data());
        }
        u = here->u;
        v = here->v;
    }
    cost = join(table, end->via, u, v, done, end->u, end->v, {0, 0});
    end->done_at_u = end->done_at_v = cost;
    return visits.size() - 1;
}

size_t TripRoute::refresh_backward(const FleetTables &tables, size_t first, size_t last,
                                   bool may_shift) {
    const DrivingTable &table = tables.driving(type);
    TripVisit *const start = visits.data();
    TripVisit *here = start + last;
    Labels onward{here[1].from_u, here[1].from_v};
    const TripVisit *const settled = may_shift ? start + first - 1 : start;
    for (; here > start; --here) {
        onward = serve_before(table, tables.ends(here->task), here[1].via, here[1].u,
                              here[1].v, onward);
        const Labels before{here->from_u, here->from_v};
        here->from_u = onward.at_u;
        here->from_v = onward.at_v;
        int32_t by = 0;
        if (here <= settled && is_shift(onward, before, by)) {
            shift_labels(start + 1, here, 0, by);
            return static_cast<size_t>(here - start) - 1;
        }
    }
    return 0;
}

// Trips and their loads, where only the places first .. last changed.
void TripRoute::number_trips(size_t first, size_t last) {
    int32_t trip = visits[first - 1].trip;
    int32_t load = visits[first - 1].load;
    const size_t end = visits.size() - 1;
    for (size_t i = first; i < end; ++i) {
        TripVisit &here = visits[i];
        if (here.via) {
            if (idx(trip) == trip_ends.size()) {
                trip_ends.push_back(0);
            }
            trip_ends[idx(trip)] = static_cast<int32_t>(i);
            ++trip;
            load = 0;
            // The visit behind the last gap may have come to start its trip.
            if (i > last + 1 && here.trip == trip) {
                // From here on trips are what they were.
                const int32_t moved = static_cast<int32_t>(end) - trip_ends.back();
                for (size_t other = idx(trip); other < trip_ends.size(); ++other) {
                    trip_ends[other] += moved;
                }
                visits[end].trip = visits[end - 1].trip;
                visits[end].load = visits[end - 1].load;
                return;
            }
        }
        load += here.demand;
        here.trip = trip;
        here.load = load;
    }
    trip_ends.resize(idx(trip) + 1);
    trip_ends.back() = static_cast<int32_t>(end);
    visits[end].trip = trip;
    visits[end].load = load;
}

TripPlace TripRoute::at_place(const FleetTables &tables, int32_t task, int32_t place,
                              bool via_before, bool via_after) const {
    const TaskEnds &ends = tables.ends(task);
    const Between between(tables.driving(type), ends);
    const TripPart before = head(place - 1);
    const TripPart after = tail(place);
    return {between.cost(before.visit, via_before, after.visit, via_after),
            excess_with(tables.vehicle(type).capacity, before, via_before, ends.demand,
                        via_after, after),
            place, via_before, via_after};
}

TripTotals TripRoute::replaced(const FleetTables &tables, int32_t place,
                               int32_t task) const {
    const bool via = visits[idx(place) + 1].via;
    const TaskEnds &ends = tables.ends(task);
    const Between between(tables.driving(type), ends);
    const TripPart before = head(place - 1);
    const TripPart after = tail(place + 1);
    return {between.cost(before.visit, visits[idx(place)].via, after.visit, via),
            excess_with(tables.vehicle(type).capacity, before, visits[idx(place)].via,
                        ends.demand, via, after)};
}

int32_t TripRoute::reordered(const FleetTables &tables, const WithinRoute &move) const {
    const DrivingTable &table = tables.driving(type);
    const TripVisit &before = visits[idx(move.first()) - 1];
    Labels done{before.done_at_u, before.done_at_v};
    int32_t u = before.u;
    int32_t v = before.v;
    bool via = visits[idx(move.first())].via;
    const auto serve = [&](const TripVisit &visit) {
        done = serve_after(table, tables.ends(visit.task), via, u, v, done);
        u = visit.u;
        v = visit.v;
        via = false;
    };
    for (const WithinRoute::Part &part : move.parts) {
        if (part.backwards) {
            for (int32_t i = part.last - 1; i >= part.first; --i) {
                serve(visits[idx(i)]);
            }
        } else {
            for (int32_t i = part.first; i < part.last; ++i) {
                serve(visits[idx(i)]);
            }
        }
    }
    const TripVisit &next = visits[idx(move.last())];
    return join(table, next.via, u, v, done, next.u, next.v,
                {next.from_u, next.from_v});
}

void TripRoute::reorder(const FleetTables &tables, const WithinRoute &move) {
    const bool via = visits[idx(move.first())].via;
    visits[idx(move.first())].via = false;
    move.apply(visits);
    visits[idx(move.first())].via = via;
    refresh(tables, move.first(), move.last() - 1);
}

TripTotals TripRoute::without(const FleetTables &tables, int32_t place) const {
    const TripVisit *here = visits.data() + place;
    if (num_tasks() == 1) {
        return {0, 0};
    }
    // As tidy() leaves it.
    const bool via = is_task(here[1]) ? is_task(here[-1]) && (here->via || here[1].via)
                                      : tables.rules.ends_at_facility();
    return joined(tables, type, head(place - 1), tail(place + 1), via);
}

TripTotals joined(const FleetTables &tables, int32_t type, const TripPart &head,
                  const TripPart &tail, bool via) {
    const TripVisit &left = head.visit;
    const TripVisit &right = tail.visit;
    return {join(tables.driving(type), via, left.u, left.v,
                 {left.done_at_u, left.done_at_v}, right.u, right.v,
                 {right.from_u, right.from_v}),
            excess_with(tables.vehicle(type).capacity, head, via, 0, false, tail)};
}

TripInsertion::TripInsertion(const FleetTables &tables, int32_t task, int32_t type)
    : table_(tables.driving(type)), task_(task), type_(type),
      capacity_(tables.vehicle(type).capacity),
      most_load_(capacity_ - tables.ends(task).demand),
      ends_{tables.ends(task),
            table_.facility_ends(task),
            tables.rules.facilities.size(),
            tables.rules.ends_at_facility(),
            0,
            0,
            0,
            0} {
    const VehicleType &vehicle = tables.vehicle(type);
    const TaskEnds &ends = ends_.ends;
    ends_.done_at_u = table_.to(ends.v)[vehicle.start] + ends.reverse_cost;
    ends_.done_at_v = table_.to(ends.u)[vehicle.start] + ends.forward_cost;
    ends_.from_u = table_.from(ends.u)[vehicle.end];
    ends_.from_v = table_.from(ends.v)[vehicle.end];
}

inline int64_t TripInsertion::scan(const TripRoute &route, size_t first, size_t last,
                                   int32_t most_load, int32_t but_for) const {
    const SomeTrips trips{first, last, most_load};
#ifdef ARCFLEET_LANES
    const TaskTable &tasks = table_.tasks();
    if (but_for < 0) {
        if (const EndDistances *distances = tasks.end_distances(task_)) {
            return scan_symmetric(ends_, distances, route, trips);
        }
        if (const ShortPair *pairs = tasks.short_pairs(task_)) {
            return scan_short(ends_, pairs, tasks.network().closed_cost(), route,
                              trips);
        }
        if (const LongPair *pairs = tasks.long_pairs(task_)) {
            return scan_long(ends_, pairs, route, trips);
        }
    }
#endif
    return scan_by_place(table_, ends_, route, trips, but_for);
}

TripPlace TripInsertion::cheapest(const TripRoute &route, Trips trips, double price,
                                  double most, int32_t but_for) const {
    switch (trips) {
    case Trips::fitting:
        return among_fitting(route, most, but_for);
    case Trips::exceeding:
        return among_exceeding(route, price, most, but_for);
    default:
        return on_its_own(route, price, most, but_for);
    }
}

TripPlace TripInsertion::among_fitting(const TripRoute &route, double most,
                                       int32_t but_for) const {
    const int64_t least = scan(route, 0, route.notes.size(), most_load_, but_for);
    const int64_t cost = least >> 32;
    if (static_cast<double>(cost - route.cost) < most && cost < kMostCost) {
        return place_at(route, least, 0);
    }
    return {};
}

TripPlace TripInsertion::among_exceeding(const TripRoute &route, double price,
                                         double most, int32_t but_for) const {
    TripPlace best;
    // No trip gets dearer by less.
    const double least_extra = table_.tasks().ends(task_).least_extra;
    for (size_t trip = 0; trip < route.notes.size(); ++trip) {
        const int32_t above = route.notes[trip].load - most_load_;
        const int32_t more = std::min(above, ends_.ends.demand);
        if (above <= 0 || least_extra + price * more >= most) {
            continue;
        }
        const int64_t least = scan(route, trip, trip + 1, INT32_MAX, but_for);
        const int64_t cost = least >> 32;
        const double priced = static_cast<double>(cost - route.cost) + price * more;
        if (priced < most && cost < kMostCost) {
            most = priced;
            best = place_at(route, least, more);
        }
    }
    return best;
}

// Where the task fits next to it, a trip of its own is a detour.
TripPlace TripInsertion::on_its_own(const TripRoute &route, double price, double most,
                                    int32_t but_for) const {
    TripPlace best;
    const Between between(table_, ends_.ends);
    const int32_t more = over(ends_.ends.demand, capacity_);
    for (size_t trip = 0; trip < route.notes.size(); ++trip) {
        const int32_t behind = route.trip_ends[trip];
        const bool via = trip + 1 < route.notes.size() || ends_.ends_via;
        const int32_t serving =
            via ? table_.own_trip(task_) : table_.first_of_trip(task_);
        const double least = static_cast<double>(route.notes[trip].between) + serving;
        if (least + price * more >= most || behind == but_for) {
            continue;
        }
        const int32_t cost = between.cost(route.visits[idx(behind) - 1], true,
                                          route.visits[idx(behind)], via);
        const double priced = static_cast<double>(cost - route.cost) + price * more;
        if (priced < most && cost < kMostCost) {
            most = priced;
            best = {cost, route.excess + more, behind, true, via};
        }
    }
    return best;
}

bool TripRoute::mend_visits(const FleetTables &tables, int32_t place, double price) {
    const DrivingTable &table = tables.driving(type);
    const auto priced = [&](const TripTotals &route) {
        return static_cast<double>(route.cost) +
               price * static_cast<double>(route.excess);
    };
    const int32_t trip = visits[idx(place)].trip;
    const int32_t first = trip_start(trip);
    const int32_t behind = trip_ends[idx(trip)];
    double best = priced(totals()) - 1e-6;
    int32_t best_place = 0; // 0 none, below 0: dropped
    bool moves = false;
    const bool may_pay = excess > 0 || !table.via_never_pays();
    for (int32_t x = first + 1; x < behind && may_pay; ++x) {
        const double now = priced(joined(tables, type, head(x - 1), tail(x), true));
        if (now < best) {
            best = now;
            best_place = x;
        }
    }
    if (first > 1) {
        const int32_t capacity = tables.vehicle(type).capacity;
        const TripPart before = head(first - 1);
        const TripPart after = tail(first);
        const TripVisit &last_left = before.visit;
        const TripVisit &first_right = after.visit;
        const double dropped = priced(joined(tables, type, before, after, false));
        if (dropped < best) {
            best = dropped;
            best_place = -1;
        }
        const int64_t others = int64_t{before.excess} + after.excess;
        const auto offer = [&](int32_t x, int32_t route_cost, int64_t moved) {
            const auto too_much =
                static_cast<int32_t>(others + over(before.load + moved, capacity) +
                                     over(after.load - moved, capacity));
            const double now = priced({route_cost, too_much});
            if (now < best) {
                best = now;
                best_place = x;
                moves = true;
            }
        };
        // Behind: tasks of this trip are carried on the one before.
        Labels done{last_left.done_at_u, last_left.done_at_v};
        const TripVisit *left = &last_left;
        int64_t moved = 0;
        for (int32_t x = first + 1; x < behind; ++x) {
            const TripVisit &passed = visits[idx(x) - 1];
            const TripVisit &right = visits[idx(x)];
            done = serve_after(table, tables.ends(passed.task), false, left->u, left->v,
                               done);
            left = &passed;
            moved += passed.demand;
            offer(x,
                  join(table, true, passed.u, passed.v, done, right.u, right.v,
                       {right.from_u, right.from_v}),
                  moved);
        }
        // In front: tasks of the trip before are carried on this one.
        Labels onward{first_right.from_u, first_right.from_v};
        const TripVisit *right = &first_right;
        moved = 0;
        for (int32_t x = first - 1; x > 1 && !visits[idx(x)].via; --x) {
            const TripVisit &passed = visits[idx(x)];
            const TripVisit &left_of_it = visits[idx(x) - 1];
            onward = serve_before(table, tables.ends(passed.task), false, right->u,
                                  right->v, onward);
            right = &passed;
            moved -= passed.demand;
            offer(x,
                  join(table, true, left_of_it.u, left_of_it.v,
                       {left_of_it.done_at_u, left_of_it.done_at_v}, passed.u, passed.v,
                       onward),
                  moved);
        }
    }
    if (best_place == 0) {
        return false;
    }
    if (best_place < 0 || moves) {
        visits[idx(first)].via = false;
    }
    if (best_place > 0) {
        visits[idx(best_place)].via = true;
    }
    refresh(tables);
    return true;
}

void TripRoute::append_arcs(const FleetTables &tables, std::vector<int32_t> &arcs,
                            std::vector<uint8_t> &vias) const {
    const DrivingTable &table = tables.driving(type);
    const Network &network = table.tasks().network();
    int32_t place = visits.front().u;
    for (size_t i = 1; i + 1 < visits.size(); ++i) {
        const TripVisit &here = visits[i];
        const int32_t *row = table.from(place, here.via);
        const int32_t first = network.task_arc(here.task);
        const bool forward = network.arc(first).inverse < 0 ||
                             row[here.u] + here.from_u <= row[here.v] + here.from_v;
        arcs.push_back(forward ? first : first + 1);
        vias.push_back(here.via ? 1 : 0);
        place = forward ? here.v : here.u;
    }
}

} // namespace arcfleet
