#include "search/insertion.h"

#include "search/insertion_lanes.h"

#include <algorithm>
#include <limits>

namespace arcfleet {

namespace {

// Cost in the high half, place in the low half: the least is found without branches.
InsertionPlace unpack(int64_t packed) {
    return {packed >> 32, static_cast<int32_t>(packed & 0xFFFFFFFF)};
}

InsertionPlace scan(const TaskTable &tasks, int32_t task, const LabelledRoute &route,
                    int32_t first, int32_t end) {
    const Insertion insertion(tasks, task);
    const Visit *visits = route.visits.data();
    int64_t least = std::numeric_limits<int64_t>::max();
    for (int32_t place = first; place < end; ++place) {
        const int64_t cost = insertion.cost(visits[place - 1], visits[place]);
        least = std::min(least, cost << 32 | place);
    }
    return unpack(least);
}

#ifdef ARCFLEET_LANES
template <typename Distances>
[[gnu::always_inline]] inline InsertionPlace
scan_route(const TaskEnds &ends, const Distances &distances, const Visit *visits,
           int32_t first, int32_t end) {
    const Lanes service{ends.forward_cost, ends.reverse_cost, 0, 0};
    return unpack(scan_lanes(ends, distances, visits + first, visits + end, first,
                             nearest_ends(distances, visits[first - 1]) + service));
}

ARCFLEET_CLONES InsertionPlace scan_symmetric(const TaskEnds &ends,
                                              const EndDistances *distances,
                                              const Visit *visits, int32_t first,
                                              int32_t end) {
    return scan_route(ends, SymmetricLanes{distances}, visits, first, end);
}

ARCFLEET_CLONES InsertionPlace scan_long(const TaskEnds &ends, const LongPair *pairs,
                                         const Visit *visits, int32_t first,
                                         int32_t end) {
    return scan_route(ends, LongLanes{pairs}, visits, first, end);
}

ARCFLEET_CLONES InsertionPlace scan_short(const TaskEnds &ends, const ShortPair *pairs,
                                          const Visit *visits, int32_t first,
                                          int32_t end) {
    return scan_route(ends, ShortLanes(pairs), visits, first, end);
}

ARCFLEET_CLONES InsertionPlace scan_short_exactly(const TaskEnds &ends,
                                                  const ShortPair *pairs,
                                                  int32_t closed, const Visit *visits,
                                                  int32_t first, int32_t end) {
    return scan_route(ends, ExactShortLanes(pairs, closed), visits, first, end);
}

// Over so many places it is sooner done to count closed ways as kShortClosed, which is
// less than they cost, and to look again where that made a difference.
constexpr int32_t kWorthVerifying = 16;
#endif

} // namespace

InsertionPlace cheapest_other_insertion(const TaskTable &tasks, int32_t task,
                                        const LabelledRoute &route,
                                        const std::vector<int32_t> &places) {
    const Insertion insertion(tasks, task);
    const Visit *visits = route.visits.data();
    const auto end = static_cast<int32_t>(route.visits.size());
    InsertionPlace cheapest{std::numeric_limits<int64_t>::max() / 2, -1};
    auto skipped = places.begin();
    for (int32_t place = 1; place < end; ++place) {
        if (skipped != places.end() && *skipped == place) {
            ++skipped;
            continue;
        }
        const int64_t cost = insertion.cost(visits[place - 1], visits[place]);
        if (cost < cheapest.cost) {
            cheapest = {cost, place};
        }
    }
    return cheapest;
}

InsertionPlace cheapest_insertion_between(const TaskTable &tasks, int32_t task,
                                          const LabelledRoute &route, int32_t first,
                                          int32_t end) {
#ifdef ARCFLEET_LANES
    const TaskEnds &ends = tasks.ends(task);
    const Visit *visits = route.visits.data();
    if (const EndDistances *distances = tasks.end_distances(task)) {
        return scan_symmetric(ends, distances, visits, first, end);
    }
    if (const ShortPair *pairs = tasks.short_pairs(task)) {
        const int32_t closed = tasks.network().closed_cost();
        if (closed == 0 || end - first >= kWorthVerifying) {
            const InsertionPlace found = scan_short(ends, pairs, visits, first, end);
            // No place costs less than it was counted. What costs less than one closed
            // way has none.
            if (closed == 0 || found.cost < kShortClosed ||
                found.cost == Insertion(tasks, task)
                                  .cost(visits[found.place - 1], visits[found.place])) {
                return found;
            }
        }
        return scan_short_exactly(ends, pairs, closed, visits, first, end);
    }
    if (const LongPair *pairs = tasks.long_pairs(task)) {
        return scan_long(ends, pairs, visits, first, end);
    }
#endif
    return scan(tasks, task, route, first, end);
}

} // namespace arcfleet
