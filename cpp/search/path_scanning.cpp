#include "search/path_scanning.h"

#include "base/parallel.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <stdexcept>

namespace arcfleet {

namespace {

using ArcHere = PathScanningTables::ArcHere;

// Builds plans; one per thread, reused so that nothing is allocated in the loop.
class Builder {
  public:
    Builder(const PathScanningTables &tables, const PathScanningRules &rules)
        : t_(tables), rules_(rules), capacity_(tables.network.rules().capacity),
          served_(t_.demand.size()), open_(idx(t_.network.num_terminals())) {
        plan_.arcs.reserve(t_.demand.size());
        plan_.route_starts.reserve(t_.demand.size() + 1);
        ties_.reserve(t_.arcs.size());
    }

    int64_t build(Random &random, int64_t iteration);
    const Plan &plan() const { return plan_; }

  private:
    void start_plan();
    void start_route();
    void serve(const ArcHere &arc);
    void close_route();
    bool nothing_fits();
    bool triggers() const;
    double mean_demand_near() const;
    void collect_nearest();
    template <Filter filter> void collect_nearest_filtered();
    const ArcHere &choose(Random &random, int rule) const;
    bool better(int rule, const ArcHere &a, const ArcHere &b) const;

    const PathScanningTables &t_;
    const PathScanningRules &rules_;
    const int32_t capacity_;
    Plan plan_;
    std::vector<uint8_t> served_; // by task
    std::vector<int32_t> open_;   // by terminal: unserved arcs that start there
    size_t smallest_ = 0;         // first unserved task in tasks_by_demand
    int64_t cost_ = 0;
    // The open route.
    int32_t place_ = 0; // terminal where the vehicle stands
    const int32_t *row_ = nullptr;
    int32_t residual_ = 0;
    int64_t travelled_ = 0;
    bool choosy_ = false;
    // The nearest arcs found in this step.
    std::vector<const ArcHere *> ties_;
    int32_t reach_ = 0;
};

void Builder::start_plan() {
    std::fill(served_.begin(), served_.end(), uint8_t{0});
    for (size_t i = 0; i < open_.size(); ++i) {
        open_[i] = t_.arcs_at[i + 1] - t_.arcs_at[i];
    }
    smallest_ = 0;
    cost_ = 0;
    plan_.arcs.clear();
    plan_.route_starts.clear();
}

void Builder::start_route() {
    plan_.route_starts.push_back(static_cast<int32_t>(plan_.arcs.size()));
    place_ = 0;
    row_ = t_.network.distances_from(0);
    residual_ = capacity_;
    travelled_ = 0;
    choosy_ = false;
}

void Builder::serve(const ArcHere &here) {
    const Arc &arc = t_.network.arc(here.arc);
    travelled_ += static_cast<int64_t>(reach_) + arc.service_cost;
    residual_ -= arc.demand;
    served_[idx(arc.task)] = 1;
    --open_[idx(arc.start)];
    if (arc.inverse >= 0) {
        --open_[idx(arc.end)]; // the inverse starts where this arc ends
    }
    plan_.arcs.push_back(here.arc);
    place_ = arc.end;
    row_ = t_.network.distances_from(place_);
}

void Builder::close_route() {
    cost_ += travelled_ + row_[0] + t_.network.rules().route_cost;
}

bool Builder::nothing_fits() {
    while (served_[idx(t_.tasks_by_demand[smallest_])]) {
        ++smallest_;
    }
    return t_.demand[idx(t_.tasks_by_demand[smallest_])] > residual_;
}

double Builder::mean_demand_near() const {
    int64_t sum = 0;
    int64_t count = 0;
    for (size_t i = t_.neighbours_at[idx(place_)];
         i < t_.neighbours_at[idx(place_) + 1]; ++i) {
        const int32_t task = t_.neighbours[i];
        const int64_t open = !served_[idx(task)];
        sum += open * t_.demand[idx(task)];
        count += open;
    }
    return count ? static_cast<double>(sum) / static_cast<double>(count)
                 : t_.mean_demand;
}

// Whether the route becomes choosy at this step. An empty route never does: it could
// refuse everything, for ever.
bool Builder::triggers() const {
    if (plan_.route_starts.back() == static_cast<int32_t>(plan_.arcs.size())) {
        return false;
    }
    if (rules_.trigger == Trigger::everywhere) {
        return residual_ <= rules_.alpha * t_.mean_demand;
    }
    // A mean is at most the largest: most steps are decided without looking around.
    return residual_ <= rules_.alpha * t_.largest_demand &&
           residual_ <= rules_.alpha * mean_demand_near();
}

// All arcs that fit, at the smallest distance at which there is one. Places are walked
// from near to far, so the walk ends soon after the first find.
void Builder::collect_nearest() {
    ties_.clear();
    const uint16_t *nearest = t_.nearest.data() + idx(place_) * idx(t_.num_starts);
    for (int32_t i = 0; i < t_.num_starts; ++i) {
        const int32_t place = nearest[i];
        if (open_[idx(place)] == 0) {
            continue;
        }
        const int32_t reach = row_[place];
        if (!ties_.empty() && reach > reach_) {
            return;
        }
        for (int32_t k = t_.arcs_at[idx(place)]; k < t_.arcs_at[idx(place) + 1]; ++k) {
            const ArcHere &arc = t_.arcs[idx(k)];
            if (!served_[idx(arc.task)] && arc.demand <= residual_) {
                ties_.push_back(&arc);
                reach_ = reach;
            }
        }
    }
}

// The same among the arcs that pass the filter. Both filters bound the distance from
// above, which ends the walk early.
template <Filter filter> void Builder::collect_nearest_filtered() {
    ties_.clear();
    const int64_t home = row_[0];
    const double load = capacity_ - residual_;
    // What the route costs if it ends here.
    const auto route = static_cast<double>(travelled_ + home);
    // The ellipse's tolerance of 0.001 is the published program's.
    const int64_t widest =
        home + static_cast<int64_t>(std::floor(t_.mean_cost + 0.001));
    const auto passes = [&](const ArcHere &arc, int32_t reach) {
        const int64_t via = static_cast<int64_t>(reach) + arc.service_cost + arc.back;
        if constexpr (filter == Filter::ellipse) {
            return via <= widest;
        } else {
            // (via - home) / demand <= route / load, without dividing. Doubles are
            // exact below 2^53 and cannot overflow above.
            return static_cast<double>(via - home) * load <= route * arc.demand;
        }
    };
    int64_t farthest = widest - t_.smallest_cost;
    if constexpr (filter == Filter::efficiency) {
        const double gain = route * std::min(residual_, t_.largest_demand);
        farthest = gain < load * kMaxDistance
                       ? home + static_cast<int64_t>(gain / load) - t_.smallest_cost
                       : int64_t{kMaxDistance};
    }
    const uint16_t *nearest = t_.nearest.data() + idx(place_) * idx(t_.num_starts);
    for (int32_t i = 0; i < t_.num_starts; ++i) {
        const int32_t place = nearest[i];
        if (open_[idx(place)] == 0) {
            continue;
        }
        const int32_t reach = row_[place];
        if (reach > farthest || (!ties_.empty() && reach > reach_)) {
            return;
        }
        for (int32_t k = t_.arcs_at[idx(place)]; k < t_.arcs_at[idx(place) + 1]; ++k) {
            const ArcHere &arc = t_.arcs[idx(k)];
            if (!served_[idx(arc.task)] && arc.demand <= residual_ &&
                passes(arc, reach)) {
                ties_.push_back(&arc);
                reach_ = reach;
            }
        }
    }
}

// The five rules of Golden et al. 1983, counted from 0.
bool Builder::better(int rule, const ArcHere &a, const ArcHere &b) const {
    switch (rule) {
    case 0: // smallest cost per demand
        return static_cast<int64_t>(a.service_cost) * b.demand <
               static_cast<int64_t>(b.service_cost) * a.demand;
    case 1: // largest cost per demand
        return better(0, b, a);
    case 2: // nearest to the depot
        return a.back < b.back;
    case 3: // farthest from the depot
        return a.back > b.back;
    default: // outwards while less than half full, then homewards
        return better(2 * int64_t{residual_} <= capacity_ ? 2 : 3, a, b);
    }
}

// A random arc among the nearest; then, with a rule, the best by the rule. Where the
// random one is not among the best, the first in the order of the instance is taken.
const ArcHere &Builder::choose(Random &random, int rule) const {
    if (ties_.size() == 1) {
        return *ties_[0];
    }
    const ArcHere *chosen = ties_[random.below(static_cast<uint32_t>(ties_.size()))];
    if (rules_.choice == Choice::random_arc) {
        return *chosen;
    }
    if (rules_.choice == Choice::random_rule) {
        rule = static_cast<int>(random.below(5));
    }
    const ArcHere *drawn = chosen;
    for (const ArcHere *arc : ties_) {
        if (better(rule, *arc, *chosen) || (chosen != drawn && arc->arc < chosen->arc &&
                                            !better(rule, *chosen, *arc))) {
            chosen = arc;
        }
    }
    return *chosen;
}

int64_t Builder::build(Random &random, int64_t iteration) {
    start_plan();
    const int rule = static_cast<int>(iteration % 5);
    const size_t num_tasks = t_.demand.size();
    if (num_tasks > 0) {
        start_route();
    }
    while (plan_.arcs.size() < num_tasks) {
        ties_.clear();
        if (!nothing_fits()) {
            if (!choosy_ && rules_.trigger != Trigger::never) {
                choosy_ = triggers();
            }
            if (!choosy_) {
                collect_nearest();
            } else if (rules_.filter == Filter::ellipse) {
                collect_nearest_filtered<Filter::ellipse>();
            } else {
                collect_nearest_filtered<Filter::efficiency>();
            }
        }
        if (ties_.empty()) {
            close_route();
            start_route();
            continue;
        }
        serve(choose(random, rule));
    }
    if (num_tasks > 0) {
        close_route();
    }
    plan_.route_starts.push_back(static_cast<int32_t>(num_tasks));
    return cost_;
}

} // namespace

PathScanningTables::PathScanningTables(const Network &net, bool with_neighbours)
    : network(net) {
    const int32_t terminals = net.num_terminals();
    if (terminals > UINT16_MAX) {
        throw std::invalid_argument("more than 65535 places to serve from");
    }
    demand.resize(idx(net.num_tasks()));
    arcs_at.assign(idx(terminals) + 1, 0);
    int64_t total_demand = 0;
    int64_t total_cost = 0;
    largest_demand = 0;
    smallest_cost = INT32_MAX;
    for (size_t a = 1; a < net.arcs().size(); ++a) {
        const Arc &arc = net.arcs()[a];
        // A task's cost is the mean over its directions: in halves, to stay exact.
        total_cost +=
            arc.inverse >= 0 ? arc.service_cost : 2 * int64_t{arc.service_cost};
        smallest_cost = std::min(smallest_cost, arc.service_cost);
        demand[idx(arc.task)] = arc.demand;
        ++arcs_at[idx(arc.start) + 1];
    }
    for (const int32_t d : demand) {
        largest_demand = std::max(largest_demand, d);
        total_demand += d;
        if (d > net.rules().capacity) {
            throw std::invalid_argument("a demand is above the capacity");
        }
    }
    const double tasks = std::max(1.0, static_cast<double>(demand.size()));
    mean_demand = static_cast<double>(total_demand) / tasks;
    mean_cost = static_cast<double>(total_cost) / 2.0 / tasks;

    std::partial_sum(arcs_at.begin(), arcs_at.end(), arcs_at.begin());
    arcs.resize(net.arcs().size() - 1);
    std::vector<int32_t> next(arcs_at.begin(), arcs_at.end() - 1);
    for (int32_t a = 1; idx(a) < net.arcs().size(); ++a) {
        const Arc &arc = net.arc(a);
        const int32_t back = net.distances_from(arc.end)[0];
        arcs[idx(next[idx(arc.start)]++)] = {a, arc.task, arc.demand, arc.service_cost,
                                             back};
    }

    std::vector<uint16_t> starts;
    for (int32_t t = 0; t < terminals; ++t) {
        if (arcs_at[idx(t) + 1] > arcs_at[idx(t)]) {
            starts.push_back(static_cast<uint16_t>(t));
        }
    }
    num_starts = static_cast<int32_t>(starts.size());
    nearest.reserve(idx(terminals) * starts.size());
    neighbours_at.push_back(0);
    std::vector<int32_t> seen_from(demand.size(), -1);
    for (int32_t t = 0; t < terminals; ++t) {
        const int32_t *row = net.distances_from(t);
        std::sort(starts.begin(), starts.end(), [&](uint16_t a, uint16_t b) {
            return row[a] != row[b] ? row[a] < row[b] : a < b;
        });
        nearest.insert(nearest.end(), starts.begin(), starts.end());
        for (const uint16_t start : starts) {
            if (!with_neighbours || row[start] > mean_cost) {
                break;
            }
            for (int32_t k = arcs_at[start]; k < arcs_at[idx(start) + 1]; ++k) {
                int32_t &seen = seen_from[idx(arcs[idx(k)].task)];
                if (seen != t) {
                    seen = t;
                    neighbours.push_back(arcs[idx(k)].task);
                }
            }
        }
        neighbours_at.push_back(neighbours.size());
    }

    tasks_by_demand.resize(demand.size());
    std::iota(tasks_by_demand.begin(), tasks_by_demand.end(), 0);
    std::stable_sort(
        tasks_by_demand.begin(), tasks_by_demand.end(),
        [&](int32_t a, int32_t b) { return demand[idx(a)] < demand[idx(b)]; });
}

PathScanning::PathScanning(const Network &network, const PathScanningRules &rules,
                           uint64_t seed)
    : tables_(network, rules.trigger == Trigger::nearby), rules_(rules), seed_(seed),
      start_(std::chrono::steady_clock::now()) {}

void PathScanning::run(int64_t iterations, double seconds, int64_t target,
                       int threads) {
    using Clock = std::chrono::steady_clock;
    const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                             std::chrono::duration<double>(seconds));
    const int64_t first = iterations_;
    const int64_t end = first + iterations;
    std::atomic<int64_t> next{first};
    std::atomic<bool> reached{best_cost_ >= 0 && best_cost_ <= target};
    const int64_t limit = tables_.network.rules().fleet_limit;
    const auto workers = static_cast<int>(std::min<int64_t>(threads, iterations));
    run_workers(workers, [&](int) {
        Builder builder(tables_, rules_);
        int64_t best = INT64_MAX; // this thread's, to keep the lock out of the loop
        while (!reached.load(std::memory_order_relaxed) && Clock::now() < deadline) {
            const int64_t iteration = next.fetch_add(1, std::memory_order_relaxed);
            if (iteration >= end) {
                break;
            }
            Random random(seed_, static_cast<uint64_t>(iteration));
            const int64_t cost = builder.build(random, iteration);
            const auto routes = static_cast<int64_t>(builder.plan().num_routes());
            if (cost < best && (limit == 0 || routes <= limit)) {
                best = cost;
                offer(builder.plan(), cost, iteration);
                if (cost <= target) {
                    reached.store(true, std::memory_order_relaxed);
                }
            }
        }
    });
    iterations_ = std::min(next.load(), end);
}

void PathScanning::offer(const Plan &plan, int64_t cost, int64_t iteration) {
    const std::lock_guard lock(mutex_);
    // Among equally cheap plans the earliest wins, whichever thread came first.
    if (best_cost_ >= 0 &&
        (cost > best_cost_ || (cost == best_cost_ && iteration > best_iteration_))) {
        return;
    }
    if (best_cost_ < 0 || cost < best_cost_) {
        const std::chrono::duration<double> since =
            std::chrono::steady_clock::now() - start_;
        history_.push_back({since.count(), iteration, cost});
    }
    best_cost_ = cost;
    best_iteration_ = iteration;
    best_plan_ = plan;
}

} // namespace arcfleet
