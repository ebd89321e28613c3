// Merge-split, the large step of MAENS: the tasks of two routes are planned anew by
// path scanning under each of five rules, and each order is cut optimally (Ulusoy
// 1985). The outcome depends on the set of tasks alone, so it is remembered by that
// set, over all plans of a run.
#pragma once

#include "search/maens_scanner.h"
#include "search/maens_tables.h"

#include <cstdint>
#include <vector>

namespace arcfleet {

class MergeSplit {
  public:
    explicit MergeSplit(const MaensTables &tables);

    // Cost of the best routes for these tasks, remembered or found anew.
    int64_t cost(const std::vector<int32_t> &tasks);
    // Finds the best routes for these tasks; they are in `routes` until the next call.
    int64_t plan(const std::vector<int32_t> &tasks);
    const Plan &routes() const { return best_; }

    // Cuts the order of arcs in `order` into routes within capacity at least cost;
    // gives the cost, and the cuts in `order`.
    int64_t split(Plan &order);

  private:
    struct Remembered {
        uint64_t key = 0;
        int64_t cost = -1;
    };
    // An arc in the order to be cut: both ways to it include its service.
    struct Step {
        int64_t demand;
        int64_t home;
        int64_t from_depot;
        int64_t from_last;
    };
    const MaensTables &tables_;
    MaensScanner scanner_;
    std::vector<Remembered> memory_;
    std::vector<int32_t> sorted_;
    Plan trial_;
    Plan best_;
    std::vector<Step> steps_;
    std::vector<int64_t> value_; // cheapest way to serve the first so many arcs
    std::vector<int32_t> cut_;   // where the last of these routes begins
};

} // namespace arcfleet
