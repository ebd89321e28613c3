// Several chains of annealing side by side that share what they find. The horizon is
// divided into cycles, in each of which the temperature falls once: annealing once more
// finds better plans than annealing longer. Every second cycle starts from the best
// plan, less hot. With many tasks so do the first cycles, which are short, so that
// there is a good plan at any time.
//
// A chain has start(plan), continue_from(plan), step(temperature), iterations(), and of
// its best plan best_plan(), best_cost(), best_objective() and best_fits_fleet(); its
// Tables have near_distance and settings.
#pragma once

#include "base/parallel.h"
#include "search/engine.h"
#include "search/ruin_recreate/tables.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace arcfleet {

// How long the search may last, over all chains; 0 means no such limit.
struct Horizon {
    int64_t iterations;
    double seconds;
};

template <typename Chain> class AnnealedChains : public Engine {
  public:
    // Iterations are counted over all chains. What is searched depends on seed, number
    // of chains and horizon alone unless the horizon is in seconds.
    void run(int64_t iterations, double seconds, int64_t target, int threads);

  protected:
    using Tables = typename Chain::Tables;

    AnnealedChains(std::unique_ptr<const Tables> tables, uint64_t seed, int chains,
                   const Horizon &horizon);
    ~AnnealedChains() = default;

    // Starts all chains from a plan; to be called once.
    void begin(const Plan &first, int32_t num_tasks);
    const Tables &tables() const { return *tables_; }

  private:
    double seconds_per_iteration(const Plan &plan) const;
    int64_t lead(double iterations, double num_tasks) const;
    double cycle_share() const;
    int64_t this_cycle_iterations() const;
    int64_t phase() const;
    bool starts_from_best() const;
    double temperature(const Chain &chain) const;
    void run_chain(size_t chain, int64_t until, double deadline, int64_t target);
    void offer(size_t number);
    void start_next_cycle();

    std::unique_ptr<const Tables> tables_;
    const uint64_t seed_;
    Horizon horizon_;
    std::vector<Chain> chains_;
    decltype(std::declval<const Chain &>().best_objective()) best_objective_{};
    size_t best_chain_ = 0;
    // A cycle lasts so many iterations of each chain or, where the horizon is in
    // seconds, so many seconds.
    int64_t cycle_iterations_ = std::numeric_limits<int64_t>::max();
    double cycle_seconds_ = std::numeric_limits<double>::infinity();
    int64_t cycle_ = 0;
    int64_t lead_ = 0; // so many short cycles take the place of the first
    int64_t cycle_end_iteration_ = std::numeric_limits<int64_t>::max();
    double cycle_end_seconds_ = std::numeric_limits<double>::infinity();
    std::atomic<bool> done_{false};
    std::mutex mutex_;

    // Where nothing says how long the search will last, a cycle has so many times the
    // square of the number of tasks, but not too few iterations.
    static constexpr double kCycleFactor = 10.0;
    static constexpr double kShortestCycle = 10'000.0;
    // Otherwise there are so many times the root of the iterations per task cycles.
    static constexpr double kCycleShare = 0.6;
    // First temperature of a cycle that starts from the best plan, as a share of the
    // usual.
    static constexpr double kReheat = 0.4;
    // Of every fourth cycle, likewise: where most seeds end in the same second-best
    // plan, only a start from far off leads away from it.
    static constexpr double kHot = 4.0;
    // With so many tasks a cycle takes seconds and has no good plan until its end.
    // Cycles that double in length take the place of the first.
    static constexpr int32_t kLongCycles = 400;
    static constexpr int64_t kLead = 6;
    // More of them where the first would have twice as many iterations for each task.
    static constexpr double kFirstCycle = 10.0;
    // The clock is looked at, and the temperature lowered, once in so many iterations.
    static constexpr int64_t kBatch = 32;
    // Iterations that tell how fast the search is; fewer where they would take more
    // than a share of its time.
    static constexpr int kTrial = 300;
    static constexpr int kShortTrial = 10;
    static constexpr double kTrialShare = 0.02;
};

