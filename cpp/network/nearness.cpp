#include "network/nearness.h"

#include <array>

namespace arcfleet {

std::vector<int32_t> nearest_others(const Network &network) {
    const int32_t n = network.num_tasks();
    const auto between = [&](int32_t from, int32_t to) {
        return std::array{network.distances_from(from)[to],
                          network.distances_from(to)[from]};
    };
    // Nearness in the high half, task in the low half.
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
    std::vector<int32_t> nearest;
    nearest.reserve(idx(n));
    for (const int64_t packed : best) {
        nearest.push_back(
            packed == INT64_MAX ? -1 : static_cast<int32_t>(packed & 0xFFFFFFFF));
    }
    return nearest;
}

} // namespace arcfleet
