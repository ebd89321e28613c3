// Split: given an order of services (a giant tour), the best places to return to the
// depot (Ulusoy 1985; the path optimiser, Eq. 8, of the DaAM paper) and, if asked, the
// best directions with them.
#pragma once

#include "network/network.h"
#include "search/rules.h"

#include <cstdint>
#include <span>
#include <vector>

namespace arcfleet {

// The costs of many orders of services, gathered by a caller who holds no Network.
// Every pointer but `demand` and `can_turn` leads to one row of `positions` numbers per
// direction: first for the services as given, then, if `directions` is 2, turned round.
struct GatheredCosts {
    size_t positions;
    int directions; // 1 or 2
    const int32_t *service;
    const int32_t *out;  // from the depot
    const int32_t *back; // to the depot
    // From the service before: given to given; with two directions also given to
    // turned, turned to given, turned to turned. Not read where an order begins.
    const int32_t *drive;
    const int32_t *demand;
    const uint8_t *can_turn; // read only with two directions
};

// Splits one order after the other; keep one per thread, it allocates once.
class Splitter {
  public:
    // Cuts `arcs` into routes at least cost and returns it; sets starts_route[i] to 1
    // where a route starts at arcs[i], else to 0. With `choose_directions` arcs may be
    // replaced by their inverses. The fleet limit of the network is kept; -1 is
    // returned, with nothing changed, where the order cannot be cut within it. Throws
    // std::invalid_argument where an arc is unknown or above the capacity.
    int64_t split(const Network &network, std::span<int32_t> arcs,
                  std::span<uint8_t> starts_route, bool choose_directions);

    // The same for the order that stands at `first` in gathered costs and is as long as
    // `starts_route`. With two directions sets turned[i] to 1 where the i-th service
    // is to be turned round, else to 0.
    int64_t split(const GatheredCosts &costs, size_t first, const RouteRules &rules,
                  std::span<uint8_t> turned, std::span<uint8_t> starts_route);

  private:
    // One service of the order; index 0 means as given, 1 turned round.
    struct Step {
        int64_t service[2];
        int32_t out[2];      // from the depot
        int32_t back[2];     // to the depot
        int32_t drive[2][2]; // from the service before, by its direction and this one's
        int32_t demand;
    };

    template <typename Costs> int64_t split_fixed(const Costs &costs, size_t length);
    template <bool choose_directions> int64_t split_layered(int64_t layers);
    // As split_fixed or split_layered, within the fleet limit; `lay_out` fills steps_.
    template <typename Costs, typename LayOut>
    int64_t cut(const Costs &costs, bool choose_directions, const LayOut &lay_out,
                std::span<uint8_t> starts_route);
    // Calls turn(i) for every service that is to be turned round.
    template <typename Turn> void choose(const Turn &turn);

    void lay_out(const Network &network, std::span<const int32_t> arcs);
    void lay_out(const GatheredCosts &costs, size_t first, size_t length);

    std::vector<int64_t> value_; // by layer and number of arcs served
    std::vector<int32_t> from_;  // likewise: where the last route starts
    std::vector<int32_t> cuts_;  // where the routes start, of the result
    std::vector<int64_t> key_;
    std::vector<int64_t> load_;
    std::vector<int32_t> queue_;
    std::vector<uint8_t> came_turned_;
    std::vector<Step> steps_;
    RouteRules rules_{0, 0, 0}; // of the order at hand
};

} // namespace arcfleet
