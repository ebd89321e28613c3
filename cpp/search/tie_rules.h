// The five rules by which path scanning breaks ties between equally near arcs (Golden,
// DeArmon and Baker 1983).
#pragma once

#include "search/rules.h"

#include <cstdint>

namespace arcfleet {

// In the order of the publication.
enum class TieRule : int32_t {
    least_cost_per_demand,
    most_cost_per_demand,
    near_to_depot,
    far_from_depot,
    out_then_home, // far while less than half full, near from then on
};

constexpr int32_t kTieRules = 5;

// What the rules compare.
struct TieKey {
    int32_t demand;
    int32_t service_cost;
    int32_t home; // distance from the end of the arc to the depot
};

// The plain rule that a rule means at this load.
inline TieRule plain_rule(TieRule rule, const RouteRules &rules, int64_t load) {
    if (rule != TieRule::out_then_home) {
        return rule;
    }
    return rules.under_half_full(load) ? TieRule::far_from_depot
                                       : TieRule::near_to_depot;
}

// Whether a plain rule prefers `a` to `b`.
inline bool prefers(TieRule rule, const TieKey &a, const TieKey &b) {
    switch (rule) {
    case TieRule::least_cost_per_demand:
        return int64_t{a.service_cost} * b.demand < int64_t{b.service_cost} * a.demand;
    case TieRule::most_cost_per_demand:
        return prefers(TieRule::least_cost_per_demand, b, a);
    case TieRule::near_to_depot:
        return a.home < b.home;
    default:
        return a.home > b.home;
    }
}

} // namespace arcfleet
