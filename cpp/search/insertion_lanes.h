// Looks through the places of a route four numbers at a time: the task reached from a
// visit at u and at v, the way home by the visit from u and from v.
#pragma once

#include "search/labelled_route.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define ARCFLEET_LANES
#endif
#endif

// Before AVX there is no least of two vectors of integers. The program picks the clone
// for its processor when it is loaded, before the sanitizer is ready for it.
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) &&                \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define ARCFLEET_CLONES __attribute__((target_clones("default", "avx")))
#else
#define ARCFLEET_CLONES
#endif

#ifdef ARCFLEET_LANES
namespace arcfleet {

using Lanes = int32_t __attribute__((vector_size(16)));

// What is copied into lanes as a whole.
static_assert(sizeof(EndDistances) == 8);

inline Lanes twice(const EndDistances &distances) {
    using Halves = int64_t __attribute__((vector_size(16)));
    int64_t both = 0;
    std::memcpy(&both, &distances, sizeof both);
    return reinterpret_cast<Lanes>(Halves{both, both});
}

// What is between the task and both ends of a visit: to u, to v, from u, from v.
struct VisitLanes {
    Lanes at_u;
    Lanes at_v;
};

// Where distances are the same both ways, each serves twice: on the way to a visit and
// on the way from it.
struct SymmetricLanes {
    const EndDistances *distances;

    template <typename AnyVisit> VisitLanes at(const AnyVisit &visit) const {
        return {twice(distances[visit.u]), twice(distances[visit.v])};
    }
};

struct LongLanes {
    const LongPair *distances;

    template <typename AnyVisit> VisitLanes at(const AnyVisit &visit) const {
        return load(distances[visit.task + 1]);
    }

  private:
    static VisitLanes load(const LongPair &pair) {
        VisitLanes lanes;
        std::memcpy(&lanes.at_u, pair.at_u, sizeof lanes.at_u);
        std::memcpy(&lanes.at_v, pair.at_v, sizeof lanes.at_v);
        return lanes;
    }
};

// Short numbers become long ones side by side with their high halves: one instruction
// for four of them, where GCC takes six for __builtin_convertvector.
class ShortLanes {
  public:
    explicit ShortLanes(const ShortPair *distances) : distances_(distances) {}

    // Ways that turn rules close count as kShortClosed only.
    template <typename AnyVisit>
    [[gnu::always_inline]] VisitLanes at(const AnyVisit &visit) const {
        return interleaved(load(visit), Halves{});
    }

  protected:
    using Halves = uint16_t __attribute__((vector_size(16)));
    static_assert(sizeof(ShortPair) == sizeof(Halves));

    template <typename AnyVisit>
    [[gnu::always_inline]] Halves load(const AnyVisit &visit) const {
        Halves numbers;
        std::memcpy(&numbers, distances_ + (visit.task + 1), sizeof numbers);
        return numbers;
    }
    [[gnu::always_inline]] static VisitLanes interleaved(Halves low, Halves high) {
        if constexpr (std::endian::native == std::endian::big) {
            std::swap(low, high);
        }
        return {reinterpret_cast<Lanes>(
                    __builtin_shufflevector(low, high, 0, 8, 1, 9, 2, 10, 3, 11)),
                reinterpret_cast<Lanes>(
                    __builtin_shufflevector(low, high, 4, 12, 5, 13, 6, 14, 7, 15))};
    }

  private:
    const ShortPair *distances_;
};

// The same where closed ways count as what they cost.
class ExactShortLanes : ShortLanes {
  public:
    ExactShortLanes(const ShortPair *distances, int32_t closed)
        : ShortLanes(distances),
          low_(Halves{} + static_cast<uint16_t>(closed - kShortClosed)),
          high_(Halves{} + static_cast<uint16_t>(closed >> 16)) {}

    template <typename AnyVisit>
    [[gnu::always_inline]] VisitLanes at(const AnyVisit &visit) const {
        const Halves numbers = load(visit);
        const auto is_closed = reinterpret_cast<Halves>(numbers == kShortClosed);
        return interleaved(numbers + (is_closed & low_), is_closed & high_);
    }

  private:
    // What a closed way costs: what its low half is more than kShortClosed, without
    // what is carried, and its high half.
    Halves low_;
    Halves high_;
};

// The task reached from a visit, at u and at v, and the way home by the visit, from u
// and from v.
template <typename Distances, typename AnyVisit>
[[gnu::always_inline]] inline Lanes nearest_ends(const Distances &distances,
                                                 const AnyVisit &visit) {
    static_assert(offsetof(AnyVisit, from_v) == offsetof(AnyVisit, done_at_u) + 12);
    Lanes labels;
    std::memcpy(&labels, &visit.done_at_u, sizeof labels);
    const VisitLanes ways = distances.at(visit);
    const Lanes by_u = __builtin_shufflevector(labels, labels, 0, 0, 2, 2) + ways.at_u;
    const Lanes by_v = __builtin_shufflevector(labels, labels, 1, 1, 3, 3) + ways.at_v;
    return by_u < by_v ? by_u : by_v;
}

// The way home once the task is served, at v and at u.
[[gnu::always_inline]] inline Lanes home_lanes(Lanes nearest) {
    return __builtin_shufflevector(nearest, nearest, 3, 2, 3, 2);
}

// The least of the costs that are offered, with the task served at v and at u, and
// which of them it is.
struct LeastLanes {
    Lanes cost{INT32_MAX, INT32_MAX, 0, 0};
    Lanes number{};

    [[gnu::always_inline]] void offer(Lanes other, Lanes other_number) {
        const auto less = other < cost;
        cost = less ? other : cost;
        number = less ? other_number : number;
    }
    // Cost in the high half, number in the low half.
    [[gnu::always_inline]] int64_t packed() const {
        return std::min(int64_t{cost[0]} << 32 | number[0],
                        int64_t{cost[1]} << 32 | number[1]);
    }
};

// The least cost of the route, and its place, over the places in front of `visit` ..
// `end` - 1, the first of which is `first`. `done` has the task served, at v and at u,
// after the visit before. Written out, not by the parts above: with those it lost some
// speed where routes are long.
template <typename Distances, typename AnyVisit>
[[gnu::always_inline]] inline int64_t
scan_lanes(const TaskEnds &ends, const Distances &distances, const AnyVisit *visit,
           const AnyVisit *end, int32_t first, Lanes done) {
    const Lanes service{ends.forward_cost, ends.reverse_cost, 0, 0};
    Lanes least{INT32_MAX, INT32_MAX, 0, 0};
    Lanes least_place{};
    Lanes place{first, first, first, first};
    for (; visit < end; ++visit) {
        Lanes labels;
        std::memcpy(&labels, &visit->done_at_u, sizeof labels);
        const VisitLanes ways = distances.at(*visit);
        const Lanes by_u =
            __builtin_shufflevector(labels, labels, 0, 0, 2, 2) + ways.at_u;
        const Lanes by_v =
            __builtin_shufflevector(labels, labels, 1, 1, 3, 3) + ways.at_v;
        const Lanes nearer = by_u < by_v ? by_u : by_v;
        const Lanes cost = done + __builtin_shufflevector(nearer, nearer, 3, 2, 3, 2);
        const auto less = cost < least;
        least = less ? cost : least;
        least_place = less ? place : least_place;
        done = nearer + service;
        place += 1;
    }
    return std::min(int64_t{least[0]} << 32 | least_place[0],
                    int64_t{least[1]} << 32 | least_place[1]);
}

} // namespace arcfleet
#endif
