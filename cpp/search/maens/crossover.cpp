#include "search/maens/crossover.h"

#include <algorithm>

namespace arcfleet {

namespace {

// The route that holds position `i` of the plan's arcs.
size_t route_at(const Plan &plan, int32_t i) {
    const auto &starts = plan.route_starts;
    return static_cast<size_t>(std::upper_bound(starts.begin(), starts.end(), i) -
                               starts.begin() - 1);
}

} // namespace

Crossover::Crossover(const MaensTables &tables)
    : tables_(tables), in_tail_(idx(tables.num_tasks())) {}

void Crossover::open_route() {
    if (num_routes_ == routes_.size()) {
        routes_.emplace_back();
        loads_.push_back(0);
    }
    routes_[num_routes_].assign(1, 0);
    loads_[num_routes_] = 0;
    ++num_routes_;
}

void Crossover::cross(const Individual &parent1, const Individual &parent2,
                      Random &random, Individual &child) {
    const auto tasks = static_cast<uint32_t>(tables_.num_tasks());
    const auto cut1 = static_cast<int32_t>(random.below(tasks));
    const auto cut2 = static_cast<int32_t>(random.below(tasks));
    const size_t route1 = route_at(parent1.plan, cut1);
    const size_t route2 = route_at(parent2.plan, cut2);
    const int32_t *arcs2 = parent2.plan.arcs.data();
    const int32_t *tail = arcs2 + cut2;
    const int32_t *tail_end = arcs2 + parent2.plan.route_starts[route2 + 1];
    std::fill(in_tail_.begin(), in_tail_.end(), uint8_t{0});
    for (const int32_t *a = tail; a < tail_end; ++a) {
        in_tail_[idx(tables_.arc(*a).task)] = 1;
    }
    num_routes_ = 0;
    left_.clear();
    for (size_t r = 0; r < parent1.plan.num_routes(); ++r) {
        open_route();
        auto &route = routes_[num_routes_ - 1];
        int64_t &load = loads_[num_routes_ - 1];
        for (int32_t i = parent1.plan.route_starts[r];
             i < parent1.plan.route_starts[r + 1]; ++i) {
            const int32_t arc = parent1.plan.arcs[idx(i)];
            if (in_tail_[idx(tables_.arc(arc).task)]) {
                continue;
            }
            if (r == route1 && i > cut1) {
                left_.push_back(arc);
                continue;
            }
            route.push_back(arc);
            load += tables_.arc(arc).demand;
        }
        if (r == route1) {
            for (const int32_t *a = tail; a < tail_end; ++a) {
                route.push_back(*a);
                load += tables_.arc(*a).demand;
            }
        }
        if (route.size() == 1) {
            --num_routes_;
        } else {
            route.push_back(0);
        }
    }
    for (const int32_t arc : left_) {
        put_back(arc, random);
    }
    write(child);
}

// The cheapest gaps of each route, and a new route: within a route the excess is the
// same wherever the task goes.
void Crossover::list_places(int32_t arc) {
    places_.clear();
    const int64_t demand = tables_.arc(arc).demand;
    const int32_t directions[] = {arc, tables_.arc(arc).inverse};
    const int count = directions[1] >= 0 ? 2 : 1;
    for (size_t r = 0; r < num_routes_; ++r) {
        const auto &route = routes_[r];
        const int64_t excess = tables_.rules().excess(loads_[r] + demand) -
                               tables_.rules().excess(loads_[r]);
        const size_t first = places_.size();
        int64_t least = INT64_MAX;
        for (size_t g = 0; g + 1 < route.size(); ++g) {
            const int32_t before = tables_.arc(route[g]).end;
            const int32_t after = tables_.arc(route[g + 1]).start;
            const int64_t gap = tables_.distances_from(before)[after];
            for (int k = 0; k < count; ++k) {
                const int32_t a = directions[k];
                const int64_t cost = int64_t{tables_.to(a)[before]} +
                                     tables_.from(a)[after] +
                                     tables_.arc(a).service_cost - gap;
                if (cost > least) {
                    continue;
                }
                if (cost < least) {
                    least = cost;
                    places_.resize(first);
                }
                places_.push_back({cost, excess, r, g, a});
            }
        }
    }
    Place alone{INT64_MAX, tables_.rules().excess(demand), num_routes_, 0, arc};
    for (int k = 0; k < count; ++k) {
        const int32_t a = directions[k];
        const int64_t cost = int64_t{tables_.to(a)[0]} + tables_.from(a)[0] +
                             tables_.arc(a).service_cost + tables_.rules().route_cost();
        if (cost < alone.cost) {
            alone.cost = cost;
            alone.arc = a;
        }
    }
    places_.push_back(alone);
}

void Crossover::put_back(int32_t arc, Random &random) {
    list_places(arc);
    front_.clear();
    for (size_t i = 0; i < places_.size(); ++i) {
        const Place &place = places_[i];
        const auto beats = [](const Place &a, const Place &b) {
            return a.cost <= b.cost && a.excess <= b.excess &&
                   (a.cost < b.cost || a.excess < b.excess);
        };
        const bool beaten = std::any_of(front_.begin(), front_.end(), [&](size_t k) {
            return beats(places_[k], place);
        });
        if (!beaten) {
            std::erase_if(front_, [&](size_t k) { return beats(place, places_[k]); });
            front_.push_back(i);
        }
    }
    const auto drawn = random.below(static_cast<uint32_t>(front_.size()));
    const Place &place = places_[front_[drawn]];
    if (place.route == num_routes_) {
        open_route();
        routes_[place.route].push_back(0);
    }
    auto &route = routes_[place.route];
    route.insert(route.begin() + static_cast<std::ptrdiff_t>(place.gap) + 1, place.arc);
    loads_[place.route] += tables_.arc(place.arc).demand;
}

void Crossover::write(Individual &child) const {
    child.plan.arcs.clear();
    child.plan.route_starts.assign(1, 0);
    for (size_t r = 0; r < num_routes_; ++r) {
        child.plan.arcs.insert(child.plan.arcs.end(), routes_[r].begin() + 1,
                               routes_[r].end() - 1);
        child.plan.route_starts.push_back(static_cast<int32_t>(child.plan.arcs.size()));
    }
    child.evaluate(tables_);
}

} // namespace arcfleet
