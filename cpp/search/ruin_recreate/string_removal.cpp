#include "search/ruin_recreate/string_removal.h"

#include <algorithm>

namespace arcfleet {

namespace {

// A route may lose a string out of each of its parts of so many tasks.
constexpr int32_t kSegment = 40;

} // namespace

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

StringRemoval::StringRemoval(const RuinRecreateTables &tables)
    : tables_(tables), marked_(idx(tables.tasks.num_tasks()), 0) {}

void StringRemoval::remove(CurrentPlan &plan, Random &random,
                           std::vector<int32_t> &removed) {
    const RuinRecreateSettings &settings = tables_.settings;
    const int32_t n = tables_.tasks.num_tasks();
    const double mean_length = static_cast<double>(n) / std::max(1, plan.num_routes());
    const double longest = std::min(settings.longest_string, mean_length);
    const double most_strings = 4.0 * settings.average_removed / (1.0 + longest) - 1.0;
    const auto strings = static_cast<size_t>(random.unit() * most_strings + 1.0);
    const int32_t *near = tables_.nearest_to(random.below(static_cast<uint32_t>(n)));
    segments_.clear();
    ruined_.clear();
    for (int32_t i = 0; i < tables_.row && segments_.size() < strings; ++i) {
        const Spot spot = plan.spot(near[i]);
        const Segment segment{spot.slot, (spot.place - 1) / kSegment};
        if (marked_[idx(near[i])] == 0 &&
            std::find(segments_.begin(), segments_.end(), segment) == segments_.end()) {
            segments_.push_back(segment);
            const int32_t length = plan.route(spot.slot).num_tasks();
            mark(plan, spot.slot,
                 draw_string(settings, length, spot.place, longest, random), removed);
        }
    }
    for (const Ruined &each : ruined_) {
        plan.remove(each.slot, each.first, each.last, marked_);
    }
    for (const int32_t task : removed) {
        marked_[idx(task)] = 0;
    }
}

void StringRemoval::mark(const CurrentPlan &plan, int32_t slot,
                         const TaskString &string, std::vector<int32_t> &removed) {
    const auto take = [&](int32_t first, int32_t last) {
        for (int32_t i = first; i < last; ++i) {
            const int32_t task = plan.route(slot).visits[idx(i)].task;
            if (marked_[idx(task)] == 0) {
                marked_[idx(task)] = 1;
                removed.push_back(task);
            }
        }
    };
    take(string.kept_from + string.kept, string.last);
    take(string.first, string.kept_from);
    for (Ruined &each : ruined_) {
        if (each.slot == slot) {
            each.first = std::min(each.first, string.first);
            each.last = std::max(each.last, string.last);
            return;
        }
    }
    ruined_.push_back({slot, string.first, string.last});
}

} // namespace arcfleet
