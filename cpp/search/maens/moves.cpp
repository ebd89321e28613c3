#include "search/maens/moves.h"

#include <algorithm>

namespace arcfleet {

void MoveFront::offer(const MaensMove &move) {
    if (move.cost >= limit_ && move.excess >= 0) {
        return;
    }
    for (const MaensMove &kept : moves_) {
        if (kept.cost <= move.cost && kept.excess <= move.excess) {
            return;
        }
    }
    std::erase_if(moves_, [&](const MaensMove &kept) {
        return move.cost <= kept.cost && move.excess <= kept.excess;
    });
    if (move.excess <= 0) {
        limit_ = std::min(limit_, move.cost);
    }
    moves_.push_back(move);
}

void MaensMoves::between(int32_t slot1, int32_t slot2, MoveFront &front) const {
    insertions(slot1, slot2, front);
    insertions(slot2, slot1, front);
    swaps(slot1, slot2, front);
}

void MaensMoves::alone(int32_t slot, MoveFront &front) const {
    inner_insertions(slot, 1, front);
    inner_insertions(slot, 2, front);
    inner_swaps(slot, front);
    to_new_route(slot, front);
}

} // namespace arcfleet
