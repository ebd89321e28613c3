// The small moves that ruin-recreate tries between its iterations. A new move is a file
// beside this one, and a line here.
#pragma once

#include "search/moves/exchange_tails.h"
#include "search/moves/relocate_task.h"
#include "search/moves/swap_tasks.h"

#include <cstddef>
#include <tuple>

namespace arcfleet {

// They take turns. One that is listed twice is tried twice as often.
using Moves = std::tuple<ExchangeTails, //
                         ExchangeTails, //
                         SwapTasks,     //
                         RelocateTask>;

constexpr size_t kMoves = std::tuple_size_v<Moves>;

// Calls visitor(move) with the move of this number and returns what that gave.
template <typename Visitor> bool with_move(size_t number, const Visitor &visitor) {
    return std::apply(
        [&](const auto... moves) {
            size_t i = 0;
            bool result = false;
            static_cast<void>(
                ((i++ == number && (result = visitor(moves), true)) || ...));
            return result;
        },
        Moves{});
}

} // namespace arcfleet
