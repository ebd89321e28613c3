// Moves within one route, for routes that are long: a few tasks go to another place
// (Or-opt; Or 1976), or a stretch is driven the other way round (2-opt; Croes 1958).
// All directions are chosen anew, so that a move is evaluated by walking through the
// stretch that it changes.
#pragma once

#include "base/index.h"
#include "base/random.h"
#include "search/labelled_route.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <vector>

namespace arcfleet {

// A new order of visits[first] .. visits[last - 1], of two parts.
struct WithinRoute {
    struct Part {
        int32_t first;
        int32_t last; // one behind
        bool backwards;
    };
    std::array<Part, 2> parts; // in the new order

    int32_t first() const { return std::min(parts[0].first, parts[1].first); }
    int32_t last() const { return std::max(parts[0].last, parts[1].last); }

    // Reverses the stretch between two places such that the tasks there become
    // neighbours.
    static WithinRoute reverse(int32_t one, int32_t other) {
        const int32_t first = one < other ? one + 1 : other;
        const int32_t last = one < other ? other + 1 : one;
        return {{{{first, last, true}, {last, last, false}}}};
    }
    // Moves `count` tasks from visits[from] on to in front of visits[to].
    static WithinRoute move(int32_t from, int32_t count, int32_t to, bool backwards) {
        const Part moved{from, from + count, backwards};
        if (to > from) {
            return {{{{from + count, to, false}, moved}}};
        }
        return {{{moved, {to, from, false}}}};
    }

    // A move at two places, within first .. last - 1; none where it would change
    // nothing or too much. The number tells which: they take turns.
    static std::optional<WithinRoute> draw(size_t number, int32_t one, int32_t other,
                                           int32_t last, uint32_t draw,
                                           Random &random) {
        if (std::abs(one - other) > kLongestStretch) {
            return std::nullopt;
        }
        if (number % 2 == 0) {
            return std::abs(one - other) < 2 ? std::nullopt
                                             : std::optional(reverse(one, other));
        }
        // So many tasks from the first on, if the second is not among them.
        const auto count = 1 + static_cast<int32_t>(random.below(kMostMoved));
        const int32_t to = other + static_cast<int32_t>(draw % 2);
        if (one + count > last || (to >= one && to <= one + count)) {
            return std::nullopt;
        }
        return move(one, count, to, draw >= 2);
    }

    // Cost of the route after the move.
    int32_t cost(const TaskTable &tasks, const LabelledRoute &route) const {
        const Visit *visits = route.visits.data();
        Joint at = head(visits[first() - 1]);
        for (const Part &part : parts) {
            if (part.backwards) {
                for (int32_t i = part.last - 1; i >= part.first; --i) {
                    at = served_after(tasks, at, visits[i]);
                }
            } else {
                for (int32_t i = part.first; i < part.last; ++i) {
                    at = served_after(tasks, at, visits[i]);
                }
            }
        }
        return joined_cost(tasks, at, tail(visits[last()]));
    }

    template <typename AnyVisit> void apply(std::vector<AnyVisit> &visits) const {
        for (const Part &part : parts) {
            if (part.backwards) {
                std::reverse(visits.begin() + part.first, visits.begin() + part.last);
            }
        }
        if (parts[0].first > parts[1].first) {
            std::rotate(visits.begin() + parts[1].first,
                        visits.begin() + parts[0].first,
                        visits.begin() + parts[0].last);
        }
    }

    // In routes of so many tasks it is worth trying: in shorter ones what is taken out
    // and put back does as much.
    static constexpr int32_t kLongRoute = 40;

  private:
    // Stretches have at most so many tasks, and so many are moved at a time.
    static constexpr int32_t kLongestStretch = 200;
    static constexpr uint32_t kMostMoved = 3;

    static Joint served_after(const TaskTable &tasks, const Joint &at,
                              const Visit &visit) {
        const TaskEnds &ends = tasks.ends(visit.task);
        const int32_t *from_u = tasks.from(at.u);
        const int32_t *from_v = tasks.from(at.v);
        const int32_t at_u =
            std::min(at.cost_at_u + from_u[ends.u], at.cost_at_v + from_v[ends.u]);
        const int32_t at_v =
            std::min(at.cost_at_u + from_u[ends.v], at.cost_at_v + from_v[ends.v]);
        return {ends.u, ends.v, std::min(at_v + ends.reverse_cost, kForbidden),
                at_u + ends.forward_cost};
    }
};

} // namespace arcfleet
