// The moves that touch one route only, or open a new one.
#include "search/maens/moves.h"

#include "search/maens/places.h"

namespace arcfleet {

// One or two arcs to another gap of their route, or turned where they are.
void MaensMoves::inner_insertions(int32_t slot, int32_t length,
                                  MoveFront &front) const {
    const MaensRoute &route = plan_.route(slot);
    const int64_t fixed = route.size() == length ? tables_.rules().route_cost() : 0;
    for (int32_t i = 1; i + length - 1 <= route.size(); ++i) {
        const int32_t last = i + length - 1;
        if (fixed + (length == 1 ? route.least : route.least_of_two)[idx(i)] >=
            front.limit()) {
            continue;
        }
        const int64_t gain =
            (length == 1 ? route.gain : route.gain_of_two)[idx(i)] - fixed;
        const int32_t before = route.end[idx(i - 1)];
        const int32_t after = route.start[idx(last + 1)];
        const int32_t closed = tables_.distances_from(before)[after];
        const TaskDirections seconds(tables_, route.arcs[idx(last)]);
        for (const int32_t a : TaskDirections(tables_, route.arcs[idx(i)])) {
            for (int k = 0; k < (length == 1 ? 1 : seconds.count); ++k) {
                const int32_t b = length == 1 ? a : seconds.arcs[k];
                int64_t inner = tables_.arc(a).service_cost;
                if (length == 2) {
                    inner +=
                        int64_t{tables_.deadhead(a, b)} + tables_.arc(b).service_cost;
                }
                // By the triangle inequality no detour is less than minus this way.
                const int32_t way =
                    tables_.distances_from(tables_.arc(a).start)[tables_.arc(b).end];
                if (inner - way - gain >= front.limit()) {
                    continue;
                }
                const int32_t *to = tables_.to(a);
                const int32_t *from = tables_.from(b);
                BestGap gap{to[before] + from[after] - closed, i - 1};
                find_gap(route, to, from, 0, i - 1, gap);
                find_gap(route, to, from, last + 1, route.size() + 1, gap);
                front.offer({gap.detour + inner - gain, 0,
                             length == 1 ? MoveKind::insert_one : MoveKind::insert_two,
                             slot, slot, i, gap.at, a, b});
            }
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
                front.offer({then - now, 0, MoveKind::swap, slot, slot, i, i + 1, first,
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
            front.offer({cost, 0, MoveKind::swap, slot, slot, i, j,
                         there.direction(tables_, route, idx(i)),
                         here.direction(tables_, route, idx(j))});
        }
    }
}

// A route of its own for one arc, or for two in a row of a longer route.
void MaensMoves::to_new_route(int32_t slot, MoveFront &front) const {
    const MaensRoute &route = plan_.route(slot);
    if (route.size() < 2) {
        return;
    }
    const int64_t excess_before = tables_.rules().excess(route.load);
    const auto excess_change = [&](int64_t moved) {
        return tables_.rules().excess(route.load - moved) +
               tables_.rules().excess(moved) - excess_before;
    };
    for (int32_t i = 1; i <= route.size(); ++i) {
        const int32_t arc = route.arcs[idx(i)];
        const int64_t one_excess = excess_change(tables_.arc(arc).demand);
        for (const int32_t a : TaskDirections(tables_, arc)) {
            const int64_t alone = int64_t{tables_.to(a)[0]} + tables_.from(a)[0] +
                                  tables_.arc(a).service_cost +
                                  tables_.rules().route_cost();
            front.offer({alone - route.gain[idx(i)], one_excess, MoveKind::insert_one,
                         slot, kNewRoute, i, 0, a, a});
        }
        if (i == route.size() || route.size() == 2) {
            continue;
        }
        const int32_t next = route.arcs[idx(i + 1)];
        const int64_t gain = route.gain_of_two[idx(i)];
        const int64_t both_excess =
            excess_change(int64_t{tables_.arc(arc).demand} + tables_.arc(next).demand);
        for (const int32_t a : TaskDirections(tables_, arc)) {
            for (const int32_t b : TaskDirections(tables_, next)) {
                const int64_t alone =
                    int64_t{tables_.to(a)[0]} + tables_.arc(a).service_cost +
                    tables_.deadhead(a, b) + tables_.arc(b).service_cost +
                    tables_.from(b)[0] + tables_.rules().route_cost();
                front.offer({alone - gain, both_excess, MoveKind::insert_two, slot,
                             kNewRoute, i, 0, a, b});
            }
        }
    }
}

void MaensMoves::alone(int32_t slot, MoveFront &front) const {
    inner_insertions(slot, 1, front);
    inner_insertions(slot, 2, front);
    inner_swaps(slot, front);
    to_new_route(slot, front);
}

} // namespace arcfleet
