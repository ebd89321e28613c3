// What all chains of ruin-recreate share and none changes.
#pragma once

#include "search/labelled_route.h"
#include "search/rules.h"

#include <cstdint>
#include <vector>

namespace arcfleet {

struct RuinRecreateSettings {
    double average_removed;   // tasks taken out per iteration, on average
    double longest_string;    // at most so many in a row
    double split_rate;        // share of strings with a gap in the middle
    double split_growth;      // chance that the gap grows by one more task
    double blink_rate;        // share of places overlooked
    double first_temperature; // in near distances
    double last_temperature;  // likewise
    double most_excess;       // load above capacity allowed on the way, in capacities
    double target_fit;        // share of current plans that keep the capacity
};

// The unit of temperature: the mean distance from a node where service starts or ends
// to the nearest few others.
double mean_near_distance(const Network &network);

// For each task the tasks in order of distance, itself first, cut at `row` entries.
std::vector<int32_t> nearest_tasks(const TaskTable &tasks, int32_t row);

// More neighbours than this are never walked through before enough routes are ruined.
constexpr int32_t kLongestRow = 1000;

// With fewer tasks it takes no longer to look at all places.
constexpr int32_t kFewestNearby = 800;

struct RuinRecreateTables {
    RuinRecreateTables(const Network &network, const RuinRecreateSettings &settings,
                       int32_t fewest_nearby = kFewestNearby);

    // The other tasks in order of distance, the task itself first.
    const int32_t *nearest_to(size_t task) const {
        return nearest.data() + task * idx(row);
    }

    TaskTable tasks;
    RouteRules rules;
    RuinRecreateSettings settings;
    double near_distance; // between a terminal and the nearest few others
    int32_t row;
    std::vector<int32_t> nearest; // by task, each cut at `row` entries
    // Whether tasks are put back near the tasks near them, not anywhere: where places
    // are looked at four at a time, all of them take no longer.
    bool inserts_nearby;
};

} // namespace arcfleet
