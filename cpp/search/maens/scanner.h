// Path scanning with chance: always to the nearest arc that fits, with a uniform choice
// among the nearest (Belenguer et al. 2006).
#pragma once

#include "base/random.h"
#include "search/maens/tables.h"

#include <cstdint>
#include <vector>

namespace arcfleet {

class MaensScanner {
  public:
    explicit MaensScanner(const MaensTables &tables);

    // Appends the routes for these tasks to `plan`, whose last route start is its end.
    void scan_random(const std::vector<int32_t> &tasks, Random &random, Plan &plan);

  private:
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
