#include "search/maens/move_memory.h"

#include <algorithm>
#include <utility>

namespace arcfleet {

void MoveMemory::find_anew(int32_t slot1, int32_t slot2, MoveFront &front) const {
    front.clear();
    if (slot1 == slot2) {
        moves_.alone(slot1, front);
        return;
    }
    // An order that depends on the routes alone, so that slots make no difference.
    if (plan_.route(slot1).hash > plan_.route(slot2).hash) {
        std::swap(slot1, slot2);
    }
    moves_.between(slot1, slot2, front);
}

uint64_t MoveMemory::key_of(int32_t slot1, int32_t slot2) const {
    const auto [low, high] =
        std::minmax(plan_.route(slot1).hash, plan_.route(slot2).hash);
    // A route with itself is no pair: the sum tells these apart as well.
    const uint64_t alone = slot1 == slot2 ? 0x9E3779B97F4A7C15ULL : 0;
    return ((low + alone) * 0xD1342543DE82EF95ULL + high) | kHasMoves;
}

void MoveMemory::find(int32_t slot1, int32_t slot2, MoveFront &front) {
    if (plan_.route(slot1).hash > plan_.route(slot2).hash) {
        std::swap(slot1, slot2);
    }
    const uint64_t key = key_of(slot1, slot2);
    const size_t place = place_of(key);
    const auto rename = [](int32_t slot, int32_t from1, int32_t from2, int32_t to1,
                           int32_t to2) {
        return slot == from1 ? to1 : slot == from2 ? to2 : slot;
    };
    if ((keys_[place] | kHasMoves) == key) {
        front.clear();
        if (keys_[place] != key) {
            return;
        }
        for (MaensMove move : memory_[place]) {
            move.from = rename(move.from, 0, 1, slot1, slot2);
            move.to = rename(move.to, 0, 1, slot1, slot2);
            front.keep(move);
        }
        return;
    }
    find_anew(slot1, slot2, front);
    keys_[place] = front.moves().empty() ? key ^ kHasMoves : key;
    if (front.moves().empty()) {
        return;
    }
    memory_[place] = front.moves();
    for (MaensMove &move : memory_[place]) {
        move.from = rename(move.from, slot1, slot2, 0, 1);
        move.to = rename(move.to, slot1, slot2, 0, 1);
    }
}

} // namespace arcfleet
