#include "search/maens_moves.h"

#include <algorithm>

namespace arcfleet {

namespace {

// The directions of a task: the one given, then the other if there is one.
struct Directions {
    Directions(const MaensTables &tables, int32_t arc)
        : arcs{arc, tables.arc(arc).twin}, count(arcs[1] >= 0 ? 2 : 1) {}
    const int32_t *begin() const { return arcs; }
    const int32_t *end() const { return arcs + count; }
    int32_t arcs[2];
    int count;
};

struct Gap {
    int32_t detour = INT32_MAX;
    int32_t at = -1;
};

// The gap from first to last - 1 where driving by way of something is the least detour,
// given the distances to where it starts and from where it ends.
void find_gap(const MaensRoute &route, const int32_t *to, const int32_t *from,
              int32_t first, int32_t last, Gap &best) {
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

// The same over all gaps for a task in the direction given and turned around.
void find_gap_both(const MaensRoute &route, const MaensTables &tables, int32_t arc,
                   Gap &given, Gap &turned) {
    const int32_t start = tables.arc(arc).start;
    const int32_t end = tables.arc(arc).end;
    const int32_t *to_start = tables.distances_to(start);
    const int32_t *to_end = tables.distances_to(end);
    const int32_t *from_start = tables.network().distances_from(start);
    const int32_t *from_end = tables.network().distances_from(end);
    for (int32_t g = 0; g <= route.size(); ++g) {
        const int32_t before = route.end[at(g)];
        const int32_t after = route.start[at(g + 1)];
        const int32_t gap = route.gap[at(g)];
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

void MoveFront::offer(const Move &move) {
    if (move.cost >= limit_ && move.excess >= 0) {
        return;
    }
    for (const Move &kept : moves_) {
        if (kept.cost <= move.cost && kept.excess <= move.excess) {
            return;
        }
    }
    std::erase_if(moves_, [&](const Move &kept) {
        return move.cost <= kept.cost && move.excess <= kept.excess;
    });
    if (move.excess <= 0) {
        limit_ = std::min(limit_, move.cost);
    }
    moves_.push_back(move);
}

// What the cheapest direction of the task at a position of one route costs in the place
// of a task in another, counted as if that one had left a gap.
struct MaensMoves::Place {
    Place(const MaensTables &tables, const MaensRoute &route, int32_t position)
        : before(tables.network().distances_from(route.end[at(position - 1)])),
          after(tables.distances_to(route.start[at(position + 1)])),
          closed(route.closed[at(position)]) {}

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
                                                   : tables.arc(other.arcs[i]).twin;
    }

    const int32_t *before;
    const int32_t *after;
    int64_t closed;
};

// What is saved if the arcs at a position and the next go.
int64_t MaensMoves::gain_of_two(const MaensRoute &route, int32_t position) const {
    const auto i = at(position);
    return int64_t{route.gap[i - 1]} + tables_.arc(route.arcs[i]).service_cost +
           route.gap[i] + tables_.arc(route.arcs[i + 1]).service_cost +
           route.gap[i + 1] -
           tables_.network().distances_from(route.end[i - 1])[route.start[i + 2]] +
           (route.size() == 2 ? tables_.route_cost() : 0);
}

void MaensMoves::insertions(int32_t from, int32_t to, MoveFront &front) const {
    const MaensRoute &source = plan_.route(from);
    const MaensRoute &target = plan_.route(to);
    const int64_t excess_before =
        tables_.excess(source.load) + tables_.excess(target.load);
    const auto excess_change = [&](int64_t moved) {
        return tables_.excess(source.load - moved) +
               tables_.excess(target.load + moved) - excess_before;
    };
    const int32_t gaps = target.size() + 1;
    for (int32_t i = 1; i <= source.size(); ++i) {
        const int32_t arc = source.arcs[at(i)];
        const int64_t gain = source.gain[at(i)];
        const int64_t excess = excess_change(tables_.arc(arc).demand);
        if (excess < 0 || source.floor[at(i)] - gain < front.limit()) {
            Move best{INT64_MAX, excess, MoveKind::insert_one, from, to, i, 0, arc, 0};
            Gap given, turned;
            find_gap_both(target, tables_, arc, given, turned);
            best.cost = given.detour + source.service_cost[at(i)] - gain;
            best.gap = given.at;
            const int64_t other =
                turned.detour + source.turned_service_cost[at(i)] - gain;
            if (other < best.cost) {
                best.cost = other;
                best.gap = turned.at;
                best.first = tables_.arc(arc).twin;
            }
            front.offer(best);
        }
        if (i == source.size()) {
            break;
        }
        const int32_t next = source.arcs[at(i + 1)];
        const int64_t both_gain = gain_of_two(source, i);
        const int64_t both_excess =
            excess_change(int64_t{tables_.arc(arc).demand} + tables_.arc(next).demand);
        Move best{INT64_MAX, both_excess, MoveKind::insert_two, from, to, i, 0, 0, 0};
        for (const int32_t a : Directions(tables_, arc)) {
            for (const int32_t b : Directions(tables_, next)) {
                const int64_t inner = int64_t{tables_.arc(a).service_cost} +
                                      tables_.network().deadhead(a, b) +
                                      tables_.arc(b).service_cost - both_gain;
                // By the triangle inequality no detour is less than minus this way.
                const int32_t way = tables_.network().distances_from(
                    tables_.arc(a).start)[tables_.arc(b).end];
                const int64_t least = inner - way;
                if (both_excess >= 0 && least >= std::min(front.limit(), best.cost)) {
                    continue;
                }
                Gap gap;
                find_gap(target, tables_.to(a), tables_.from(b), 0, gaps, gap);
                if (gap.detour + inner < best.cost) {
                    best.cost = gap.detour + inner;
                    best.gap = gap.at;
                    best.first = a;
                    best.second = b;
                }
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
    const int64_t excess_before = tables_.excess(one.load) + tables_.excess(two.load);
    // A swap empties no route: the fixed cost, part of the gain there, stays.
    const int64_t fixed = (one.size() == 1 ? tables_.route_cost() : 0) +
                          (two.size() == 1 ? tables_.route_cost() : 0);
    for (int32_t i = 1; i <= one.size(); ++i) {
        const auto k = at(i);
        const int32_t demand = tables_.arc(one.arcs[k]).demand;
        const int64_t loss = fixed - one.gain[k];
        const Place here(tables_, one, i);
        const int32_t *to_start = tables_.distances_to(one.start[k]);
        const int32_t *to_end = tables_.distances_to(one.end[k]);
        const int32_t *from_start = tables_.network().distances_from(one.start[k]);
        const int32_t *from_end = tables_.network().distances_from(one.end[k]);
        for (int32_t j = 1; j <= two.size(); ++j) {
            const auto m = at(j);
            const int64_t moved = int64_t{tables_.arc(two.arcs[m]).demand} - demand;
            const int64_t excess = tables_.excess(one.load + moved) +
                                   tables_.excess(two.load - moved) - excess_before;
            const int64_t limit = excess >= 0 ? front.limit() : INT64_MAX;
            const int64_t losses = loss - two.gain[m];
            if (losses + one.floor[k] + two.floor[m] >= limit) {
                continue;
            }
            const int64_t second = here.cheapest(two, m);
            if (losses + one.floor[k] + second >= limit) {
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
                given <= turned ? one.arcs[k] : tables_.arc(one.arcs[k]).twin;
            front.offer({cost, excess, MoveKind::swap, slot1, slot2, i, j, first,
                         here.direction(tables_, two, m)});
        }
    }
}

// One or two arcs to another gap of their route, or turned where they are.
void MaensMoves::inner_insertions(int32_t slot, int32_t length,
                                  MoveFront &front) const {
    const MaensRoute &route = plan_.route(slot);
    const int64_t fixed = route.size() == length ? tables_.route_cost() : 0;
    for (int32_t i = 1; i + length - 1 <= route.size(); ++i) {
        const int32_t last = i + length - 1;
        const int64_t gain =
            (length == 1 ? route.gain[at(i)] : gain_of_two(route, i)) - fixed;
        if (length == 1 && route.floor[at(i)] - gain >= front.limit()) {
            continue;
        }
        const int32_t before = route.end[at(i - 1)];
        const int32_t after = route.start[at(last + 1)];
        const int32_t closed = tables_.network().distances_from(before)[after];
        const Directions seconds(tables_, route.arcs[at(last)]);
        for (const int32_t a : Directions(tables_, route.arcs[at(i)])) {
            for (int k = 0; k < (length == 1 ? 1 : seconds.count); ++k) {
                const int32_t b = length == 1 ? a : seconds.arcs[k];
                int64_t inner = tables_.arc(a).service_cost;
                if (length == 2) {
                    inner += int64_t{tables_.network().deadhead(a, b)} +
                             tables_.arc(b).service_cost;
                }
                // By the triangle inequality no detour is less than minus this way.
                const int32_t way = tables_.network().distances_from(
                    tables_.arc(a).start)[tables_.arc(b).end];
                if (inner - way - gain >= front.limit()) {
                    continue;
                }
                const int32_t *to = tables_.to(a);
                const int32_t *from = tables_.from(b);
                Gap gap{to[before] + from[after] - closed, i - 1};
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
    const Network &network = tables_.network();
    for (int32_t i = 1; i < route.size(); ++i) {
        const int32_t a = route.arcs[at(i)];
        // Neighbours share a gap, so their directions depend on each other.
        const int32_t b = route.arcs[at(i + 1)];
        const int64_t now = int64_t{route.gap[at(i - 1)]} + route.gap[at(i)] +
                            route.gap[at(i + 1)] + tables_.arc(a).service_cost +
                            tables_.arc(b).service_cost;
        for (const int32_t first : Directions(tables_, a)) {
            for (const int32_t second : Directions(tables_, b)) {
                const int64_t then = int64_t{tables_.to(second)[route.end[at(i - 1)]]} +
                                     tables_.arc(second).service_cost +
                                     network.deadhead(second, first) +
                                     tables_.arc(first).service_cost +
                                     tables_.from(first)[route.start[at(i + 2)]];
                front.offer({then - now, 0, MoveKind::swap, slot, slot, i, i + 1, first,
                             second});
            }
        }
        const Place here(tables_, route, i);
        for (int32_t j = i + 2; j <= route.size(); ++j) {
            const int64_t gain = route.gain[at(i)] + route.gain[at(j)];
            if (route.floor[at(i)] + route.floor[at(j)] - gain >= front.limit()) {
                continue;
            }
            const Place there(tables_, route, j);
            const int64_t cost =
                there.cheapest(route, at(i)) + here.cheapest(route, at(j)) - gain;
            front.offer({cost, 0, MoveKind::swap, slot, slot, i, j,
                         there.direction(tables_, route, at(i)),
                         here.direction(tables_, route, at(j))});
        }
    }
}

// A route of its own for one arc, or for two in a row of a longer route.
void MaensMoves::to_new_route(int32_t slot, MoveFront &front) const {
    const MaensRoute &route = plan_.route(slot);
    if (route.size() < 2) {
        return;
    }
    const int64_t excess_before = tables_.excess(route.load);
    const auto excess_change = [&](int64_t moved) {
        return tables_.excess(route.load - moved) + tables_.excess(moved) -
               excess_before;
    };
    for (int32_t i = 1; i <= route.size(); ++i) {
        const int32_t arc = route.arcs[at(i)];
        const int64_t one_excess = excess_change(tables_.arc(arc).demand);
        for (const int32_t a : Directions(tables_, arc)) {
            const int64_t alone = int64_t{tables_.to(a)[0]} + tables_.from(a)[0] +
                                  tables_.arc(a).service_cost + tables_.route_cost();
            front.offer({alone - route.gain[at(i)], one_excess, MoveKind::insert_one,
                         slot, kNewRoute, i, 0, a, a});
        }
        if (i == route.size() || route.size() == 2) {
            continue;
        }
        const int32_t next = route.arcs[at(i + 1)];
        const int64_t gain = gain_of_two(route, i);
        const int64_t both_excess =
            excess_change(int64_t{tables_.arc(arc).demand} + tables_.arc(next).demand);
        for (const int32_t a : Directions(tables_, arc)) {
            for (const int32_t b : Directions(tables_, next)) {
                const int64_t alone =
                    int64_t{tables_.to(a)[0]} + tables_.arc(a).service_cost +
                    tables_.network().deadhead(a, b) + tables_.arc(b).service_cost +
                    tables_.from(b)[0] + tables_.route_cost();
                front.offer({alone - gain, both_excess, MoveKind::insert_two, slot,
                             kNewRoute, i, 0, a, b});
            }
        }
    }
}

void MaensMoves::between(int32_t slot1, int32_t slot2, MoveFront &front) const {
    insertions(slot1, slot2, front);
    insertions(slot2, slot1, front);
    swaps(slot1, slot2, front);
}

void MaensMoves::alone(int32_t slot, MoveFront &front) const {
    inner_insertions(slot, 1, front);
    inner_insertions(slot, 2, front);
    inner_swaps(slot, front);
    to_new_route(slot, front);
}

} // namespace arcfleet
