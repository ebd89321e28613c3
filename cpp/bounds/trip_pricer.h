// Finds trips of negative reduced cost: the pricing problem of a relaxation whose
// columns are trips.
//
// A trip starts and ends at nodes that are `outside` (depots and facilities), drives
// over priced arcs and serves streets up to the capacity. It may serve a street twice,
// but not while the street is remembered: after each service only those near it stay in
// memory (ng-routes, Baldacci, Mingozzi and Roberti 2011). With all streets in memory
// no street is served twice; with fewer there are more trips, and the bound is lower
// but valid.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

namespace arcfleet {

class TripPricer {
  public:
    static constexpr int32_t kMostTasks = 256;
    // No more labels are made for one call, nor compared.
    static constexpr int64_t kMostLabels = 1'000'000, kMostComparisons = 500'000'000;

    struct Arcs { // what can be driven over; column -1: at no price
        std::span<const int32_t> tail, head, column;
    };
    struct Sides { // each task once or twice, by the directions in which it is served
        std::span<const int32_t> tail, head, task;
    };

    // Demands are those of tasks, all above 0. So many tasks are remembered after each,
    // those nearest to it by the costs of columns.
    TripPricer(int32_t num_nodes, const Arcs &arcs, const Sides &sides,
               std::span<const int64_t> demand, std::span<const uint8_t> outside,
               int64_t capacity, std::span<const int64_t> costs, int32_t num_near);

    // Prices of columns and of sides are integers, those of columns not below 0. Keeps
    // for each last side a trip of least reduced cost, if it is below -tolerance, and
    // returns whether none is missed: no trip then costs less than the first of those
    // that are kept, or -tolerance. One may be missed where a load and side has more
    // than `most_labels` ways to get there, and where a limit is met.
    bool price(std::span<const int64_t> columns, std::span<const int64_t> sides,
               int64_t tolerance, int32_t most_labels);

    // Keeps a trip of each task alone, on the cheapest way.
    void find_single(std::span<const int64_t> columns);

    // The trips that were kept, and their reduced costs, least first.
    const std::vector<int64_t> &trip_costs() const { return trip_costs_; }
    const std::vector<int64_t> &trip_starts() const { return trip_starts_; }
    const std::vector<int32_t> &trip_sides() const { return trip_sides_; }
    // Columns that each of them drives over, as often as they are listed.
    const std::vector<int64_t> &drive_starts() const { return drive_starts_; }
    const std::vector<int32_t> &drives() const { return drives_; }
    void cancel() { cancelled_ = true; }

  private:
    using Memory = std::array<uint64_t, kMostTasks / 64>;
    struct Label {
        int64_t cost;
        Memory memory;
        int32_t before; // label, -1 at the start of the trip
        int32_t side;
    };
    struct Tree { // shortest paths to all nodes
        std::vector<int64_t> distance;
        std::vector<int32_t> arc; // last one of the path
    };

    void set_prices(std::span<const int64_t> columns, std::span<const int64_t> prices);
    void find_near(int32_t num_near);
    void find_paths(std::span<const int32_t> from, Tree &tree);
    void find_completions();
    void keep_trip(int32_t label);
    void add_path(const Tree &tree, int32_t to);

    int32_t num_nodes_, num_sides_;
    int32_t capacity_ = 0;
    std::vector<int32_t> arc_tail_, arc_head_, arc_column_;
    std::vector<int32_t> leaving_starts_, leaving_; // arcs of each node
    std::vector<int32_t> side_tail_, side_head_, side_task_, side_demand_;
    std::vector<int32_t> outside_;
    std::vector<Memory> near_;

    std::vector<int64_t> arc_price_;
    Tree start_;             // from outside
    std::vector<Tree> tree_; // from the head of each side
    std::vector<int32_t> home_;
    std::vector<int64_t> way_;      // from side to side, with the price of the second
    std::vector<int64_t> complete_; // least cost of what follows, by load and side
    std::vector<Label> labels_;
    std::vector<int64_t> trip_costs_, trip_starts_{0}, drive_starts_{0};
    std::vector<int32_t> trip_sides_, drives_;
    std::atomic<bool> cancelled_{false};
};

} // namespace arcfleet
