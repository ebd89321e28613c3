// Ruin and recreate: take strings of tasks out of neighbouring routes, put them back
// greedily, and accept by simulated annealing (Christiaens and Vanden Berghe 2020,
// "Slack induction by string removals"). Carried over to arcs: routes hold no
// directions, every insertion is judged with all directions of its route chosen anew.
// Where capacity is tight, plans with a little too much load are passed through at a
// price, which rises and falls such that a given share of plans keeps the capacity.
#pragma once

#include "base/random.h"
#include "search/engine.h"
#include "search/insertion.h"
#include "search/labelled_route.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <mutex>
#include <vector>

namespace arcfleet {

struct RuinRecreateSettings {
    double average_removed;   // tasks taken out per iteration, on average
    double longest_string;    // at most so many in a row
    double split_rate;        // share of strings with a gap in the middle
    double split_growth;      // chance that the gap grows by one more task
    double blink_rate;        // share of gaps overlooked
    double first_temperature; // in near distances
    double last_temperature;  // likewise
    double most_excess;       // load above capacity allowed on the way, in capacities
    double target_fit;        // share of current plans that keep the capacity
};

// What all chains share and none changes.
struct RuinRecreateTables {
    RuinRecreateTables(const Network &network, const RuinRecreateSettings &settings);

    TaskTable tasks;
    RuinRecreateSettings settings;
    double log_open;      // logarithm of the share of gaps not overlooked
    double near_distance; // between a terminal and the nearest few others
    // For each task the others in order of distance, itself first, cut at `row`
    // entries.
    std::vector<int32_t> nearest;
    int32_t row;
};

// One chain of annealing: a current plan and the best plan so far.
class Chain {
  public:
    // Loads are compared in blocks of so many, which compilers turn into few
    // instructions.
    static constexpr size_t kSlotBlock = 16;

    Chain(const RuinRecreateTables &tables, uint64_t seed, uint64_t stream);

    // Starts from a plan given as arcs; directions are chosen anew.
    void start(const Plan &plan);

    // Goes on from a plan, keeping the best.
    void continue_from(const Plan &plan);

    // One iteration: tasks are taken out and put back, then a few small moves are
    // tried. True if it found a new best.
    bool step(double temperature);

    int64_t iterations() const { return iterations_; }
    // Of the current plan, with the price of its load above capacity, and without.
    double current_cost() const { return cost_; }
    int64_t current_true_cost() const { return route_costs_ + fixed_cost(num_routes_); }
    int64_t current_excess() const { return excess_; }
    int64_t best_cost() const { return best_cost_; }
    bool best_fits_fleet() const { return best_fits_fleet_; }
    Plan best_plan() const;
    Plan current_plan() const;
    // Whether what is noted of tasks and slots beside the routes agrees with them.
    bool notes_hold() const;

  private:
    void ruin();
    void ruin_route(int32_t slot, int32_t place, double longest);
    void remove_string(LabelledRoute &route, int32_t first, int32_t last);
    void sort_removed();
    bool recreate(double limit);
    bool ruin_and_recreate(double temperature);
    // Of two routes after a small move.
    struct Loads {
        int64_t first;
        int64_t second;
    };
    bool small_move(uint32_t kind, double temperature);
    // Where a task is.
    struct Spot {
        int32_t slot;
        int32_t place; // in the visits of the route
    };
    // Each makes two routes, in first_visits_ and second_visits_, out of two, if the
    // move of what is at these spots is accepted; `draw` is a random number below 4.
    bool exchange_tails(const Spot &first, const Spot &second, uint32_t draw,
                        double temperature);
    bool swap_tasks(const Spot &first, const Spot &second, uint32_t draw,
                    double temperature);
    bool move_task(const Spot &first, const Spot &second, uint32_t draw,
                   double temperature);
    bool too_full(const Loads &loads) const {
        return std::max(loads.first, loads.second) > int64_t{capacity_} + most_excess_;
    }
    bool accepts(const LabelledRoute &first, const LabelledRoute &second, int64_t cost,
                 const Loads &loads, double temperature);
    void replace_route(int32_t slot, std::vector<Visit> &visits);
    bool keep_if_best();
    Gap cheapest_gap(const LabelledRoute &route, int32_t task);
    int64_t draw_gaps_to_blink();
    void put_back(int32_t slot, int32_t task, int32_t place);
    void touch(int32_t slot);
    void roll_back();
    void note_spots(int32_t slot);
    void open_one_empty_slot();
    // Calls `look` with each slot with a load from `least` to `most`, in order, until
    // it gives false.
    template <typename Look>
    void for_slots(int32_t least, int32_t most, const Look &look) const;
    int64_t fixed_cost(int32_t routes) const;
    int32_t excess(const LabelledRoute &route) const {
        return std::max(0, route.load - capacity_);
    }
    double penalised_cost() const;
    void adapt_excess_price();
    static Plan plan_of(const TaskTable &tasks,
                        const std::vector<LabelledRoute> &routes);

