// The three small moves of MAENS: one task, or two in a row, to another place, and two
// tasks exchanged, in all directions they may be served in (Tang, Mei and Yao 2009).
// What is found for two routes holds until one of them changes, whatever the price of
// excess load: kept are all moves that are best for some price.
#pragma once

#include "search/maens/plan.h"

#include <cstdint>
#include <vector>

namespace arcfleet {

// Moves none of which is worse than another in both cost and excess; none that is of no
// use whatever the price of excess.
class MoveFront {
  public:
    void clear() {
        moves_.clear();
        limit_ = 0;
    }
    const std::vector<MaensMove> &moves() const { return moves_; }
    void offer(const MaensMove &move);
    // Takes a move that was in such a front before.
    void keep(const MaensMove &move) { moves_.push_back(move); }
    // A move that does not lower the excess is of use only if it costs less than this.
    int64_t limit() const { return limit_; }

  private:
    std::vector<MaensMove> moves_;
    int64_t limit_ = 0;
};

class MaensMoves {
  public:
    explicit MaensMoves(const MaensPlan &plan) : plan_(plan), tables_(plan.tables()) {}

    // All moves between two routes.
    void between(int32_t slot1, int32_t slot2, MoveFront &front) const;
    // All moves within a route, and out of it to a new one.
    void alone(int32_t slot, MoveFront &front) const;

  private:
    void insertions(int32_t from, int32_t to, MoveFront &front) const;
    void swaps(int32_t slot1, int32_t slot2, MoveFront &front) const;
    void inner_insertions(int32_t slot, int32_t length, MoveFront &front) const;
    void inner_swaps(int32_t slot, MoveFront &front) const;
    void to_new_route(int32_t slot, MoveFront &front) const;

    const MaensPlan &plan_;
    const MaensTables &tables_;
};

} // namespace arcfleet
