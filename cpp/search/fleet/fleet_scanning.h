// Path scanning for a fleet: routes are filled service by service, always going to the
// nearest arc that fits; a vehicle that is full goes by way of a facility. For each new
// route all vehicle types are tried, and the one that works at least cost is taken.
// Ties, triggers and filters are those of search/path_scanner.h, for trips instead of
// routes.
#pragma once

#include "search/engine.h"
#include "search/fleet/fleet_plan.h"
#include "search/path_scanner.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace arcfleet {

// One per thread, reused so that little is allocated in the loop.
class FleetScanner {
  public:
    FleetScanner(const FleetTables &tables, const PathScanningSettings &settings);

    // Builds a plan. `rule` is asked with the choice `rules` only. It serves every
    // task, if need be by routes beyond the fleet or that are too long.
    const Plan &build(Random &random, TieRule rule);
    // Whether no task of the plan at hand had to be put where it does not fit.
    bool all_fit() const { return waiting_.empty(); }

  private:
    // A route while it is filled.
    struct Filling {
        int32_t type = -1;
        std::vector<int32_t> arcs;
        std::vector<uint8_t> vias;
        int64_t cost = 0; // up to the end of the last service
        double work = 0.0;
        int32_t place = 0;
        int32_t load = 0; // of the trip at hand
        int64_t trip_cost = 0;
        bool choosy = false;
    };
    // What one step finds: the nearest arcs, all equally near.
    struct Candidate : TieKey {
        int32_t arc;
        size_t position; // in the list that was scanned
    };
    enum Phase : int32_t { pinned, at_home, scarce, any, never };

    void fill(Filling &route, int32_t type, int32_t slot, int32_t routes_left,
              Random &random, TieRule rule);
    // Serves tasks of a list until none fits.
    void fill_from(Filling &route, std::vector<int32_t> &list, double quota,
                   size_t least_left, bool whatever_it_takes, Random &random,
                   TieRule rule);
    Phase phase(int32_t type, int32_t slot, int32_t task) const;
    struct Scan {
        int64_t reach;
        bool load_forbids; // some task
    };
    Scan scan(Filling &route, const std::vector<int32_t> &list, bool via,
              bool whatever_it_takes);
    bool triggers(const Filling &route, double near_demand) const;
    const Candidate &choose(const Filling &route, Random &random, TieRule rule) const;
    void close(const Filling &route, int32_t slot);
    int64_t pins_left(const Filling &route, int32_t slot) const;
    bool is_better(const Filling &a, const Filling &b) const;
    int64_t home(int32_t type, int32_t terminal) const;
    // Of the vehicle type, where trips end: at the nearest facility, or the depot.
    const int32_t *trip_end(int32_t type) const {
        return trip_end_.data() + idx(type) * num_terminals_;
    }

    const FleetTables &tables_;
    const PathScanningSettings settings_;
    const size_t num_terminals_;
    double mean_demand_ = 0.0;
    double mean_cost_ = 0.0;
    std::vector<double> work_;      // by task: its share of all demand and service
    std::vector<uint8_t> serves_;   // by type and task: whether it can be done at all
    std::vector<uint8_t> scarce_;   // by task: whether some type cannot serve it
    std::vector<int32_t> trip_end_; // by type and terminal
    Plan plan_;
    std::vector<uint8_t> is_waiting_; // by task
    std::vector<int32_t> waiting_;
    std::vector<int32_t> used_; // by type
    std::vector<uint8_t> slot_is_done_;
    std::vector<Candidate> nearest_;
    std::vector<int32_t> list_;
};

// The best of a few plans, fewer where there are many tasks: for searches to begin
// with.
Plan scanned_plan(const FleetTables &tables, uint64_t seed);

// The engine: many plans, of which the best is kept.
class FleetScanning : public Engine {
  public:
    FleetScanning(const std::vector<const Network *> &networks, FleetRules rules,
                  const PathScanningSettings &settings, uint64_t seed);

    // As of PathScanning.
    void run(int64_t iterations, double seconds, int64_t target, int threads);

  private:
    void offer(const FleetPlan &plan, int64_t iteration);

    FleetTables tables_;
    PathScanningSettings settings_;
    uint64_t seed_;
    Objective best_objective_{};
    std::mutex mutex_;
};

} // namespace arcfleet
