// What every search engine has: a number of iterations, the best plan so far and the
// history of improvements. An engine derives from this class and adds
//
//     void run(int64_t iterations, double seconds, int64_t target, int threads);
//
// which searches on for up to `iterations` and stops when `seconds` have passed or a
// plan of at most `target` was found; it may return earlier, to be called again.
// bindings/engine.h shows all of it to Python.
#pragma once

#include "search/plan.h"

#include <chrono>
#include <cstdint>
#include <vector>

namespace arcfleet {

// A better plan, and when it was found.
struct Improvement {
    double seconds; // since the clock of the engine was started
    int64_t iteration;
    int64_t cost;
};

struct Deadline {
    using Clock = std::chrono::steady_clock;

    static Deadline in(double seconds) {
        return {Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                   std::chrono::duration<double>(seconds))};
    }
    bool passed() const { return Clock::now() >= time; }

    Clock::time_point time;
};

class Engine {
  public:
    int64_t iterations() const { return iterations_; }
    bool has_plan() const { return best_cost_ >= 0; }
    int64_t best_cost() const { return best_cost_; }
    int64_t best_iteration() const { return best_iteration_; }
    // Iterations since the best plan.
    int64_t no_improvement() const { return iterations_ - 1 - best_iteration_; }
    const Plan &best_plan() const { return best_plan_; }
    const std::vector<Improvement> &history() const { return history_; }

  protected:
    Engine() = default;
    ~Engine() = default;

    // Called once the tables of the engine are made.
    void start_clock() { start_ = Deadline::Clock::now(); }
    double elapsed() const {
        return std::chrono::duration<double>(Deadline::Clock::now() - start_).count();
    }
    bool reached(int64_t target) const { return has_plan() && best_cost_ <= target; }
    // Takes over a plan as the best; one that is no cheaper does not enter the history.
    void keep_best(const Plan &plan, int64_t cost, int64_t iteration) {
        if (!has_plan() || cost < best_cost_) {
            history_.push_back({elapsed(), iteration, cost});
        }
        best_cost_ = cost;
        best_iteration_ = iteration;
        best_plan_ = plan;
    }

    int64_t iterations_ = 0;

  private:
    Deadline::Clock::time_point start_ = Deadline::Clock::now();
    int64_t best_cost_ = -1;
    int64_t best_iteration_ = -1;
    Plan best_plan_;
    std::vector<Improvement> history_;
};

} // namespace arcfleet
