// What a small move between two routes is: a struct with two functions.
//
//     // The change that the move would make; nothing where it cannot be made.
//     static std::optional<MoveDelta> evaluate(const MoveSite &site);
//     // Makes it. Changes the visits of both routes; their labels are then outdated.
//     static void apply(const MoveSite &site, Visits &first, Visits &second);
//
// Labels on both sides of a cut give the cost of the new routes, with all directions
// chosen anew, so that `evaluate` costs next to nothing. moves/list.h names the moves
// that are tried.
#pragma once

#include "base/index.h"
#include "search/labelled_route.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace arcfleet {

using Visits = std::vector<Visit>;

// Where a move is tried: at a task of one route and a task near it of another.
struct MoveSite {
    const TaskTable &tasks;
    const LabelledRoute &first;
    const LabelledRoute &second;
    size_t first_place; // in the visits of the first route
    size_t second_place;
    uint32_t draw;    // a random number below 4, for choices of the move's own
    int64_t max_load; // of a route; above the capacity where excess is allowed

    const Visit &first_visit() const { return first.visits[first_place]; }
    const Visit &second_visit() const { return second.visits[second_place]; }
    int32_t demand(const Visit &visit) const { return tasks.ends(visit.task).demand; }
    bool allows(int64_t first_load, int64_t second_load) const {
        return std::max(first_load, second_load) <= max_load;
    }
};

// Both routes after a move.
struct MoveDelta {
    RouteTotals first;
    RouteTotals second;
    bool closes_route; // one of them is left without a task

    // Change of the cost, fixed costs apart.
    int64_t cost(const MoveSite &site) const {
        return first.cost + second.cost - site.first.cost - site.second.cost;
    }
};

} // namespace arcfleet
