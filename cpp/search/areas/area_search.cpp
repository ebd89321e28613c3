#include "search/areas/area_search.h"

#include "base/allowance.h"
#include "base/parallel.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <mutex>
#include <numeric>
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
    std::vector<int32_t> routes;
    int64_t budget = 0; // iterations
    int64_t iterations = 0;
    int64_t cost = 0; // of these routes in the plan
    bool settled = false;
    double excess_price = 0.0;
    std::vector<int32_t> tasks;
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
        for (size_t route = 0; route < start.num_routes(); ++route) {
            const auto arcs = start.route(route);
            add_route({arcs.begin(), arcs.end()}, network_.deadheads(arcs));
        }
    } else {
        plan_from_scratch(threads);
    }
    note_best();
    start_next_cycle();
    draw_round();
}

AreaSearch::~AreaSearch() = default;

void AreaSearch::add_route(std::vector<int32_t> arcs,
                           const std::vector<int32_t> &deadheads) {
    int64_t cost = std::accumulate(deadheads.begin(), deadheads.end(),
                                   int64_t{rules_.route_cost()});
    for (const int32_t arc : arcs) {
        cost += network_.arc(arc).service_cost;
    }
    cost_ += cost;
    routes_.push_back({std::move(arcs), cost});
}

void AreaSearch::plan_from_scratch(int threads) {
    std::vector<Site> sites;
    for (int32_t task = 0; task < network_.num_tasks(); ++task) {
        sites.push_back({positions_[idx(task)], 1, task});
    }
    const auto areas = draw_areas(std::move(sites), most_tasks_, random_);
    // By area, in order, whichever thread came first.
    std::vector<std::vector<std::vector<int32_t>>> routes(areas.size());
    std::vector<std::vector<std::vector<int32_t>>> deadheads(areas.size());
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
            for (size_t route = 0; route < plan.num_routes(); ++route) {
                deadheads[i].push_back(part.deadheads(plan.route(route)));
                routes[i].push_back(to_whole(part, areas[i], plan.route(route)));
            }
        }
    });
    for (size_t i = 0; i < areas.size(); ++i) {
        for (size_t route = 0; route < routes[i].size(); ++route) {
            add_route(std::move(routes[i][route]), deadheads[i][route]);
        }
    }
}

std::vector<int32_t> AreaSearch::to_whole(const Network &part,
                                          const std::vector<int32_t> &tasks,
                                          std::span<const int32_t> route) const {
    std::vector<int32_t> arcs;
    for (const int32_t arc : route) {
        const int32_t task = part.arc(arc).task;
        const int32_t turned = arc - part.task_arc(task);
        arcs.push_back(network_.task_arc(tasks[idx(task)]) + turned);
    }
    return arcs;
}

int32_t AreaSearch::num_routes() const {
    return static_cast<int32_t>(
        std::count_if(routes_.begin(), routes_.end(),
                      [](const Route &route) { return !route.arcs.empty(); }));
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
    if (cycle_ > 0 && has_plan()) {
        const Plan &plan = best_plan();
        routes_.clear();
        cost_ = 0;
        for (size_t route = 0; route < plan.num_routes(); ++route) {
            const auto arcs = plan.route(route);
            routes_.push_back({{arcs.begin(), arcs.end()}, best_costs_[route]});
            cost_ += best_costs_[route];
        }
    }
}

// A cycle that lasts for a time has as many rounds as there are.
bool AreaSearch::cycle_is_over() const {
    return cycle_seconds_ > 0.0 ? elapsed() >= cycle_began_ + cycle_seconds_
                                : round_ >= rounds_;
}

