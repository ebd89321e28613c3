// Ruin: takes a string of tasks out of each of a few routes that come near each other
// (Christiaens and Vanden Berghe 2020, "Slack induction by string removals").
#pragma once

#include "base/random.h"
#include "search/ruin_recreate/current_plan.h"

#include <cstdint>
#include <vector>

namespace arcfleet {

// Appends the tasks taken out to `removed`.
void remove_strings(const RuinRecreateTables &tables, CurrentPlan &plan, Random &random,
                    std::vector<int32_t> &removed);

} // namespace arcfleet
