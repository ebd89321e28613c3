// Swaps a task with one of another route: each takes the place of the other, in
// whichever direction suits it there. Known as swap or (1, 1)-exchange (Osman 1993).
#pragma once

#include "search/insertion.h"
#include "search/moves/move.h"

#include <utility>

namespace arcfleet {

struct SwapTasks {
    static std::optional<MoveDelta> evaluate(const MoveSite &site) {
        const Visit *here = &site.first_visit();
        const Visit *there = &site.second.visits[other_place(site)];
        const int64_t more = int64_t{site.demand(*there)} - site.demand(*here);
        const int64_t first_load = site.first.load + more;
        const int64_t second_load = site.second.load - more;
        if (!site.allows(first_load, second_load)) {
            return std::nullopt;
        }
        return MoveDelta{
            {first_load, Insertion(site.tasks, there->task).cost(here[-1], here[1])},
            {second_load, Insertion(site.tasks, here->task).cost(there[-1], there[1])},
            false};
    }

    static void apply(const MoveSite &site, Visits &first, Visits &second) {
        std::swap(first[site.first_place], second[other_place(site)]);
    }

  private:
    // The near task, or now and then the one before or after it.
    static size_t other_place(const MoveSite &site) {
        const size_t place = site.second_place;
        if (site.draw == 0 && place + 2 < site.second.visits.size()) {
            return place + 1;
        }
        return site.draw == 1 && place > 1 ? place - 1 : place;
    }
};

} // namespace arcfleet
