#include "bounds/trip_pricer.h"

#include "base/index.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <utility>

namespace arcfleet {

namespace {

constexpr int64_t kFar = std::numeric_limits<int64_t>::max() / 8;

} // namespace

TripPricer::TripPricer(int32_t num_nodes, const Arcs &arcs, const Sides &sides,
                       std::span<const int64_t> demand,
                       std::span<const uint8_t> outside, int64_t capacity,
                       std::span<const int64_t> costs, int32_t num_near)
    : num_nodes_(num_nodes), num_sides_(static_cast<int32_t>(sides.task.size())),
      arc_tail_(arcs.tail.begin(), arcs.tail.end()),
      arc_head_(arcs.head.begin(), arcs.head.end()),
      arc_column_(arcs.column.begin(), arcs.column.end()),
      leaving_starts_(idx(num_nodes) + 1), leaving_(arcs.tail.size()),
      side_tail_(sides.tail.begin(), sides.tail.end()),
      side_head_(sides.head.begin(), sides.head.end()),
      side_task_(sides.task.begin(), sides.task.end()), near_(demand.size()),
      arc_price_(arcs.tail.size()), tree_(sides.task.size()), home_(sides.task.size()),
      way_(sides.task.size() * sides.task.size()) {
    for (const int32_t tail : arc_tail_) {
        ++leaving_starts_[idx(tail) + 1];
    }
    std::partial_sum(leaving_starts_.begin(), leaving_starts_.end(),
                     leaving_starts_.begin());
    std::vector<int32_t> place(leaving_starts_.begin(), leaving_starts_.end() - 1);
    for (size_t arc = 0; arc < arc_tail_.size(); ++arc) {
        leaving_[idx(place[idx(arc_tail_[arc])]++)] = static_cast<int32_t>(arc);
    }
    for (int32_t node = 0; node < num_nodes; ++node) {
        if (outside[idx(node)]) {
            outside_.push_back(node);
        }
    }
    // Loads are counted in the largest unit that divides all demands.
    int64_t unit = 0;
    for (const int64_t each : demand) {
        unit = std::gcd(unit, each);
    }
    capacity_ = static_cast<int32_t>(unit == 0 ? 0 : capacity / unit);
    for (const int32_t task : side_task_) {
        side_demand_.push_back(static_cast<int32_t>(demand[idx(task)] / unit));
    }
    set_prices(costs, std::vector<int64_t>(idx(num_sides_), 0));
    find_near(num_near);
}

void TripPricer::find_near(int32_t num_near) {
    const size_t tasks = near_.size(), sides = idx(num_sides_);
    std::vector<int64_t> apart(tasks * tasks, kFar);
    for (size_t a = 0; a < sides; ++a) {
        for (size_t b = 0; b < sides; ++b) {
            int64_t &least = apart[idx(side_task_[a]) * tasks + idx(side_task_[b])];
            least = std::min(least, way_[a * sides + b] + way_[b * sides + a]);
        }
    }
    for (size_t task = 0; task < tasks; ++task) {
        std::vector<int32_t> order(tasks);
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](int32_t i, int32_t j) {
            return apart[task * tasks + idx(i)] < apart[task * tasks + idx(j)];
        });
        near_[task].fill(0);
        for (size_t i = 0; i < std::min(tasks, idx(num_near)); ++i) {
            near_[task][idx(order[i] / 64)] |= uint64_t{1} << (order[i] % 64);
        }
    }
}

