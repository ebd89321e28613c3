#include "search/maens/plan.h"

#include <algorithm>

namespace arcfleet {

void MaensPlan::load(const Individual &individual) {
    slots_.clear();
    free_.clear();
    for (size_t slot = routes_.size(); slot-- > 0;) {
        free_.push_back(static_cast<int32_t>(slot));
    }
    cost_ = 0;
    excess_ = 0;
    for (size_t r = 0; r < individual.plan.num_routes(); ++r) {
        const auto arcs = individual.plan.route(r);
        set_arcs(open_slot(), arcs.data(), arcs.data() + arcs.size());
    }
}

void MaensPlan::store(Individual &individual) const {
    individual.plan.arcs.clear();
    individual.plan.route_starts.assign(1, 0);
    individual.loads.clear();
    for (const int32_t slot : slots_) {
        const MaensRoute &from = route(slot);
        individual.plan.arcs.insert(individual.plan.arcs.end(), from.arcs.begin() + 1,
                                    from.arcs.end() - 1);
        individual.plan.route_starts.push_back(
            static_cast<int32_t>(individual.plan.arcs.size()));
        individual.loads.push_back(from.load);
    }
    individual.cost = cost_;
    individual.excess = excess_;
}

int32_t MaensPlan::open_slot() {
    if (free_.empty()) {
        free_.push_back(static_cast<int32_t>(routes_.size()));
        routes_.emplace_back();
    }
    const int32_t slot = free_.back();
    free_.pop_back();
    slots_.push_back(slot);
    MaensRoute &opened = routes_[idx(slot)];
    opened.arcs.assign(2, 0);
    opened.load = 0;
    opened.cost = 0;
    return slot;
}

void MaensPlan::close_slot(int32_t slot) {
    slots_.erase(std::find(slots_.begin(), slots_.end(), slot));
    free_.push_back(slot);
}

void MaensPlan::set_arcs(int32_t slot, const int32_t *first, const int32_t *last) {
    MaensRoute &changed = routes_[idx(slot)];
    changed.arcs.assign(1, 0);
    changed.arcs.insert(changed.arcs.end(), first, last);
    changed.arcs.push_back(0);
    rebuild(slot);
}

// Takes the route out of the sums.
void MaensPlan::forget(int32_t slot) {
    cost_ -= routes_[idx(slot)].cost;
    excess_ -= tables_.rules().excess(routes_[idx(slot)].load);
}

// Computes all but the arcs, and adds the route to the sums.
void MaensPlan::rebuild(int32_t slot) {
    MaensRoute &r = routes_[idx(slot)];
    const size_t positions = r.arcs.size();
    r.start.resize(positions);
    r.end.resize(positions);
    r.demand.resize(positions);
    r.gap.resize(positions);
    r.closed.resize(positions);
    r.gain.resize(positions);
    r.service_cost.resize(positions);
    r.turned_service_cost.resize(positions);
    r.least.resize(positions);
    r.hash = 0;
    r.task_hash = 0;
    r.load = 0;
    r.cost = tables_.rules().route_cost();
    for (size_t i = 0; i < positions; ++i) {
        const Arc &arc = tables_.arc(r.arcs[i]);
        r.start[i] = arc.start;
        r.end[i] = arc.end;
        r.demand[i] = arc.demand;
        r.load += arc.demand;
        r.cost += arc.service_cost;
        r.service_cost[i] = arc.service_cost;
        r.turned_service_cost[i] =
            arc.inverse >= 0 ? tables_.arc(arc.inverse).service_cost : kNoWay;
        r.hash = (r.hash + tables_.arc_hash(r.arcs[i])) * 0x9E3779B97F4A7C15ULL;
        r.hash ^= r.hash >> 29;
    }
    for (size_t i = 0; i + 1 < positions; ++i) {
        r.gap[i] = tables_.distances_from(r.end[i])[r.start[i + 1]];
        r.cost += r.gap[i];
    }
    const int64_t fixed = positions == 3 ? tables_.rules().route_cost() : 0;
    r.least_of_all = kNoWay;
    for (size_t i = 1; i + 1 < positions; ++i) {
        r.task_hash += tables_.task_hash(tables_.arc(r.arcs[i]).task);
        r.closed[i] = tables_.distances_from(r.end[i - 1])[r.start[i + 1]];
        r.gain[i] = r.gap[i - 1] + r.service_cost[i] + r.gap[i] - r.closed[i] + fixed;
        r.least[i] = tables_.task_floor(r.arcs[i]) - r.gain[i];
        r.least_of_all = std::min(r.least_of_all, r.least[i]);
    }
    rebuild_twos(r);
    cost_ += r.cost;
    excess_ += tables_.rules().excess(r.load);
}

void MaensPlan::rebuild_twos(MaensRoute &r) const {
    const size_t positions = r.arcs.size();
    r.gain_of_two.resize(positions);
    r.least_of_two.resize(positions);
    r.pairs.resize(4 * positions);
    r.num_pairs.resize(positions);
    const int64_t fixed = positions == 4 ? tables_.rules().route_cost() : 0;
    for (size_t i = 1; i + 2 < positions; ++i) {
        r.gain_of_two[i] = r.gap[i - 1] + r.service_cost[i] + r.gap[i] +
                           r.service_cost[i + 1] + r.gap[i + 1] -
                           tables_.distances_from(r.end[i - 1])[r.start[i + 2]] + fixed;
        int64_t least = kNoWay;
        ArcPair *pair = &r.pairs[4 * i];
        for (const int32_t a : TaskDirections(tables_, r.arcs[i])) {
            for (const int32_t b : TaskDirections(tables_, r.arcs[i + 1])) {
                const int64_t inner = int64_t{tables_.arc(a).service_cost} +
                                      tables_.deadhead(a, b) +
                                      tables_.arc(b).service_cost;
                const int64_t way = tables_.network().passing_cost(a, b);
                *pair++ = {a, b, inner, inner - way};
                least = std::min(least, inner - way);
            }
        }
        r.num_pairs[i] = static_cast<int32_t>(pair - &r.pairs[4 * i]);
        r.least_of_two[i] = least - r.gain_of_two[i];
    }
}

int32_t MaensPlan::apply(const MaensMove &move) {
    if (move.type == MoveType::swap) {
        apply_swap(move);
        return kNewRoute;
    }
    return apply_insertion(move);
}

void MaensPlan::apply_swap(const MaensMove &move) {
    forget(move.from);
    if (move.to != move.from) {
        forget(move.to);
    }
    routes_[idx(move.from)].arcs[idx(move.position)] = move.second;
    routes_[idx(move.to)].arcs[idx(move.gap)] = move.first;
    rebuild(move.from);
    if (move.to != move.from) {
        rebuild(move.to);
    }
}

int32_t MaensPlan::apply_insertion(const MaensMove &move) {
    forget(move.from);
    const int32_t opened = move.to == kNewRoute ? open_slot() : kNewRoute;
    const int32_t to = opened != kNewRoute ? opened : move.to;
    const int32_t length = move.type == MoveType::insert_two ? 2 : 1;
    auto &source = routes_[idx(move.from)].arcs;
    auto &target = routes_[idx(to)].arcs;
    const int32_t inserted[] = {move.first, move.second};
    const auto taken = source.begin() + move.position;
    source.erase(taken, taken + length);
    int32_t gap = opened != kNewRoute ? 0 : move.gap;
    if (to == move.from) {
        gap -= gap > move.position ? length : 0;
        source.insert(source.begin() + gap + 1, inserted, inserted + length);
        rebuild(to);
        return kNewRoute;
    }
    if (opened == kNewRoute) {
        forget(to);
    }
    target.insert(target.begin() + gap + 1, inserted, inserted + length);
    rebuild(to);
    if (source.size() > 2) {
        rebuild(move.from);
    } else {
        close_slot(move.from);
    }
    return opened;
}

void MaensPlan::replace(int32_t slot1, int32_t slot2, const Plan &routes,
                        std::vector<int32_t> &changed) {
    for (const int32_t slot : {slot1, slot2}) {
        forget(slot);
        close_slot(slot);
    }
    for (size_t r = 0; r < routes.num_routes(); ++r) {
        changed.push_back(open_slot());
        set_arcs(changed.back(), routes.arcs.data() + routes.route_starts[r],
                 routes.arcs.data() + routes.route_starts[r + 1]);
    }
}

} // namespace arcfleet