template <typename Chain>
AnnealedChains<Chain>::AnnealedChains(std::unique_ptr<const Tables> tables,
                                      uint64_t seed, int chains, const Horizon &horizon)
    : tables_(std::move(tables)), seed_(seed), horizon_(horizon) {
    start_clock();
    chains_.reserve(static_cast<size_t>(chains));
    for (int i = 0; i < chains; ++i) {
        chains_.emplace_back(*tables_, seed, static_cast<uint64_t>(i));
    }
}

template <typename Chain>
void AnnealedChains<Chain>::begin(const Plan &first, int32_t num_tasks) {
    for (Chain &chain : chains_) {
        chain.start(first);
    }
    offer(0);
    const double n = num_tasks;
    // More time is spent on more cycles and on longer ones alike.
    const auto equal_cycles = [&](double iterations) {
        return std::max(
            1.0, std::round(kCycleShare * std::sqrt(iterations) / std::max(1.0, n)));
    };
    if (horizon_.seconds > 0.0) {
        const double pace = seconds_per_iteration(first);
        cycle_seconds_ = horizon_.seconds / equal_cycles(horizon_.seconds / pace);
        lead_ = lead(cycle_seconds_ / pace, n);
        cycle_end_seconds_ = cycle_share() * cycle_seconds_;
    } else {
        double iterations = std::max(kShortestCycle, kCycleFactor * n * n);
        if (horizon_.iterations > 0) {
            const double each = static_cast<double>(horizon_.iterations) /
                                static_cast<double>(chains_.size());
            iterations = each / equal_cycles(each);
        }
        cycle_iterations_ = std::max<int64_t>(1, std::llround(iterations));
        lead_ = lead(horizon_.iterations > 0 ? iterations : 0.0, n);
        cycle_end_iteration_ = this_cycle_iterations();
    }
}

// How many short cycles take the place of the first, which has so many iterations; 0
// where the horizon is unknown.
template <typename Chain>
int64_t AnnealedChains<Chain>::lead(double iterations, double num_tasks) const {
    if (num_tasks < kLongCycles) {
        return 0;
    }
    const double firsts = iterations / (kFirstCycle * num_tasks);
    return std::max(kLead, 1 + static_cast<int64_t>(std::log2(std::max(1.0, firsts))));
}

// Of the usual length of a cycle: 1, 1, 2, 4, 8 and 16 parts of 32 in a lead of six.
template <typename Chain> double AnnealedChains<Chain>::cycle_share() const {
    return cycle_ < lead_
               ? std::exp2(static_cast<double>(std::max<int64_t>(1, cycle_) - lead_))
               : 1.0;
}

template <typename Chain> int64_t AnnealedChains<Chain>::this_cycle_iterations() const {
    return std::max<int64_t>(
        1, std::llround(cycle_share() * static_cast<double>(cycle_iterations_)));
}

// Number of the cycle where those in the lead count as one.
template <typename Chain> int64_t AnnealedChains<Chain>::phase() const {
    return lead_ == 0 ? cycle_ : std::max<int64_t>(0, cycle_ - lead_ + 1);
}

// Whether the cycle starts from the best plan, less hot.
template <typename Chain> bool AnnealedChains<Chain>::starts_from_best() const {
    return (cycle_ > 0 && cycle_ < lead_) || phase() % 2 == 1;
}

// Measured on a chain that is thrown away.
template <typename Chain>
double AnnealedChains<Chain>::seconds_per_iteration(const Plan &plan) const {
    Chain trial(*tables_, seed_, chains_.size());
    trial.start(plan);
    const double before = elapsed();
    int tried = 0;
    while (tried < kTrial && (tried < kShortTrial ||
                              elapsed() - before < kTrialShare * horizon_.seconds)) {
        trial.step(tables_->near_distance * tables_->settings.first_temperature);
        ++tried;
    }
    return std::max(1e-8, (elapsed() - before) / tried);
}

