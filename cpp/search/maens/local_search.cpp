#include "search/maens/local_search.h"

#include <algorithm>

namespace arcfleet {

namespace {

// Changes of the priced cost nearer to zero than this are rounding.
constexpr double kNothing = 1e-6;
constexpr int32_t kPriceWindow = 5;
// Pairs of tasks between two looks at the clock: some pairs of routes, or one if they
// are long.
constexpr int64_t kWorkBetweenLooks = 512;

} // namespace

MaensLocalSearch::MaensLocalSearch(const MaensTables &tables, int32_t merge_pairs)
    : tables_(tables), merge_pairs_(merge_pairs), plan_(tables), moves_(plan_),
      merge_split_(tables) {
    tasks_.reserve(idx(tables.num_tasks()));
}

void MaensLocalSearch::start(const Individual &individual, int64_t best_cost) {
    plan_.load(individual);
    phase_ = Phase::moves;
    steps_ = 0;
    steps_fitting_ = 0;
    steps_counted_ = 0;
    merging_ = false;
    const auto capacity =
        static_cast<double>(std::max<int64_t>(1, tables_.rules().capacity()));
    const auto best = static_cast<double>(best_cost);
    const auto cost = static_cast<double>(std::max<int64_t>(1, individual.cost));
    price_ = best / capacity *
             (best / cost + static_cast<double>(individual.excess) / capacity + 1.0);
    outdated_.clear();
    touched_.clear();
    std::fill(is_touched_.begin(), is_touched_.end(), uint8_t{0});
    for (const int32_t slot : plan_.slots()) {
        touch(slot);
    }
}

MoveFront &MaensLocalSearch::front(int32_t slot1, int32_t slot2) {
    const auto [low, high] = std::minmax(slot1, slot2);
    return fronts_[idx(low) * row_ + idx(high)];
}

void MaensLocalSearch::touch(int32_t slot) {
    if (is_touched_.size() < plan_.num_slots()) {
        is_touched_.resize(plan_.num_slots(), 0);
    }
    if (!is_touched_[idx(slot)]) {
        is_touched_[idx(slot)] = 1;
        touched_.push_back(slot);
    }
}

bool MaensLocalSearch::remembers_truly() const {
    MoveFront fresh;
    for (const int32_t slot : plan_.slots()) {
        for (const int32_t other : plan_.slots()) {
            if (slot > other || is_touched_[idx(slot)] || is_touched_[idx(other)] ||
                std::count(outdated_.begin(), outdated_.end(), std::pair(slot, other)) >
                    0) {
                continue;
            }
            moves_.find_anew(slot, other, fresh);
            const auto &kept = fronts_[idx(slot) * row_ + idx(other)].moves();
            if (!std::equal(kept.begin(), kept.end(), fresh.moves().begin(),
                            fresh.moves().end())) {
                return false;
            }
        }
    }
    return true;
}

// Whether the time is up before a pair of routes; looks at the clock after some work.
bool MaensLocalSearch::too_late(int32_t slot1, int32_t slot2,
                                const Deadline &deadline) {
    work_ += int64_t{plan_.route(slot1).size()} * plan_.route(slot2).size();
    if (work_ < kWorkBetweenLooks) {
        return false;
    }
    work_ = 0;
    return deadline.passed();
}

// Looks again at all pairs with a touched route; false if the time is up before the
// end.
bool MaensLocalSearch::refresh(const Deadline &deadline) {
    if (!touched_.empty()) {
        if (plan_.num_slots() > row_) { // more routes than ever before
            row_ = plan_.num_slots() + 8;
            fronts_.assign(row_ * row_, MoveFront{});
            for (const int32_t slot : plan_.slots()) {
                touch(slot);
            }
        }
        for (const int32_t slot : plan_.slots()) {
            for (const int32_t other : plan_.slots()) {
                if (slot <= other &&
                    (is_touched_[idx(slot)] || is_touched_[idx(other)])) {
                    outdated_.emplace_back(slot, other);
                    moves_.expect(slot, other);
                }
            }
        }
        for (const int32_t slot : touched_) {
            is_touched_[idx(slot)] = 0;
        }
        touched_.clear();
    }
    while (!outdated_.empty()) {
        const auto [slot1, slot2] = outdated_.back();
        if (too_late(slot1, slot2, deadline)) {
            return false;
        }
        outdated_.pop_back();
        moves_.find(slot1, slot2, front(slot1, slot2));
    }
    return true;
}

// Makes the best of all moves if it improves.
bool MaensLocalSearch::best_move() {
    const MaensMove *best = nullptr;
    double least = -kNothing;
    for (const int32_t slot : plan_.slots()) {
        for (const int32_t other : plan_.slots()) {
            if (slot > other) {
                continue;
            }
            for (const MaensMove &move : front(slot, other).moves()) {
                const double change = priced(move.cost, move.excess);
                if (change < least) {
                    least = change;
                    best = &move;
                }
            }
        }
    }
    if (best == nullptr) {
        return false;
    }
    const int32_t opened = plan_.apply(*best);
    touch(best->from);
    if (best->to != kNewRoute) {
        touch(best->to);
    }
    if (opened != kNewRoute) {
        touch(opened);
    }
    return true;
}

// All pairs of routes, or so many drawn at random.
void MaensLocalSearch::draw_pairs(Random &random) {
    pairs_.clear();
    const std::vector<int32_t> &slots = plan_.slots();
    for (size_t i = 0; i < slots.size(); ++i) {
        for (size_t j = i + 1; j < slots.size(); ++j) {
            pairs_.emplace_back(slots[i], slots[j]);
        }
    }
    const auto wanted = idx(merge_pairs_);
    if (pairs_.size() > wanted) {
        for (size_t i = 0; i < wanted; ++i) {
            const auto rest = static_cast<uint32_t>(pairs_.size() - i);
            std::swap(pairs_[i], pairs_[i + random.below(rest)]);
        }
        pairs_.resize(wanted);
    }
    for (const auto &[slot1, slot2] : pairs_) {
        merge_split_.expect(plan_.route(slot1).task_hash +
                            plan_.route(slot2).task_hash);
    }
    next_pair_ = 0;
    best_change_ = -kNothing;
    best_pair_ = {kNewRoute, kNewRoute};
}

void MaensLocalSearch::collect_tasks(int32_t slot1, int32_t slot2) {
    tasks_.clear();
    for (const int32_t slot : {slot1, slot2}) {
        const MaensRoute &route = plan_.route(slot);
        for (int32_t i = 1; i <= route.size(); ++i) {
            tasks_.push_back(tables_.arc(route.arcs[idx(i)]).task);
        }
    }
}

// More than anyone would pay to be rid of so much excess.
int64_t MaensLocalSearch::worth(int64_t excess) const {
    constexpr double kMost = 1e15; // far above any cost, and whole numbers are exact
    return static_cast<int64_t>(std::min(kMost, price_ * static_cast<double>(excess))) +
           (excess > 0 ? 2 : 0);
}

// Goes through the pairs; false if the time is up before the end.
bool MaensLocalSearch::best_merge(const Deadline &deadline) {
    for (; next_pair_ < pairs_.size(); ++next_pair_) {
        const auto [slot1, slot2] = pairs_[next_pair_];
        if (too_late(slot1, slot2, deadline)) {
            return false;
        }
        const MaensRoute &one = plan_.route(slot1);
        const MaensRoute &two = plan_.route(slot2);
        if (one.load + two.load > 2 * tables_.rules().capacity()) {
            continue;
        }
        const int64_t excess =
            -tables_.rules().excess(one.load) - tables_.rules().excess(two.load);
        const int64_t now = one.cost + two.cost;
        const int64_t limit = now + worth(-excess);
        int64_t cost = merge_split_.remembered(one.task_hash + two.task_hash, limit);
        if (cost < 0) {
            collect_tasks(slot1, slot2);
            cost = merge_split_.cost(tasks_, limit);
        }
        cost -= now;
        if (priced(cost, excess) < best_change_) {
            best_change_ = priced(cost, excess);
            best_pair_ = pairs_[next_pair_];
        }
    }
    return true;
}

void MaensLocalSearch::adapt_price() {
    steps_fitting_ += plan_.excess() == 0 ? 1 : 0;
    if (++steps_counted_ < kPriceWindow) {
        return;
    }
    if (steps_fitting_ == kPriceWindow) {
        price_ /= 2;
    } else if (steps_fitting_ == 0) {
        price_ *= 2;
    }
    steps_fitting_ = 0;
    steps_counted_ = 0;
}

MaensLocalSearch::Outcome MaensLocalSearch::after_step(bool improved) {
    // The price may change faster than the plan, and for ever: phases have a limit.
    if (improved && ++steps_ < 100 + 2 * tables_.num_tasks()) {
        return Outcome::stepped;
    }
    steps_ = 0;
    phase_ = static_cast<Phase>(static_cast<int>(phase_) + 1);
    return phase_ == Phase::done ? Outcome::finished : Outcome::stepped;
}

MaensLocalSearch::Outcome MaensLocalSearch::step(Random &random,
                                                 const Deadline &deadline) {
    if (phase_ == Phase::done) {
        return Outcome::finished;
    }
    if (phase_ != Phase::merges) {
        if (!refresh(deadline)) {
            return Outcome::out_of_time;
        }
        adapt_price();
        return after_step(best_move());
    }
    if (!merging_) {
        draw_pairs(random);
        adapt_price();
        merging_ = true;
    }
    if (!best_merge(deadline)) {
        return Outcome::out_of_time;
    }
    merging_ = false;
    if (best_pair_.first == kNewRoute) {
        return after_step(false);
    }
    const auto [slot1, slot2] = best_pair_;
    collect_tasks(slot1, slot2);
    merge_split_.plan(tasks_, INT64_MAX);
    std::vector<int32_t> &changed = tasks_; // no longer needed
    changed.clear();
    plan_.replace(slot1, slot2, merge_split_.routes(), changed);
    for (const int32_t slot : changed) {
        touch(slot);
    }
    return after_step(true);
}

} // namespace arcfleet
