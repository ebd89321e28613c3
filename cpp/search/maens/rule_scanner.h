// Path scanning over the tasks of two routes, as merge-split needs it: always to the
// nearest arc that fits, ties by one of five rules, and the order cut into routes at
// least cost. The outcome depends on the set of tasks only, not on their order.
// Merge-split is much of MAENS's work, so this scanner is apart from path_scanner.h:
// the five rules share their way as long as they choose alike, and the split grows with
// it. With a plain scan in its place MAENS has 0.71 times the iterations per second on
// egl-s4-A.
#pragma once

#include "search/maens/tables.h"
#include "search/tie_rules.h"

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

namespace arcfleet {

// Cells are what vector instructions work on: of 16 bits, where `fits` says that they
// suffice, they do twice as many at a time as of 32.
template <typename Cell> class RuleScanner {
  public:
    static bool fits(const MaensTables &tables);
    // Rows of distances are kept for so many cells. Beyond it two routes have over a
    // thousand arcs, and each row is made anew.
    explicit RuleScanner(const MaensTables &tables,
                         size_t most_cells = size_t{1} << 21);

    // The tasks that the scans from now on are about.
    void take(const std::vector<int32_t> &tasks);
    // The cost of the routes made by a rule; INT64_MAX where it is not below `limit`,
    // mostly before all of them are made.
    int64_t scan(TieRule rule, int64_t limit);
    // The routes of the last scan, if it gave a cost.
    void write(Plan &plan) const;

  private:
    static constexpr Cell kServed = std::numeric_limits<Cell>::max();
    static constexpr size_t kOrders = kPlainTieRules;

    // Among arcs equally near the first in a rule's order wins.
    struct Preference {
        std::vector<int32_t> rank; // by arc
        std::vector<int32_t> arc;  // by rank
        std::vector<Cell> here;    // rank of the arcs taken
    };
    // What is known of the scans with the same arcs up to some point. Most steps leave
    // no choice, so that the rules share much of their way.
    struct Node {
        int32_t before; // the node one arc back
        int32_t depth;  // number of arcs
        int32_t end;    // terminal
        // The way on.
        bool at_depot;
        int64_t load;                      // of the route so far
        int32_t nearest;                   // distance; negative while not known
        uint64_t ties;                     // places of the nearest, where 64 suffice
        std::array<int32_t, kOrders> arc;  // chosen by each order; -1 while not known
        std::array<int32_t, kOrders> next; // the node after it, 0 while there is none
        // The arcs so far cut into routes at least cost, wherever the scan cut them.
        int64_t cost;
        int64_t bound;       // no scan that comes by here costs less
        int64_t driven;      // along all arcs, never home
        int64_t begun;       // cost with a route begun by the last arc, less what was
                             // driven before it
        int64_t load_before; // of all arcs but the last
        int64_t load_after;  // of all arcs
        int64_t to_come;     // the least that serving the others costs, and going home
        int32_t cut;         // the node of the first arc of the last route
    };
    int32_t new_node(int32_t before, int32_t a);
    void cut(int32_t number);
    void mark_served();
    void find_nearest(Node &node);
    void choose(Node &node, size_t number);
    void choose_of_ties(Node &node, size_t number) const;
    const Cell *row_at(const Node &node);
    bool better(TieRule rule, int32_t a, int32_t b) const;
    TieKey tie_key(int32_t a) const;
    int32_t least_service_cost(int32_t a) const;
    const Cell *row(size_t place);

    const MaensTables &tables_;
    size_t most_cells_;
    std::array<Preference, kOrders> preferences_;
    std::vector<int32_t> order_;
    size_t num_marked_ = 0; // arcs of the order that open_ knows of
    std::vector<Node> nodes_;
    size_t num_nodes_ = 0;
    int32_t last_ = 0; // node where the last scan ended
    // Of the arcs taken, in plain arrays, so that the compiler uses vector
    // instructions.
    std::vector<int32_t> start_;
    std::vector<int32_t> end_;  // the depot's comes last
    std::vector<Cell> demand_;  // less one
    std::vector<Cell> open_;    // the same, a large number where served
    std::vector<size_t> place_; // by arc
    std::vector<int32_t> arc_;  // by place
    size_t num_arcs_ = 0;
    size_t num_tasks_ = 0;
    int64_t service_cost_ = 0; // of all tasks, in the cheaper direction each
    int64_t home_ = 0;         // distance to the depot where it is the shortest
    size_t width_ = 0;         // of a row: the number of arcs, rounded up
    // Distances from the end of an arc to the start of each; made when first needed.
    std::vector<Cell> rows_;
    std::vector<uint8_t> has_row_;
    bool keeps_rows_ = true; // else there is room for one
};

} // namespace arcfleet
