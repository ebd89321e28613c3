#include "search/path_scanning.h"

#include "base/parallel.h"

#include <algorithm>
#include <atomic>

namespace arcfleet {

PathScanning::PathScanning(const Network &network, const PathScanningSettings &settings,
                           uint64_t seed, size_t longest_row)
    : tables_(network, settings.trigger == Trigger::nearby, longest_row),
      settings_(settings), seed_(seed) {
    start_clock();
}

void PathScanning::run(int64_t iterations, double seconds, int64_t target,
                       int threads) {
    const Deadline deadline = Deadline::in(seconds);
    const int64_t first = iterations_;
    const int64_t end = first + iterations;
    std::atomic<int64_t> next{first};
    std::atomic<bool> done{reached(target)};
    const auto workers = static_cast<int>(std::min<int64_t>(threads, iterations));
    run_workers(workers, [&](int) {
        PathScanner scanner(tables_, settings_);
        int64_t best = INT64_MAX; // this thread's, to keep the lock out of the loop
        while (!done.load(std::memory_order_relaxed) && !deadline.passed()) {
            const int64_t iteration = next.fetch_add(1, std::memory_order_relaxed);
            if (iteration >= end) {
                break;
            }
            Random random(seed_, static_cast<uint64_t>(iteration));
            const int64_t cost =
                scanner.build(random, static_cast<TieRule>(iteration % kTieRules));
            const auto routes = static_cast<int64_t>(scanner.plan().num_routes());
            if (cost < best && tables_.rules.fits_fleet(routes)) {
                best = cost;
                offer(scanner.plan(), cost, iteration);
                if (cost <= target) {
                    done.store(true, std::memory_order_relaxed);
                }
            }
        }
    });
    iterations_ = std::min(next.load(), end);
}

void PathScanning::offer(const Plan &plan, int64_t cost, int64_t iteration) {
    const std::lock_guard lock(mutex_);
    // Among equally cheap plans the earliest wins, whichever thread came first.
    if (!has_plan() || cost < best_cost() ||
        (cost == best_cost() && iteration <= best_iteration())) {
        keep_best(plan, cost, iteration);
    }
}

} // namespace arcfleet
