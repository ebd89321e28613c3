// Builds one plan by path scanning: service by service, always going to the nearest arc
// that fits. Variants differ in how ties are broken and in when to turn home.
// Golden, DeArmon and Baker 1983 (PS); Pearn 1989 (random rule); Belenguer et al. 2006
// (random edge); Santos et al. 2009 (ellipse); Arakaki and Usberti 2019 (efficiency).
#pragma once

#include "base/random.h"
#include "search/plan.h"
#include "search/rules.h"
#include "search/tie_rules.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace arcfleet {

// When a route starts to be choosy.
enum class Trigger : int32_t {
    never,
    everywhere, // remaining capacity <= alpha * mean demand of all tasks
    nearby, // remaining capacity <= alpha * mean demand of the unserved tasks near by
};

// What a choosy route still accepts.
enum class Filter : int32_t {
    ellipse,    // a detour of at most one mean service cost over driving home
    efficiency, // marginal cost per load no worse than the route's average so far
};

// How ties between equally near arcs are broken.
enum class Choice : int32_t {
    rules,       // the five tie rules in turn, one rule for each plan
    random_rule, // one of the five rules, drawn at each step
    random_arc,  // an arc drawn uniformly
};

// The order of the ties that `random_arc` draws from. It changes no probability, but
// which plan a seed gives.
enum class TieOrder : int32_t {
    by_distance,   // nearest places first
    unserved_list, // that of a list of unserved arcs in which the last fills each hole
};

struct PathScanningSettings {
    Choice choice;
    Trigger trigger;
    Filter filter;
    double alpha;
    TieOrder tie_order = TieOrder::by_distance;
};

// What all plans need and none changes: arcs by where they start, and for each place
// the other places and the tasks around it in order of distance.
class PathScanningTables {
  public:
    // Of `nearest`. A walk seldom goes farther, and all starts of a large network would
    // take longer to sort than the search that needs them.
    static constexpr size_t kLongestRow = 1000;

    // Only the trigger `nearby` needs the neighbours. Throws std::invalid_argument
    // where a demand is above the capacity.
    PathScanningTables(const Network &network, bool with_neighbours,
                       size_t longest_row = kLongestRow);

    struct ArcHere : TieKey {
        int32_t arc;
        int32_t task;
    };

    const Network &network;
    RouteRules rules;
    double mean_demand;
    double mean_cost;
    int32_t largest_demand;
    int32_t smallest_cost;
    std::vector<ArcHere> arcs;            // sorted by the terminal where they start
    std::vector<int32_t> arcs_at;         // where a terminal's arcs begin in `arcs`
    std::vector<uint16_t> starts;         // terminals where arcs start, in order
    std::vector<uint16_t> nearest;        // per terminal: starts in order of distance
    int32_t num_nearest;                  // length of each row: not all of many starts
    std::vector<int32_t> neighbours;      // tasks within mean_cost of a terminal
    std::vector<size_t> neighbours_at;    // where a terminal's neighbours begin
    std::vector<int32_t> tasks_by_demand; // smallest first
    std::vector<int32_t> demand;          // by task

    // Whether rows of `nearest` leave some starts out.
    bool has_more_starts() const { return starts.size() > idx(num_nearest); }
};

// The tasks still to be served and the nearest arcs among them: the step that all path
// scanning is made of. PathScanner takes it over all tasks, MAENS's merge-split over
// the tasks of two routes.
class UnservedArcs {
  public:
    using ArcHere = PathScanningTables::ArcHere;

    // None at first.
    explicit UnservedArcs(const PathScanningTables &tables)
        : t_(tables), wanted_(t_.demand.size()), open_(t_.arcs_at.size() - 1),
          found_(t_.arcs.size()) {}

    void add_all();
    void add(const Arc &arc) { change(arc, 1); }
    void remove(const Arc &arc) { change(arc, -1); }
    bool has(int32_t task) const { return wanted_[idx(task)]; }

    // All arcs that pass, at the smallest distance from a terminal at which there is
    // one. They are there until the next call.
    struct Nearest {
        std::span<const ArcHere *> arcs;
        int64_t distance; // `farthest` where there is none
    };
    template <typename Passes>
    Nearest nearest(int32_t terminal, int64_t farthest, const Passes &passes);

