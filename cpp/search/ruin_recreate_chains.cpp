#include "base/parallel.h"
#include "search/path_scanning.h"
#include "search/ruin_recreate.h"

#include <algorithm>
#include <cmath>

namespace arcfleet {

namespace {

// The chains exchange plans so often in a run.
constexpr int64_t kExchanges = 50;
// Iterations of one fall of the temperature where no horizon is given.
constexpr int64_t kCycle = 100'000;
// The clock is looked at, and the temperature lowered, once in so many iterations.
constexpr int64_t kBatch = 32;
constexpr int64_t kFirstPlans = 10;

Plan first_plan(const Network &network, uint64_t seed) {
    const PathScanningRules rules{Choice::random_arc, Trigger::nearby,
                                  Filter::efficiency, 3.0};
    PathScanning scanning(network, rules, seed);
    scanning.run(kFirstPlans, 1e6, -1, 1);
    if (scanning.has_plan()) {
        return scanning.best_plan();
    }
    // None kept the fleet limit: the search has to find its way to it from afar.
    Plan plan;
    plan.route_starts.push_back(0);
    for (int32_t task = 0; task < network.num_tasks(); ++task) {
        plan.arcs.push_back(network.task_arc(task));
        plan.route_starts.push_back(task + 1);
    }
    return plan;
}

} // namespace

RuinRecreate::RuinRecreate(const Network &network, const RuinRecreateSettings &settings,
                           uint64_t seed, int chains, const Horizon &horizon,
                           const Plan &start)
    : tables_(network, settings), horizon_(horizon),
      start_(std::chrono::steady_clock::now()) {
    const Plan first = start.num_routes() > 0 ? start : first_plan(network, seed);
    chains_.reserve(static_cast<size_t>(chains));
    for (int i = 0; i < chains; ++i) {
        chains_.emplace_back(tables_, seed, static_cast<uint64_t>(i));
        chains_.back().start(first);
    }
    offer(chains_[0], chains_[0].best_cost());
    if (horizon.iterations <= 0 && horizon.seconds > 0.0) {
        next_exchange_ = elapsed() + horizon.seconds / kExchanges;
    } else {
        const int64_t span = horizon.iterations > 0 ? horizon.iterations : kCycle;
        epoch_ = std::max<int64_t>(1, span / chains / kExchanges);
        epoch_end_ = epoch_;
    }
}

double RuinRecreate::elapsed() const {
    const std::chrono::duration<double> since =
        std::chrono::steady_clock::now() - start_;
    return since.count();
}

double RuinRecreate::temperature(int64_t chain_iterations) const {
    const auto chains = static_cast<double>(chains_.size());
    const auto done = static_cast<double>(chain_iterations) * chains;
    double share = 0.0;
    if (horizon_.iterations > 0) {
        share = done / static_cast<double>(horizon_.iterations);
    }
    if (horizon_.seconds > 0.0) {
        share = std::max(share, elapsed() / horizon_.seconds);
    }
    if (horizon_.iterations <= 0 && horizon_.seconds <= 0.0) {
        share = std::fmod(done / static_cast<double>(kCycle), 1.0);
    }
    const RuinRecreateSettings &settings = tables_.settings;
    const double fall = settings.last_temperature / settings.first_temperature;
    return tables_.mean_distance * settings.first_temperature *
           std::pow(fall, std::min(share, 1.0));
}

void RuinRecreate::offer(const Chain &chain, int64_t cost) {
    const std::lock_guard lock(mutex_);
    if (!chain.best_fits_fleet() || (best_cost_ >= 0 && cost >= best_cost_)) {
        return;
    }
    best_cost_ = cost;
    // Counted as if the chains took turns.
    best_iteration_ = std::max<int64_t>(0, chain.iterations() - 1) *
                      static_cast<int64_t>(chains_.size());
    best_plan_ = chain.best_plan();
    history_.push_back({elapsed(), best_iteration_, cost});
}

void RuinRecreate::run_chain(size_t number, int64_t until, double deadline,
                             int64_t target) {
    Chain &chain = chains_[number];
    while (chain.iterations() < until && elapsed() < deadline &&
           !reached_.load(std::memory_order_relaxed)) {
        const double degree = temperature(chain.iterations());
        const int64_t batch_end =
            std::min(until, chain.iterations() / kBatch * kBatch + kBatch);
        while (chain.iterations() < batch_end) {
            if (chain.step(degree)) {
                offer(chain, chain.best_cost());
                if (chain.best_fits_fleet() && chain.best_cost() <= target) {
                    reached_.store(true, std::memory_order_relaxed);
                    return;
                }
            }
        }
    }
}

// The chain that stands worst goes on from where the best one stands.
void RuinRecreate::exchange() {
    const auto cheaper = [](const Chain &a, const Chain &b) {
        return a.current_cost() < b.current_cost();
    };
    const auto [best, worst] =
        std::minmax_element(chains_.begin(), chains_.end(), cheaper);
    if (best->current_cost() < worst->current_cost()) {
        worst->continue_from(best->current_plan());
    }
}

void RuinRecreate::run(int64_t iterations, double seconds, int64_t target,
                       int threads) {
    const double deadline = elapsed() + seconds;
    const auto chains = static_cast<int64_t>(chains_.size());
    // Each chain's share; the last few iterations go to the first chains.
    const int64_t end = iterations_ + std::min(iterations, INT64_MAX - iterations_);
    reached_ = best_cost_ >= 0 && best_cost_ <= target;
    while (iterations_ < end && elapsed() < deadline && !reached_) {
        std::atomic<size_t> next{0};
        run_workers(std::min(threads, static_cast<int>(chains)), [&](int) {
            for (size_t i = next++; i < chains_.size(); i = next++) {
                const auto number = static_cast<int64_t>(i);
                const int64_t share = end / chains + (number < end % chains ? 1 : 0);
                run_chain(i, std::min(epoch_end_, share), deadline, target);
            }
        });
        iterations_ = 0;
        bool all_there = true;
        for (const Chain &chain : chains_) {
            iterations_ += chain.iterations();
            all_there = all_there && chain.iterations() >= epoch_end_;
        }
        if (all_there) {
            epoch_end_ += epoch_;
            exchange();
        } else if (elapsed() >= next_exchange_) {
            next_exchange_ += horizon_.seconds / kExchanges;
            exchange();
        }
    }
}

} // namespace arcfleet
