// One chain of annealing: a current plan and the best plan so far.
#pragma once

#include "base/random.h"
#include "search/ruin_recreate/current_plan.h"
#include "search/ruin_recreate/greedy_insertion.h"
#include "search/ruin_recreate/insertion_order.h"
#include "search/ruin_recreate/penalties.h"
#include "search/ruin_recreate/string_removal.h"

#include <cstdint>
#include <vector>

namespace arcfleet {

class Chain {
  public:
    using Tables = RuinRecreateTables;

    Chain(const RuinRecreateTables &tables, uint64_t seed, uint64_t stream);

    // Starts from a plan given as arcs; directions are chosen anew.
    void start(const Plan &plan);

    // Continues from a plan, keeping the best.
    void continue_from(const Plan &plan);

    // One iteration: tasks are taken out and put back, then a few small moves are
    // tried. True if it found a new best.
    bool step(double temperature);

    int64_t iterations() const { return iterations_; }
    const CurrentPlan &current() const { return plan_; }
    // Of the current plan, without the price of its load above capacity.
    int64_t current_cost() const { return penalties_.cost(plan_); }
    // Whether it keeps capacity and fleet limit.
    bool current_fits() const {
        return plan_.excess() == 0 && tables_.rules.fits_fleet(plan_.num_routes());
    }
    Plan current_plan() const { return to_plan(tables_.tasks, plan_.routes()); }
    // What excess load costs, in place of a price that it would have to find first.
    double excess_price() const { return penalties_.excess_price(); }
    void set_excess_price(double price) {
        penalties_.set_excess_price(price);
        cost_ = penalties_.penalised_cost(plan_);
    }
    int64_t best_cost() const { return best_cost_; }
    double best_objective() const { return static_cast<double>(best_cost_); }
    bool best_fits_fleet() const { return best_fits_fleet_; }
    Plan best_plan() const { return to_plan(tables_.tasks, best_); }

  private:
    bool ruin_and_recreate(double temperature);
    bool small_move(size_t number, double temperature);
    template <typename Move>
    bool try_move(const Move &move, const Spot &first, const Spot &second,
                  uint32_t draw, double temperature);
    bool move_within(size_t number, const Spot &first, const Spot &second,
                     uint32_t draw, double temperature);
    bool accepts(double dearer, double temperature);
    bool keep_if_best();
    void note_best();

    const RuinRecreateTables &tables_;
    Random random_;
    CurrentPlan plan_;
    Penalties penalties_;
    StringRemoval ruin_;
    InsertionOrder order_;
    GreedyInsertion insertion_;
    double cost_ = 0.0; // of the current plan, with the price of its excess
    int64_t iterations_ = 0;
    std::vector<int32_t> removed_; // in this iteration
    std::vector<LabelledRoute> best_;
    int64_t best_cost_ = -1;
    bool best_fits_fleet_ = false;
};

} // namespace arcfleet
