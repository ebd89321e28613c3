// Path scanning over the tasks of two routes, as merge-split needs it: the nearest arcs
// are those of path_scanner.h, and the order is cut into routes at least cost while it
// grows. The outcome depends on the set of tasks only, not on their order. Merge-split
// is much of MAENS's work, so all rules are scanned at once: they share their way as
// long as they choose alike, and most steps leave no choice.
#pragma once

#include "search/maens/tables.h"
#include "search/path_scanner.h"

#include <cstdint>
#include <span>
#include <vector>

namespace arcfleet {

class RuleScanner {
  public:
    explicit RuleScanner(const MaensTables &tables)
        : tables_(tables), unserved_(tables.scanning()) {}

    // Writes the cheapest routes that a rule makes of some tasks, by the first rule
    // among equals, and returns their cost; INT64_MAX, with nothing written, where none
    // cost less than `limit`.
    int64_t scan(const std::vector<int32_t> &tasks, std::span<const TieRule> rules,
                 int64_t limit, Plan &routes);

  private:
    using ArcHere = UnservedArcs::ArcHere;

    // The last arc of an order, and the order so far.
    struct Step {
        int32_t arc;
        int32_t place; // terminal where the scan goes on: the arc's end, or the depot
        int64_t load;  // of the scan's route
        // The arcs so far cut into routes at least cost, wherever the scan cut them.
        int64_t cost;
        int64_t bound;    // no order that begins like this costs less
        int64_t driven;   // along all arcs, never home
        int64_t begun;    // cost with a route begun by the last arc, less what was
                          // driven before it
        int64_t load_all; // of all arcs
        int64_t to_come;  // the least that serving the others costs, and going home
        size_t cut;       // step of the first arc of the last route
    };
    // How some rules go on from a step.
    struct Branch {
        size_t step;
        int32_t arc;
        uint32_t rules; // a bit for each
    };

    void take(const std::vector<int32_t> &tasks);
    void serve(int32_t a);
    void cut(Step &step) const;
    bool something_fits(const RouteSlack &slack) const;
    void branch(std::span<const TieRule> rules, uint32_t chosen);
    void write(Plan &routes) const;
    bool better(TieRule rule, const ArcHere &a, const ArcHere &b) const;
    int32_t least_service_cost(const Arc &arc) const;

    const MaensTables &tables_;
    std::vector<int32_t> tasks_;
    int32_t largest_demand_ = 0;
    UnservedArcs unserved_;
    std::vector<Step> steps_; // the first is before all arcs
    size_t last_ = 0;         // step
    std::vector<Branch> branches_;
};

} // namespace arcfleet
