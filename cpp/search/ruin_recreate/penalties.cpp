#include "search/ruin_recreate/penalties.h"

#include <algorithm>
#include <limits>

namespace arcfleet {

namespace {

// The price of excess load is adapted once in so many iterations, by so much.
constexpr int32_t kPriceWindow = 200;
constexpr double kPriceStep = 1.05;

} // namespace

Penalties::Penalties(const RuinRecreateTables &tables)
    : rules_(tables.rules), target_fit_(tables.settings.target_fit) {
    // Dear enough that one route less always pays, whatever driving it takes.
    double demand = 1.0;
    for (int32_t task = 0; task < tables.tasks.num_tasks(); ++task) {
        overfleet_cost_ += tables.tasks.ends(task).alone;
        demand += tables.tasks.ends(task).demand;
    }
    excess_price_ = static_cast<double>(overfleet_cost_) / demand;
    // A load within both limits is a number that fits.
    const auto capacity = static_cast<double>(rules_.capacity());
    max_excess_ = static_cast<int32_t>(
        std::min(tables.settings.most_excess * capacity,
                 static_cast<double>(std::numeric_limits<int32_t>::max()) - capacity));
}

bool Penalties::adapt(const CurrentPlan &plan) {
    ++window_;
    window_fits_ += plan.excess() == 0;
    if (window_ < kPriceWindow) {
        return false;
    }
    const bool often = window_fits_ > target_fit_ * kPriceWindow;
    excess_price_ *= often ? 1.0 / kPriceStep : kPriceStep;
    window_ = 0;
    window_fits_ = 0;
    return true;
}

} // namespace arcfleet
