// Plans for whole cities: routes that lie near each other form an area, which is
// searched for a while as if it were a city of its own. Then new areas are drawn, with
// other borders (POPMUSIC; Taillard and Voss 2002; decomposition by position as of
// Santini et al. 2023). All areas are annealed together: each goes on with the plan
// that those before it left, at the temperature of the whole. What an iteration takes
// does not depend on the size of the city, nor does the memory for driving costs: only
// those within the areas at work are measured.
#pragma once

#include "network/areas.h"
#include "search/engine.h"
#include "search/ruin_recreate/ruin_recreate.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace arcfleet {

class AreaSearch : public Engine {
  public:
    // An area has at most so many tasks, or five routes. Without a start the tasks of
    // each area are planned by path scanning. The network need not be measured. Throws
    // TooSlow where that will last longer than the horizon.
    AreaSearch(const Network &network, const RuinRecreateSettings &settings,
               int64_t most_tasks, uint64_t seed, int threads, const Horizon &horizon,
               const Plan &start);
    AreaSearch(const AreaSearch &) = delete;
    AreaSearch &operator=(const AreaSearch &) = delete;
    ~AreaSearch();

    // Iterations are counted over all areas. What is searched depends on seed and
    // horizon alone, unless that is in seconds. Returns at the end of every round.
    void run(int64_t iterations, double seconds, int64_t target, int threads);

    // Counted at the end of rounds: within one it would depend on slices and threads
    // which plans were looked at.
    int64_t no_improvement() const { return round_end_ - kept_at_; }

  private:
    struct Area;
    struct Route {
        std::vector<int32_t> arcs;
        int64_t cost = 0;
    };

    void plan_from_scratch(int threads);
    Route make_route(std::vector<int32_t> arcs,
                     const std::vector<int32_t> &deadheads) const;
    std::vector<Route> routes_of(const Network &part, const std::vector<int32_t> &tasks,
                                 const Plan &plan) const;
    void start_next_cycle();
    void keep_round();
    void keep_best_round();
    bool round_is_over() const;
    bool cycle_is_over() const;
    void draw_round();
    int32_t most_routes(const Area &area) const;
    double progress(const Area &area) const;
    void open(Area &area);
    void search(Area &area, int64_t iterations, double deadline);
    void settle(Area &area);
    void note_best();
    bool is_too_late() const;

    const Network &network_;
    const RuinRecreateSettings settings_;
    const RouteRules rules_;
    const int64_t most_tasks_; // of an area
    const uint64_t seed_;
    const Horizon horizon_;
    Random random_;
    const std::vector<Position> positions_; // by task
    std::vector<Route> routes_;             // until areas are drawn that take them
    std::vector<Route> kept_;               // at the end of the best round
    int64_t kept_cost_ = 0;
    int64_t kept_at_ = 0;        // iterations until then
    int64_t round_end_ = 0;      // iterations until the end of the last round
    double excess_price_ = -1.0; // that the areas of the last round found; none yet
    // The cycle under way: the temperature falls once.
    int64_t cycle_ = -1;
    double budget_ = 0.0; // iterations for each task
    int64_t rounds_ = 0;
    double cycle_began_ = 0.0;
    double cycle_seconds_ = 0.0; // 0 where it ends by its rounds
    // The round under way: every area is searched once.
    std::vector<std::unique_ptr<Area>> areas_;
    int64_t round_ = 0;        // of the cycle
    int64_t rounds_drawn_ = 0; // in all
    int64_t num_routes_of_round_ = 0;
    double opening_seconds_ = 0.0; // of the area opened last
};

} // namespace arcfleet
