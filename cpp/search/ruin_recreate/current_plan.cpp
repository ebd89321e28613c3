#include "search/ruin_recreate/current_plan.h"

#include <algorithm>

namespace arcfleet {

namespace {

// In place of the load of an empty slot that is not to be used, and of one that is not
// there: no load, however large the capacity.
constexpr int32_t kClosed = -1;

} // namespace

Plan to_plan(const TaskTable &tasks, const std::vector<LabelledRoute> &routes) {
    Plan plan;
    plan.route_starts.push_back(0);
    for (const LabelledRoute &route : routes) {
        if (!route.empty()) {
            route.append_arcs(tasks, plan.arcs);
            plan.route_starts.push_back(static_cast<int32_t>(plan.arcs.size()));
        }
    }
    return plan;
}

void CurrentPlan::load(const Plan &plan) {
    routes_.clear();
    route_costs_ = 0;
    excess_ = 0;
    num_routes_ = static_cast<int32_t>(plan.num_routes());
    for (size_t r = 0; r < plan.num_routes(); ++r) {
        LabelledRoute route;
        for (const int32_t arc : plan.route(r)) {
            route.insert(tasks_, tasks_.network().arc(arc).task,
                         static_cast<int32_t>(route.visits.size()) - 1);
        }
        route_costs_ += route.cost;
        excess_ += rules_.excess(route.totals());
        routes_.push_back(std::move(route));
        note_spots(static_cast<int32_t>(r));
    }
    loads_.assign(padded_slots(routes_.size()), kClosed);
    for (size_t slot = 0; slot < routes_.size(); ++slot) {
        loads_[slot] = routes_[slot].load;
    }
    is_touched_.assign(routes_.size(), 0);
    open_one_empty_slot();
}

void CurrentPlan::open_one_empty_slot() {
    bool found = false;
    for (size_t slot = 0; slot < routes_.size(); ++slot) {
        if (routes_[slot].empty()) {
            loads_[slot] = found ? kClosed : 0;
            empty_slot_ = found ? empty_slot_ : static_cast<int32_t>(slot);
            found = true;
        }
    }
    if (!found) {
        routes_.emplace_back();
        is_touched_.push_back(0);
        loads_.resize(padded_slots(routes_.size()), kClosed);
        loads_[routes_.size() - 1] = 0;
        empty_slot_ = static_cast<int32_t>(routes_.size()) - 1;
    }
    routes_opened_or_closed_ = false;
}

void CurrentPlan::note_spots(int32_t slot) {
    note_spots(slot, 1, routes_[idx(slot)].num_tasks() + 1);
}

void CurrentPlan::note_spots(int32_t slot, int32_t first, int32_t last) {
    const std::vector<Visit> &visits = routes_[idx(slot)].visits;
    for (int32_t place = first; place < last; ++place) {
        spots_[idx(visits[idx(place)].task)] = {slot, place};
    }
}

void CurrentPlan::apply(const WithinRoute &move, int32_t slot) {
    LabelledRoute &route = routes_[idx(slot)];
    route_costs_ -= route.cost;
    move.apply(route.visits);
    route.refresh(tasks_, move.first(), move.last() - 1);
    route_costs_ += route.cost;
    note_spots(slot, move.first(), move.last());
}

void CurrentPlan::begin() {
    touched_.clear();
    num_saved_ = 0;
    saved_num_routes_ = num_routes_;
    saved_route_costs_ = route_costs_;
    saved_excess_ = excess_;
}

void CurrentPlan::touch(int32_t slot) {
    if (is_touched_[idx(slot)]) {
        return;
    }
    is_touched_[idx(slot)] = 1;
    touched_.push_back(slot);
    if (num_saved_ == saved_.size()) {
        saved_.emplace_back();
    }
    saved_[num_saved_++] = routes_[idx(slot)];
}

void CurrentPlan::keep() {
    if (!follows_changes_) {
        note_touched();
    }
    end_changes();
}

void CurrentPlan::undo() {
    for (size_t i = 0; i < num_saved_; ++i) {
        LabelledRoute &route = routes_[idx(touched_[i])];
        std::swap(route, saved_[i]);
        loads_[idx(touched_[i])] = route.load;
    }
    num_routes_ = saved_num_routes_;
    route_costs_ = saved_route_costs_;
    excess_ = saved_excess_;
    if (follows_changes_) {
        note_touched();
    }
    end_changes();
}

void CurrentPlan::note_touched() {
    for (const int32_t slot : touched_) {
        note_spots(slot);
    }
}

void CurrentPlan::end_changes() {
    for (const int32_t slot : touched_) {
        is_touched_[idx(slot)] = 0;
    }
    if (routes_opened_or_closed_) {
        open_one_empty_slot();
    }
}

void CurrentPlan::remove(int32_t slot, int32_t first, int32_t last,
                         const std::vector<uint8_t> &marked) {
    touch(slot);
    LabelledRoute &route = routes_[idx(slot)];
    forget(slot);
    if (follows_changes_) {
        for (int32_t place = first; place < last; ++place) {
            spots_[idx(route.visits[idx(place)].task)].slot = -1;
        }
    }
    const auto begin = route.visits.begin();
    const auto kept_end =
        std::remove_if(begin + first, begin + last, [&](const Visit &visit) {
            return marked[idx(visit.task)] != 0;
        });
    const auto kept = static_cast<int32_t>(kept_end - (begin + first));
    route.erase(first + kept, last);
    if (route.empty()) {
        route.clear();
        --num_routes_;
        routes_opened_or_closed_ = true;
    } else {
        route.refresh(tasks_, first, first + kept - 1);
        route_costs_ += route.cost;
        if (follows_changes_) {
            note_spots(slot, first, route.num_tasks() + 1);
        }
    }
    loads_[idx(slot)] = route.load;
    excess_ += rules_.excess(route.totals());
}

void CurrentPlan::insert(int32_t slot, int32_t task, int32_t place) {
    touch(slot);
    LabelledRoute &route = routes_[idx(slot)];
    const bool was_empty = route.empty();
    forget(slot);
    route.insert(tasks_, task, place);
    if (follows_changes_) {
        note_spots(slot, place, route.num_tasks() + 1);
    }
    loads_[idx(slot)] = route.load;
    excess_ += rules_.excess(route.totals());
    route_costs_ += route.cost;
    if (was_empty) {
        ++num_routes_;
        open_one_empty_slot();
        routes_opened_or_closed_ = true; // it may be undone
    }
}

// Takes a route out of the sums.
void CurrentPlan::forget(int32_t slot) {
    const LabelledRoute &route = routes_[idx(slot)];
    route_costs_ -= route.cost;
    excess_ -= rules_.excess(route.totals());
}

// Computes everything of a route from its visits, and adds it to the sums.
void CurrentPlan::renew(int32_t slot) {
    LabelledRoute &route = routes_[idx(slot)];
    if (route.empty()) {
        route.clear();
        --num_routes_;
    } else {
        route.refresh(tasks_);
        note_spots(slot);
    }
    route_costs_ += route.cost;
    excess_ += rules_.excess(route.totals());
    loads_[idx(slot)] = route.load;
}

bool CurrentPlan::notes_hold() const {
    for (size_t slot = 0; slot < routes_.size(); ++slot) {
        const LabelledRoute &route = routes_[slot];
        if (loads_[slot] != route.load && !(route.empty() && loads_[slot] == kClosed)) {
            return false;
        }
        for (size_t place = 1; place + 1 < route.visits.size(); ++place) {
            const Spot &spot = spots_[idx(route.visits[place].task)];
            if (idx(spot.slot) != slot || idx(spot.place) != place) {
                return false;
            }
        }
    }
    return std::all_of(loads_.begin() + static_cast<std::ptrdiff_t>(routes_.size()),
                       loads_.end(), [](int32_t load) { return load == kClosed; });
}

} // namespace arcfleet
