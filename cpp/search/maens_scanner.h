// Path scanning over a few tasks alone, as merge-split needs it: always to the nearest
// arc that fits, ties by one of five rules or by chance; what it gives depends on the
// set of tasks only, not on their order.
#pragma once

#include "base/random.h"
#include "search/maens_tables.h"

#include <cstdint>
#include <vector>

namespace arcfleet {

enum class ScanRule : int32_t {
    far_from_depot,
    near_to_depot,
    most_demand_per_cost,
    least_demand_per_cost,
    out_then_home, // far while less than half full, near from then on
};

class MaensScanner {
  public:
    explicit MaensScanner(const MaensTables &tables);

    // Appends the routes for these tasks to `plan`, whose last route start is its end.
    void scan(const std::vector<int32_t> &tasks, ScanRule rule, Plan &plan);
    // The same with a uniform choice among the nearest arcs (Belenguer et al. 2006).
    void scan_random(const std::vector<int32_t> &tasks, Random &random, Plan &plan);

  private:
    template <typename Choose>
    void build(const std::vector<int32_t> &tasks, Choose choose, Plan &plan);
    bool better(ScanRule rule, int32_t a, int32_t b, int64_t load) const;
    int32_t best_tie(ScanRule rule, int64_t load) const;

    struct Candidate {
        int32_t arc;
        int32_t start;
        int32_t demand;
    };
    const MaensTables &tables_;
    std::vector<Candidate> left_; // arcs of unserved tasks
    std::vector<size_t> place_;   // in left_, by arc
    std::vector<int32_t> ties_;   // the nearest that fit
};

} // namespace arcfleet
