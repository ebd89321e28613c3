// The local search of MAENS: the best of all small moves, step by step, then
// merge-split over pairs of routes, then small moves again. Load above capacity has a
// price that halves after five steps within capacity and doubles after five beyond it.
#pragma once

#include "base/random.h"
#include "search/engine.h"
#include "search/maens/merge_split.h"
#include "search/maens/move_memory.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace arcfleet {

class MaensLocalSearch {
  public:
    MaensLocalSearch(const MaensTables &tables, int32_t merge_pairs);

    // `best_cost` is that of the best plan within capacity.
    void start(const Individual &individual, int64_t best_cost);

    enum class Outcome { stepped, finished, out_of_time };
    // Goes one step on. Where the time is up on the way, the next call takes over right
    // there, as if nothing had happened.
    Outcome step(Random &random, const Deadline &deadline);

    const MaensPlan &plan() const { return plan_; }
    // Whether the moves kept for untouched pairs equal those found anew; for checks.
    bool remembers_truly() const;

  private:
    enum class Phase { moves, merges, moves_again, done };

    double priced(int64_t cost, int64_t excess) const {
        return static_cast<double>(cost) + price_ * static_cast<double>(excess);
    }
    int64_t worth(int64_t excess) const;
    MoveFront &front(int32_t slot1, int32_t slot2);
    void touch(int32_t slot);
    bool too_late(int32_t slot1, int32_t slot2, const Deadline &deadline);
    bool refresh(const Deadline &deadline);
    bool best_move();
    void draw_pairs(Random &random);
    bool best_merge(const Deadline &deadline);
    void collect_tasks(int32_t slot1, int32_t slot2);
    void adapt_price();
    Outcome after_step(bool improved);

    const MaensTables &tables_;
    const int32_t merge_pairs_;
    MaensPlan plan_;
    MoveMemory moves_;
    MergeSplit merge_split_;
    Phase phase_ = Phase::done;
    int32_t steps_ = 0; // of this phase
    int64_t work_ = 0;  // since the last look at the clock
    double price_ = 0.0;
    int32_t steps_fitting_ = 0; // step starts within capacity, of the last five
    int32_t steps_counted_ = 0;
    // Moves by pair of slots, and the pairs to be looked at again.
    std::vector<MoveFront> fronts_;
    size_t row_ = 0;
    std::vector<std::pair<int32_t, int32_t>> outdated_;
    std::vector<uint8_t> is_touched_; // by slot
    std::vector<int32_t> touched_;
    // The merge-split step under way.
    bool merging_ = false;
    std::vector<std::pair<int32_t, int32_t>> pairs_;
    size_t next_pair_ = 0;
    std::pair<int32_t, int32_t> best_pair_;
    double best_change_ = 0.0;
    std::vector<int32_t> tasks_;
};

} // namespace arcfleet
