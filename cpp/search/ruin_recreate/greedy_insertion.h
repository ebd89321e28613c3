// Recreate: puts tasks back one by one, each where it costs least, now and then
// overlooking a place (greedy insertion with blinks; Christiaens and Vanden Berghe
// 2020).
#pragma once

#include "base/random.h"
#include "search/insertion.h"
#include "search/ruin_recreate/penalties.h"

#include <cstdint>
#include <vector>

namespace arcfleet {

class GreedyInsertion {
  public:
    explicit GreedyInsertion(const RuinRecreateTables &tables);

    // Puts all removed tasks back. Gives up, with false, once the plan is certain to
    // cost more than `limit`.
    bool insert_all(const std::vector<int32_t> &removed, double limit,
                    const Penalties &penalties, CurrentPlan &plan, Random &random);

  private:
    InsertionPlace cheapest_place(const LabelledRoute &route, int32_t task,
                                  Random &random);
    [[gnu::noinline]] InsertionPlace blink(InsertionPlace cheapest,
                                           const LabelledRoute &route, int32_t task,
                                           Random &random);
    int64_t draw_places_to_blink(Random &random) const;

    const TaskTable &tasks_;
    const RouteRules rules_;
    const double log_open_; // logarithm of the share of places not overlooked
    int64_t places_to_blink_ = 0;
    std::vector<int32_t> overlooked_; // places in the route at hand
};

} // namespace arcfleet
