#include "search/ruin_recreate/ruin_recreate.h"

#include "base/parallel.h"
#include "search/path_scanning.h"

#include <algorithm>
#include <cmath>

namespace arcfleet {

namespace {

// Where nothing says how long the search will last, a cycle has so many times the
// square of the number of tasks, but not too few iterations.
constexpr double kCycleFactor = 10.0;
constexpr double kShortestCycle = 10'000.0;
// Otherwise there are so many times the root of the iterations per task cycles.
constexpr double kCycleShare = 0.6;
// First temperature of a cycle that starts from the best plan, as a share of the usual.
constexpr double kReheat = 0.4;
// Of every fourth cycle, likewise: where most seeds end in the same second-best plan,
// only a start from far off leads away from it.
constexpr double kHot = 4.0;
// The clock is looked at, and the temperature lowered, once in so many iterations.
constexpr int64_t kBatch = 32;
// Iterations that tell how fast the search is.
constexpr int kTrial = 300;
constexpr int64_t kFirstPlans = 10;

Plan first_plan(const Network &network, uint64_t seed) {
    const PathScanningSettings settings{Choice::random_arc, Trigger::nearby,
                                        Filter::efficiency, 3.0};
    PathScanning scanning(network, settings, seed);
    scanning.run(kFirstPlans, 1e6, -1, 1);
    if (scanning.has_plan()) {
        return scanning.best_plan();
    }
    // None kept the fleet limit: the search has to find its way to it from afar.
    return one_route_per_task(network);
}

} // namespace

RuinRecreate::RuinRecreate(const Network &network, const RuinRecreateSettings &settings,
                           uint64_t seed, int chains, const Horizon &horizon,
                           const Plan &start)
    : tables_(network, settings), horizon_(horizon) {
    start_clock();
    const Plan first = start.num_routes() > 0 ? start : first_plan(network, seed);
    chains_.reserve(static_cast<size_t>(chains));
    for (int i = 0; i < chains; ++i) {
        chains_.emplace_back(tables_, seed, static_cast<uint64_t>(i));
        chains_.back().start(first);
    }
    offer(chains_[0], chains_[0].best_cost());
    const double n = network.num_tasks();
    // More time is spent on more cycles and on longer ones alike.
    const auto equal_cycles = [&](double iterations) {
        return std::max(
            1.0, std::round(kCycleShare * std::sqrt(iterations) / std::max(1.0, n)));
    };
    if (horizon.seconds > 0.0) {
        const double pace = seconds_per_iteration(first, seed);
        cycle_seconds_ = horizon.seconds / equal_cycles(horizon.seconds / pace);
        cycle_end_seconds_ = cycle_seconds_;
    } else {
        double iterations = std::max(kShortestCycle, kCycleFactor * n * n);
        if (horizon.iterations > 0) {
            const double each = static_cast<double>(horizon.iterations) / chains;
            iterations = each / equal_cycles(each);
        }
        cycle_iterations_ = std::max<int64_t>(1, std::llround(iterations));
        cycle_end_iteration_ = cycle_iterations_;
    }
}

// Measured on a chain that is thrown away.
double RuinRecreate::seconds_per_iteration(const Plan &plan, uint64_t seed) const {
    Chain trial(tables_, seed, chains_.size());
    trial.start(plan);
    const double before = elapsed();
    for (int i = 0; i < kTrial; ++i) {
        trial.step(tables_.near_distance * tables_.settings.first_temperature);
    }
    return std::max(1e-8, (elapsed() - before) / kTrial);
}

double RuinRecreate::temperature(const Chain &chain) const {
    double left = 0.0; // of this cycle
    if (horizon_.seconds > 0.0) {
        // Beyond the horizon there are no cycles: it stays as cold as it got.
        if (std::isfinite(cycle_end_seconds_)) {
            left = (cycle_end_seconds_ - elapsed()) / cycle_seconds_;
        }
    } else {
        // As at the start of the batch, so that a run may be cut into slices anywhere.
        const int64_t batch = chain.iterations() / kBatch * kBatch;
        left = static_cast<double>(cycle_end_iteration_ - batch) /
               static_cast<double>(cycle_iterations_);
    }
    const RuinRecreateSettings &settings = tables_.settings;
    double first = settings.first_temperature;
    if (cycle_ % 2 == 1) {
        first = std::max(first * kReheat, settings.last_temperature);
    } else if (cycle_ % 4 == 2) {
        first *= kHot;
    }
    const double fall = settings.last_temperature / first;
    return tables_.near_distance * first *
           std::pow(fall, 1.0 - std::clamp(left, 0.0, 1.0));
}

void RuinRecreate::offer(const Chain &chain, int64_t cost) {
    const std::lock_guard lock(mutex_);
    if (chain.best_fits_fleet() && (!has_plan() || cost < best_cost())) {
        // Counted as if the chains took turns.
        const int64_t iteration = std::max<int64_t>(0, chain.iterations() - 1) *
                                  static_cast<int64_t>(chains_.size());
        keep_best(chain.best_plan(), cost, iteration);
    }
}

void RuinRecreate::run_chain(size_t number, int64_t until, double deadline,
                             int64_t target) {
    Chain &chain = chains_[number];
    while (chain.iterations() < until && elapsed() < deadline &&
           !done_.load(std::memory_order_relaxed)) {
        const double degree = temperature(chain);
        const int64_t batch_end =
            std::min(until, chain.iterations() / kBatch * kBatch + kBatch);
        while (chain.iterations() < batch_end) {
            if (chain.step(degree)) {
                offer(chain, chain.best_cost());
                if (chain.best_fits_fleet() && chain.best_cost() <= target) {
                    done_.store(true, std::memory_order_relaxed);
                    return;
                }
            }
        }
    }
}

void RuinRecreate::start_next_cycle() {
    if (horizon_.seconds > 0.0) {
        if (elapsed() >= horizon_.seconds) {
            cycle_end_seconds_ = std::numeric_limits<double>::infinity();
            return;
        }
        cycle_end_seconds_ += cycle_seconds_;
    } else {
        cycle_end_iteration_ += cycle_iterations_;
    }
    ++cycle_;
    if (cycle_ % 2 == 1 && has_plan()) {
        for (Chain &chain : chains_) {
            chain.continue_from(best_plan());
        }
    }
}

void RuinRecreate::run(int64_t iterations, double seconds, int64_t target,
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