template <typename Chain>
double AnnealedChains<Chain>::temperature(const Chain &chain) const {
    double left = 0.0; // of this cycle
    if (horizon_.seconds > 0.0) {
        // Beyond the horizon there are no cycles: it stays as cold as it got.
        if (std::isfinite(cycle_end_seconds_)) {
            left = (cycle_end_seconds_ - elapsed()) / (cycle_share() * cycle_seconds_);
        }
    } else {
        // As at the start of the batch, so that a run may be cut into slices anywhere.
        const int64_t batch = chain.iterations() / kBatch * kBatch;
        left = static_cast<double>(cycle_end_iteration_ - batch) /
               static_cast<double>(this_cycle_iterations());
    }
    const RuinRecreateSettings &settings = tables_->settings;
    double first = settings.first_temperature;
    if (starts_from_best()) {
        first = std::max(first * kReheat, settings.last_temperature);
    } else if (phase() % 4 == 2) {
        first *= kHot;
    }
    const double fall = settings.last_temperature / first;
    return tables_->near_distance * first *
           std::pow(fall, 1.0 - std::clamp(left, 0.0, 1.0));
}

// Of two plans that are as good the one found first, as if the chains took turns: not
// by the clock, so that the same search gives the same plan.
template <typename Chain> void AnnealedChains<Chain>::offer(size_t number) {
    const Chain &chain = chains_[number];
    const std::lock_guard lock(mutex_);
    const int64_t iteration = std::max<int64_t>(0, chain.iterations() - 1) *
                              static_cast<int64_t>(chains_.size());
    const auto objective = chain.best_objective();
    const bool first =
        std::pair(iteration, number) < std::pair(best_iteration(), best_chain_);
    if (chain.best_fits_fleet() && (!has_plan() || objective < best_objective_ ||
                                    (objective == best_objective_ && first))) {
        best_objective_ = objective;
        best_chain_ = number;
        keep_best(chain.best_plan(), chain.best_cost(), iteration);
    }
}

template <typename Chain>
void AnnealedChains<Chain>::run_chain(size_t number, int64_t until, double deadline,
                                      int64_t target) {
    Chain &chain = chains_[number];
    while (chain.iterations() < until && elapsed() < deadline &&
           !done_.load(std::memory_order_relaxed)) {
        const double degree = temperature(chain);
        const int64_t batch_end =
            std::min(until, chain.iterations() / kBatch * kBatch + kBatch);
        while (chain.iterations() < batch_end) {
            if (chain.step(degree)) {
                offer(number);
                if (chain.best_fits_fleet() && chain.best_cost() <= target) {
                    done_.store(true, std::memory_order_relaxed);
                    return;
                }
            }
        }
    }
}

template <typename Chain> void AnnealedChains<Chain>::start_next_cycle() {
    if (horizon_.seconds > 0.0 && elapsed() >= horizon_.seconds) {
        cycle_end_seconds_ = std::numeric_limits<double>::infinity();
        return;
    }
    ++cycle_;
    if (horizon_.seconds > 0.0) {
        cycle_end_seconds_ += cycle_share() * cycle_seconds_;
    } else {
        cycle_end_iteration_ += this_cycle_iterations();
    }
    if (starts_from_best() && has_plan()) {
        for (Chain &chain : chains_) {
            chain.continue_from(best_plan());
        }
    }
}

template <typename Chain>
void AnnealedChains<Chain>::run(int64_t iterations, double seconds, int64_t target,
                                int threads) {
    const double deadline = elapsed() + seconds;
    const auto chains = static_cast<int64_t>(chains_.size());
    // Each chain's share; the last few iterations go to the first chains.
    const int64_t end = iterations_ + std::min(iterations, INT64_MAX - iterations_);
    done_ = reached(target);
    while (iterations_ < end && elapsed() < deadline && !done_) {
        std::atomic<size_t> next{0};
        run_workers(std::min(threads, static_cast<int>(chains)), [&](int) {
            for (size_t i = next++; i < chains_.size(); i = next++) {
                const auto number = static_cast<int64_t>(i);
                const int64_t share = end / chains + (number < end % chains ? 1 : 0);
                run_chain(i, std::min(cycle_end_iteration_, share),
                          std::min(cycle_end_seconds_, deadline), target);
            }
        });
        iterations_ = 0;
        bool all_there = true;
        for (const Chain &chain : chains_) {
            iterations_ += chain.iterations();
            all_there = all_there && chain.iterations() >= cycle_end_iteration_;
        }
        if (all_there || elapsed() >= cycle_end_seconds_) {
            start_next_cycle();
        }
    }
}

} // namespace arcfleet
