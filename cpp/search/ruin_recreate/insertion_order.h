// The order in which tasks that were taken out are put back.
#pragma once

#include "base/random.h"
#include "search/labelled_route.h"

#include <cstdint>
#include <vector>

namespace arcfleet {

class InsertionOrder {
  public:
    explicit InsertionOrder(const TaskTable &tasks) : tasks_(tasks) {}

    // Draws one: at random, by demand or by distance from the depot.
    void sort(std::vector<int32_t> &removed, Random &random);

  private:
    const TaskTable &tasks_;
    std::vector<int32_t> shuffled_;
    std::vector<int32_t> keys_;  // of these
    std::vector<int32_t> ranks_; // likewise
};

} // namespace arcfleet
