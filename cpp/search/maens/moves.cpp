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

void MoveFront::offer(const MaensMove &move) {
    if (move.cost >= limit_ && move.excess >= 0) {
        return;
    }
    for (const MaensMove &kept : moves_) {
        if (kept.cost <= move.cost && kept.excess <= move.excess) {
            return;
        }
    }
    std::erase_if(moves_, [&](const MaensMove &kept) {
        return move.cost <= kept.cost && move.excess <= kept.excess;
    });
    if (move.excess <= 0) {
        limit_ = std::min(limit_, move.cost);
    }
    moves_.push_back(move);
}

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
            MaensMove best{INT64_MAX, excess, MoveKind::insert_one, from, to, i, 0,
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
        MaensMove best{INT64_MAX, both_excess, MoveKind::insert_two, from, to, i, 0, 0,
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
            front.offer({cost, excess, MoveKind::swap, slot1, slot2, i, j, first,
                         here.direction(tables_, two, m)});
        }
    }
}

void MaensMoves::between(int32_t slot1, int32_t slot2, MoveFront &front) const {
    insertions(slot1, slot2, front);
    insertions(slot2, slot1, front);
    swaps(slot1, slot2, front);
}

} // namespace arcfleet