void TripPricer::find_paths(std::span<const int32_t> from, Tree &tree) {
    tree.distance.assign(idx(num_nodes_), kFar);
    tree.arc.assign(idx(num_nodes_), -1);
    using Entry = std::pair<int64_t, int32_t>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
    for (const int32_t node : from) {
        tree.distance[idx(node)] = 0;
        open.emplace(0, node);
    }
    while (!open.empty()) {
        const auto [distance, node] = open.top();
        open.pop();
        if (distance > tree.distance[idx(node)]) {
            continue;
        }
        for (int32_t i = leaving_starts_[idx(node)]; i < leaving_starts_[idx(node) + 1];
             ++i) {
            const int32_t arc = leaving_[idx(i)];
            const int32_t head = arc_head_[idx(arc)];
            const int64_t reached = distance + arc_price_[idx(arc)];
            if (reached < tree.distance[idx(head)]) {
                tree.distance[idx(head)] = reached;
                tree.arc[idx(head)] = arc;
                open.emplace(reached, head);
            }
        }
    }
}

void TripPricer::set_prices(std::span<const int64_t> columns,
                            std::span<const int64_t> prices) {
    trip_costs_.clear();
    trip_sides_.clear();
    trip_starts_.assign(1, 0);
    drives_.clear();
    drive_starts_.assign(1, 0);
    labels_.clear();
    for (size_t arc = 0; arc < arc_price_.size(); ++arc) {
        const int32_t column = arc_column_[arc];
        arc_price_[arc] = column < 0 ? 0 : columns[idx(column)];
    }
    const size_t sides = idx(num_sides_);
    find_paths(outside_, start_);
    for (size_t a = 0; a < sides; ++a) {
        find_paths({&side_head_[a], 1}, tree_[a]);
        home_[a] = *std::min_element(
            outside_.begin(), outside_.end(), [&](int32_t i, int32_t j) {
                return tree_[a].distance[idx(i)] < tree_[a].distance[idx(j)];
            });
        for (size_t b = 0; b < sides; ++b) {
            way_[a * sides + b] = tree_[a].distance[idx(side_tail_[b])] + prices[b];
        }
    }
}

void TripPricer::find_single(std::span<const int64_t> columns) {
    set_prices(columns, std::vector<int64_t>(idx(num_sides_), 0));
    for (int32_t side = 0; side < num_sides_; ++side) {
        if (side == 0 || side_task_[idx(side)] != side_task_[idx(side) - 1]) {
            labels_.push_back({0, {}, -1, side});
            trip_costs_.push_back(0);
            keep_trip(static_cast<int32_t>(labels_.size()) - 1);
        }
    }
}

// Backwards by load: the least cost from a side to the end of the trip, without memory
// but of the last service.
void TripPricer::find_completions() {
    const size_t sides = idx(num_sides_);
    complete_.assign(idx(capacity_ + 1) * sides, kFar);
    for (int32_t load = capacity_; load >= 0; --load) {
        int64_t *row = complete_.data() + idx(load) * sides;
        for (size_t a = 0; a < sides; ++a) {
            int64_t least = tree_[a].distance[idx(home_[a])];
            const int64_t *way = way_.data() + a * sides;
            for (size_t b = 0; b < sides; ++b) {
                const int32_t after = load + side_demand_[b];
                if (after <= capacity_ && side_task_[a] != side_task_[b]) {
                    least = std::min(least, way[b] + complete_[idx(after) * sides + b]);
                }
            }
            row[a] = least;
        }
    }
}

