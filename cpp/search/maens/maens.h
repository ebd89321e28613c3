// MAENS, the memetic algorithm with extended neighbourhood search of Tang, Mei and Yao
// 2009 ("Memetic algorithm with extended neighborhood search for capacitated arc
// routing problems"): a population of plans, crossover, local search with large steps,
// and stochastic ranking. docs/explanation/maens.md says where it departs from the
// published program.
//
// MAENS is here to be compared with, and frozen: the folder is kept working and its
// seeds keep their plans, but new constraints and ideas go into ruin-recreate.
#pragma once

#include "base/random.h"
#include "search/engine.h"
#include "search/maens/crossover.h"
#include "search/maens/local_search.h"
#include "search/maens/population.h"

#include <cstdint>

namespace arcfleet {

struct MaensSettings {
    int32_t population;
    int32_t offspring;        // per member of the population and generation
    int32_t trials;           // in a row for one more member at the start
    double local_search_rate; // share of offspring
    int32_t merge_pairs;      // at most so many pairs of routes per merge-split step
    double rank_by_cost_rate; // share of comparisons by cost where one plan overloads
    int32_t tries_per_offspring; // crossovers, until one gives no clone
};

class Maens : public Engine {
  public:
    // `start`, unless it has no routes, joins the first population.
    Maens(const Network &network, const MaensSettings &settings, uint64_t seed,
          const Plan &start);

    // An iteration is one offspring. A run may stop in the middle of a local search.
    // One thread does the work.
    void run(int64_t iterations, double seconds, int64_t target, int threads);

  private:
    void first_population(const Plan &start);
    void add_first(const Individual &individual);
    void begin_offspring();
    bool search(const Deadline &deadline, int64_t target);
    void end_offspring();
    bool offer_searched();
    void offer(const Individual &individual);

    MaensTables tables_;
    MaensSettings settings_;
    Random random_;
    Population population_;
    Crossover crossover_;
    MaensLocalSearch local_search_;
    // The offspring under way.
    bool under_way_ = false;
    bool searching_ = false;
    bool searched_ = false;
    size_t parent1_ = 0;
    size_t parent2_ = 0;
    Individual child_;
    Individual searched_child_;
    int32_t tries_ = 0; // crossovers that gave no new member since the last that did
    // Cheapest plan within capacity, whatever the number of its routes.
    int64_t fitting_cost_ = INT64_MAX;
};

} // namespace arcfleet
