#include "search/ruin_recreate/ruin_recreate.h"

#include "search/path_scanning.h"

namespace arcfleet {

namespace {

constexpr int64_t kFirstPlans = 10;
// All but the first may take this share of the time.
constexpr double kFirstShare = 0.1;
// Longer rows would take longer to sort than a few plans gain by them.
constexpr size_t kRow = 100;

} // namespace

Plan first_plan(const Network &network, uint64_t seed, double seconds) {
    const PathScanningSettings settings{Choice::random_arc, Trigger::nearby,
                                        Filter::efficiency, 3.0};
    PathScanning scanning(network, settings, seed, kRow);
    scanning.run(1, 1e6, -1, 1);
    scanning.run(kFirstPlans - 1, seconds > 0.0 ? kFirstShare * seconds : 1e6, -1, 1);
    if (scanning.has_plan()) {
        return scanning.best_plan();
    }
    // None kept the fleet limit: the search has to find its way to it from afar.
    return one_route_per_task(network);
}

template class AnnealedChains<Chain>;

RuinRecreate::RuinRecreate(const Network &network, const RuinRecreateSettings &settings,
                           uint64_t seed, int chains, const Horizon &horizon,
                           const Plan &start)
    : AnnealedChains(std::make_unique<RuinRecreateTables>(network, settings), seed,
                     chains, horizon) {
    begin(start.num_routes() > 0 ? start : first_plan(network, seed, horizon.seconds),
          network.num_tasks());
}

} // namespace arcfleet
