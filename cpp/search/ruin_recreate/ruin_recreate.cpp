#include "search/ruin_recreate/ruin_recreate.h"

#include "search/path_scanning.h"

namespace arcfleet {

namespace {

constexpr int64_t kFirstPlans = 10;

Plan first_plan(const Network &network, uint64_t seed) {
    const PathScanningSettings settings{Choice::random_arc, Trigger::nearby,
                                        Filter::efficiency, 3.0};
    PathScanning scanning(network, settings, seed);
    scanning.run(kFirstPlans, 1e6, -1, 1);
    if (scanning.has_plan()) {
        return scanning.best_plan();
    }
    // None kept the fleet limit: the search has to find its way to it from afar.
    return one_route_per_task(network);
}

} // namespace

template class AnnealedChains<Chain>;

RuinRecreate::RuinRecreate(const Network &network, const RuinRecreateSettings &settings,
                           uint64_t seed, int chains, const Horizon &horizon,
                           const Plan &start)
    : AnnealedChains(std::make_unique<RuinRecreateTables>(network, settings), seed,
                     chains, horizon) {
    begin(start.num_routes() > 0 ? start : first_plan(network, seed),
          network.num_tasks());
}

} // namespace arcfleet
