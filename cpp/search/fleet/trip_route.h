// A route of several trips as an order of tasks without directions. As in
// labelled_route.h, labels give what the best choice of all directions costs; in
// addition each visit knows whether the vehicle comes by way of a facility, and what
// its trip carries.
#pragma once

#include "search/fleet/tables.h"
#include "search/moves/within_route.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace arcfleet {

struct TripVisit {
    int32_t task;
    int32_t u;
    int32_t v;
    int32_t demand;
    int32_t done_at_u; // as in Visit, in this order
    int32_t done_at_v;
    int32_t from_u;
    int32_t from_v;
    int32_t trip; // counted from 0
    int32_t load; // of its trip up to here, this task included
    bool via;     // the vehicle comes here by way of a facility
};

// The part of a route up to a visit, and from a visit on: what the trip there carries
// in it, and load above capacity of all other trips.
struct TripPart {
    const TripVisit &visit;
    int32_t load;
    int32_t excess;
};

// A place for a task: in front of visits[place], with a facility visit before it,
// behind it, both or neither.
struct TripPlace {
    int32_t cost = kForbidden; // of the route with the task
    int32_t excess = 0;        // of the route with the task
    int32_t place = -1;
    bool via_before = false;
    bool via_after = false;
};

// Which trips are looked at when a task is put in: those where it fits, those that
// would then carry too much, or new ones for this task alone.
enum class Trips { fitting, exceeding, own };

// What decides whether a trip is looked at when a task is put in. With what serving the
// task costs between facilities, `between` bounds what the route then costs more with a
// trip of its own behind this one.
struct TripNote {
    int32_t load;
    int32_t between;

    bool operator==(const TripNote &) const = default;
};

// A facility on the way from one trip to the next, or to the end. What the route costs
// up to there, the visit included, above the lesser label of the last task; what it
// costs from there on, above the lesser label of what follows.
struct TripStop {
    int32_t there;
    int32_t onward;

    bool operator==(const TripStop &) const = default;
};

struct TripLimits {
    int32_t least_load = 0;
    int32_t most_load = 0;
    int32_t least_between = 0; // of TripNote::between
};

class TripRoute {
  public:
    TripRoute(const FleetTables &tables, int32_t type);

    std::vector<TripVisit> visits; // between two visits that stand for start and end
    int32_t type;
    int32_t cost = 0;               // without the fixed cost
    int32_t excess = 0;             // load above capacity, over all trips
    TripLimits limits;              // over all trips
    std::vector<TripNote> notes;    // by trip
    std::vector<TripStop> stops;    // behind each trip, by facility
    std::vector<int32_t> trip_ends; // place behind the last task of each trip

    int32_t num_tasks() const { return static_cast<int32_t>(visits.size()) - 2; }
    bool empty() const { return visits.size() == 2; }
    TripTotals totals() const { return {cost, excess}; }
    // Place of the first task of a trip.
    int32_t trip_start(int32_t trip) const {
        return trip == 0 ? 1 : trip_ends[idx(trip) - 1];
    }

    TripPart head(int32_t place) const {
        const TripVisit &visit = visits[idx(place)];
        return {visit, visit.load, excess == 0 ? 0 : excess_in(0, idx(visit.trip))};
    }
    TripPart tail(int32_t place) const {
        const TripVisit &visit = visits[idx(place)];
        const auto trip = idx(visit.trip);
        return {visit, notes[trip].load - visit.load + visit.demand,
                excess == 0 ? 0 : excess_in(trip + 1, notes.size())};
    }

    // Changes that leave the labels to be refreshed. Facility visits stay unless
    // nothing was carried there.
    void insert(const FleetTables &tables, int32_t task, const TripPlace &place);
    // Looks at places from .. to; returns the first and the last place that changed.
    std::pair<int32_t, int32_t> erase_marked(const FleetTables &tables,
                                             const std::vector<uint8_t> &marked,
                                             int32_t from, int32_t to);
    void erase(int32_t place);
    void clear();
    // No facility before the first task; one before the end if the rules ask for it.
    void tidy(const FleetTables &tables);

