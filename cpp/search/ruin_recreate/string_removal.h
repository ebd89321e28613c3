// Ruin: takes a string of tasks out of each of a few routes that come near each other
// (Christiaens and Vanden Berghe 2020, "Slack induction by string removals").
#pragma once

#include "base/random.h"
#include "search/ruin_recreate/current_plan.h"

#include <cstdint>
#include <vector>

namespace arcfleet {

// A string of a route with `length` tasks, counted from 1, that holds the task at
// `place`, or has it among those kept in its middle.
TaskString draw_string(const RuinRecreateSettings &settings, int32_t length,
                       int32_t place, double longest, Random &random);

// Appends the tasks taken out to `removed`.
void remove_strings(const RuinRecreateTables &tables, CurrentPlan &plan, Random &random,
                    std::vector<int32_t> &removed);

} // namespace arcfleet
