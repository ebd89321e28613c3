#include "search/split.h"

#include <algorithm>
#include <stdexcept>

namespace arcfleet {

namespace {

constexpr int64_t kNever = INT64_MAX / 4;
// Service cost of a direction that is not allowed: no plan's cost comes near it.
constexpr int64_t kNotAllowed = int64_t{1} << 50;

// What split_fixed asks about the services of an order, looked up in a network.
struct NetworkOrder {
    const Network &network;
    std::span<const int32_t> arcs;

    int32_t demand(size_t i) const { return network.arc(arcs[i]).demand; }
    int32_t service(size_t i) const { return network.arc(arcs[i]).service_cost; }
    int32_t out(size_t i) const { return network.deadhead(0, arcs[i]); }
    int32_t back(size_t i) const { return network.deadhead(arcs[i], 0); }
    int32_t drive(size_t i) const { return network.deadhead(arcs[i - 1], arcs[i]); }
};

// The same, gathered beforehand.
struct GatheredOrder {
    const GatheredCosts &costs;
    size_t first;

    int32_t demand(size_t i) const { return costs.demand[first + i]; }
    int32_t service(size_t i) const { return costs.service[first + i]; }
    int32_t out(size_t i) const { return costs.out[first + i]; }
    int32_t back(size_t i) const { return costs.back[first + i]; }
    int32_t drive(size_t i) const { return costs.drive[first + i]; }
};

void check(const Network &network, std::span<const int32_t> arcs) {
    for (const int32_t arc : arcs) {
        if (arc <= 0 || idx(arc) >= network.arcs().size()) {
            throw std::invalid_argument("unknown arc in an order of services");
        }
    }
}

template <typename Costs>
void check_demands(const Costs &costs, size_t length, const RouteRules &rules) {
    for (size_t i = 0; i < length; ++i) {
        if (costs.demand(i) < 0 || !rules.fits(costs.demand(i))) {
            throw std::invalid_argument("a demand is below 0 or above the capacity");
        }
    }
}

} // namespace

// Fixed directions, any number of routes. The cost of serving i+1 .. j on one route is
// a part that depends on i plus a part that depends on j, so the best i is the least
// key in a window that only moves forward: a queue of falling keys finds it in linear
// time.
template <typename Costs>
int64_t Splitter::split_fixed(const Costs &costs, size_t length) {
    const auto n = static_cast<int32_t>(length);
    value_.resize(length + 1);
    from_.resize(length + 1);
    key_.resize(length + 1);
    load_.resize(length + 1);
    queue_.resize(length + 1);
    value_[0] = 0;
    load_[0] = 0;
    int64_t driven = 0; // along the whole order, without returns
    size_t head = 0;
    size_t tail = 0;
    for (int32_t j = 1; j <= n; ++j) {
        const size_t at = idx(j) - 1;
        if (j > 1) {
            driven += costs.drive(at);
        }
        load_[idx(j)] = load_[at] + costs.demand(at);
        const int64_t key = value_[at] + costs.out(at) - driven;
        driven += costs.service(at);
        while (tail > head && key_[idx(queue_[tail - 1])] >= key) {
            --tail;
        }
        key_[at] = key;
        queue_[tail++] = j - 1;
        while (!rules_.fits(load_[idx(j)] - load_[idx(queue_[head])])) {
            ++head;
        }
        const int32_t best = queue_[head];
        value_[idx(j)] =
            key_[idx(best)] + driven + costs.back(at) + rules_.route_cost();
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
        const int32_t options[2] = {arcs[j], arc.inverse};
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
                    last_turned ? network.arc(arcs[j - 1]).inverse : arcs[j - 1];
                step.drive[last_turned][turned] =
                    legal && last >= 0 ? network.deadhead(last, to) : 0;
            }
        }
    }
}

void Splitter::lay_out(const GatheredCosts &costs, size_t first, size_t length) {
    steps_.resize(length);
    const size_t row = costs.positions;
    const auto directions = static_cast<size_t>(costs.directions);
    for (size_t j = 0; j < length; ++j) {
        const size_t at = first + j;
        Step &step = steps_[j];
        step.demand = costs.demand[at];
        for (size_t turned = 0; turned < directions; ++turned) {
            const bool legal = turned == 0 || costs.can_turn[at];
            step.service[turned] =
                legal ? costs.service[turned * row + at] : kNotAllowed;
            step.out[turned] = legal ? costs.out[turned * row + at] : 0;
            step.back[turned] = legal ? costs.back[turned * row + at] : 0;
            for (size_t last = 0; last < directions && j > 0; ++last) {
                const bool last_legal = last == 0 || costs.can_turn[at - 1];
                step.drive[last][turned] =
                    legal && last_legal
                        ? costs.drive[(last * directions + turned) * row + at]
                        : 0;
            }
        }
    }
}