    const RuinRecreateTables &tables_;
    const TaskTable &tasks_;
    const int32_t capacity_;
    Random random_;
    int64_t overfleet_cost_;            // of each route beyond the fleet limit
    std::vector<LabelledRoute> routes_; // by slot; a few are empty
    // By slot, below 0 where an empty slot is not to be used, and up to a
    // multiple of kSlotBlock: all of them in a few cache lines.
    std::vector<int32_t> loads_;
    // By task, in the current plan: where it was while an iteration is under way.
    std::vector<Spot> spots_;
    int32_t num_routes_ = 0;  // routes that are not empty
    int64_t route_costs_ = 0; // sum over routes, fixed costs apart
    int64_t excess_ = 0;      // load above capacity, sum over routes
    double cost_ = 0.0;       // of the current plan, with the price of its excess
    bool routes_opened_or_closed_ = false; // since one empty slot was opened
    double excess_price_ = 0.0;
    int32_t most_excess_ = 0; // of one route
    int32_t window_ = 0;      // iterations since the price was last adapted
    int32_t window_fits_ = 0; // of these, how many ended within capacity
    int64_t iterations_ = 0;
    int64_t gaps_to_blink_ = 0;
    // This iteration.
    std::vector<int32_t> removed_;
    std::vector<int32_t> shuffled_;
    std::vector<int32_t> sort_keys_;  // of these
    std::vector<int32_t> ranks_;      // likewise
    std::vector<int32_t> overlooked_; // places in the route at hand
    std::vector<int32_t> touched_;
    std::vector<uint8_t> is_touched_; // by slot
    std::vector<LabelledRoute> saved_;
    size_t num_saved_ = 0;
    int32_t saved_num_routes_ = 0;
    int64_t saved_route_costs_ = 0;
    int64_t saved_excess_ = 0;
    // Two routes in the making.
    std::vector<Visit> first_visits_;
    std::vector<Visit> second_visits_;
    // The best.
    std::vector<LabelledRoute> best_;
    int64_t best_cost_ = -1;
    bool best_fits_fleet_ = false;
};

// How long the search may last, over all chains; 0 means no such limit.
struct Horizon {
    int64_t iterations;
    double seconds;
};

// Several chains side by side that share what they find. The horizon is divided into
// cycles, in each of which the temperature falls once: annealing once more finds better
// plans than annealing longer. Every second cycle starts from the best plan, less hot.
class RuinRecreate {
  public:
    // Starts from `start`, or from a plan of its own making if that has no routes.
    RuinRecreate(const Network &network, const RuinRecreateSettings &settings,
                 uint64_t seed, int chains, const Horizon &horizon, const Plan &start);

    // Goes on for up to `iterations`, counted over all chains, and stops when `seconds`
    // have passed or a plan of at most `target` was found. What is searched depends on
    // seed, number of chains and horizon alone unless the horizon is in seconds.
    void run(int64_t iterations, double seconds, int64_t target, int threads);

    int64_t iterations() const { return iterations_; }
    bool has_plan() const { return best_cost_ >= 0; }
    int64_t best_cost() const { return best_cost_; }
    int64_t best_iteration() const { return best_iteration_; }
    const Plan &best_plan() const { return best_plan_; }
    const std::vector<Improvement> &history() const { return history_; }

  private:
    double elapsed() const;
    double seconds_per_iteration(const Plan &plan, uint64_t seed) const;
    double temperature(const Chain &chain) const;
    void run_chain(size_t chain, int64_t until, double deadline, int64_t target);
    void offer(const Chain &chain, int64_t cost);
    void start_next_cycle();

    RuinRecreateTables tables_;
    Horizon horizon_;
    std::chrono::steady_clock::time_point start_;
    std::vector<Chain> chains_;
    // A cycle lasts so many iterations of each chain or, where the horizon is in
    // seconds, so many seconds.
    int64_t cycle_iterations_ = std::numeric_limits<int64_t>::max();
    double cycle_seconds_ = std::numeric_limits<double>::infinity();
    int64_t cycle_ = 0;
    int64_t cycle_end_iteration_ = std::numeric_limits<int64_t>::max();
    double cycle_end_seconds_ = std::numeric_limits<double>::infinity();
    int64_t iterations_ = 0;
    std::atomic<bool> reached_{false};
    int64_t best_cost_ = -1;
    int64_t best_iteration_ = -1;
    Plan best_plan_;
    std::vector<Improvement> history_;
    std::mutex mutex_;
};

} // namespace arcfleet
