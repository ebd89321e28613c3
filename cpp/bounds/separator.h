// Finds node sets whose cuts a solution of the relaxation violates.
//
// Of a node set S, crossings(S) = drives over its border, both ways: the required links
// across it, which are served once each, and the deadheads y across it. Two families
// hold in every plan:
//
//   capacity  crossings(S) >= 2 K(S), where S has no depot and no facility; K(S) is the
//             number of trips that its required links, those with an end in S, need;
//   odd       deadheads across the border >= 1, where an odd number of required links
//             crosses it, since every route that enters S leaves it again.
//
// (Belenguer and Benavent 1998, 2003.) Sets found once are kept: the pool.
#pragma once

#include "base/random.h"

#include <atomic>
#include <cstdint>
#include <span>
#include <unordered_set>
#include <vector>

namespace arcfleet {

struct BoundLinks {
    std::span<const int32_t> tail, head; // of the required links, loops included
    std::span<const int64_t> demand;
};

class Separator {
  public:
    enum Family : uint8_t { connected, odd, capacity };

    // Pairs are those of nodes that can be driven between; `outside` marks the nodes
    // that no set of a capacity cut may hold, of which there is at least one.
    Separator(int32_t num_nodes, const BoundLinks &links,
              std::span<const int32_t> pair_tail, std::span<const int32_t> pair_head,
              std::span<const uint8_t> outside, int64_t vehicle_capacity);

    // Each looks for sets that deadheads violate, so many for each pair, and returns
    // how many it has added to the pool, `most` at most.
    int32_t find_components(std::span<const double> deadheads, int32_t most);
    int32_t find_odd(std::span<const double> deadheads, int32_t most);
    int32_t find_by_flow(std::span<const double> deadheads, uint64_t seed,
                         int32_t attempts, int32_t most);
    int32_t find_by_growth(std::span<const double> deadheads, uint64_t seed,
                           int32_t attempts, bool perturbed, int32_t most);
    // Adds the sets that hold for any deadheads: single nodes, and all but the outside.
    int32_t find_first();

    // Rows of the pool: sum of the deadheads of `pairs` >= least.
    int32_t num_rows() const { return static_cast<int32_t>(least_.size()); }
    const std::vector<int64_t> &row_starts() const { return starts_; }
    const std::vector<int32_t> &row_pairs() const { return pairs_; }
    const std::vector<int64_t> &row_least() const { return least_; }
    const std::vector<uint8_t> &row_family() const { return family_; }
    std::vector<double> violations(std::span<const double> deadheads) const;

    // Number of required links at each node, modulo 2.
    std::vector<uint8_t> odd_nodes() const;
    // Ends what is being looked for, from another thread.
    void cancel() { cancelled_ = true; }

  private:
    struct Neighbour {
        int32_t node;
        int32_t edge;
    };
    // An edge of the graph in which sets are looked for: all that joins two nodes.
    struct Edge {
        int32_t tail, head;
        int32_t pair;     // -1 where nothing can be driven over
        int32_t required; // number of required links
        int64_t demand;
    };
    struct Found {
        int64_t violation;
        std::vector<int32_t> nodes;
        Family family;
    };
    // A set that grows and shrinks, with what its cut is made of.
    struct Region;

    void read(std::span<const double> deadheads);
    int64_t trips(int64_t demand, int64_t links) const;
    void offer(const std::vector<uint8_t> &inside, Family family);
    void offer_part(const std::vector<int32_t> &part, Family family);
    int64_t violation_of(const std::vector<int32_t> &part);
    void offer_odd(const std::vector<uint8_t> &inside);
    int32_t keep_best(int32_t most);
    bool add_row(const std::vector<int32_t> &nodes, Family family);
    void climb(Region &region, Random &random);

    int32_t num_nodes_;
    int64_t capacity_;
    std::vector<uint8_t> outside_;
    int32_t num_outside_ = 0;
    std::vector<Edge> edges_;
    std::vector<int32_t> edge_starts_; // of each node
    std::vector<Neighbour> neighbours_;
    std::vector<int64_t> loop_demand_;
    std::vector<int32_t> loop_links_;
    std::vector<uint8_t> odd_;
    std::vector<uint64_t> label_; // random, for the hash of a set

    std::vector<int64_t> deadheads_; // of each edge, scaled
    std::vector<int64_t> weight_; // required links and deadheads of each edge, scaled
    std::vector<Found> found_;
    std::unordered_set<uint64_t> offered_; // in this call
    std::unordered_set<uint64_t> known_;   // in the pool
    std::vector<uint8_t> mark_;            // scratch

    std::vector<int64_t> starts_{0};
    std::vector<int32_t> pairs_;
    std::vector<int64_t> least_;
    std::vector<uint8_t> family_;
    std::atomic<bool> cancelled_{false};
};

} // namespace arcfleet
