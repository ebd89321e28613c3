#include "search/insertion.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
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

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define ARCFLEET_LANES
#endif
#endif

#ifdef ARCFLEET_LANES
using Lanes = int32_t __attribute__((vector_size(16)));

// What is copied into lanes as a whole.
static_assert(sizeof(EndDistances) == 8);
static_assert(offsetof(Visit, from_v) == offsetof(Visit, done_at_u) + 12);

Lanes twice(const EndDistances &distances) {
    using Halves = int64_t __attribute__((vector_size(16)));
    int64_t both = 0;
    std::memcpy(&both, &distances, sizeof both);
    return reinterpret_cast<Lanes>(Halves{both, both});
}

// Where distances are the same both ways, each serves twice: on the way to a visit and
// on the way from it.
struct SymmetricLanes {
    const EndDistances *distances;

    Lanes depot() const { return twice(distances[0]); }
    Lanes at_u(const Visit &visit) const { return twice(distances[visit.u]); }
    Lanes at_v(const Visit &visit) const { return twice(distances[visit.v]); }
};

template <typename Pair> struct DirectedLanes {
    const Pair *distances;
    int32_t closed; // what kShortClosed stands for

    Lanes load(const int32_t *four) const {
        Lanes lanes;
        std::memcpy(&lanes, four, sizeof lanes);
        return lanes;
    }
    Lanes load(const uint16_t *four) const {
        uint16_t numbers __attribute__((vector_size(8)));
        std::memcpy(&numbers, four, sizeof numbers);
        const Lanes lanes = __builtin_convertvector(numbers, Lanes);
        return lanes + ((lanes == kShortClosed) & (closed - kShortClosed));
    }
    Lanes depot() const { return load(distances[0].at_u); }
    Lanes at_u(const Visit &visit) const {
        return load(distances[visit.task + 1].at_u);
    }
    Lanes at_v(const Visit &visit) const {
        return load(distances[visit.task + 1].at_v);
    }
};

// `scan` with four numbers at a time: the task reached from the visit at u and at v,
// the way home by the visit from u and from v.
template <typename Distances>
[[gnu::always_inline]] inline InsertionPlace scan_lanes(const TaskEnds &ends,
                                                        const Distances &distances,
                                                        const LabelledRoute &route) {
    const Visit *visits = route.visits.data();
    const auto end = static_cast<int32_t>(route.visits.size());
    const Lanes service{ends.forward_cost, ends.reverse_cost, 0, 0};
    // With the task served, at v and at u, after the visit before.
    Lanes done = distances.depot() + service;
    Lanes least{INT32_MAX, INT32_MAX, 0, 0};
    Lanes least_place{};
    Lanes place{1, 1, 1, 1};
    for (const Visit *visit = visits + 1; visit < visits + end; ++visit) {
        Lanes labels;
        std::memcpy(&labels, &visit->done_at_u, sizeof labels);
        const Lanes by_u = __builtin_shufflevector(labels, labels, 0, 0, 2, 2) +
                           distances.at_u(*visit);
        const Lanes by_v = __builtin_shufflevector(labels, labels, 1, 1, 3, 3) +
                           distances.at_v(*visit);
        const Lanes nearer = by_u < by_v ? by_u : by_v;
        const Lanes cost = done + __builtin_shufflevector(nearer, nearer, 3, 2, 3, 2);
        const auto less = cost < least;
        least = less ? cost : least;
        least_place = less ? place : least_place;
        done = nearer + service;
        place += 1;
    }
    return unpack(std::min(int64_t{least[0]} << 32 | least_place[0],
                           int64_t{least[1]} << 32 | least_place[1]));
}

// Before AVX there is no least of two vectors of integers. The program picks the clone
// for its processor when it is loaded, before the sanitizer is ready for it.
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) &&                \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define ARCFLEET_CLONES __attribute__((target_clones("default", "avx")))
#else
#define ARCFLEET_CLONES
#endif

ARCFLEET_CLONES InsertionPlace scan_symmetric(const TaskEnds &ends,
                                              const EndDistances *distances,
                                              const LabelledRoute &route) {
    return scan_lanes(ends, SymmetricLanes{distances}, route);
}

ARCFLEET_CLONES InsertionPlace scan_long(const TaskEnds &ends, const LongPair *pairs,
                                         const LabelledRoute &route) {
    return scan_lanes(ends, DirectedLanes<LongPair>{pairs, 0}, route);
}

ARCFLEET_CLONES InsertionPlace scan_short(const TaskEnds &ends, const ShortPair *pairs,
                                          int32_t closed, const LabelledRoute &route) {
    return scan_lanes(ends, DirectedLanes<ShortPair>{pairs, closed}, route);
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