    // Recomputes all labels; with the first and last place that changed since they were
    // last right, those that depend on them.
    void refresh(const FleetTables &tables) { refresh(tables, 1, num_tasks()); }
    void refresh(const FleetTables &tables, int32_t first, int32_t last);

    // The route with the task at a place, or with the one there replaced.
    TripPlace at_place(const FleetTables &tables, int32_t task, int32_t place,
                       bool via_before, bool via_after) const;
    TripTotals replaced(const FleetTables &tables, int32_t place, int32_t task) const;
    // What it costs with the tasks of a trip in another order; facility visits stay.
    int32_t reordered(const FleetTables &tables, const WithinRoute &move) const;
    void reorder(const FleetTables &tables, const WithinRoute &move);
    // The route without the task at a place.
    TripTotals without(const FleetTables &tables, int32_t place) const;

    // The best change of one facility visit: moves the one before the trip of
    // visits[place], drops it, or adds one to the trip. False if none is better.
    bool mend_visits(const FleetTables &tables, int32_t place, double price);

    void append_arcs(const FleetTables &tables, std::vector<int32_t> &arcs,
                     std::vector<uint8_t> &vias) const;

  private:
    // Each returns the place up to which labels were computed; behind it they were all
    // shifted by the same number.
    size_t refresh_forward(const FleetTables &tables, size_t first, size_t last,
                           bool may_shift);
    size_t refresh_backward(const FleetTables &tables, size_t first, size_t last,
                            bool may_shift);
    void number_trips(size_t first, size_t last);
    void note_trips(const FleetTables &tables, size_t start, size_t end);
    void note_stops(const FleetTables &tables, size_t trip);
    // Load above capacity in trips first .. last - 1.
    int32_t excess_in(size_t first, size_t last) const;

    int32_t capacity_;
};

// A task that is to be put into routes of one vehicle type.
struct TripTask {
    const TaskEnds &ends;
    const FacilityEnds *facilities;
    size_t num_facilities;
    bool ends_via;
    int32_t done_at_u; // right behind the depot
    int32_t done_at_v;
    int32_t from_u; // the task served, to the end of the route
    int32_t from_v;
};

// Looks for places for a task in routes of one vehicle type.
class TripInsertion {
  public:
    TripInsertion(const FleetTables &tables, int32_t task, int32_t type);

    int32_t type() const { return type_; }
    // The cheapest place in some trips of a route, load above capacity at a price, if
    // it makes the route dearer by less than `most`; `but_for` is a place that is
    // overlooked.
    TripPlace cheapest(const TripRoute &route, Trips trips, double price, double most,
                       int32_t but_for = -1) const;

  private:
    TripPlace among_fitting(const TripRoute &route, double most, int32_t but_for) const;
    TripPlace among_exceeding(const TripRoute &route, double price, double most,
                              int32_t but_for) const;
    TripPlace on_its_own(const TripRoute &route, double price, double most,
                         int32_t but_for) const;
    // The least cost in trips first .. last - 1 of a route that carry at most so much,
    // packed with the number of the place.
    int64_t scan(const TripRoute &route, size_t first, size_t last, int32_t most_load,
                 int32_t but_for) const;

    const DrivingTable &table_;
    const int32_t task_;
    const int32_t type_;
    const int32_t capacity_;
    const int32_t most_load_; // the largest beside which the task fits
    TripTask ends_;
};

// The head of one route and the tail of another, of the same vehicle type.
TripTotals joined(const FleetTables &tables, int32_t type, const TripPart &head,
                  const TripPart &tail, bool via);

inline bool is_task(const TripVisit &visit) { return visit.task >= 0; }

} // namespace arcfleet
