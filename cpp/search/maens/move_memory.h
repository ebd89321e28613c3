// Remembers the moves found for pairs of routes over all plans of a run: offspring
// share most of their routes with each other.
#pragma once

#include "base/prefetch.h"
#include "search/maens/moves.h"

#include <cstdint>
#include <vector>

namespace arcfleet {

class MoveMemory {
  public:
    explicit MoveMemory(const MaensPlan &plan)
        : plan_(plan), moves_(plan), keys_(kSize), memory_(kSize) {}

    // The moves between two routes, or of one alone if the slots are the same.
    void find(int32_t slot1, int32_t slot2, MoveFront &front);
    void find_anew(int32_t slot1, int32_t slot2, MoveFront &front) const;
    // Announces that `find` will soon be asked for these routes.
    void expect(int32_t slot1, int32_t slot2) const {
        prefetch(&keys_[place_of(key_of(slot1, slot2))]);
    }

  private:
    static constexpr size_t kSize = size_t{1} << 15;
    // Last bit of a key: most pairs of routes have no move of use, and need no look at
    // the moves.
    static constexpr uint64_t kHasMoves = 1;

    static size_t place_of(uint64_t key) { return (key >> 32) % kSize; }
    uint64_t key_of(int32_t slot1, int32_t slot2) const;

    const MaensPlan &plan_;
    MaensMoves moves_;
    // Keys apart, so that many lie in a line of the cache. A memory four times as large
    // spares 3 % of the searches and is no faster.
    std::vector<uint64_t> keys_;
    std::vector<std::vector<MaensMove>> memory_; // with 0 and 1 for the slots
};

} // namespace arcfleet
