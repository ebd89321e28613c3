#include "search/ruin_recreate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace arcfleet {

namespace {

// More neighbours than this are never walked through before enough routes are ruined.
constexpr int32_t kLongestRow = 1000;

// The unit of temperature is the mean distance to so many nearest other terminals.
constexpr size_t kNearTerminals = 3;

// The price of excess load is adapted once in so many iterations, by so much.
constexpr int32_t kPriceWindow = 200;
constexpr double kPriceStep = 1.05;

// In place of the load of an empty slot that is not to be used, and of one that is not
// there: no load, however large the capacity.
constexpr int32_t kClosed = -1;

// Small moves tried per iteration.
constexpr uint32_t kSmallMoves = 10;

// The next multiple of a block.
size_t padded(size_t slots) {
    return (slots + Chain::kSlotBlock - 1) / Chain::kSlotBlock * Chain::kSlotBlock;
}

} // namespace

RuinRecreateTables::RuinRecreateTables(const Network &network,
                                       const RuinRecreateSettings &given)
    : tasks(network), settings(given), log_open(std::log1p(-given.blink_rate)) {
    const auto size = static_cast<size_t>(network.num_terminals());
    std::vector<int32_t> near(std::min(size, kNearTerminals + 1)); // itself first
    near_distance = 0.0;
    for (int32_t i = 0; i < network.num_terminals(); ++i) {
        const int32_t *distances = network.distances_from(i);
        std::partial_sort_copy(distances, distances + size, near.begin(), near.end());
        near_distance += std::accumulate(near.begin(), near.end(), 0.0);
    }
    near_distance /= static_cast<double>(size * std::max<size_t>(1, near.size() - 1));

    const int32_t n = tasks.num_tasks();
    row = std::min(n, kLongestRow);
    nearest.reserve(idx(n) * idx(row));
    std::vector<int64_t> keys(
        idx(n)); // distance in the high half, task in the low half
    for (int32_t i = 0; i < n; ++i) {
        const TaskEnds &a = tasks.ends(i);
        for (int32_t j = 0; j < n; ++j) {
            const TaskEnds &b = tasks.ends(j);
            // Many tasks touch: the mean over all ends tells them apart where the least
            // distance is the same.
            int64_t least = INT64_MAX;
            int64_t sum = 0;
            for (const int32_t from : {a.u, a.v}) {
                for (const int32_t to : {b.u, b.v}) {
                    for (const int32_t d : {tasks.from(from)[to], tasks.to(from)[to]}) {
                        least = std::min<int64_t>(least, d);
                        sum += d;
                    }
                }
            }
            const int64_t distance = i == j ? -1 : least + sum / 8;
            keys[idx(j)] = distance * (int64_t{1} << 32) + j;
        }
        std::nth_element(keys.begin(), keys.begin() + (row - 1), keys.end());
        std::sort(keys.begin(), keys.begin() + row);
        for (int32_t j = 0; j < row; ++j) {
            nearest.push_back(static_cast<int32_t>(keys[idx(j)] & 0xFFFFFFFF));
        }
    }
}

Chain::Chain(const RuinRecreateTables &tables, uint64_t seed, uint64_t stream)
    : tables_(tables), tasks_(tables.tasks),
      capacity_(tables.tasks.network().rules().capacity), random_(seed, stream),
      spots_(idx(tables.tasks.num_tasks())) {
    // Dear enough that one route less always pays, whatever driving it takes.
    overfleet_cost_ = 0;
    double demand = 1.0;
    for (int32_t task = 0; task < tasks_.num_tasks(); ++task) {
        overfleet_cost_ += tasks_.ends(task).alone;
        demand += tasks_.ends(task).demand;
    }
    const RuinRecreateSettings &settings = tables.settings;
    excess_price_ = static_cast<double>(overfleet_cost_) / demand;
    // A load within both limits is a number that fits.
    most_excess_ = static_cast<int32_t>(
        std::min(settings.most_excess * capacity_,
                 static_cast<double>(std::numeric_limits<int32_t>::max() - capacity_)));
}

double Chain::penalised_cost() const {
    return static_cast<double>(route_costs_ + fixed_cost(num_routes_)) +
           excess_price_ * static_cast<double>(excess_);
}

void Chain::adapt_excess_price() {
    ++window_;
    window_fits_ += excess_ == 0;
    if (window_ == kPriceWindow) {
        const bool often = window_fits_ > tables_.settings.target_fit * kPriceWindow;
        excess_price_ *= often ? 1.0 / kPriceStep : kPriceStep;
        window_ = 0;
        window_fits_ = 0;
        cost_ = penalised_cost();
    }
}