void AreaSearch::draw_round() {
    double price = 0.0;
    for (const auto &area : areas_) {
        price += area->excess_price / static_cast<double>(areas_.size());
    }
    excess_price_ = areas_.empty() ? -1.0 : price;
    std::vector<Site> sites;
    std::erase_if(routes_, [](const Route &route) { return route.arcs.empty(); });
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
    for (std::vector<int32_t> &routes :
         draw_areas(std::move(sites), std::max(most_tasks_, kFewRoutes * mean_size),
                    random_)) {
        auto &area = *areas_.emplace_back(std::make_unique<Area>());
        area.routes = std::move(routes);
        for (const int32_t route : area.routes) {
            area.cost += routes_[idx(route)].cost;
            for (const int32_t arc : routes_[idx(route)].arcs) {
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
    int32_t task = 0;
    for (const int32_t route : area.routes) {
        for (const int32_t arc : routes_[idx(route)].arcs) {
            const int32_t turned = arc - network_.task_arc(network_.arc(arc).task);
            start.arcs.push_back(area.network->task_arc(task++) + turned);
        }
        start.route_starts.push_back(static_cast<int32_t>(start.arcs.size()));
    }
    area.tables = std::make_unique<RuinRecreateTables>(*area.network, settings_);
    area.chain =
        std::make_unique<Chain>(*area.tables, seed_,
                                static_cast<uint64_t>(rounds_drawn_) << 32 |
                                    static_cast<uint64_t>(area.routes.front()));
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
        for (int i = 0; i < kMostSettling && !area.chain->current_fits(); ++i) {
            area.chain->step(temperature);
        }
        area.excess_price = area.chain->excess_price();
    }
}

// Leaves the plan of an area that was searched to those that come after it.
void AreaSearch::settle(Area &area) {
    const Chain &chain = *area.chain;
    const bool takes_best = !chain.current_fits() || progress(area) > kCold;
    if (!takes_best) {
        replace(area, chain.current_plan());
    } else if (chain.best_fits_fleet()) {
        replace(area, chain.best_plan());
    }
    area.chain.reset();
    area.tables.reset();
    area.network.reset();
}

void AreaSearch::replace(const Area &area, const Plan &plan) {
    for (const int32_t route : area.routes) {
        cost_ -= routes_[idx(route)].cost;
        routes_[idx(route)] = {};
    }
    for (size_t route = 0; route < plan.num_routes(); ++route) {
        std::vector<int32_t> arcs =
            to_whole(*area.network, area.tasks, plan.route(route));
        add_route(std::move(arcs), area.network->deadheads(plan.route(route)));
        if (route < area.routes.size()) {
            std::swap(routes_.back(), routes_[idx(area.routes[route])]);
            routes_.pop_back();
        }
    }
}

// The plan, with the best plans of the areas under way in it.
void AreaSearch::note_best() {
    int64_t cost = cost_;
    std::vector<const Area *> better;
    for (const auto &area : areas_) {
        if (area->chain && area->chain->best_fits_fleet() &&
            area->chain->best_cost() < area->cost) {
            better.push_back(area.get());
            cost += area->chain->best_cost() - area->cost;
        }
    }
    if (has_plan() && cost >= best_cost()) {
        return;
    }
    const std::vector<Route> kept = routes_;
    const int64_t kept_cost = cost_;
    for (const Area *area : better) {
        replace(*area, area->chain->best_plan());
    }
    if (rules_.fits_fleet(num_routes())) {
        Plan plan;
        plan.route_starts.push_back(0);
        best_costs_.clear();
        for (const Route &route : routes_) {
            if (!route.arcs.empty()) {
                plan.arcs.insert(plan.arcs.end(), route.arcs.begin(), route.arcs.end());
                plan.route_starts.push_back(static_cast<int32_t>(plan.arcs.size()));
                best_costs_.push_back(route.cost);
            }
        }
        keep_best(plan, cost_, std::max<int64_t>(0, iterations_ - 1));
    }
    routes_ = kept;
    cost_ = kept_cost;
}

void AreaSearch::run(int64_t iterations, double seconds, int64_t target, int threads) {
    const double deadline = elapsed() + seconds;
    const int64_t end = iterations_ + std::min(iterations, INT64_MAX - iterations_);
    std::mutex mutex; // guards the plan, and what is left
    while (iterations_ < end && elapsed() < deadline && !reached(target)) {
        if (std::all_of(areas_.begin(), areas_.end(),
                        [](const auto &area) { return area->done(); })) {
            if (cycle_is_over()) {
                start_next_cycle();
            }
            draw_round();
        }
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