bool TripPricer::price(std::span<const int64_t> columns,
                       std::span<const int64_t> prices, int64_t tolerance,
                       int32_t most_labels) {
    set_prices(columns, prices);
    find_completions();
    const size_t sides = idx(num_sides_);

    // Forwards by load; a label is left out where nothing that follows brings its cost
    // below the tolerance.
    std::vector<std::vector<int32_t>> bucket(idx(capacity_ + 1) * sides);
    bool is_complete = true;
    int64_t comparisons = 0;
    const auto extend = [&](const Label &label, int32_t load) {
        const size_t at = idx(load) * sides + idx(label.side);
        if (label.cost + complete_[at] >= -tolerance) {
            return;
        }
        std::vector<int32_t> &others = bucket[at];
        comparisons += std::ssize(others) + 1;
        const auto covers = [](const Label &a, const Label &b) {
            if (a.cost > b.cost) {
                return false;
            }
            for (size_t i = 0; i < a.memory.size(); ++i) {
                if (a.memory[i] & ~b.memory[i]) {
                    return false;
                }
            }
            return true;
        };
        for (const int32_t other : others) {
            if (covers(labels_[idx(other)], label)) {
                return;
            }
        }
        std::erase_if(
            others, [&](int32_t other) { return covers(label, labels_[idx(other)]); });
        others.push_back(static_cast<int32_t>(labels_.size()));
        labels_.push_back(label);
    };
    const auto remember = [&](Memory memory, size_t side) {
        const auto task = idx(side_task_[side]);
        for (size_t i = 0; i < memory.size(); ++i) {
            memory[i] &= near_[task][i];
        }
        memory[task / 64] |= uint64_t{1} << (task % 64);
        return memory;
    };
    for (size_t b = 0; b < sides; ++b) {
        extend({start_.distance[idx(side_tail_[b])] + prices[b], remember({}, b), -1,
                static_cast<int32_t>(b)},
               side_demand_[b]);
    }
    std::vector<std::pair<int64_t, int32_t>> ends(sides, {-tolerance, -1});
    for (int32_t load = 0; load <= capacity_; ++load) {
        for (size_t a = 0; a < sides; ++a) {
            std::vector<int32_t> &here = bucket[idx(load) * sides + a];
            std::stable_sort(here.begin(), here.end(), [&](int32_t i, int32_t j) {
                return labels_[idx(i)].cost < labels_[idx(j)].cost;
            });
            if (here.size() > idx(most_labels)) {
                here.resize(idx(most_labels));
                is_complete = false;
            }
            for (const int32_t number : here) {
                const Label label = labels_[idx(number)];
                const int64_t whole = label.cost + tree_[a].distance[idx(home_[a])];
                ends[a] = std::min(ends[a], {whole, number});
                if (std::ssize(labels_) >= kMostLabels ||
                    comparisons >= kMostComparisons || cancelled_) {
                    is_complete = false;
                    continue;
                }
                for (size_t b = 0; b < sides; ++b) {
                    const auto task = idx(side_task_[b]);
                    if (load + side_demand_[b] > capacity_ ||
                        (label.memory[task / 64] >> (task % 64) & 1)) {
                        continue;
                    }
                    extend({label.cost + way_[a * sides + b], remember(label.memory, b),
                            number, static_cast<int32_t>(b)},
                           load + side_demand_[b]);
                }
            }
        }
    }
    std::sort(ends.begin(), ends.end());
    for (const auto &[cost, label] : ends) {
        if (label >= 0) {
            trip_costs_.push_back(cost);
            keep_trip(label);
        }
    }
    return is_complete;
}

void TripPricer::keep_trip(int32_t label) {
    std::vector<int32_t> sides;
    for (int32_t at = label; at >= 0; at = labels_[idx(at)].before) {
        sides.push_back(labels_[idx(at)].side);
    }
    std::reverse(sides.begin(), sides.end());
    add_path(start_, side_tail_[idx(sides.front())]);
    for (size_t i = 0; i < sides.size(); ++i) {
        const auto side = idx(sides[i]);
        add_path(tree_[side],
                 i + 1 < sides.size() ? side_tail_[idx(sides[i + 1])] : home_[side]);
    }
    trip_sides_.insert(trip_sides_.end(), sides.begin(), sides.end());
    trip_starts_.push_back(std::ssize(trip_sides_));
    drive_starts_.push_back(std::ssize(drives_));
}

void TripPricer::add_path(const Tree &tree, int32_t to) {
    for (int32_t arc = tree.arc[idx(to)]; arc >= 0;
         arc = tree.arc[idx(arc_tail_[idx(arc)])]) {
        if (arc_column_[idx(arc)] >= 0) {
            drives_.push_back(arc_column_[idx(arc)]);
        }
    }
}

} // namespace arcfleet
