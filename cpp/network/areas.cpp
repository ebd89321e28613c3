#include "network/areas.h"

#include "network/dijkstra.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

namespace arcfleet {

namespace {

// Of so many random directions the one in which sites are spread out most is taken.
constexpr int kDirections = 3;

// One landmark is taken from another, which gives a coordinate along the line between
// them.
struct Direction {
    size_t to;
    size_t from;

    float along(const Site &site) const {
        return site.position[to] - site.position[from];
    }
};

double spread(std::span<const Site> sites, const Direction &direction) {
    double sum = 0.0;
    double squares = 0.0;
    for (const Site &site : sites) {
        const double x = direction.along(site);
        sum += x;
        squares += x * x;
    }
    const auto n = static_cast<double>(sites.size());
    return squares / n - sum / n * (sum / n);
}

Direction draw_direction(std::span<const Site> sites, Random &random) {
    Direction best{0, 1};
    double widest = -1.0;
    for (int i = 0; i < kDirections; ++i) {
        const size_t to = random.below(kLandmarks);
        const size_t from = (to + 1 + random.below(kLandmarks - 1)) % kLandmarks;
        const double wide = spread(sites, {to, from});
        if (wide > widest) {
            widest = wide;
            best = {to, from};
        }
    }
    return best;
}

void cut(std::span<Site> sites, int64_t most_tasks, Random &random,
         std::vector<std::vector<int32_t>> &areas) {
    int64_t tasks = 0;
    for (const Site &site : sites) {
        tasks += site.size;
    }
    if (tasks <= most_tasks || sites.size() == 1) {
        std::vector<int32_t> &area = areas.emplace_back();
        for (const Site &site : sites) {
            area.push_back(site.number);
        }
        return;
    }
    const Direction direction = draw_direction(sites, random);
    std::sort(sites.begin(), sites.end(), [&](const Site &a, const Site &b) {
        return std::pair(direction.along(a), a.number) <
               std::pair(direction.along(b), b.number);
    });
    // Whole areas on both sides, as equal as can be.
    const int64_t areas_needed = (tasks + most_tasks - 1) / most_tasks;
    const int64_t wanted = tasks * (areas_needed / 2) / areas_needed;
    size_t middle = 0;
    for (int64_t sum = 0; middle + 1 < sites.size(); ++middle) {
        sum += sites[middle].size;
        if (middle > 0 && sum > wanted) {
            break;
        }
    }
    middle = std::max<size_t>(1, middle);
    cut(sites.first(middle), most_tasks, random, areas);
    cut(sites.subspan(middle), most_tasks, random, areas);
}

} // namespace

std::vector<Position> task_positions(const Network &network) {
    const int32_t n = network.num_tasks();
    std::vector<Position> positions(idx(n));
    const std::vector<int32_t> &nodes = network.terminal_nodes();
    Dijkstra dijkstra(network.streets());
    // The node farthest from all landmarks so far is the next; what cannot be reached
    // without turning against one-way streets is nobody's landmark.
    std::vector<int32_t> nearest(idx(network.streets().num_nodes()), kUnreachable);
    int32_t landmark = nodes[0];
    for (size_t number = 0; number <= kLandmarks; ++number) {
        const auto distances = dijkstra.distances(landmark);
        int32_t farthest = 0;
        for (const int32_t distance : distances) {
            farthest = std::max(farthest, distance == kUnreachable ? 0 : distance);
        }
        for (int32_t task = 0; number > 0 && task < n; ++task) {
            const Arc &arc = network.arc(network.task_arc(task));
            const auto at = [&](int32_t terminal) {
                return static_cast<float>(
                    std::min(distances[idx(nodes[idx(terminal)])], farthest));
            };
            positions[idx(task)][number - 1] = (at(arc.start) + at(arc.end)) / 2;
        }
        // The depot finds the first landmark, and is none.
        int32_t far = -1;
        for (const int32_t node : nodes) {
            int32_t &known = nearest[idx(node)];
            if (distances[idx(node)] != kUnreachable) {
                known = number == 1 ? distances[idx(node)]
                                    : std::min(known, distances[idx(node)]);
            }
            if (known != kUnreachable && known > far) {
                far = known;
                landmark = node;
            }
        }
    }
    return positions;
}

std::vector<std::vector<int32_t>> draw_areas(std::vector<Site> sites,
                                             int64_t most_tasks, Random &random) {
    std::vector<std::vector<int32_t>> areas;
    if (!sites.empty()) {
        cut(sites, most_tasks, random, areas);
    }
    return areas;
}

} // namespace arcfleet
