// The population of MAENS: plans that may carry too much, told apart by cost and excess
// load alone, and ranked stochastically (Runarsson and Yao 2000).
#pragma once

#include "base/random.h"
#include "search/maens/tables.h"

#include <cstdint>
#include <vector>

namespace arcfleet {

struct Individual {
    Plan plan;
    std::vector<int64_t> loads; // by route
    int64_t cost = 0;
    int64_t excess = 0; // load above capacity, sum over routes

    bool same_value(const Individual &other) const {
        return cost == other.cost && excess == other.excess;
    }
    // Computes loads, cost and excess from the plan.
    void evaluate(const MaensTables &tables);
};

class Population {
  public:
    Population(size_t survivors, size_t offspring);

    size_t size() const { return size_; }
    size_t num_survivors() const { return survivors_; }
    bool full() const { return size_ == members_.size(); }
    const Individual &operator[](size_t i) const { return members_[order_[i]]; }

    // Whether a member other than the two parents has the same cost and excess.
    bool has_clone(const Individual &child, size_t parent1, size_t parent2) const;
    void append(const Individual &child) { members_[order_[size_++]] = child; }
    void replace(size_t i, const Individual &child) { members_[order_[i]] = child; }
    // After the first plans: what is there is what survives from now on, and offspring
    // shrink with it.
    void freeze(size_t offspring_per_survivor);
    // Ranks all members and lets the first ones survive.
    void select(double by_cost_rate, Random &random);

  private:
    size_t survivors_;
    size_t size_ = 0;
    std::vector<Individual> members_;
    std::vector<size_t> order_;
};

} // namespace arcfleet
