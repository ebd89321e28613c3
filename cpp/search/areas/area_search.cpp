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

// Iterations for each task of the first round, where nothing is known of the speed, and
// of each round where nothing is known of the end. Every round lasts twice as long as
// the one before.
constexpr double kFirstBudget = 10.0;
constexpr double kMostBudget = 2000.0;
// A plan that would be later than this, as a share of the time, is refused.
constexpr double kLatestShare = 0.1;
// Later rounds begin with a plan that is worth keeping: first temperature, as a share
// of the usual.
constexpr double kReheat = 0.7;

} // namespace

// Some routes, as a city of its own.
struct AreaSearch::Area {
    std::vector<int32_t> routes;
    int64_t budget = 0; // iterations
    int64_t iterations = 0;
    int64_t cost = 0; // of these routes in the plan
    std::vector<int32_t> tasks;
    std::unique_ptr<Network> network; // null until the search begins and once it ended
    std::unique_ptr<RuinRecreate> search;

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

void AreaSearch::draw_round() {
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
    budget_ = next_budget();
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
            1, std::llround(budget_ * static_cast<double>(area.tasks.size())));
    }
    round_began_ = elapsed();
    round_began_at_ = iterations_;
    ++round_;
}

// Rounds double so that the last one, which takes half of all, ends with the horizon.
double AreaSearch::next_budget() const {
    const auto tasks = static_cast<double>(std::max(1, network_.num_tasks()));
    const double least = round_ == 0 ? kFirstBudget : 2.0 * budget_;
    double left = 0.0; // iterations for each task
    if (horizon_.iterations > 0) {
        left = static_cast<double>(horizon_.iterations - iterations_) / tasks;
    } else if (horizon_.seconds > 0.0 && round_ > 0) {
        const double pace = static_cast<double>(iterations_ - round_began_at_) /
                            std::max(1e-6, elapsed() - round_began_);
        left = pace * (horizon_.seconds - elapsed()) / tasks;
    } else {
        return std::min(least, kMostBudget);
    }
    if (left <= 0.0) {
        return least; // beyond the horizon
    }
    const double rounds = std::max(1.0, std::floor(std::log2(left / least + 1.0)));
    return left / (std::exp2(rounds) - 1.0);
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
    RuinRecreateSettings settings = settings_;
    if (round_ > 1) {
        settings.first_temperature =
            std::max(settings.last_temperature, kReheat * settings.first_temperature);
    }
    const uint64_t seed = seed_ +
                          0x9E3779B97F4A7C15ULL * static_cast<uint64_t>(round_) +
                          static_cast<uint64_t>(area.routes.front());
    area.search = std::make_unique<RuinRecreate>(*area.network, settings, seed, 1,
                                                 Horizon{area.budget, 0.0}, start);
}

// Puts the best plan of an area into the plan of the city, if it is better.
void AreaSearch::take_over(Area &area) {
    if (area.search == nullptr || !area.search->has_plan() ||
        area.search->best_cost() >= area.cost) {
        return;
    }
    const Plan &plan = area.search->best_plan();
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
        } else {
            area.routes.push_back(static_cast<int32_t>(routes_.size()) - 1);
        }
    }
    area.cost = area.search->best_cost();
}

void AreaSearch::note_best() {
    if (!rules_.fits_fleet(num_routes()) || (has_plan() && cost_ >= best_cost())) {
        return;
    }
    Plan plan;
    plan.route_starts.push_back(0);
    for (const Route &route : routes_) {
        if (!route.arcs.empty()) {
            plan.arcs.insert(plan.arcs.end(), route.arcs.begin(), route.arcs.end());
            plan.route_starts.push_back(static_cast<int32_t>(plan.arcs.size()));
        }
    }
    keep_best(plan, cost_, std::max<int64_t>(0, iterations_ - 1));
}

void AreaSearch::run(int64_t iterations, double seconds, int64_t target, int threads) {
    const double deadline = elapsed() + seconds;
    const int64_t end = iterations_ + std::min(iterations, INT64_MAX - iterations_);
    std::mutex mutex; // guards the plan, and what is left
    while (iterations_ < end && elapsed() < deadline && !reached(target)) {
        if (std::all_of(areas_.begin(), areas_.end(),
                        [](const auto &area) { return area->done(); })) {
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
                if (area.search == nullptr && is_too_late()) {
                    continue;
                }
                worked = true;
                done += share;
                lock.unlock();
                const double began = elapsed();
                const bool is_new = area.search == nullptr;
                if (is_new) {
                    open(area);
                }
                const double opened = elapsed();
                area.search->run(share, deadline - opened, -1, 1);
                lock.lock();
                if (is_new) {
                    opening_seconds_ = opened - began;
                }
                const int64_t now = area.search->iterations();
                done += now - area.iterations - share;
                area.iterations = now;
                take_over(area);
                if (area.done()) {
                    area.search.reset();
                    area.network.reset();
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
