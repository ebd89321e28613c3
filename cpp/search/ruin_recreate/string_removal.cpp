#include "search/ruin_recreate/string_removal.h"

#include <algorithm>

namespace arcfleet {

TaskString draw_string(const RuinRecreateSettings &settings, int32_t length,
                       int32_t place, double longest, Random &random) {
    const double most = std::min(static_cast<double>(length), longest);
    const int32_t taken =
        std::min(length, static_cast<int32_t>(random.unit() * most + 1.0));
    int32_t kept = 0; // in the middle of the string
    if (taken > 1 && taken < length && random.unit() < settings.split_rate) {
        kept = 1;
        while (taken + kept < length && random.unit() < settings.split_growth) {
            ++kept;
        }
    }
    const auto below = [&](int32_t n) {
        return static_cast<int32_t>(random.below(static_cast<uint32_t>(n)));
    };
    const int32_t window = taken + kept;
    // The window holds the task and lies within the route.
    const int32_t least = std::max(1, place - window + 1);
    const int32_t last = std::min(place, length - window + 1);
    const int32_t first = least + below(last - least + 1);
    const int32_t before = kept == 0 ? taken : 1 + below(taken - 1);
    return {first, first + window, first + before, kept};
}

void remove_strings(const RuinRecreateTables &tables, CurrentPlan &plan, Random &random,
                    std::vector<int32_t> &removed) {
    const RuinRecreateSettings &settings = tables.settings;
    const int32_t n = tables.tasks.num_tasks();
    const double mean_length = static_cast<double>(n) / std::max(1, plan.num_routes());
    const double longest = std::min(settings.longest_string, mean_length);
    const double most_strings = 4.0 * settings.average_removed / (1.0 + longest) - 1.0;
    const auto strings = static_cast<int32_t>(random.unit() * most_strings + 1.0);
    const int32_t *near = tables.nearest_to(random.below(static_cast<uint32_t>(n)));
    int32_t ruined = 0;
    for (int32_t i = 0; i < tables.row && ruined < strings; ++i) {
        // A task that was taken out is still noted at a route that is touched.
        const Spot spot = plan.spot(near[i]);
        if (!plan.is_touched(spot.slot)) {
            const int32_t length = plan.route(spot.slot).num_tasks();
            plan.remove(spot.slot,
                        draw_string(settings, length, spot.place, longest, random),
                        removed);
            ++ruined;
        }
    }
}

} // namespace arcfleet
