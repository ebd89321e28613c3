// Swap: two tasks exchanged, within a route or between two (Tang, Mei and Yao 2009).
#include "search/maens/moves.h"

#include "search/maens/places.h"

#include <algorithm>

namespace arcfleet {

void MaensMoves::swaps(int32_t slot1, int32_t slot2, MoveFront &front) const {
    const MaensRoute &one = plan_.route(slot1);
    const MaensRoute &two = plan_.route(slot2);
    const int64_t excess_before =
        tables_.rules().excess(one.load) + tables_.rules().excess(two.load);
    // A swap empties no route: the fixed cost, part of the gain there, stays.
    const int64_t fixed = (one.size() == 1 ? tables_.rules().route_cost() : 0) +
                          (two.size() == 1 ? tables_.rules().route_cost() : 0);
    const bool fits = excess_before == 0; // then no swap lowers the excess
    for (int32_t i = 1; i <= one.size(); ++i) {
        const auto k = idx(i);
        const int64_t least_here = fixed + one.least[k];
        if (fits && least_here + two.least_of_all >= front.limit()) {
            continue;
        }
        const int32_t demand = one.demand[k];
        const int64_t loss = fixed - one.gain[k];
        const TaskPlace here(tables_, one, i);
        const int32_t *to_start = tables_.distances_to(one.start[k]);
        const int32_t *to_end = tables_.distances_to(one.end[k]);
        const int32_t *from_start = tables_.distances_from(one.start[k]);
        const int32_t *from_end = tables_.distances_from(one.end[k]);
        for (int32_t j = 1; j <= two.size(); ++j) {
            const auto m = idx(j);
            const int64_t least = least_here + two.least[m];
            if (fits && least >= front.limit()) {
                continue;
            }
            const int64_t moved = int64_t{two.demand[m]} - demand;
            const int64_t excess = tables_.rules().excess(one.load + moved) +
                                   tables_.rules().excess(two.load - moved) -
                                   excess_before;
            const int64_t limit = excess >= 0 ? front.limit() : INT64_MAX;
            if (least >= limit) {
                continue;
            }
            const int64_t losses = loss - two.gain[m];
            const int64_t second = here.cheapest(two, m);
            if (least_here - two.gain[m] + second >= limit) {
                continue;
            }
            const int32_t before = two.end[m - 1];
            const int32_t after = two.start[m + 1];
            const int64_t given =
                to_start[before] + from_end[after] + one.service_cost[k];
            const int64_t turned =
                to_end[before] + from_start[after] + one.turned_service_cost[k];
            const int64_t cost =
                losses + second + std::min(given, turned) - two.closed[m];
            if (cost >= limit) {
                continue;
            }
            const int32_t first =
                given <= turned ? one.arcs[k] : tables_.arc(one.arcs[k]).inverse;
            front.offer({cost, excess, MoveType::swap, slot1, slot2, i, j, first,
                         here.direction(tables_, two, m)});
        }
    }
}

void MaensMoves::inner_swaps(int32_t slot, MoveFront &front) const {
    const MaensRoute &route = plan_.route(slot);
    for (int32_t i = 1; i < route.size(); ++i) {
        const int32_t a = route.arcs[idx(i)];
        // Neighbours share a gap, so their directions depend on each other.
        const int32_t b = route.arcs[idx(i + 1)];
        const int64_t now = int64_t{route.gap[idx(i - 1)]} + route.gap[idx(i)] +
                            route.gap[idx(i + 1)] + tables_.arc(a).service_cost +
                            tables_.arc(b).service_cost;
        for (const int32_t first : TaskDirections(tables_, a)) {
            for (const int32_t second : TaskDirections(tables_, b)) {
                const int64_t then =
                    int64_t{tables_.to(second)[route.end[idx(i - 1)]]} +
                    tables_.arc(second).service_cost + tables_.deadhead(second, first) +
                    tables_.arc(first).service_cost +
                    tables_.from(first)[route.start[idx(i + 2)]];
                front.offer({then - now, 0, MoveType::swap, slot, slot, i, i + 1, first,
                             second});
            }
        }
        const TaskPlace here(tables_, route, i);
        for (int32_t j = i + 2; j <= route.size(); ++j) {
            if (route.least[idx(i)] + route.least[idx(j)] >= front.limit()) {
                continue;
            }
            const int64_t gain = route.gain[idx(i)] + route.gain[idx(j)];
            const TaskPlace there(tables_, route, j);
            const int64_t cost =
                there.cheapest(route, idx(i)) + here.cheapest(route, idx(j)) - gain;
            front.offer({cost, 0, MoveType::swap, slot, slot, i, j,
                         there.direction(tables_, route, idx(i)),
                         here.direction(tables_, route, idx(j))});
        }
    }
}

} // namespace arcfleet
