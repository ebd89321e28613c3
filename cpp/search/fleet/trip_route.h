// A route of several trips as an order of tasks without directions. As in
// labelled_route.h, labels give what the best choice of all directions costs; in
// addition each visit knows whether the vehicle comes by way of a facility, and what
// its trip carries.
#pragma once

#include "search/fleet/tables.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace arcfleet {

struct TripVisit {
    int32_t task;
    int32_t u;
    int32_t v;
    bool via;          // the vehicle comes here by way of a facility
    int32_t done_at_u; // as in Visit, in this order
    int32_t done_at_v;
    int32_t from_u;
    int32_t from_v;
    int32_t trip;          // counted from 0
    int32_t load_before;   // of its trip up to here, this task included
    int32_t load_after;    // of its trip behind this task
    int32_t excess_before; // load above capacity of all trips before its own
    int32_t excess_after;  // and of all behind it
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
enum class Trips { all, fitting, exceeding, own };

// What decides whether a trip is looked at when a task is put in. With what serving the
// task costs between facilities, the rest bounds what the route then costs more: with
// the task at the end of the trip, at the start of the next, or between both.
struct TripNote {
    int32_t load;
    int32_t at_end;
    int32_t at_next_start;
    int32_t between;

    bool operator==(const TripNote &) const = default;
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
    std::vector<int32_t> trip_ends; // place behind the last task of each trip

    int32_t num_tasks() const { return static_cast<int32_t>(visits.size()) - 2; }
    bool empty() const { return visits.size() == 2; }
    TripTotals totals() const { return {cost, excess}; }
    // Place of the first task of a trip.
    int32_t trip_start(int32_t trip) const {
        return trip == 0 ? 1 : trip_ends[idx(trip) - 1];
    }

    // Changes that leave the labels to be refreshed. Facility visits stay unless
    // nothing was carried there.
    void insert(const FleetTables &tables, int32_t task, const TripPlace &place);
    // Returns the first and the last place that changed.
    std::pair<int32_t, int32_t> erase_marked(const FleetTables &tables,
                                             const std::vector<uint8_t> &marked);
    void erase(int32_t place);
    void clear();
    // No facility before the first task; one before the end if the rules ask for it.
    void tidy(const FleetTables &tables);

    // Recomputes all labels; with the first and last place that changed since they were
    // last right, those that depend on them.
    void refresh(const FleetTables &tables) { refresh(tables, 1, num_tasks()); }
    void refresh(const FleetTables &tables, int32_t first, int32_t last);

    // The cheapest place for a task, load above capacity at a price, if it makes the
    // route dearer by less than `most`; `but_for` is a place that is overlooked.
    TripPlace cheapest_place(const FleetTables &tables, int32_t task, double price,
                             double most, Trips trips = Trips::all,
                             int32_t but_for = -1) const;

    // The route with the task at a place, or with the one there replaced.
    TripPlace at_place(const FleetTables &tables, int32_t task, int32_t place,
                       bool via_before, bool via_after) const;
    TripTotals replaced(const FleetTables &tables, int32_t place, int32_t task) const;
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
    void note_trips(const FleetTables &tables, size_t start, size_t end);
};

// The head of one route up to `left` and the tail of another, of the same vehicle type,
// from `right` on.
TripTotals joined(const FleetTables &tables, int32_t type, const TripVisit &left,
                  const TripVisit &right, bool via);

inline bool is_task(const TripVisit &visit) { return visit.task >= 0; }

} // namespace arcfleet
