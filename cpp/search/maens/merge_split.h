// Merge-split, the large step of MAENS: the tasks of two routes are planned anew by
// path scanning under each of five rules, and each order is cut optimally (Ulusoy
// 1985). The outcome depends on the set of tasks alone, so it is remembered by that
// set, over all plans of a run.
#pragma once

#include "base/prefetch.h"
#include "search/maens/rule_scanner.h"
#include "search/maens/tables.h"

#include <cstdint>
#include <vector>

namespace arcfleet {

class MergeSplit {
  public:
    explicit MergeSplit(const MaensTables &tables);

    // Cost of the best routes for these tasks, remembered or found anew. Where it is
    // not below `limit`, any number that is not either: most scans end early.
    int64_t cost(const std::vector<int32_t> &tasks, int64_t limit);
    // The same for the tasks whose hashes have this sum; negative if not remembered.
    int64_t remembered(uint64_t hash, int64_t limit) const;
    // Announces that `remembered` will soon be asked for this hash.
    void expect(uint64_t hash) const { prefetch(&memory_[hash % kMemory]); }
    // Finds the best routes for these tasks; they are in `routes` until the next call.
    // INT64_MAX where none cost less than `limit`.
    int64_t plan(const std::vector<int32_t> &tasks, int64_t limit);
    const Plan &routes() const { return best_; }

  private:
    static constexpr size_t kMemory = size_t{1} << 17;

    // Four of them fill a line of the cache.
    struct Remembered {
        uint64_t hash = 0;
        int64_t twice_cost = 1; // and one more where the cost is that or above
        bool answers(int64_t limit) const {
            return twice_cost % 2 == 0 || twice_cost / 2 >= limit;
        }
    };
    const MaensTables &tables_;
    RuleScanner scanner_;
    std::vector<Remembered> memory_;
    Plan best_;
};

} // namespace arcfleet
