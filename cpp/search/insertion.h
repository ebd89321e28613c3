// Looks through all gaps of a route for the one where a task costs least.
#pragma once

#include "search/labelled_route.h"

#include <cstdint>
#include <vector>

namespace arcfleet {

// A gap of a route, in front of visits[place], and what the route costs with the task
// put there.
struct Gap {
    int64_t cost;
    int32_t place;
};

// The cheapest gap of a route, the first of them where several are.
Gap cheapest_of_all_gaps(const TaskTable &tasks, int32_t task,
                         const LabelledRoute &route);

// The same over gaps at other places than these, which rise. Where there is none, a
// cost beyond any other.
Gap cheapest_other_gap(const TaskTable &tasks, int32_t task, const LabelledRoute &route,
                       const std::vector<int32_t> &places);

} // namespace arcfleet
