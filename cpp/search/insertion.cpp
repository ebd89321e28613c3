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

InsertionPlace scan(const TaskTable &tasks, int32_t task, const LabelledRoute &route) {
    const Insertion insertion(tasks, task);
    const Visit *visits = route.visits.data();
    const auto end = static_cast<int32_t>(route.visits.size());
    int64_t least = std::numeric_limits<int64_t>::max();
    for (int32_t place = 1; place < end; ++place) {
        const int64_t cost = insertion.cost(visits[place - 1], visits[place]);
        least = std::min(least, cost << 32 | place);
    }
    return unpack(least);
}

#ifdef ARCFLEET_LANES
template <typename Distances>
[[gnu::always_inline]] inline InsertionPlace scan_route(const TaskEnds &ends,
                                                        const Distances &distances,
                                                        const LabelledRoute &route) {
    const Visit *visits = route.visits.data();
    const Lanes service{ends.forward_cost, ends.reverse_cost, 0, 0};
    return unpack(scan_lanes(ends, distances, visits + 1, visits + route.visits.size(),
                             1, distances.depot() + service));
}

ARCFLEET_CLONES InsertionPlace scan_symmetric(const TaskEnds &ends,
                                              const EndDistances *distances,
                                              const LabelledRoute &route) {
    return scan_route(ends, SymmetricLanes{distances}, route);
}

ARCFLEET_CLONES InsertionPlace scan_long(const TaskEnds &ends, const LongPair *pairs,
                                         const LabelledRoute &route) {
    return scan_route(ends, DirectedLanes<LongPair>{pairs, 0}, route);
}

ARCFLEET_CLONES InsertionPlace scan_short(const TaskEnds &ends, const ShortPair *pairs,
                                          int32_t closed, const LabelledRoute &route) {
    return scan_route(ends, DirectedLanes<ShortPair>{pairs, closed}, route);
}
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

InsertionPlace cheapest_insertion(const TaskTable &tasks, int32_t task,
                                  const LabelledRoute &route) {
#ifdef ARCFLEET_LANES
    if (const EndDistances *distances = tasks.end_distances(task)) {
        return scan_symmetric(tasks.ends(task), distances, route);
    }
    if (const ShortPair *pairs = tasks.short_pairs(task)) {
        const int32_t closed = tasks.network().closed_cost();
        return scan_short(tasks.ends(task), pairs, closed, route);
    }
    if (const LongPair *pairs = tasks.long_pairs(task)) {
        return scan_long(tasks.ends(task), pairs, route);
    }
#endif
    return scan(tasks, task, route);
}

} // namespace arcfleet
