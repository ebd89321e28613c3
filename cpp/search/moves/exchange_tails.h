// Exchanges the tails of two routes: each route is cut, and the head of one goes on
// with the tail of the other. Where routes cost the same backwards, both heads are
// joined as well, and both tails, one of each driven backwards. Known as 2-opt* (Potvin
// and Rousseau 1995).
#pragma once

#include "search/moves/move.h"

#include <algorithm>

namespace arcfleet {

struct ExchangeTails {
    static std::optional<MoveDelta> evaluate(const MoveSite &site) {
        const bool backwards = is_backwards(site);
        const Cut one = first_cut(site);
        const Cut two = second_cut(site);
        const int64_t first_load =
            one.head_load() + (backwards ? two.head_load() : two.tail_load());
        const int64_t second_load =
            one.tail_load() + (backwards ? two.tail_load() : two.head_load());
        if (!site.allows(first_load, second_load)) {
            return std::nullopt;
        }
        // The first route keeps a task, the second may be left with none.
        const bool closes_route =
            !one.has_tail() && !(backwards ? two.has_tail() : two.has_head());
        MoveDelta delta{{first_load, 0}, {second_load, 0}, closes_route};
        if (backwards) {
            delta.first.cost =
                joined_cost(site.tasks, head(one.before()), head(two.before()));
            delta.second.cost =
                joined_cost(site.tasks, tail(one.after()), tail(two.after()));
        } else {
            delta.first.cost =
                joined_cost(site.tasks, head(one.before()), tail(two.after()));
            delta.second.cost =
                joined_cost(site.tasks, head(two.before()), tail(one.after()));
        }
        return delta;
    }

    static void apply(const MoveSite &site, Visits &first, Visits &second) {
        // The tail of the first route takes the place of the tail of the second, or,
        // turned round, of its head.
        const auto tail = first.begin() + difference(first_cut(site).place);
        const auto cut = second.begin() + difference(second_cut(site).place);
        if (is_backwards(site)) {
            std::reverse(tail, first.end() - 1);
            std::reverse(second.begin() + 1, cut);
            exchange(first, tail, first.end() - 1, second, second.begin() + 1, cut);
        } else {
            exchange(first, tail, first.end() - 1, second, cut, second.end() - 1);
        }
    }

  private:
    // A route cut in front of visits[place].
    struct Cut {
        const LabelledRoute &route;
        size_t place;

        const Visit &before() const { return route.visits[place - 1]; }
        const Visit &after() const { return route.visits[place]; }
        int64_t head_load() const { return before().load; }
        int64_t tail_load() const { return route.load - before().load; }
        bool has_head() const { return place > 1; }
        bool has_tail() const { return place + 1 < route.visits.size(); }
    };

    static bool is_backwards(const MoveSite &site) {
        return site.tasks.reversible() && site.draw % 2 == 1;
    }
    // The first route is cut behind the task; the second where the other task becomes
    // its neighbour.
    static Cut first_cut(const MoveSite &site) {
        return {site.first, site.first_place + 1};
    }
    static Cut second_cut(const MoveSite &site) {
        return {site.second, site.second_place + (is_backwards(site) ? 1 : 0)};
    }
    static std::ptrdiff_t difference(size_t place) {
        return static_cast<std::ptrdiff_t>(place);
    }
    // Exchanges two stretches, which may differ in length.
    static void exchange(Visits &first, Visits::iterator one, Visits::iterator one_end,
                         Visits &second, Visits::iterator two,
                         Visits::iterator two_end) {
        while (one != one_end && two != two_end) {
            std::swap(*one++, *two++);
        }
        if (one != one_end) {
            second.insert(two, one, one_end);
            first.erase(one, one_end);
        } else if (two != two_end) {
            first.insert(one, two, two_end);
            second.erase(two, two_end);
        }
    }
};

} // namespace arcfleet
