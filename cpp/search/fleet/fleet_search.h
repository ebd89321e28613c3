// Ruin and recreate over plans of a fleet.
#pragma once

#include "search/fleet/fleet_chain.h"
#include "search/ruin_recreate/annealed_chains.h"

#include <cstdint>
#include <vector>

namespace arcfleet {

class FleetSearch : public AnnealedChains<FleetChain> {
  public:
    // Starts from `start`, or from a plan of its own making if that has no routes.
    FleetSearch(const std::vector<const Network *> &networks, FleetRules rules,
                const RuinRecreateSettings &settings, uint64_t seed, int chains,
                const Horizon &horizon, const Plan &start);
};

} // namespace arcfleet
