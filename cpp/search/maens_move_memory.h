// Remembers the moves found for pairs of routes over all plans of a run: offspring
// share most of their routes with each other.
#pragma once

#include "search/maens_moves.h"

#include <cstdint>
#include <vector>

namespace arcfleet {

class MoveMemory {
  public:
    explicit MoveMemory(const MaensPlan &plan)
        : plan_(plan), moves_(plan), memory_(kSize) {}

    // The moves between two routes, or of one alone if the slots are the same.
    void find(int32_t slot1, int32_t slot2, MoveFront &front);
    void find_anew(int32_t slot1, int32_t slot2, MoveFront &front) const;

  private:
    static constexpr size_t kSize = size_t{1} << 17;
    struct Remembered {
        uint64_t key = 0;
        std::vector<MaensMove> moves; // with 0 and 1 for the slots
    };

    const MaensPlan &plan_;
    MaensMoves moves_;
    std::vector<Remembered> memory_;
};

} // namespace arcfleet
