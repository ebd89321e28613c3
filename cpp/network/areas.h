// Where tasks lie, told by driving costs alone, and how a city is cut into areas.
#pragma once

#include "base/random.h"
#include "network/network.h"

#include <array>
#include <cstdint>
#include <vector>

namespace arcfleet {

// A place by its driving costs from a few landmarks, which lie far from each other.
constexpr size_t kLandmarks = 8;
using Position = std::array<float, kLandmarks>;

// The positions of all tasks of a network, which need not be measured.
std::vector<Position> task_positions(const Network &network);

// What is to be shared out over areas: a task or a route, at its mean position.
struct Site {
    Position position;
    int32_t size; // its tasks
    int32_t number;
};

// Shares sites out over areas of at most so many tasks, or of one site, by cutting in
// half across random directions in which they are spread out. Areas of one network
// drawn at different times have different borders.
std::vector<std::vector<int32_t>> draw_areas(std::vector<Site> sites,
                                             int64_t most_tasks, Random &random);

} // namespace arcfleet
