// Ruin and recreate: take strings of tasks out of neighbouring routes, put them back
// greedily, and accept by simulated annealing (Christiaens and Vanden Berghe 2020,
// "Slack induction by string removals"). Carried over to arcs: routes hold no
// directions, every insertion is evaluated with all directions of its route chosen
// anew. Where capacity is tight, plans with a little too much load are passed through
// at a price, which rises and falls such that a given share of plans keeps the
// capacity.
#pragma once

#include "search/engine.h"
#include "search/ruin_recreate/chain.h"

#include <atomic>
#include <cstdint>
#include <limits>
#include <mutex>
#include <vector>

namespace arcfleet {

// How long the search may last, over all chains; 0 means no such limit.
struct Horizon {
    int64_t iterations;
    double seconds;
};

// Several chains side by side that share what they find. The horizon is divided into
// cycles, in each of which the temperature falls once: annealing once more finds better
// plans than annealing longer. Every second cycle starts from the best plan, less hot.
class RuinRecreate : public Engine {
  public:
    // Starts from `start`, or from a plan of its own making if that has no routes.
    RuinRecreate(const Network &network, const RuinRecreateSettings &settings,
                 uint64_t seed, int chains, const Horizon &horizon, const Plan &start);

    // Iterations are counted over all chains. What is searched depends on seed, number
    // of chains and horizon alone unless the horizon is in seconds.
    void run(int64_t iterations, double seconds, int64_t target, int threads);

  private:
    double seconds_per_iteration(const Plan &plan, uint64_t seed) const;
    double temperature(const Chain &chain) const;
    void run_chain(size_t chain, int64_t until, double deadline, int64_t target);
    void offer(const Chain &chain, int64_t cost);
    void start_next_cycle();

    RuinRecreateTables tables_;
    Horizon horizon_;
    std::vector<Chain> chains_;
    // A cycle lasts so many iterations of each chain or, where the horizon is in
    // seconds, so many seconds.
    int64_t cycle_iterations_ = std::numeric_limits<int64_t>::max();
    double cycle_seconds_ = std::numeric_limits<double>::infinity();
    int64_t cycle_ = 0;
    int64_t cycle_end_iteration_ = std::numeric_limits<int64_t>::max();
    double cycle_end_seconds_ = std::numeric_limits<double>::infinity();
    std::atomic<bool> done_{false};
    std::mutex mutex_;
};

} // namespace arcfleet