int64_t Chain::fixed_cost(int32_t routes) const {
    const VehicleRules &rules = tasks_.network().rules();
    int64_t cost = int64_t{routes} * rules.route_cost;
    if (rules.fleet_limit > 0 && routes > rules.fleet_limit) {
        cost += (routes - rules.fleet_limit) * overfleet_cost_;
    }
    return cost;
}

void Chain::start(const Plan &plan) {
    continue_from(plan);
    const int32_t limit = tasks_.network().rules().fleet_limit;
    best_ = routes_;
    best_cost_ = route_costs_ + fixed_cost(num_routes_);
    best_fits_fleet_ = limit == 0 || num_routes_ <= limit;
}

void Chain::continue_from(const Plan &plan) {
    routes_.clear();
    route_costs_ = 0;
    excess_ = 0;
    num_routes_ = static_cast<int32_t>(plan.num_routes());
    for (size_t r = 0; r < plan.num_routes(); ++r) {
        LabelledRoute route;
        for (int32_t i = plan.route_starts[r]; i < plan.route_starts[r + 1]; ++i) {
            const int32_t task = tasks_.network().arc(plan.arcs[idx(i)]).task;
            route.insert(tasks_, task, static_cast<int32_t>(route.visits.size()) - 1);
        }
        route_costs_ += route.cost;
        excess_ += excess(route);
        routes_.push_back(std::move(route));
        note_spots(static_cast<int32_t>(r));
    }
    loads_.assign(padded(routes_.size()), kClosed);
    for (size_t slot = 0; slot < routes_.size(); ++slot) {
        loads_[slot] = routes_[slot].load;
    }
    is_touched_.assign(routes_.size(), 0);
    open_one_empty_slot();
    cost_ = penalised_cost();
}

void Chain::open_one_empty_slot() {
    bool found = false;
    for (size_t slot = 0; slot < routes_.size(); ++slot) {
        if (routes_[slot].empty()) {
            loads_[slot] = found ? kClosed : 0;
            found = true;
        }
    }
    if (!found) {
        routes_.emplace_back();
        is_touched_.push_back(0);
        loads_.resize(padded(routes_.size()), kClosed);
        loads_[routes_.size() - 1] = 0;
    }
    routes_opened_or_closed_ = false;
}

void Chain::note_spots(int32_t slot) {
    const std::vector<Visit> &visits = routes_[idx(slot)].visits;
    const auto end = static_cast<int32_t>(visits.size()) - 1;
    for (int32_t place = 1; place < end; ++place) {
        spots_[idx(visits[idx(place)].task)] = {slot, place};
    }
}

