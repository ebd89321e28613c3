#include "search/areas/area_search.h"

#include "base/allowance.h"
#include "base/parallel.h"
#include "network/street_paths.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <iterator>
#include <limits>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <thread>

namespace arcfleet {

namespace {

// An area may always hold so many routes.
constexpr int64_t kFewRoutes = 5;

// Iterations for each task of the first cycle, where nothing is known of the speed, and
// of each cycle where nothing is known of the end. Every cycle lasts twice as long as
// the one before, so that there is a good plan at any time.
constexpr double kFirstBudget = 10.0;
constexpr double kMostBudget = 2000.0;
// A cycle has a round for so many iterations for each task: to begin with an area takes
// as long as a fifth of that.
constexpr double kRoundBudget = 20.0;
constexpr double kMostRounds = 20.0;
// A plan that would be later than this, as a share of the time, is refused.
constexpr double kLatestShare = 0.1;
// Later cycles begin with a plan that is worth keeping: first temperature, as a share
// of the usual.
constexpr double kReheat = 0.4;
// Beyond this share of a cycle an area leaves the best plan that it found, not the
// last.
constexpr double kCold = 0.9;
// An area whose plan does not keep the limits searches on, but no longer than this.
constexpr int kMostSettling = 2000;
constexpr int64_t kBatch = 32;

} // namespace

// Some routes, as a city of its own.
struct AreaSearch::Area {
    std::vector<Route> routes;
    int64_t cost = 0;   // of these
    int64_t budget = 0; // iterations
    int64_t iterations = 0;
    double excess_price = 0.0;
    uint64_t stream = 0;        // of random numbers
    std::vector<int32_t> tasks; // in the order of the routes when it was drawn
    // Null until the search begins and once it ended.
    std::unique_ptr<Network> network;
    std::unique_ptr<RuinRecreateTables> tables;
    std::unique_ptr<Chain> chain;

