// How tasks are put back: one by one, each where it costs least.
#include "search/ruin_recreate.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace arcfleet {

namespace {

// More gaps than any search looks at.
constexpr double kNeverBlinks = 1e18;

// One bit for each of a block of loads, set where it is from `least` to `most`.
uint32_t slots_within(const int32_t *loads, int32_t least, int32_t most) {
    uint8_t within[Chain::kSlotBlock];
    for (size_t i = 0; i < Chain::kSlotBlock; ++i) {
        within[i] = (loads[i] >= least) & (loads[i] <= most);
    }
    uint32_t bits = 0;
    for (size_t half = 0; half < 2; ++half) {
        // Gathers the lowest bits of eight bytes in the highest byte, the first of them
        // lowest.
        constexpr uint64_t kGather = std::endian::native == std::endian::little
                                         ? 0x0102040810204080
                                         : 0x8040201008040201;
        uint64_t bytes = 0;
        std::memcpy(&bytes, within + 8 * half, 8);
        bits |= static_cast<uint32_t>(bytes * kGather >> 56) << 8 * half;
    }
    return bits;
}

} // namespace

template <typename Look>
void Chain::for_slots(int32_t least, int32_t most, const Look &look) const {
    for (size_t block = 0; block < loads_.size(); block += kSlotBlock) {
        uint32_t found = slots_within(loads_.data() + block, least, most);
        while (found != 0) {
            if (!look(block + static_cast<size_t>(std::countr_zero(found)))) {
                return;
            }
            found &= found - 1;
        }
    }
}

void Chain::put_back(int32_t slot, int32_t task, int32_t place) {
    touch(slot);
    LabelledRoute &route = routes_[idx(slot)];
    const bool was_empty = route.empty();
    route_costs_ -= route.cost;
    excess_ -= excess(route);
    route.insert(tasks_, task, place);
    loads_[idx(slot)] = route.load;
    excess_ += excess(route);
    route_costs_ += route.cost;
    if (was_empty) {
        ++num_routes_;
        open_one_empty_slot();
        routes_opened_or_closed_ = true; // it may be taken back
    }
}

// The cheapest gap of a route for a task. Blinks are drawn by the number of gaps
// between them, so that most routes are looked through without asking, and matter only
// where the cheapest gap is one that is overlooked. A route whose gaps were all
// overlooked gives a cost beyond any other.
Gap Chain::cheapest_gap(const LabelledRoute &route, int32_t task) {
    const auto end = static_cast<int32_t>(route.visits.size());
    const Gap gap = cheapest_of_all_gaps(tasks_, task, route);
    if (gaps_to_blink_ >= end - 1) {
        gaps_to_blink_ -= end - 1;
        return gap;
    }
    overlooked_.clear();
    int64_t place = 1 + gaps_to_blink_;
    for (; place < end; place += 1 + draw_gaps_to_blink()) {
        overlooked_.push_back(static_cast<int32_t>(place));
    }
    gaps_to_blink_ = place - end;
    if (std::find(overlooked_.begin(), overlooked_.end(), gap.place) ==
        overlooked_.end()) {
        return gap;
    }
    return cheapest_other_gap(tasks_, task, route, overlooked_);
}

int64_t Chain::draw_gaps_to_blink() {
    // Where none is overlooked, infinity.
    const double gaps = std::log(1.0 - random_.unit()) / tables_.log_open;
    return static_cast<int64_t>(std::min(kNeverBlinks, gaps));
}

// Puts all removed tasks back, each where it costs least. Gives up, with false, once
// the plan is certain to cost more than `limit`.
bool Chain::recreate(double limit) {
    for (const int32_t task : removed_) {
        const TaskEnds &ends = tasks_.ends(task);
        const int32_t room = capacity_ - ends.demand;
        // Slots with room first, then those that would carry a little too much.
        int64_t best_delta = std::numeric_limits<int64_t>::max();
        int32_t best_slot = -1;
        int32_t best_place = -1;
        for_slots(0, room, [&](size_t slot) {
            const LabelledRoute &route = routes_[slot];
            if (route.empty()) {
                const int64_t delta =
                    ends.alone + fixed_cost(num_routes_ + 1) - fixed_cost(num_routes_);
                if (delta < best_delta) {
                    best_delta = delta;
                    best_slot = static_cast<int32_t>(slot);
                    best_place = 1;
                }
                return true;
            }
            const Gap gap = cheapest_gap(route, task);
            const int64_t delta = gap.cost - route.cost;
            if (delta < best_delta) {
                best_delta = delta;
                best_slot = static_cast<int32_t>(slot);
                best_place = gap.place;
            }
            return best_delta > ends.least_extra;
        });
        // Last, because most are ruled out by the price of the excess alone: putting a
        // task in hardly ever makes a route cheaper.
        auto best_priced = static_cast<double>(best_delta);
        int32_t worthwhile = most_excess_;
        if (excess_price_ > 0.0 &&
            excess_price_ * std::min(worthwhile, ends.demand) >= best_priced) {
            worthwhile =
                static_cast<int32_t>(std::max(0.0, best_priced) / excess_price_);
        }
        const auto look_at_full = [&](size_t slot) {
            const LabelledRoute &route = routes_[slot];
            const double price =
                excess_price_ * std::min(route.load - room, ends.demand);
            if (price >= best_priced) {
                return true;
            }
            const Gap gap = cheapest_gap(route, task);
            const double delta = price + static_cast<double>(gap.cost - route.cost);
            if (delta < best_priced) {
                best_priced = delta;
                best_slot = static_cast<int32_t>(slot);
                best_place = gap.place;
            }
            return true;
        };
        if (worthwhile > 0) {
            for_slots(room + 1, room + worthwhile, look_at_full);
        }
        if (tasks_.removal_never_costs() && penalised_cost() + best_priced >= limit) {
            return false;
        }
        put_back(best_slot, task, best_place);
    }
    return true;
}

} // namespace arcfleet
