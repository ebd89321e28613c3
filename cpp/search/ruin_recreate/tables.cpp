#include "search/ruin_recreate/tables.h"

#include "network/nearness.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace arcfleet {

namespace {

// So many nearest other nodes make the unit of temperature.
constexpr size_t kNearNodes = 3;

} // namespace

// Several terminals may be at one node. Ways that turn rules close are no distances: a
// single terminal without a way out would make the mean as large as all costs together.
double mean_near_distance(const Network &network) {
    const std::vector<int32_t> &nodes = network.terminal_nodes();
    std::vector<int32_t> numbers(nodes); // the different nodes, in order
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    std::vector<size_t> place;
    for (const int32_t node : nodes) {
        place.push_back(idx(std::lower_bound(numbers.begin(), numbers.end(), node) -
                            numbers.begin()));
    }
    std::vector<int32_t> least(numbers.size());                          // to each node
    std::vector<int32_t> near(std::min(numbers.size(), kNearNodes + 1)); // itself first
    double sum = 0.0;
    size_t count = 0;
    for (int32_t i = 0; i < network.num_terminals(); ++i) {
        const int32_t *distances = network.distances_from(i);
        std::fill(least.begin(), least.end(), INT32_MAX);
        for (size_t j = 0; j < nodes.size(); ++j) {
            least[place[j]] = std::min(least[place[j]], distances[j]);
        }
        least[place[idx(i)]] = 0;
        std::partial_sort_copy(least.begin(), least.end(), near.begin(), near.end());
        const auto open =
            std::find_if_not(near.begin(), near.end(), [&](int32_t distance) {
                return network.is_open(distance);
            });
        sum += std::accumulate(near.begin(), open, 0.0);
        count += idx(open - near.begin()) - 1; // itself apart
    }
    return sum / static_cast<double>(std::max<size_t>(1, count));
}

std::vector<int32_t> nearest_tasks(const TaskTable &tasks, int32_t row) {
    const int32_t n = tasks.num_tasks();
    const Network &network = tasks.network();
    const auto between = [&](int32_t from, int32_t to) {
        return std::array{tasks.from(from)[to], tasks.to(from)[to]};
    };
    std::vector<int32_t> nearest;
    nearest.reserve(idx(n) * idx(row));
    std::vector<int64_t> keys(
        idx(n)); // distance in the high half, task in the low half
    for (int32_t i = 0; i < n; ++i) {
        const Arc &a = network.arc(network.task_arc(i));
        for (int32_t j = 0; j < n; ++j) {
            const Arc &b = network.arc(network.task_arc(j));
            const int64_t distance = i == j ? -1 : nearness(network, a, b, between);
            keys[idx(j)] = distance * (int64_t{1} << 32) + j;
        }
        std::nth_element(keys.begin(), keys.begin() + (row - 1), keys.end());
        std::sort(keys.begin(), keys.begin() + row);
        for (int32_t j = 0; j < row; ++j) {
            nearest.push_back(static_cast<int32_t>(keys[idx(j)] & 0xFFFFFFFF));
        }
    }
    return nearest;
}

namespace {

// Of a route, excess included.
int64_t most_load(const Network &network, const RuinRecreateSettings &settings) {
    const double capacity = network.vehicle().capacity;
    return std::llround(capacity * (1.0 + settings.most_excess));
}

} // namespace

RuinRecreateTables::RuinRecreateTables(const Network &network,
                                       const RuinRecreateSettings &given,
                                       int32_t fewest_nearby)
    : tasks(network, most_load(network, given)), rules(network), settings(given),
      near_distance(mean_near_distance(network)),
      row(std::min(tasks.num_tasks(), kLongestRow)),
      inserts_nearby(tasks.num_tasks() >= std::max(1, fewest_nearby) &&
                     tasks.end_distances(0) == nullptr) {
    nearest = nearest_tasks(tasks, row);
}

} // namespace arcfleet