    bool done() const { return iterations >= budget; }
};

AreaSearch::AreaSearch(const Network &network, const RuinRecreateSettings &settings,
                       int64_t most_tasks, uint64_t seed, int threads,
                       const Horizon &horizon, const Plan &start)
    : network_(network), settings_(settings), rules_(network), most_tasks_(most_tasks),
      seed_(seed), horizon_(horizon), random_(seed, UINT64_MAX),
      positions_(task_positions(network)) {
    start_clock();
    if (start.num_routes() > 0) {
        StreetPaths paths(network_);
        for (size_t route = 0; route < start.num_routes(); ++route) {
            const auto arcs = start.route(route);
            routes_.push_back(
                make_route({arcs.begin(), arcs.end()}, paths.of(arcs).deadheads));
        }
    } else {
        plan_from_scratch(threads);
    }
    start_next_cycle();
    draw_round();
    keep_round();
    note_best();
}

AreaSearch::~AreaSearch() = default;

AreaSearch::Route AreaSearch::make_route(std::vector<int32_t> arcs,
                                         const std::vector<int32_t> &deadheads) const {
    int64_t cost = std::accumulate(deadheads.begin(), deadheads.end(),
                                   int64_t{rules_.route_cost()});
    for (const int32_t arc : arcs) {
        cost += network_.arc(arc).service_cost;
    }
    return {std::move(arcs), cost};
}

// The routes of a plan of an area, as routes of the city.
std::vector<AreaSearch::Route> AreaSearch::routes_of(const Network &part,
                                                     const std::vector<int32_t> &tasks,
                                                     const Plan &plan) const {
    std::vector<Route> routes;
    for (size_t route = 0; route < plan.num_routes(); ++route) {
        std::vector<int32_t> arcs;
        for (const int32_t arc : plan.route(route)) {
            const int32_t task = part.arc(arc).task;
            const int32_t turned = arc - part.task_arc(task);
            arcs.push_back(network_.task_arc(tasks[idx(task)]) + turned);
        }
        routes.push_back(
            make_route(std::move(arcs), part.deadheads(plan.route(route))));
    }
    return routes;
}

void AreaSearch::plan_from_scratch(int threads) {
    std::vector<Site> sites;
    for (int32_t task = 0; task < network_.num_tasks(); ++task) {
        sites.push_back({positions_[idx(task)], 1, task});
    }
    const auto areas = draw_areas(std::move(sites), most_tasks_, random_);
    // By area, in order, whichever thread came first.
    std::vector<std::vector<Route>> routes(areas.size());
    std::atomic<size_t> next{0};
    const double allowed = horizon_.seconds > 0.0
                               ? (1.0 + kLatestShare) * horizon_.seconds
                               : std::numeric_limits<double>::infinity();
    const Allowance allowance(allowed);
    run_workers(std::min(threads, static_cast<int>(areas.size())), [&](int) {
        for (size_t i = next++; i < areas.size(); i = next++) {
            check_or_end(allowance, next, i, areas.size());
            const Network part = network_.part(areas[i], 0);
            const double seconds = horizon_.seconds / static_cast<double>(areas.size());
            const Plan plan = first_plan(part, seed_, seconds);
            routes[i] = routes_of(part, areas[i], plan);
        }
    });
    for (std::vector<Route> &each : routes) {
        std::move(each.begin(), each.end(), std::back_inserter(routes_));
    }
}

// Cycles double so that the last one, which takes half of all, ends with the horizon.
void AreaSearch::start_next_cycle() {
    const auto tasks = static_cast<double>(std::max(1, network_.num_tasks()));
    const double now = elapsed();
    const double lasted = now - cycle_began_;
    const auto share_of = [](double left, double least) {
        const double cycles = std::max(1.0, std::floor(std::log2(left / least + 1.0)));
        return left / (std::exp2(cycles) - 1.0);
    };
    ++cycle_;
    round_ = 0;
    cycle_seconds_ = 0.0;
    cycle_began_ = now;
    const double least = cycle_ == 0 ? kFirstBudget : 2.0 * budget_;
    budget_ = std::min(least, kMostBudget);
    if (horizon_.iterations > iterations_) {
        const auto left =
            static_cast<double>(horizon_.iterations - iterations_) / tasks;
        budget_ = share_of(left, least);
    } else if (horizon_.seconds > now && cycle_ > 0) {
        cycle_seconds_ = share_of(horizon_.seconds - now, 2.0 * lasted);
        budget_ *= cycle_seconds_ / (2.0 * lasted);
    }
    rounds_ =
        std::llround(std::clamp(std::floor(budget_ / kRoundBudget), 1.0, kMostRounds));
    if (!kept_.empty()) {
        areas_.clear();
        routes_ = kept_;
    }
}

// Keeps the plan at the end of a round for later cycles. The best plan may be one of
// areas under way, which depends on when it was asked for.
void AreaSearch::keep_round() {
    int64_t cost = 0;
    size_t routes = 0;
    for (const auto &area : areas_) {
        cost += area->cost;
        routes += area->routes.size();
    }
    if (rules_.fits_fleet(static_cast<int64_t>(routes)) &&
        (kept_.empty() || cost < kept_cost_)) {
        kept_cost_ = cost;
        kept_at_ = iterations_;
        kept_.clear();
        for (const auto &area : areas_) {
            kept_.insert(kept_.end(), area->routes.begin(), area->routes.end());
        }
    }
}

// A cycle that lasts for a time has as many rounds as there are.
bool AreaSearch::cycle_is_over() const {
    return cycle_seconds_ > 0.0 ? elapsed() >= cycle_began_ + cycle_seconds_
                                : round_ >= rounds_;
}

void AreaSearch::draw_round() {
    if (!areas_.empty()) {
        routes_.clear();
        excess_price_ = 0.0;
        for (const auto &area : areas_) {
            std::move(area->routes.begin(), area->routes.end(),
                      std::back_inserter(routes_));
            excess_price_ += area->excess_price / static_cast<double>(areas_.size());
        }
    }
    std::vector<Site> sites;
    for (size_t number = 0; number < routes_.size(); ++number) {
        const std::vector<int32_t> &arcs = routes_[number].arcs;
        const auto size = static_cast<int32_t>(arcs.size());
        Site &site = sites.emplace_back(Site{{}, size, static_cast<int32_t>(number)});
        for (const int32_t arc : arcs) {
            const Position &position = positions_[idx(network_.arc(arc).task)];
            for (size_t i = 0; i < kLandmarks; ++i) {
                site.position[i] += position[i] / static_cast<float>(size);
            }
        }
    }
    num_routes_of_round_ = static_cast<int64_t>(routes_.size());
    const auto mean_size = network_.num_tasks() /
                           std::max<int64_t>(1, static_cast<int64_t>(routes_.size()));
    areas_.clear();
    const double budget = budget_ / static_cast<double>(rounds_);
    for (const std::vector<int32_t> &numbers :
         draw_areas(std::move(sites), std::max(most_tasks_, kFewRoutes * mean_size),
                    random_)) {
        auto &area = *areas_.emplace_back(std::make_unique<Area>());
        area.stream = static_cast<uint64_t>(rounds_drawn_) << 32 | areas_.size();
        for (const int32_t number : numbers) {
            area.routes.push_back(std::move(routes_[idx(number)]));
            area.cost += area.routes.back().cost;
            for (const int32_t arc : area.routes.back().arcs) {
                area.tasks.push_back(network_.arc(arc).task);
            }
        }
        area.budget = std::max<int64_t>(
            1, std::llround(budget * static_cast<double>(area.tasks.size())));
    }
    ++round_;
    ++rounds_drawn_;
}

// Share of the cycle that is over, as an area sees it.
double AreaSearch::progress(const Area &area) const {
    if (cycle_seconds_ > 0.0) {
        return std::clamp((elapsed() - cycle_began_) / cycle_seconds_, 0.0, 1.0);
    }
    const auto here = static_cast<double>(area.iterations / kBatch * kBatch) /
                      static_cast<double>(area.budget);
    return (static_cast<double>(round_ - 1) + here) / static_cast<double>(rounds_);
}

// Where the fleet is limited, areas may have so many routes that all of them together
// keep the limit, or come nearer to it.
int32_t AreaSearch::most_routes(const Area &area) const {
    const int64_t limit = rules_.max_routes();
    if (limit >= network_.num_tasks()) {
        return 0;
    }
    const auto mine = static_cast<int64_t>(area.routes.size());
    const auto areas = static_cast<int64_t>(areas_.size());
    const int64_t spare = limit - num_routes_of_round_;
    if (spare >= 0) {
        return static_cast<int32_t>(mine + spare / areas);
    }
    return static_cast<int32_t>(
        std::max<int64_t>(1, mine - (-spare + areas - 1) / areas));
}

void AreaSearch::open(Area &area) {
    area.network =
        std::make_unique<Network>(network_.part(area.tasks, most_routes(area)));
    Plan start;
    start.route_starts.push_back(0);
    for (const Route &route : area.routes) {
        for (const int32_t arc : route.arcs) {
            const auto task = static_cast<int32_t>(start.arcs.size());
            const int32_t turned = arc - network_.task_arc(area.tasks[idx(task)]);
            start.arcs.push_back(area.network->task_arc(task) + turned);
        }
        start.route_starts.push_back(static_cast<int32_t>(start.arcs.size()));
    }
    try {
        area.tables = std::make_unique<RuinRecreateTables>(*area.network, settings_);
    } catch (const std::overflow_error &) {
        if (rounds_drawn_ == 1) {
            throw;
        }
        return; // other areas were no trouble: this one stays as it is
    }
    area.chain = std::make_unique<Chain>(*area.tables, seed_, area.stream);
    area.chain->start(start);
    if (excess_price_ >= 0.0) {
        area.chain->set_excess_price(excess_price_);
    }
}

void AreaSearch::search(Area &area, int64_t iterations, double deadline) {
    const double first = cycle_ == 0 ? settings_.first_temperature
                                     : std::max(settings_.last_temperature,
                                                kReheat * settings_.first_temperature);
    const double fall = settings_.last_temperature / first;
    const int64_t end = area.iterations + iterations;
    while (area.iterations < end && elapsed() < deadline) {
        const double temperature =
            area.tables->near_distance * first * std::pow(fall, progress(area));
        const int64_t batch_end =
            std::min(end, area.iterations / kBatch * kBatch + kBatch);
        for (; area.iterations < batch_end; ++area.iterations) {
            area.chain->step(temperature);
        }
    }
    if (area.done()) {
        const double temperature =
            area.tables->near_distance * first * std::pow(fall, progress(area));
        const auto late = [&] {
            return horizon_.seconds > 0.0 && elapsed() > horizon_.seconds;
        };
        for (int i = 0; i < kMostSettling && !area.chain->current_fits() && !late();
             ++i) {
            area.chain->step(temperature);
        }
        area.excess_price = area.chain->excess_price();
    }
}

// Leaves the plan of an area that was searched to those that come after it.
void AreaSearch::settle(Area &area) {
    if (area.chain == nullptr) {
        return;
    }
    const Chain &chain = *area.chain;
    const bool takes_best = !chain.current_fits() || progress(area) > kCold;
    if (!takes_best || chain.best_fits_fleet()) {
        area.routes = routes_of(*area.network, area.tasks,
                                takes_best ? chain.best_plan() : chain.current_plan());
        area.cost = 0;
        for (const Route &route : area.routes) {
            area.cost += route.cost;
        }
    }
    area.chain.reset();
    area.tables.reset();
    area.network.reset();
}

// The plan, with the best plans of the areas under way in it.
void AreaSearch::note_best() {
    const auto has_better = [&](const Area &area) {
        return area.chain && area.chain->best_fits_fleet() &&
               (area.chain->best_cost() < area.cost || !has_plan());
    };
    int64_t cost = 0;
    for (const auto &area : areas_) {
        cost += has_better(*area) ? area->chain->best_cost() : area->cost;
    }
    if (has_plan() && cost >= best_cost()) {
        return;
    }
    Plan plan;
    plan.route_starts.push_back(0);
    for (const auto &area : areas_) {
        for (const Route &route :
             has_better(*area)
                 ? routes_of(*area->network, area->tasks, area->chain->best_plan())
                 : area->routes) {
            plan.arcs.insert(plan.arcs.end(), route.arcs.begin(), route.arcs.end());
            plan.route_starts.push_back(static_cast<int32_t>(plan.arcs.size()));
        }
    }
    if (rules_.fits_fleet(static_cast<int64_t>(plan.num_routes()))) {
        keep_best(plan, cost, std::max<int64_t>(0, iterations_ - 1));
    }
}

// Takes the best plan at the end of a round for the best of all: unlike others it does
// not depend on when plans were asked for.
void AreaSearch::keep_best_round() {
    keep_round();
    if (kept_.empty()) {
        return;
    }
    Plan plan;
    plan.route_starts.push_back(0);
    for (const Route &route : kept_) {
        plan.arcs.insert(plan.arcs.end(), route.arcs.begin(), route.arcs.end());
        plan.route_starts.push_back(static_cast<int32_t>(plan.arcs.size()));
    }
    keep_best(plan, kept_cost_, std::max<int64_t>(0, kept_at_ - 1));
}

bool AreaSearch::round_is_over() const {
    return std::all_of(areas_.begin(), areas_.end(),
                       [](const auto &area) { return area->done(); });
}

void AreaSearch::run(int64_t iterations, double seconds, int64_t target, int threads) {
    const double deadline = elapsed() + seconds;
    const int64_t end = iterations_ + std::min(iterations, INT64_MAX - iterations_);
    if (round_is_over() && iterations_ < end && !reached(target)) {
        if (cycle_is_over()) {
            start_next_cycle();
        }
        draw_round();
    }
    std::mutex mutex; // guards the plan, and what is left
    while (iterations_ < end && elapsed() < deadline && !reached(target)) {
        size_t next = 0;
        int64_t done = 0;
        bool worked = false;
        run_workers(std::min(threads, static_cast<int>(areas_.size())), [&](int) {
            std::unique_lock lock(mutex);
            while (elapsed() < deadline) {
                while (next < areas_.size() && areas_[next]->done()) {
                    ++next;
                }
                if (next == areas_.size()) {
                    return;
                }
                Area &area = *areas_[next++];
                const int64_t share =
                    std::min(area.budget - area.iterations, end - iterations_ - done);
                if (share <= 0) {
                    return;
                }
                if (area.chain == nullptr && is_too_late()) {
                    continue;
                }
                worked = true;
                done += share;
                lock.unlock();
                const double began = elapsed();
                const bool is_new = area.chain == nullptr;
                if (is_new) {
                    open(area);
                }
                const double opened = elapsed();
                const int64_t before = area.iterations;
                search(area, share, deadline);
                lock.lock();
                if (is_new) {
                    opening_seconds_ = opened - began;
                }
                done += area.iterations - before - share;
                if (area.done()) {
                    settle(area);
                }
            }
        });
        iterations_ += done;
        note_best();
        const bool is_last =
            horizon_.iterations > 0 && iterations_ >= horizon_.iterations;
        if (is_last || round_is_over()) {
            for (const auto &area : areas_) {
                settle(*area);
            }
            round_end_ = iterations_;
            if (is_last || horizon_.seconds == 0.0) {
                keep_best_round();
            } else {
                keep_round();
            }
            return;
        }
        if (!worked) {
            // Nothing that is left would be ready in time.
            std::this_thread::sleep_for(std::chrono::duration<double>(
                std::clamp(deadline - elapsed(), 0.0, 1.0)));
        }
    }
}

bool AreaSearch::is_too_late() const {
    return horizon_.seconds > 0.0 && elapsed() < horizon_.seconds &&
           elapsed() + opening_seconds_ > horizon_.seconds;
}

} // namespace arcfleet
