#include "search/fleet/fleet_search.h"

#include "search/fleet/fleet_scanning.h"

#include <memory>
#include <utility>

namespace arcfleet {

template class AnnealedChains<FleetChain>;

FleetSearch::FleetSearch(const std::vector<const Network *> &networks, FleetRules rules,
                         const RuinRecreateSettings &settings, uint64_t seed,
                         int chains, const Horizon &horizon, const Plan &start)
    : AnnealedChains(
          std::make_unique<FleetTables>(networks, std::move(rules), settings), seed,
          chains, horizon) {
    begin(start.num_routes() > 0 ? start : scanned_plan(tables(), seed),
          networks[0]->num_tasks());
}

} // namespace arcfleet
