// Recreate: puts tasks back one by one, each where it costs least, now and then
// overlooking a place (greedy insertion with blinks; Christiaens and Vanden Berghe
// 2020).
#pragma once

#include "base/random.h"
#include "search/insertion.h"
#include "search/ruin_recreate/penalties.h"

#include <cstdint>
#include <limits>
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
    // The cheapest place so far for the task at hand.
    struct Found {
        double price = std::numeric_limits<double>::infinity(); // of its excess, too
        int32_t slot = -1;
        int32_t place = -1;

        void offer(double other, int32_t its_slot, int32_t its_place) {
            if (other < price) {
                *this = {other, its_slot, its_place};
            }
        }
    };

    Found find_anywhere(int32_t task, const Penalties &penalties,
                        const CurrentPlan &plan, Random &random);
    Found find_nearby(int32_t task, const Penalties &penalties, const CurrentPlan &plan,
                      Random &random);
    bool overlooks(Random &random);
    InsertionPlace cheapest_place(const LabelledRoute &route, int32_t task,
                                  Random &random);
    [[gnu::noinline]] InsertionPlace blink(InsertionPlace cheapest,
                                           const LabelledRoute &route, int32_t task,
                                           Random &random);
    int64_t draw_places_to_blink(Random &random) const;

    const RuinRecreateTables &tables_;
    const TaskTable &tasks_;
    const RouteRules rules_;
    const double log_open_; // logarithm of the share of places not overlooked
    int64_t places_to_blink_ = 0;
    // By task: the last search for a place that looked in front of it.
    std::vector<int64_t> looked_in_front_of_;
    int64_t round_ = 0;
    std::vector<int32_t> overlooked_; // places in the route at hand
};

} // namespace arcfleet
