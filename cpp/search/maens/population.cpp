#include "search/maens/population.h"

#include <algorithm>
#include <numeric>

namespace arcfleet {

void Individual::evaluate(const MaensTables &tables) {
    loads.clear();
    excess = 0;
    for (size_t r = 0; r < plan.num_routes(); ++r) {
        int64_t load = 0;
        for (const int32_t a : plan.route(r)) {
            load += tables.arc(a).demand;
        }
        loads.push_back(load);
        excess += tables.rules().excess(load);
    }
    cost = plan_cost(tables.network(), plan);
}

Population::Population(size_t survivors, size_t offspring)
    : survivors_(survivors), members_(survivors + offspring),
      order_(survivors + offspring) {
    std::iota(order_.begin(), order_.end(), size_t{0});
}

bool Population::has_clone(const Individual &child, size_t parent1,
                           size_t parent2) const {
    for (size_t i = 0; i < size_; ++i) {
        if (i != parent1 && i != parent2 && (*this)[i].same_value(child)) {
            return true;
        }
    }
    return false;
}

void Population::freeze(size_t offspring_per_survivor) {
    survivors_ = size_;
    members_.resize(size_ * (1 + offspring_per_survivor));
    order_.resize(members_.size());
}

void Population::select(double by_cost_rate, Random &random) {
    const auto first = order_.begin();
    const auto last = first + static_cast<std::ptrdiff_t>(size_);
    const bool all_fit = std::all_of(
        first, last, [&](size_t member) { return members_[member].excess == 0; });
    if (all_fit) {
        // Sweeps would come to the same order.
        std::stable_sort(first, last, [&](size_t a, size_t b) {
            return members_[a].cost < members_[b].cost;
        });
        size_ = std::min(size_, survivors_);
        return;
    }
    bool swapped = true;
    for (size_t sweep = 0; sweep < size_ && swapped; ++sweep) {
        swapped = false;
        for (size_t i = 0; i + 1 < size_; ++i) {
            const Individual &a = members_[order_[i]];
            const Individual &b = members_[order_[i + 1]];
            const bool by_cost =
                (a.excess == 0 && b.excess == 0) || random.unit() < by_cost_rate;
            if (by_cost ? a.cost > b.cost : a.excess > b.excess) {
                std::swap(order_[i], order_[i + 1]);
                swapped = true;
            }
        }
    }
    size_ = std::min(size_, survivors_);
}

} // namespace arcfleet
