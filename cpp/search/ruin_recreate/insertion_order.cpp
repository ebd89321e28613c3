#include "search/ruin_recreate/insertion_order.h"

#include <algorithm>
#include <utility>

namespace arcfleet {

void InsertionOrder::sort(std::vector<int32_t> &removed, Random &random) {
    for (size_t i = removed.size(); i > 1; --i) {
        std::swap(removed[i - 1], removed[random.below(static_cast<uint32_t>(i))]);
    }
    const uint32_t draw = random.below(11);
    if (draw < 4) {
        return; // stays random
    }
    const auto key = [&](int32_t task) {
        const TaskEnds &ends = tasks_.ends(task);
        if (draw < 8) {
            return -ends.demand;
        }
        const int32_t far = std::min(tasks_.from(0)[ends.u], tasks_.from(0)[ends.v]);
        return draw < 10 ? -far : far;
    };
    // By rank: about ten tasks, so that comparing all pairs costs less than branches
    // that cannot be foretold. Of equal ones the first stays first.
    const size_t size = removed.size();
    shuffled_ = removed;
    keys_.resize(size);
    ranks_.assign(size, 0);
    for (size_t i = 0; i < size; ++i) {
        keys_[i] = key(shuffled_[i]);
    }
    for (size_t i = 0; i < size; ++i) {
        int32_t rank = ranks_[i];
        for (size_t j = i + 1; j < size; ++j) {
            const int32_t swapped = keys_[j] < keys_[i];
            rank += swapped;
            ranks_[j] += 1 - swapped;
        }
        removed[idx(rank)] = shuffled_[i];
    }
}

} // namespace arcfleet