  private:
    void change(const Arc &arc, int32_t by) {
        wanted_[idx(arc.task)] = by > 0;
        open_[idx(arc.start)] += by;
        if (arc.inverse >= 0) {
            open_[idx(arc.end)] += by; // the inverse starts where this arc ends
        }
    }

    const PathScanningTables &t_;
    std::vector<uint8_t> wanted_; // by task
    std::vector<int32_t> open_;   // by terminal: unserved arcs that start there
    std::vector<const ArcHere *> found_;
};

// Places are walked from near to far, so the walk ends soon after the first find. What
// the loop reads is held in locals: members would be read again after each write.
template <typename Passes>
UnservedArcs::Nearest UnservedArcs::nearest(int32_t terminal, int64_t farthest,
                                            const Passes &passes) {
    const uint16_t *place = t_.nearest.data() + idx(terminal) * idx(t_.num_nearest);
    const uint16_t *const end = place + t_.num_nearest;
    const int32_t *const row = t_.network.distances_from(terminal);
    const int32_t *const open = open_.data();
    const int32_t *const arcs_at = t_.arcs_at.data();
    const ArcHere *const arcs = t_.arcs.data();
    const uint8_t *const wanted = wanted_.data();
    const ArcHere **const found = found_.data();
    size_t num_found = 0;
    const auto collect = [&](size_t start, int32_t reach) {
        for (int32_t k = arcs_at[start]; k < arcs_at[start + 1]; ++k) {
            // Without a branch, which nobody could predict.
            found[num_found] = arcs + k;
            num_found += wanted[arcs[k].task] & uint8_t{passes(arcs[k], reach)};
        }
    };
    for (; place < end; ++place) {
        if (open[*place] == 0) {
            continue;
        }
        const int32_t reach = row[*place];
        if (reach > farthest) {
            break;
        }
        collect(*place, reach);
        if (num_found > 0) {
            while (++place < end && row[*place] == reach) {
                if (open[*place] > 0) {
                    collect(*place, reach);
                }
            }
            // Equally near ones may lie beyond the end of a row.
            if (place < end || !t_.has_more_starts()) {
                return {{found, num_found}, reach};
            }
            break;
        }
    }
    if (place < end || !t_.has_more_starts()) {
        return {{found, 0}, farthest};
    }
    // Nothing in the row, or its last ones: look at all starts. In their order, so that
    // equally near ones come as they do in a row.
    int64_t nearest = farthest;
    num_found = 0;
    for (const uint16_t start : t_.starts) {
        const int32_t reach = row[start];
        if (open[start] == 0 || reach > nearest) {
            continue;
        }
        const size_t before = num_found;
        collect(start, reach);
        if (num_found > before && reach < nearest) {
            std::copy(found + before, found + num_found, found);
            num_found -= before;
            nearest = reach;
        }
    }
    return {{found, num_found}, nearest};
}

// One per thread, reused so that nothing is allocated in the loop.
class PathScanner {
  public:
    PathScanner(const PathScanningTables &tables, const PathScanningSettings &settings);

    // Builds a plan and returns its cost. `rule` is asked with the choice `rules` only.
    int64_t build(Random &random, TieRule rule);
    const Plan &plan() const { return plan_; }

  private:
    using ArcHere = PathScanningTables::ArcHere;

    void start_plan();
    void start_route();
    void serve(const ArcHere &arc);
    void close_route();
    bool nothing_fits();
    bool triggers() const;
    double mean_demand_near() const;
    template <typename Passes> void collect(int64_t farthest, const Passes &passes);
    template <Filter filter> void collect_nearest_filtered();
    void drop_from_list(int32_t arc);
    const ArcHere &draw(Random &random);
    const ArcHere &choose(Random &random, TieRule rule);

    const PathScanningTables &t_;
    const PathScanningSettings settings_;
    const RouteRules rules_;
    Plan plan_;
    UnservedArcs unserved_;
    size_t smallest_ = 0; // first unserved task in tasks_by_demand
    int64_t cost_ = 0;
    // The open route.
    int32_t place_ = 0; // terminal where the vehicle stands
    int32_t load_ = 0;
    int64_t travelled_ = 0;
    bool choosy_ = false;
    // The nearest arcs found in this step.
    UnservedArcs::Nearest nearest_;
    // With TieOrder::unserved_list only.
    std::vector<int32_t> list_;    // unserved arcs
    std::vector<int32_t> list_at_; // by arc: where it is in the list
};

} // namespace arcfleet
