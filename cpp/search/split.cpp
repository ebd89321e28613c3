#include "search/split.h"

#include <algorithm>
#include <stdexcept>

namespace arcfleet {

namespace {

constexpr int64_t kNever = INT64_MAX / 4;
// Service cost of a direction that is not allowed: no plan's cost comes near it.
constexpr int64_t kNotAllowed = int64_t{1} << 50;

constexpr size_t idx(int64_t i) { return static_cast<size_t>(i); }

} // namespace

void Splitter::check(const Network &network, std::span<const int32_t> arcs) const {
    for (const int32_t arc : arcs) {
        if (arc <= 0 || idx(arc) >= network.arcs().size()) {
            throw std::invalid_argument("unknown arc in an order of services");
        }
        if (network.arc(arc).demand > network.rules().capacity) {
            throw std::invalid_argument("a demand is above the capacity");
        }
    }
}

// Fixed directions, any number of routes. The cost of serving i+1 .. j on one route is
// a part that depends on i plus a part that depends on j, so the best i is the least
// key in a window that only moves forward: a queue of falling keys finds it in linear
// time.
int64_t Splitter::split_fixed(const Network &network, std::span<const int32_t> arcs) {
    const auto n = static_cast<int32_t>(arcs.size());
    const VehicleRules &rules = network.rules();
    value_.resize(idx(n) + 1);
    from_.resize(idx(n) + 1);
    key_.resize(idx(n) + 1);
    load_.resize(idx(n) + 1);
    queue_.resize(idx(n) + 1);
    value_[0] = 0;
    load_[0] = 0;
    int64_t driven = 0; // along the whole order, without returns
    size_t head = 0;
    size_t tail = 0;
    for (int32_t j = 1; j <= n; ++j) {
        const int32_t a = arcs[idx(j) - 1];
        const Arc &arc = network.arc(a);
        if (j > 1) {
            driven += network.deadhead(arcs[idx(j) - 2], a);
        }
        load_[idx(j)] = load_[idx(j) - 1] + arc.demand;
        const int64_t key = value_[idx(j) - 1] + network.deadhead(0, a) - driven;
        driven += arc.service_cost;
        while (tail > head && key_[idx(queue_[tail - 1])] >= key) {
            --tail;
        }
        key_[idx(j) - 1] = key;
        queue_[tail++] = j - 1;
        while (load_[idx(j)] - load_[idx(queue_[head])] > rules.capacity) {
            ++head;
        }
        const int32_t best = queue_[head];
        value_[idx(j)] =
            key_[idx(best)] + driven + network.deadhead(a, 0) + rules.route_cost;
        from_[idx(j)] = best;
    }
    cuts_.clear();
    for (int32_t j = n; j > 0; j = from_[idx(j)]) {
        cuts_.push_back(from_[idx(j)]);
    }
    return value_[idx(n)];
}

// Looks up once what the recursions below use many times.
void Splitter::lay_out(const Network &network, std::span<const int32_t> arcs) {
    steps_.resize(arcs.size());
    for (size_t j = 0; j < arcs.size(); ++j) {
        const Arc &arc = network.arc(arcs[j]);
        const int32_t options[2] = {arcs[j], arc.twin};
        Step &step = steps_[j];
        step.demand = arc.demand;
        for (size_t turned = 0; turned < 2; ++turned) {
            const int32_t to = options[turned];
            const bool legal = to >= 0;
            step.service[turned] = legal ? network.arc(to).service_cost : kNotAllowed;
            step.out[turned] = legal ? network.deadhead(0, to) : 0;
            step.back[turned] = legal ? network.deadhead(to, 0) : 0;
            for (size_t last_turned = 0; last_turned < 2 && j > 0; ++last_turned) {
                const int32_t last =
                    last_turned ? network.arc(arcs[j - 1]).twin : arcs[j - 1];
                step.drive[last_turned][turned] =
                    legal && last >= 0 ? network.deadhead(last, to) : 0;
            }
        }
    }
}

// Directions free, or the number of routes limited, or both. `layers` is the largest
// number of routes, 0 for any number.
template <bool choose_directions> int64_t Splitter::split_layered(int32_t layers) {
    const auto n = static_cast<int32_t>(steps_.size());
    const int32_t rows = layers > 0 ? layers + 1 : 1;
    const size_t row = idx(n) + 1;
    value_.assign(idx(rows) * row, kNever);
    from_.resize(idx(rows) * row);
    value_[0] = 0;
    for (int32_t layer = 0; layer < std::max(1, rows - 1); ++layer) {
        const int64_t *here = value_.data() + idx(layer) * row;
        // Without a limit all routes share one row, which is filled from left to right.
        const size_t next_row = layers > 0 ? idx(layer + 1) * row : 0;
        int64_t *next = value_.data() + next_row;
        int32_t *from = from_.data() + next_row;
        for (int32_t i = 0; i < n; ++i) {
            if (here[i] >= kNever) {
                continue;
            }
            // Cheapest cost up to here, the last arc served as given, or turned round.
            const int64_t before = here[i] + route_cost_;
            int64_t given = before + steps_[idx(i)].out[0] + steps_[idx(i)].service[0];
            int64_t turned = before + steps_[idx(i)].out[1] + steps_[idx(i)].service[1];
            int64_t room = capacity_ - steps_[idx(i)].demand;
            for (int32_t j = i;;) {
                const Step &step = steps_[idx(j)];
                int64_t closed = given + step.back[0];
                if constexpr (choose_directions) {
                    closed = std::min(closed, turned + step.back[1]);
                }
                ++j;
                if (closed < next[j]) {
                    next[j] = closed;
                    from[j] = i;
                }
                if (j == n || (room -= steps_[idx(j)].demand) < 0) {
                    break;
                }
                const Step &to = steps_[idx(j)];
                if constexpr (choose_directions) {
                    const int64_t to_given =
                        std::min(given + to.drive[0][0], turned + to.drive[1][0]);
                    const int64_t to_turned =
                        std::min(given + to.drive[0][1], turned + to.drive[1][1]);
                    given = to_given + to.service[0];
                    turned = to_turned + to.service[1];
                } else {
                    given += to.drive[0][0] + to.service[0];
                }
            }
        }
    }
    int32_t best_row = 0;
    for (int32_t r = 0; r < rows; ++r) {
        if (value_[idx(r) * row + idx(n)] < value_[idx(best_row) * row + idx(n)]) {
            best_row = r;
        }
    }
    const int64_t best = value_[idx(best_row) * row + idx(n)];
    cuts_.clear();
    if (best < kNever) {
        int32_t r = best_row;
        for (int32_t j = n; j > 0;) {
            j = from_[idx(r) * row + idx(j)];
            cuts_.push_back(j);
            r = layers > 0 ? r - 1 : 0;
        }
    }
    return best;
}

// Sets the best directions of each route between two cuts, by the same recursion.
void Splitter::choose(const Network &network, std::span<int32_t> arcs) {
    came_turned_.resize(2 * arcs.size());
    size_t end = arcs.size();
    for (const int32_t cut : cuts_) { // from the last route to the first
        const size_t first = idx(cut);
        int64_t cost[2] = {steps_[first].out[0] + steps_[first].service[0],
                           steps_[first].out[1] + steps_[first].service[1]};
        for (size_t j = first + 1; j < end; ++j) {
            const Step &to = steps_[j];
            int64_t next[2];
            for (size_t turned = 0; turned < 2; ++turned) {
                const int64_t after_given = cost[0] + to.drive[0][turned];
                const int64_t after_turned = cost[1] + to.drive[1][turned];
                came_turned_[2 * j + turned] = after_turned < after_given;
                next[turned] = std::min(after_given, after_turned) + to.service[turned];
            }
            cost[0] = next[0];
            cost[1] = next[1];
        }
        const Step &last = steps_[end - 1];
        size_t turned = cost[1] + last.back[1] < cost[0] + last.back[0] ? 1 : 0;
        for (size_t j = end; j-- > first;) {
            const size_t before = j > first ? came_turned_[2 * j + turned] : 0;
            if (turned) {
                arcs[j] = network.arc(arcs[j]).twin;
            }
            turned = before;
        }
        end = first;
    }
}

int64_t Splitter::split(const Network &network, std::span<int32_t> arcs,
                        std::span<uint8_t> starts_route, bool choose_directions) {
    check(network, arcs);
    const int32_t limit = network.rules().fleet_limit;
    capacity_ = network.rules().capacity;
    route_cost_ = network.rules().route_cost;
    int64_t cost = 0;
    if (choose_directions) {
        lay_out(network, arcs);
        cost = split_layered<true>(0);
        if (limit > 0 && cuts_.size() > idx(limit)) {
            cost = split_layered<true>(limit);
        }
    } else {
        cost = split_fixed(network, arcs);
        if (limit > 0 && cuts_.size() > idx(limit)) {
            lay_out(network, arcs);
            cost = split_layered<false>(limit);
        }
    }
    if (cost >= kNever) {
        return -1;
    }
    std::fill(starts_route.begin(), starts_route.end(), uint8_t{0});
    for (const int32_t cut : cuts_) {
        starts_route[idx(cut)] = 1;
    }
    if (choose_directions) {
        choose(network, arcs);
    }
    return cost;
}

} // namespace arcfleet
