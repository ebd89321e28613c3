// Ruin and recreate: take strings of tasks out of neighbouring routes, put them back
// greedily, and accept by simulated annealing (Christiaens and Vanden Berghe 2020,
// "Slack induction by string removals"). Carried over to arcs: routes hold no
// directions, every insertion is evaluated with all directions of its route chosen
// anew. Where capacity is tight, plans with a little too much load are passed through
// at a price, which rises and falls such that a given share of plans keeps the
// capacity.
#pragma once

#include "search/ruin_recreate/annealed_chains.h"
#include "search/ruin_recreate/chain.h"

#include <cstdint>

namespace arcfleet {

// The best of ten plans by path scanning; where none keeps the fleet limit, a route for
// each task. All but the first may take a share of the seconds, if there are any.
Plan first_plan(const Network &network, uint64_t seed, double seconds);

class RuinRecreate : public AnnealedChains<Chain> {
  public:
    // Starts from `start`, or from a plan of its own making if that has no routes.
    RuinRecreate(const Network &network, const RuinRecreateSettings &settings,
                 uint64_t seed, int chains, const Horizon &horizon, const Plan &start);
};

} // namespace arcfleet
