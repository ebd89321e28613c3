// Moves a task to another route, in front of a task near it or behind that one, in
// whichever direction suits it there. Known as relocate or (1, 0)-exchange (Osman
// 1993).
#pragma once

#include "search/insertion.h"
#include "search/moves/move.h"

namespace arcfleet {

struct RelocateTask {
    static std::optional<MoveDelta> evaluate(const MoveSite &site) {
        const Visit *here = &site.first_visit();
        const Visit *there = &site.second.visits[new_place(site)];
        const int64_t demand = site.demand(*here);
        const int64_t first_load = site.first.load - demand;
        const int64_t second_load = site.second.load + demand;
        if (!site.allows(first_load, second_load)) {
            return std::nullopt;
        }
        return MoveDelta{
            {first_load, joined_cost(site.tasks, head(here[-1]), tail(here[1]))},
            {second_load, Insertion(site.tasks, here->task).cost(there[-1], there[0])},
            site.first.num_tasks() == 1};
    }

    static void apply(const MoveSite &site, Visits &first, Visits &second) {
        const auto here = first.begin() + static_cast<std::ptrdiff_t>(site.first_place);
        second.insert(second.begin() + static_cast<std::ptrdiff_t>(new_place(site)),
                      *here);
        first.erase(here);
    }

  private:
    static size_t new_place(const MoveSite &site) {
        return site.second_place + site.draw % 2;
    }
};

} // namespace arcfleet
