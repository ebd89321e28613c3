// Where in a route a task costs least.
#pragma once

#include "search/labelled_route.h"

#include <cstdint>
#include <vector>

namespace arcfleet {

// Evaluates putting one task into routes. Both directions of the task and
// of all others in the route are considered.
class Insertion {
  public:
    Insertion(const TaskTable &tasks, int32_t task)
        : ends_(tasks.ends(task)), to_u_(tasks.to(ends_.u)), to_v_(tasks.to(ends_.v)),
          from_u_(tasks.from(ends_.u)), from_v_(tasks.from(ends_.v)) {}

    // Cost of the route with the task between `left` and `right`.
    int32_t cost(const Visit &left, const Visit &right) const {
        const int32_t at_u =
            std::min(left.done_at_u + to_u_[left.u], left.done_at_v + to_u_[left.v]);
        const int32_t at_v =
            std::min(left.done_at_u + to_v_[left.u], left.done_at_v + to_v_[left.v]);
        const int32_t home_from_u =
            std::min(from_u_[right.u] + right.from_u, from_u_[right.v] + right.from_v);
        const int32_t home_from_v =
            std::min(from_v_[right.u] + right.from_u, from_v_[right.v] + right.from_v);
        return std::min(at_u + ends_.forward_cost + home_from_v,
                        at_v + ends_.reverse_cost + home_from_u);
    }

  private:
    const TaskEnds &ends_;
    const int32_t *to_u_;
    const int32_t *to_v_;
    const int32_t *from_u_;
    const int32_t *from_v_;
};

// A place in front of visits[place], and what the route costs with the task put there.
struct InsertionPlace {
    int64_t cost;
    int32_t place;
};

// The cheapest of the places in front of visits[first] .. visits[end - 1], the first of
// them where several are.
InsertionPlace cheapest_insertion_between(const TaskTable &tasks, int32_t task,
                                          const LabelledRoute &route, int32_t first,
                                          int32_t end);

// The same over all places of a route.
inline InsertionPlace cheapest_insertion(const TaskTable &tasks, int32_t task,
                                         const LabelledRoute &route) {
    return cheapest_insertion_between(tasks, task, route, 1,
                                      static_cast<int32_t>(route.visits.size()));
}

// The same over all but these places, which rise. Where there is none, a cost beyond
// any other.
InsertionPlace cheapest_other_insertion(const TaskTable &tasks, int32_t task,
                                        const LabelledRoute &route,
                                        const std::vector<int32_t> &places);

} // namespace arcfleet
