// The engine of path scanning: many plans, of which the cheapest is kept.
#pragma once

#include "search/engine.h"
#include "search/path_scanner.h"

#include <cstdint>
#include <mutex>

namespace arcfleet {

class PathScanning : public Engine {
  public:
    PathScanning(const Network &network, const PathScanningSettings &settings,
                 uint64_t seed, size_t longest_row = PathScanningTables::kLongestRow);

    // Plan number i depends on the seed and i alone, so the number of threads changes
    // nothing but the time.
    void run(int64_t iterations, double seconds, int64_t target, int threads);

  private:
    void offer(const Plan &plan, int64_t cost, int64_t iteration);

    PathScanningTables tables_;
    PathScanningSettings settings_;
    uint64_t seed_;
    std::mutex mutex_;
};

} // namespace arcfleet
