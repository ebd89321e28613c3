// Single and double insertion: one task, or two in a row, to another place of any route
// or to a new one (Tang, Mei and Yao 2009).
#include "search/maens/moves.h"

#include "search/maens/places.h"

#include <algorithm>

namespace arcfleet {

namespace {

// The best gaps of a route for a task in the direction given and turned around.
void find_gap_both(const MaensRoute &route, const MaensTables &tables, int32_t arc,
                   BestGap &given, BestGap &turned) {
    const int32_t start = tables.arc(arc).start;
    const int32_t end = tables.arc(arc).end;
    const int32_t *to_start = tables.distances_to(start);
    const int32_t *to_end = tables.distances_to(end);
    const int32_t *from_start = tables.distances_from(start);
    const int32_t *from_end = tables.distances_from(end);
    for (int32_t g = 0; g <= route.size(); ++g) {
        const int32_t before = route.end[idx(g)];
        const int32_t after = route.start[idx(g + 1)];
        const int32_t gap = route.gap[idx(g)];
        const int32_t detour = to_start[before] + from_end[after] - gap;
        const int32_t back = to_end[before] + from_start[after] - gap;
        if (detour < given.detour) {
            given = {detour, g};
        }
        if (back < turned.detour) {
            turned = {back, g};
        }
    }
}

} // namespace

void MaensMoves::insertions(int32_t from, int32_t to, MoveFront &front) const {
    const MaensRoute &source = plan_.route(from);
    const MaensRoute &target = plan_.route(to);
    const int64_t excess_before =
        tables_.rules().excess(source.load) + tables_.rules().excess(target.load);
    const auto excess_change = [&](int64_t moved) {
        return tables_.rules().excess(source.load - moved) +
               tables_.rules().excess(target.load + moved) - excess_before;
    };
    const bool fits = excess_before == 0; // then no move lowers the excess
    const auto useless = [&](int64_t least, int64_t moved) {
        return least >= front.limit() && (fits || excess_change(moved) >= 0);
    };
    const int32_t gaps = target.size() + 1;
    for (int32_t i = 1; i <= source.size(); ++i) {
        const int32_t arc = source.arcs[idx(i)];
        const int64_t gain = source.gain[idx(i)];
        if (!useless(source.least[idx(i)], source.demand[idx(i)])) {
            const int64_t excess = excess_change(source.demand[idx(i)]);
            MaensMove best{INT64_MAX, excess, MoveType::insert_one, from, to, i, 0,
                           arc,       0};
            BestGap given, turned;
            find_gap_both(target, tables_, arc, given, turned);
            best.cost = given.detour + source.service_cost[idx(i)] - gain;
            best.gap = given.at;
            const int64_t other =
                turned.detour + source.turned_service_cost[idx(i)] - gain;
            if (other < best.cost) {
                best.cost = other;
                best.gap = turned.at;
                best.first = tables_.arc(arc).inverse;
            }
            front.offer(best);
        }
        if (i == source.size()) {
            break;
        }
        const int64_t both_demand =
            int64_t{source.demand[idx(i)]} + source.demand[idx(i + 1)];
        if (useless(source.least_of_two[idx(i)], both_demand)) {
            continue;
        }
        const int64_t both_gain = source.gain_of_two[idx(i)];
        const int64_t both_excess = excess_change(both_demand);
        MaensMove best{INT64_MAX, both_excess, MoveType::insert_two, from, to, i, 0, 0,
                       0};
        const ArcPair *pair = &source.pairs[4 * idx(i)];
        for (const ArcPair *end = pair + source.num_pairs[idx(i)]; pair < end; ++pair) {
            const int64_t inner = pair->inner - both_gain;
            const int64_t least = pair->floor - both_gain;
            if (both_excess >= 0 && least >= std::min(front.limit(), best.cost)) {
                continue;
            }
            BestGap gap;
            find_gap(target, tables_.to(pair->first), tables_.from(pair->second), 0,
                     gaps, gap);
            if (gap.detour + inner < best.cost) {
                best.cost = gap.detour + inner;
                best.gap = gap.at;
                best.first = pair->first;
                best.second = pair->second;
            }
        }
        if (best.cost < INT64_MAX) {
            front.offer(best);
        }
    }
}

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
                const int32_t way = tables_.network().passing_cost(a, b);
                if (inner - way - gain >= front.limit()) {
                    continue;
                }
                const int32_t *to = tables_.to(a);
                const int32_t *from = tables_.from(b);
                BestGap gap{to[before] + from[after] - closed, i - 1};
                find_gap(route, to, from, 0, i - 1, gap);
                find_gap(route, to, from, last + 1, route.size() + 1, gap);
                front.offer({gap.detour + inner - gain, 0,
                             length == 1 ? MoveType::insert_one : MoveType::insert_two,
                             slot, slot, i, gap.at, a, b});
            }
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
            front.offer({alone - route.gain[idx(i)], one_excess, MoveType::insert_one,
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
                front.offer({alone - gain, both_excess, MoveType::insert_two, slot,
                             kNewRoute, i, 0, a, b});
            }
        }
    }
}

} // namespace arcfleet