// Directions free, or the number of routes limited, or both. `layers` is the largest
// number of routes, 0 for any number.
template <bool choose_directions> int64_t Splitter::split_layered(int64_t layers) {
    const auto n = static_cast<int32_t>(steps_.size());
    const int64_t rows = layers > 0 ? layers + 1 : 1;
    const size_t row = idx(n) + 1;
    value_.assign(idx(rows) * row, kNever);
    from_.resize(idx(rows) * row);
    value_[0] = 0;
    for (int64_t layer = 0; layer < std::max<int64_t>(1, rows - 1); ++layer) {
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
            const int64_t before = here[i] + rules_.route_cost();
            int64_t given = before + steps_[idx(i)].out[0] + steps_[idx(i)].service[0];
            int64_t turned = before + steps_[idx(i)].out[1] + steps_[idx(i)].service[1];
            int64_t load = steps_[idx(i)].demand;
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
                if (j == n || !rules_.fits(load += steps_[idx(j)].demand)) {
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
    int64_t best_row = 0;
    for (int64_t r = 0; r < rows; ++r) {
        if (value_[idx(r) * row + idx(n)] < value_[idx(best_row) * row + idx(n)]) {
            best_row = r;
        }
    }
    const int64_t best = value_[idx(best_row) * row + idx(n)];
    cuts_.clear();
    if (best < kNever) {
        int64_t r = best_row;
        for (int32_t j = n; j > 0;) {
            j = from_[idx(r) * row + idx(j)];
            cuts_.push_back(j);
            r = layers > 0 ? r - 1 : 0;
        }
    }
    return best;
}

// Finds the best directions of each route between two cuts, by the same recursion.
template <typename Turn> void Splitter::choose(const Turn &turn) {
    came_turned_.resize(2 * steps_.size());
    size_t end = steps_.size();
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
                turn(j);
            }
            turned = before;
        }
        end = first;
    }
}

template <typename Costs, typename LayOut>
int64_t Splitter::cut(const Costs &costs, bool choose_directions, const LayOut &lay_out,
                      std::span<uint8_t> starts_route) {
    const auto too_many = [&] {
        return !rules_.fits_fleet(static_cast<int64_t>(cuts_.size()));
    };
    int64_t cost = 0;
    if (choose_directions) {
        lay_out();
        cost = split_layered<true>(0);
        if (too_many()) {
            cost = split_layered<true>(rules_.max_routes());
        }
    } else {
        cost = split_fixed(costs, starts_route.size());
        if (too_many()) {
            lay_out();
            cost = split_layered<false>(rules_.max_routes());
        }
    }
    if (cost >= kNever) {
        return -1;
    }
    std::fill(starts_route.begin(), starts_route.end(), uint8_t{0});
    for (const int32_t cut : cuts_) {
        starts_route[idx(cut)] = 1;
    }
    return cost;
}

int64_t Splitter::split(const Network &network, std::span<int32_t> arcs,
                        std::span<uint8_t> starts_route, bool choose_directions) {
    rules_ = RouteRules(network);
    check(network, arcs);
    const NetworkOrder order{network, arcs};
    check_demands(order, arcs.size(), rules_);
    const int64_t cost =
        cut(order, choose_directions, [&] { lay_out(network, arcs); }, starts_route);
    if (choose_directions && cost >= 0) {
        choose([&](size_t i) { arcs[i] = network.arc(arcs[i]).inverse; });
    }
    return cost;
}

int64_t Splitter::split(const GatheredCosts &costs, size_t first,
                        const RouteRules &rules, std::span<uint8_t> turned,
                        std::span<uint8_t> starts_route) {
    rules_ = rules;
    const size_t length = starts_route.size();
    const GatheredOrder order{costs, first};
    check_demands(order, length, rules_);
    const bool choose_directions = costs.directions == 2;
    const int64_t cost = cut(
        order, choose_directions, [&] { lay_out(costs, first, length); }, starts_route);
    if (choose_directions && cost >= 0) {
        std::fill(turned.begin(), turned.end(), uint8_t{0});
        choose([&](size_t i) { turned[i] = 1; });
    }
    return cost;
}

} // namespace arcfleet
