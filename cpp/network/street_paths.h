// The streets driven along by the routes of a plan.
#pragma once

#include "network/dijkstra.h"
#include "network/network.h"

#include <cstdint>
#include <span>
#include <vector>

namespace arcfleet {

// One link driven along: `edge` as in DirectedEdge, and whether it is served this time.
struct StreetStep {
    int32_t edge;
    bool serves;
};

struct RoutePath {
    std::vector<StreetStep> steps;  // from depot to depot, services included
    std::vector<int32_t> deadheads; // costs of driving to each service, and home
};

// The ways from the depot and home are the longest. All routes of a plan share a search
// for each.
class StreetPaths {
  public:
    // Refers to the network, which need not be measured.
    explicit StreetPaths(const Network &network);

    // Along shortest ways; throws std::invalid_argument if there is none, or an arc is
    // unknown.
    RoutePath of(std::span<const int32_t> route);

  private:
    void drive(int32_t from, int32_t to, RoutePath &path);

    const Network &network_;
    Dijkstra from_depot_;
    Dijkstra between_;
    std::vector<int32_t> to_depot_; // by node of the ways
};

} // namespace arcfleet
