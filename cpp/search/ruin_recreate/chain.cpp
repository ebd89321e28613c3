#include "search/ruin_recreate/chain.h"

#include "search/moves/list.h"

#include <algorithm>
#include <cmath>

namespace arcfleet {

namespace {

// Small moves tried per iteration.
constexpr uint32_t kMovesPerStep = 10;

// They are tried at a task and one of so many nearest others.
constexpr int32_t kNearTasks = 10;

// -ln of the least number that is drawn: no dearer move is ever accepted.
constexpr double kLongestDraw = 36.75;

} // namespace

Chain::Chain(const RuinRecreateTables &tables, uint64_t seed, uint64_t stream)
    : tables_(tables), random_(seed, stream),
      plan_(tables.tasks, tables.rules, tables.inserts_nearby), penalties_(tables),
      ruin_(tables), order_(tables.tasks), insertion_(tables) {}

void Chain::start(const Plan &plan) {
    continue_from(plan);
    note_best();
}

void Chain::continue_from(const Plan &plan) {
    plan_.load(plan);
    cost_ = penalties_.penalised_cost(plan_);
}

bool Chain::step(double temperature) {
    ++iterations_;
    bool improved = ruin_and_recreate(temperature);
    // Moves take turns, which costs less than drawing them.
    const auto turn = static_cast<uint32_t>(iterations_) * kMovesPerStep;
    for (uint32_t i = 0; i < kMovesPerStep; ++i) {
        improved = small_move((turn + i) % kMoves, temperature) || improved;
    }
    if (penalties_.adapt(plan_)) {
        cost_ = penalties_.penalised_cost(plan_);
    }
    return improved;
}

bool Chain::ruin_and_recreate(double temperature) {
    removed_.clear();
    plan_.begin();
    ruin_.remove(plan_, random_, removed_);
    order_.sort(removed_, random_);
    const double limit = cost_ - temperature * std::log(1.0 - random_.unit());
    const bool complete =
        insertion_.insert_all(removed_, limit, penalties_, plan_, random_);
    if (!complete || penalties_.penalised_cost(plan_) >= limit) {
        plan_.undo();
        return false;
    }
    plan_.keep();
    cost_ = penalties_.penalised_cost(plan_);
    return keep_if_best();
}

// Most often tasks that were taken out go back to where they were; a small move always
// changes the plan. One try; true if it found a new best.
bool Chain::small_move(size_t number, double temperature) {
    const int32_t near = std::min(kNearTasks, tables_.row - 1);
    if (near < 1) {
        return false;
    }
    // One draw serves all choices: its high half, its low half and the lowest bits.
    const uint64_t draw = random_.bits();
    const uint64_t task = (draw >> 32) * idx(tables_.tasks.num_tasks()) >> 32;
    const uint64_t nearness = (draw & 0xFFFFFFFF) * idx(near) >> 32;
    const auto rest = static_cast<uint32_t>(draw % 4);
    const Spot first = plan_.spot(static_cast<int32_t>(task));
    const Spot second = plan_.spot(tables_.nearest_to(task)[1 + nearness]);
    if (first.slot == second.slot) {
        return plan_.route(first.slot).num_tasks() >= WithinRoute::kLongRoute &&
               move_within(number, first, second, rest, temperature);
    }
    return with_move(number, [&](const auto &move) {
        return try_move(move, first, second, rest, temperature);
    });
}

template <typename Move>
bool Chain::try_move(const Move &move, const Spot &first, const Spot &second,
                     uint32_t draw, double temperature) {
    const MoveSite site{
        tables_.tasks,        plan_.route(first.slot), plan_.route(second.slot),
        idx(first.place),     idx(second.place),       draw,
        penalties_.max_load()};
    const std::optional<MoveDelta> delta = move.evaluate(site);
    if (!delta || !accepts(penalties_.price(*delta, site, plan_), temperature)) {
        return false;
    }
    plan_.apply(move, site, first.slot, second.slot);
    cost_ = penalties_.penalised_cost(plan_);
    return keep_if_best();
}

bool Chain::move_within(size_t number, const Spot &first, const Spot &second,
                        uint32_t draw, double temperature) {
    const LabelledRoute &route = plan_.route(first.slot);
    const std::optional<WithinRoute> move = WithinRoute::draw(
        number, first.place, second.place, route.num_tasks() + 1, draw, random_);
    if (!move) {
        return false;
    }
    const double dearer = move->cost(tables_.tasks, route) - route.cost;
    if (!accepts(dearer, temperature)) {
        return false;
    }
    plan_.apply(*move, first.slot);
    cost_ = penalties_.penalised_cost(plan_);
    return keep_if_best();
}

// Whether a plan that is dearer by so much is taken.
bool Chain::accepts(double dearer, double temperature) {
    return dearer < kLongestDraw * temperature &&
           dearer < -temperature * std::log(1.0 - random_.unit());
}

bool Chain::keep_if_best() {
    if (plan_.excess() > 0 || current_cost() >= best_cost_) {
        return false;
    }
    note_best();
    return true;
}

void Chain::note_best() {
    best_ = plan_.routes();
    best_cost_ = current_cost();
    best_fits_fleet_ = tables_.rules.fits_fleet(plan_.num_routes());
}

} // namespace arcfleet
