// Where a task may go in a route: shared by the moves between routes and within one.
#pragma once

#include "search/maens/plan.h"

#include <algorithm>
#include <cstdint>

namespace arcfleet {

struct BestGap {
    int32_t detour = INT32_MAX;
    int32_t at = -1;
};

// The gap from first to last - 1 where driving by way of something is the least detour,
// given the distances to where it starts and from where it ends.
inline void find_gap(const MaensRoute &route, const int32_t *to, const int32_t *from,
                     int32_t first, int32_t last, BestGap &best) {
    const int32_t *end = route.end.data();
    const int32_t *start = route.start.data();
    const int32_t *gap = route.gap.data();
    for (int32_t g = first; g < last; ++g) {
        const int32_t detour = to[end[g]] + from[start[g + 1]] - gap[g];
        if (detour < best.detour) {
            best = {detour, g};
        }
    }
}

// What the cheapest direction of the task at a position of one route costs in the place
// of a task in another, counted as if that one had left a gap.
struct TaskPlace {
    TaskPlace(const MaensTables &tables, const MaensRoute &route, int32_t position)
        : before(tables.distances_from(route.end[idx(position - 1)])),
          after(tables.distances_to(route.start[idx(position + 1)])),
          closed(route.closed[idx(position)]) {}

    int64_t given(const MaensRoute &other, size_t i) const {
        return before[other.start[i]] + after[other.end[i]] - closed +
               other.service_cost[i];
    }
    int64_t turned(const MaensRoute &other, size_t i) const {
        return before[other.end[i]] + after[other.start[i]] - closed +
               other.turned_service_cost[i];
    }
    int64_t cheapest(const MaensRoute &other, size_t i) const {
        return std::min(given(other, i), turned(other, i));
    }
    int32_t direction(const MaensTables &tables, const MaensRoute &other,
                      size_t i) const {
        return given(other, i) <= turned(other, i) ? other.arcs[i]
                                                   : tables.arc(other.arcs[i]).inverse;
    }

    const int32_t *before;
    const int32_t *after;
    int64_t closed;
};

} // namespace arcfleet
