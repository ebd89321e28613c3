// One chain of annealing over plans of a fleet: vehicle types, several depots, longest
// routes, facilities, and prices on the shape of a plan. The search is that of
// ruin_recreate/chain.h; plans that carry or last a little too much are passed through
// at prices that adapt themselves.
#pragma once

#include "base/random.h"
#include "search/fleet/fleet_plan.h"
#include "search/ruin_recreate/insertion_order.h"

#include <cstdint>
#include <vector>

namespace arcfleet {

class FleetChain {
  public:
    using Tables = FleetTables;

    FleetChain(const FleetTables &tables, uint64_t seed, uint64_t stream);

    void start(const Plan &plan);
    void continue_from(const Plan &plan);
    bool step(double temperature);

    int64_t iterations() const { return iterations_; }
    const FleetPlan &current() const { return plan_; }
    // Of the best plan that keeps all rules; the cost is what people pay, the objective
    // what plans are compared by.
    int64_t best_cost() const { return best_cost_; }
    Objective best_objective() const { return best_objective_; }
    bool best_fits_fleet() const { return best_cost_ >= 0; }
    const Plan &best_plan() const { return best_; }

    // Whether the cost that the search reckons with is that of the plan at hand.
    bool cost_holds() const;

  private:
    // Facility visits of a route that carries too much are mended so often at most.
    static constexpr int kMostMends = 4;

    struct Change {
        TripTotals first;
        TripTotals second;
    };

    double penalised() const;
    // Of one route, how even routes are apart.
    double price_of(int32_t type, const TripTotals &route) const;
    // By how much less even routes are a price.
    double balance_price(const RouteChange &change) const;
    double opening_price(int32_t type) const;
    double closing_price(int32_t type) const;
    double shape_price(const FleetSums &change) const;

    // Puts in what the plan at hand leaves out.
    void insert_missing();
    bool ruin_and_recreate(double temperature);
    void mark_strings();
    void mark_routes();
    void mark_string(const TripRoute &route, int32_t slot, int32_t place,
                     double longest);
    bool insert_all(double limit, bool may_open);
    void mend_touched(double load_price);
    bool small_move(uint32_t number, double temperature);
    bool relocate(const Spot &first, const Spot &second, uint32_t draw,
                  double temperature);
    bool swap(const Spot &first, const Spot &second, double temperature);
    bool exchange_tails(const Spot &first, const Spot &second, double temperature);
    // Within a long trip.
    bool move_within(uint32_t number, const Spot &first, const Spot &second,
                     uint32_t draw, double temperature);
    // Gives the tail of a route to a vehicle that has none.
    bool split_route(double temperature);
    bool mend_somewhere();
    // Gives a route to a vehicle of another type, or two routes each to the other's, or
    // both to one vehicle.
    bool change_vehicle(double temperature);
    bool merge_routes(int32_t first, int32_t second, double temperature);
    // Price of a change between two slots, the shape of the plan included.
    double priced(int32_t first, int32_t second, const Change &after);
    bool may_be_in(int32_t task, int32_t slot) const;
    bool may_drive(int32_t type, const TripRoute &route) const;
    // Some of its tasks in the same order by a vehicle of another type, or of the same.
    TripRoute driven_by(int32_t type, const TripRoute &route, int32_t first,
                        int32_t last) const;
    bool accepts(double dearer, double temperature);
    bool moved(double dearer);
    bool keep_if_best();
    // With fewest_routes: tries now and then to do with one route less.
    bool manage_fleet();
    bool one_route_less_seems_possible() const;
    void dissolve_shortest_route();
    void take_fitting_vehicle(int32_t slot);

    const FleetTables &tables_;
    Random random_;
    FleetPlan plan_;
    InsertionOrder order_;
    const double fleet_price_;
    LimitPrices prices_;
    double cost_ = 0.0; // of the current plan, with all prices
    bool stuck_ = false;
    double blink_rate_;
    int64_t iterations_ = 0;
    std::vector<int32_t> removed_;
    std::vector<uint8_t> marked_; // by task
    // The slots that lose tasks, and between which places.
    struct Ruined {
        int32_t slot, first, last;
    };
    std::vector<Ruined> ruined_;
    struct Segment {
        int32_t slot, trip, part;
        bool operator==(const Segment &) const = default;
    };
    std::vector<Segment> segments_;
    std::vector<Placement> placements_;
    Plan best_;
    int64_t best_cost_ = -1;
    Objective best_objective_{};
    int32_t best_routes_ = 0;
    int64_t best_route_costs_ = 0;
    // One route less: the most routes that cost nothing extra, and the attempt.
    int32_t most_routes_;
    bool attempting_ = false;
    int64_t attempt_length_;
    int64_t attempt_change_ =
        0; // iteration at which the attempt ends or the next begins
};

} // namespace arcfleet