void Chain::touch(int32_t slot) {
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

void Chain::roll_back() {
    for (size_t i = 0; i < num_saved_; ++i) {
        LabelledRoute &route = routes_[idx(touched_[i])];
        std::swap(route, saved_[i]);
        loads_[idx(touched_[i])] = route.load;
    }
    num_routes_ = saved_num_routes_;
    route_costs_ = saved_route_costs_;
    excess_ = saved_excess_;
}

void Chain::remove_string(LabelledRoute &route, int32_t first, int32_t last) {
    for (int32_t i = first; i < last; ++i) {
        removed_.push_back(route.visits[idx(i)].task);
    }
    route.erase(first, last);
}

void Chain::ruin_route(int32_t slot, int32_t place, double longest) {
    LabelledRoute &route = routes_[idx(slot)];
    touch(slot);
    excess_ -= excess(route);
    const int32_t length = route.num_tasks();
    const double most = std::min(static_cast<double>(length), longest);
    const int32_t taken =
        std::min(length, static_cast<int32_t>(random_.unit() * most + 1.0));
    int32_t kept = 0; // in the middle of the string
    if (taken > 1 && taken < length && random_.unit() < tables_.settings.split_rate) {
        kept = 1;
        while (taken + kept < length &&
               random_.unit() < tables_.settings.split_growth) {
            ++kept;
        }
    }
    const int32_t window = taken + kept;
    // The window holds the task and lies within the route.
    const int32_t least = std::max(1, place - window + 1);
    const int32_t last = std::min(place, length - window + 1);
    const int32_t first =
        least +
        static_cast<int32_t>(random_.below(static_cast<uint32_t>(last - least + 1)));
    if (kept == 0) {
        remove_string(route, first, first + window);
    } else {
        const int32_t before =
            1 + static_cast<int32_t>(random_.below(static_cast<uint32_t>(taken - 1)));
        remove_string(route, first + before + kept, first + window);
        remove_string(route, first, first + before);
    }
    route_costs_ -= route.cost;
    if (route.empty()) {
        route.clear();
        --num_routes_;
        routes_opened_or_closed_ = true;
    } else {
        route.refresh(tasks_, first, first + kept - 1);
        route_costs_ += route.cost;
    }
    loads_[idx(slot)] = route.load;
    excess_ += excess(route);
}

void Chain::ruin() {
    const int32_t n = tasks_.num_tasks();
    const RuinRecreateSettings &settings = tables_.settings;
    const double mean_length = static_cast<double>(n) / std::max(1, num_routes_);
    const double longest = std::min(settings.longest_string, mean_length);
    const double most_strings = 4.0 * settings.average_removed / (1.0 + longest) - 1.0;
    const auto strings = static_cast<int32_t>(random_.unit() * most_strings + 1.0);
    const auto seed = random_.below(static_cast<uint32_t>(n));
    const int32_t *row = tables_.nearest.data() + seed * idx(tables_.row);
    int32_t ruined = 0;
    for (int32_t i = 0; i < tables_.row && ruined < strings; ++i) {
        // A task that was taken out is still noted at a route that is touched.
        const Spot spot = spots_[idx(row[i])];
        if (!is_touched_[idx(spot.slot)]) {
            ruin_route(spot.slot, spot.place, longest);
            ++ruined;
        }
    }
}

void Chain::sort_removed() {
    for (size_t i = removed_.size(); i > 1; --i) {
        std::swap(removed_[i - 1], removed_[random_.below(static_cast<uint32_t>(i))]);
    }
    const uint32_t draw = random_.below(11);
    if (draw < 4) {
        return; // stays random
    }
    const auto key = [&](int32_t task) {
        const TaskEnds &ends = tasks_.ends(task);
        if (draw < 8) {
            return -ends.demand;
        }
        const int32_t far = std::min(tasks_.from(0)[ends.u], tasks_.from(0)[ends.v]);
        return draw < 10 ? -far : far;
    };
    // By rank: about ten tasks, so that comparing all pairs costs less than branches
    // that cannot be foretold. Of equal ones the first stays first.
    const size_t size = removed_.size();
    shuffled_ = removed_;
    sort_keys_.resize(size);
    ranks_.assign(size, 0);
    for (size_t i = 0; i < size; ++i) {
        sort_keys_[i] = key(shuffled_[i]);
    }
    for (size_t i = 0; i < size; ++i) {
        int32_t rank = ranks_[i];
        for (size_t j = i + 1; j < size; ++j) {
            const int32_t swapped = sort_keys_[j] < sort_keys_[i];
            rank += swapped;
            ranks_[j] += 1 - swapped;
        }
        removed_[idx(rank)] = shuffled_[i];
    }
}

// Notes the current plan if it is the best so far.
bool Chain::keep_if_best() {
    const int64_t true_cost = current_true_cost();
    if (excess_ > 0 || true_cost >= best_cost_) {
        return false;
    }
    best_cost_ = true_cost;
    best_ = routes_;
    const int32_t fleet = tasks_.network().rules().fleet_limit;
    best_fits_fleet_ = fleet == 0 || num_routes_ <= fleet;
    return true;
}

bool Chain::step(double temperature) {
    ++iterations_;
    bool improved = ruin_and_recreate(temperature);
    // Kinds take turns, which costs less than drawing them.
    const auto turn = static_cast<uint32_t>(iterations_) * kSmallMoves;
    for (uint32_t i = 0; i < kSmallMoves; ++i) {
        improved = small_move((turn + i) % 4, temperature) || improved;
    }
    adapt_excess_price();
    return improved;
}

bool Chain::ruin_and_recreate(double temperature) {
    removed_.clear();
    touched_.clear();
    num_saved_ = 0;
    saved_num_routes_ = num_routes_;
    saved_route_costs_ = route_costs_;
    saved_excess_ = excess_;
    ruin();
    sort_removed();
    const double limit = cost_ - temperature * std::log(1.0 - random_.unit());
    const bool complete = recreate(limit);
    bool improved = false;
    if (complete && penalised_cost() < limit) {
        cost_ = penalised_cost();
        for (const int32_t slot : touched_) {
            note_spots(slot);
        }
        improved = keep_if_best();
    } else {
        roll_back();
    }
    for (const int32_t slot : touched_) {
        is_touched_[idx(slot)] = 0;
    }
    if (routes_opened_or_closed_) {
        open_one_empty_slot();
    }
    return improved;
}

Plan Chain::plan_of(const TaskTable &tasks, const std::vector<LabelledRoute> &routes) {
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

Plan Chain::best_plan() const { return plan_of(tasks_, best_); }

Plan Chain::current_plan() const { return plan_of(tasks_, routes_); }

bool Chain::notes_hold() const {
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
