// The plan that the local search of MAENS works on, and the moves that change it.
#pragma once

#include "search/maens/population.h"
#include "search/maens/tables.h"

#include <cstdint>
#include <vector>

namespace arcfleet {

// Above any cost, and far enough from overflow.
constexpr int64_t kNoWay = INT64_MAX / 4;

// Two arcs one after the other, in directions of their own.
struct ArcPair {
    int32_t first;
    int32_t second;
    int64_t inner; // from the start of the first to the end of the second, served
    // No place in any route takes them for less, by the triangle inequality.
    int64_t floor;
};

// A route with the depot (arc 0) before its first and after its last arc; the other
// arrays spare the scans a look at each arc.
struct MaensRoute {
    std::vector<int32_t> arcs;
    std::vector<int32_t> start; // terminal, by position
    std::vector<int32_t> end;
    std::vector<int32_t> demand;
    std::vector<int32_t> gap;    // distance from a position to the next
    std::vector<int32_t> closed; // from the one before a position to the one after
    std::vector<int64_t> gain;   // what is saved if the arc at a position goes
    std::vector<int64_t> service_cost;
    std::vector<int64_t> turned_service_cost; // in the other direction, or kNoWay
    // By the triangle inequality no move of the arc at a position, or of that and the
    // next, changes the cost of the plan by less.
    std::vector<int64_t> least;
    std::vector<int64_t> least_of_two;
    std::vector<int64_t> gain_of_two;
    // The task at a position and the next one in all directions, those that are not
    // there left out: from `4 * position` on.
    std::vector<ArcPair> pairs;
    std::vector<int32_t> num_pairs;
    int64_t least_of_all = 0; // of `least`
    int64_t load = 0;
    int64_t cost = 0;       // service, deadhead and the fixed cost
    uint64_t hash = 0;      // tells sequences of arcs apart
    uint64_t task_hash = 0; // sum over the tasks: tells sets of tasks apart

    int32_t size() const { return static_cast<int32_t>(arcs.size()) - 2; }
};

enum class MoveType : int32_t { insert_one, insert_two, swap };

constexpr int32_t kNewRoute = -1;

// A change of one or two routes. An insertion takes the arc at `position` of route
// `from`, or the two arcs there, and puts `first` (and `second`) behind position `gap`
// of route `to`; both count as before the move. A swap puts `first` at position `gap`
// of route `to`, and `second` at `position` of route `from`.
struct MaensMove {
    int64_t cost; // change of the plan's cost
    int64_t excess;
    MoveType type;
    int32_t from;
    int32_t to;
    int32_t position;
    int32_t gap;
    int32_t first;
    int32_t second;

    bool operator==(const MaensMove &) const = default;
};

class MaensPlan {
  public:
    explicit MaensPlan(const MaensTables &tables) : tables_(tables) {}

    void load(const Individual &individual);
    void store(Individual &individual) const;

    const MaensTables &tables() const { return tables_; }
    int64_t cost() const { return cost_; }
    int64_t excess() const { return excess_; }
    // Routes keep their slots while others come and go; slots in use, in any order.
    const std::vector<int32_t> &slots() const { return slots_; }
    size_t num_slots() const { return routes_.size(); }
    const MaensRoute &route(int32_t slot) const { return routes_[idx(slot)]; }

    // Returns the slot of the new route, or kNewRoute if none was opened.
    int32_t apply(const MaensMove &move);
    // Puts other routes in the place of two; their slots come into `changed`.
    void replace(int32_t slot1, int32_t slot2, const Plan &routes,
                 std::vector<int32_t> &changed);

  private:
    void apply_swap(const MaensMove &move);
    int32_t apply_insertion(const MaensMove &move);
    int32_t open_slot();
    void close_slot(int32_t slot);
    void set_arcs(int32_t slot, const int32_t *first, const int32_t *last);
    void rebuild(int32_t slot);
    void rebuild_twos(MaensRoute &route) const;
    void forget(int32_t slot);

    const MaensTables &tables_;
    std::vector<MaensRoute> routes_; // by slot
    std::vector<int32_t> slots_;
    std::vector<int32_t> free_;
    int64_t cost_ = 0;
    int64_t excess_ = 0;
};

} // namespace arcfleet
