// Path scanning: plans built service by service, always going to the nearest arc that
// fits, and differing in how ties are broken and in when to turn home.
// Golden, DeArmon and Baker 1983 (PS); Pearn 1989 (random rule); Belenguer et al. 2006
// (random edge); Santos et al. 2009 (ellipse); Arakaki and Usberti 2019 (efficiency).
#pragma once

#include "base/random.h"
#include "network/network.h"
#include "search/engine.h"

#include <chrono>
#include <cstdint>
#include <mutex>
#include <vector>

namespace arcfleet {

// When a route starts to be choosy.
enum class Trigger : int32_t {
    never,
    everywhere, // residual capacity <= alpha * mean demand of all tasks
    nearby, // residual capacity <= alpha * mean demand of the unserved tasks near by
};

// What a choosy route still accepts.
enum class Filter : int32_t {
    ellipse,    // a detour of at most one mean service cost over driving home
    efficiency, // marginal cost per load no worse than the route's average so far
};

// How ties between equally near arcs are broken.
enum class Choice : int32_t {
    rules,       // the five rules of PS in turn, one rule for each plan
    random_rule, // one of the five rules, drawn at each step
    random_arc,  // an arc drawn uniformly
};

struct PathScanningRules {
    Choice choice;
    Trigger trigger;
    Filter filter;
    double alpha;
};

// What all plans need and none changes: arcs by where they start, and for each place
// the other places and the tasks around it in order of distance.
class PathScanningTables {
  public:
    // Only the trigger `nearby` needs the neighbours.
    PathScanningTables(const Network &network, bool with_neighbours);

    struct ArcHere {
        int32_t arc;
        int32_t task;
        int32_t demand;
        int32_t service_cost;
        int32_t back; // distance from its end to the depot
    };

    const Network &network;
    double mean_demand;
    double mean_cost;
    int32_t largest_demand;
    int32_t smallest_cost;
    std::vector<ArcHere> arcs;            // sorted by the terminal where they start
    std::vector<int32_t> arcs_at;         // where a terminal's arcs begin in `arcs`
    std::vector<uint16_t> nearest;        // per terminal: starts in order of distance
    int32_t num_starts;                   // length of each row of `nearest`
    std::vector<int32_t> neighbours;      // tasks within mean_cost of a terminal
    std::vector<size_t> neighbours_at;    // where a terminal's neighbours begin
    std::vector<int32_t> tasks_by_demand; // smallest first
    std::vector<int32_t> demand;          // by task
};

// Builds one plan after the other and keeps the cheapest.
class PathScanning {
  public:
    PathScanning(const Network &network, const PathScanningRules &rules, uint64_t seed);

    // Builds up to `iterations` more plans, and stops when `seconds` have passed or a
    // plan of at most `target` was found. Plan number i depends on the seed and i
    // alone, so the number of threads changes nothing but the time.
    void run(int64_t iterations, double seconds, int64_t target, int threads);

    int64_t iterations() const { return iterations_; }
    bool has_plan() const { return best_cost_ >= 0; }
    int64_t best_cost() const { return best_cost_; }
    int64_t best_iteration() const { return best_iteration_; }
    const Plan &best_plan() const { return best_plan_; }
    const std::vector<Improvement> &history() const { return history_; }

  private:
    void offer(const Plan &plan, int64_t cost, int64_t iteration);

    PathScanningTables tables_;
    PathScanningRules rules_;
    uint64_t seed_;
    std::chrono::steady_clock::time_point start_;
    int64_t iterations_ = 0;
    int64_t best_cost_ = -1;
    int64_t best_iteration_ = -1;
    Plan best_plan_;
    std::vector<Improvement> history_;
    std::mutex mutex_;
};

} // namespace arcfleet
