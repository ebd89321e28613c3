#include "network/nearness.h"

#include "network/areas.h"

#include <algorithm>
#include <array>

namespace arcfleet {

namespace {

// Areas of so many tasks are looked at, drawn so many times: what lies across the
// border of one area is within another.
constexpr int64_t kAreaTasks = 200;
constexpr uint64_t kDraws = 2;

// The extent of an area, from what its tasks cost to get to from the landmarks.
int32_t extent(const std::vector<Position> &positions,
               const std::vector<int32_t> &tasks) {
    float widest = 0.0F;
    for (size_t i = 0; i < kLandmarks; ++i) {
        const auto [least, most] =
            std::minmax_element(tasks.begin(), tasks.end(), [&](int32_t a, int32_t b) {
                return positions[idx(a)][i] < positions[idx(b)][i];
            });
        widest = std::max(widest, positions[idx(*most)][i] - positions[idx(*least)][i]);
    }
    return static_cast<int32_t>(std::min(widest, static_cast<float>(kMaxDistance)));
}

// Nearness in the high half, task in the low half, of the nearest task to each, where
// no distance counts as more than the farthest.
std::vector<int64_t> nearest_of_all(const Network &network, int32_t farthest);

std::vector<int64_t> nearest_in_areas(const Network &network) {
    const int32_t n = network.num_tasks();
    std::vector<int64_t> best(idx(n), INT64_MAX);
    const std::vector<Position> positions = task_positions(network);
    std::vector<Site> sites;
    for (int32_t task = 0; task < n; ++task) {
        sites.push_back({positions[idx(task)], 1, task});
    }
    for (uint64_t draw = 0; draw < kDraws; ++draw) {
        Random random(draw);
        for (const std::vector<int32_t> &tasks :
             draw_areas(sites, kAreaTasks, random)) {
            // Whoever has a street nearer than an eighth of this misses none: all of
            // eight distances would have to be longer.
            const int32_t farthest = extent(positions, tasks);
            const std::vector<int64_t> found =
                nearest_of_all(network.part(tasks, 0, farthest), farthest);
            for (size_t i = 0; i < tasks.size(); ++i) {
                if (found[i] != INT64_MAX) {
                    const int32_t other = tasks[idx(found[i] & 0xFFFFFFFF)];
                    int64_t &known = best[idx(tasks[i])];
                    known = std::min(known, found[i] >> 32 << 32 | other);
                }
            }
        }
    }
    return best;
}

std::vector<int64_t> nearest_of_all(const Network &network, int32_t farthest) {
    const int32_t n = network.num_tasks();
    const auto between = [&](int32_t from, int32_t to) {
        return std::array{std::min(farthest, network.distances_from(from)[to]),
                          std::min(farthest, network.distances_from(to)[from])};
    };
    std::vector<int64_t> best(idx(n), INT64_MAX);
    const auto offer = [&](int32_t task, int64_t near, int32_t other) {
        best[idx(task)] = std::min(best[idx(task)], near << 32 | other);
    };
    // In blocks: columns of the matrix are then read while they are in the cache.
    constexpr int32_t kBlock = 64;
    for (int32_t top = 0; top < n; top += kBlock) {
        for (int32_t left = top; left < n; left += kBlock) {
            for (int32_t i = top; i < std::min(n, top + kBlock); ++i) {
                const Arc &a = network.arc(network.task_arc(i));
                for (int32_t j = std::max(left, i + 1); j < std::min(n, left + kBlock);
                     ++j) {
                    const Arc &b = network.arc(network.task_arc(j));
                    const int64_t near = nearness(network, a, b, between);
                    offer(i, near, j);
                    offer(j, near, i);
                }
            }
        }
    }
    return best;
}

} // namespace

std::vector<int32_t> nearest_others(const Network &network) {
    std::vector<int32_t> nearest;
    for (const int64_t packed : network.is_measured()
                                    ? nearest_of_all(network, kUnreachable)
                                    : nearest_in_areas(network)) {
        nearest.push_back(
            packed == INT64_MAX ? -1 : static_cast<int32_t>(packed & 0xFFFFFFFF));
    }
    return nearest;
}

} // namespace arcfleet
