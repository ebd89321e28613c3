// The path optimiser: given an order of services, the best places to return to the
// depot (Ulusoy 1985; Eq. 8 of the DaAM paper), and, if asked, the best directions with
// them.
#pragma once

#include "network/network.h"

#include <cstdint>
#include <span>
#include <vector>

namespace arcfleet {

// Splits one order after the other; keep one per thread, it allocates once.
class Splitter {
  public:
    // Cuts `arcs` into routes at least cost and returns it; sets starts_route[i] to 1
    // where a route starts at arcs[i], else to 0. With `choose_directions` arcs may be
    // replaced by their twins. The fleet limit of the network is kept; -1 is returned,
    // with nothing changed, where the order cannot be cut within it. Throws
    // std::invalid_argument where an arc is unknown or above the capacity.
    int64_t split(const Network &network, std::span<int32_t> arcs,
                  std::span<uint8_t> starts_route, bool choose_directions);

  private:
    // One service of the order; index 0 means as given, 1 turned round.
    struct Step {
        int64_t service[2];
        int32_t out[2];      // from the depot
        int32_t back[2];     // to the depot
        int32_t drive[2][2]; // from the service before, by its direction and this one's
        int32_t demand;
    };

    void check(const Network &network, std::span<const int32_t> arcs) const;
    int64_t split_fixed(const Network &network, std::span<const int32_t> arcs);
    void lay_out(const Network &network, std::span<const int32_t> arcs);
    template <bool choose_directions> int64_t split_layered(int32_t layers);
    void choose(const Network &network, std::span<int32_t> arcs);

    std::vector<int64_t> value_; // by layer and number of arcs served
    std::vector<int32_t> from_;  // likewise: where the last route starts
    std::vector<int32_t> cuts_;  // where the routes start, of the result
    std::vector<int64_t> key_;
    std::vector<int64_t> load_;
    std::vector<int32_t> queue_;
    std::vector<uint8_t> came_turned_;
    std::vector<Step> steps_;
    int64_t capacity_ = 0;
    int64_t route_cost_ = 0;
};

} // namespace arcfleet
