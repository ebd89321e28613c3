#include "search/maens/maens.h"

#include "selfcheck/check_merge_split.h"
#include "selfcheck/selfcheck.h"

#include <algorithm>

namespace arcfleet {

namespace {

constexpr double kForever = 1e6;
constexpr MaensSettings kSettings{8, 6, 10, 0.2, 5, 0.45, 3};

uint32_t size_of(const std::vector<int32_t> &values) {
    return static_cast<uint32_t>(values.size());
}

// Tasks in any order and direction, cut anywhere: most such plans carry too much.
Individual random_individual(const MaensTables &tables, Random &random) {
    Individual individual;
    std::vector<int32_t> &arcs = individual.plan.arcs;
    for (int32_t task = 0; task < tables.num_tasks(); ++task) {
        const int32_t arc = tables.network().task_arc(task);
        const int32_t inverse = tables.arc(arc).inverse;
        arcs.push_back(inverse >= 0 && random.below(2) ? inverse : arc);
    }
    for (uint32_t i = size_of(arcs); i > 1; --i) {
        std::swap(arcs[i - 1], arcs[random.below(i)]);
    }
    individual.plan.route_starts.push_back(0);
    for (int32_t i = 1; i < static_cast<int32_t>(arcs.size()); ++i) {
        if (random.below(5) == 0) {
            individual.plan.route_starts.push_back(i);
        }
    }
    individual.plan.route_starts.push_back(static_cast<int32_t>(arcs.size()));
    individual.evaluate(tables);
    return individual;
}

void check_serves_all(const MaensTables &tables, const Plan &plan) {
    std::vector<int32_t> tasks;
    for (const int32_t arc : plan.arcs) {
        tasks.push_back(tables.arc(arc).task);
    }
    std::sort(tasks.begin(), tasks.end());
    ARCFLEET_EQUAL(size_of(tasks), static_cast<uint32_t>(tables.num_tasks()));
    for (int32_t task = 0; task < tables.num_tasks(); ++task) {
        ARCFLEET_EQUAL(tasks[idx(task)], task);
    }
    for (size_t r = 0; r < plan.num_routes(); ++r) {
        ARCFLEET_EQUAL(plan.route_starts[r] < plan.route_starts[r + 1], true);
    }
}

// What a plan says of itself equals what is computed from scratch.
void check_values(const MaensPlan &plan) {
    Individual stored;
    plan.store(stored);
    check_serves_all(plan.tables(), stored.plan);
    stored.evaluate(plan.tables());
    ARCFLEET_EQUAL(plan.cost(), stored.cost);
    ARCFLEET_EQUAL(plan.excess(), stored.excess);
}

// All moves, made by plain cutting and pasting of routes and valued from scratch.
class AllMoves {
  public:
    AllMoves(const MaensTables &tables, const Individual &individual)
        : tables_(tables), before_(individual) {
        for (size_t r = 0; r < individual.plan.num_routes(); ++r) {
            const auto route = individual.plan.route(r);
            routes_.emplace_back(route.begin(), route.end());
        }
        routes_.emplace_back(); // a new one
        for (size_t from = 0; from + 1 < routes_.size(); ++from) {
            for (size_t to = 0; to < routes_.size(); ++to) {
                insert(from, to, 1);
                insert(from, to, 2);
                swap(from, to);
            }
        }
    }

    // The least change of the cost with excess at this price, at most 0.
    double best(double price) const {
        double least = 0.0;
        for (const auto &[cost, excess] : changes_) {
            least = std::min(least, static_cast<double>(cost) +
                                        price * static_cast<double>(excess));
        }
        return least;
    }
    bool has(const MaensMove &move) const {
        return std::find(changes_.begin(), changes_.end(),
                         std::pair(move.cost, move.excess)) != changes_.end();
    }

  private:
    std::vector<int32_t> directions(int32_t arc) const {
        const int32_t inverse = tables_.arc(arc).inverse;
        return inverse >= 0 ? std::vector{arc, inverse} : std::vector{arc};
    }
    void record(const std::vector<std::vector<int32_t>> &routes) {
        Individual after;
        after.plan.route_starts.push_back(0);
        for (const auto &route : routes) {
            if (!route.empty()) {
                after.plan.arcs.insert(after.plan.arcs.end(), route.begin(),
                                       route.end());
                after.plan.route_starts.push_back(
                    static_cast<int32_t>(after.plan.arcs.size()));
            }
        }
        after.evaluate(tables_);
        changes_.emplace_back(after.cost - before_.cost, after.excess - before_.excess);
    }
    void insert(size_t from, size_t to, size_t length) {
        for (size_t i = 0; i + length <= routes_[from].size(); ++i) {
            auto rest = routes_;
            auto &source = rest[from];
            const auto first = source.begin() + static_cast<std::ptrdiff_t>(i);
            const std::vector<int32_t> taken(
                first, first + static_cast<std::ptrdiff_t>(length));
            source.erase(first, first + static_cast<std::ptrdiff_t>(length));
            for (size_t gap = 0; gap <= rest[to].size(); ++gap) {
                for (const int32_t a : directions(taken[0])) {
                    for (const int32_t b : directions(taken.back())) {
                        auto after = rest;
                        auto place =
                            after[to].begin() + static_cast<std::ptrdiff_t>(gap);
                        if (length == 2) {
                            place = after[to].insert(place, b);
                        }
                        after[to].insert(place, a);
                        record(after);
                    }
                }
            }
        }
    }
    void swap(size_t from, size_t to) {
        for (size_t i = 0; i < routes_[from].size(); ++i) {
            for (size_t j = from == to ? i + 1 : 0; j < routes_[to].size(); ++j) {
                for (const int32_t a : directions(routes_[from][i])) {
                    for (const int32_t b : directions(routes_[to][j])) {
                        auto after = routes_;
                        after[from][i] = b;
                        after[to][j] = a;
                        record(after);
                    }
                }
            }
        }
    }

    const MaensTables &tables_;
    const Individual &before_;
    std::vector<std::vector<int32_t>> routes_;
    std::vector<std::pair<int64_t, int64_t>> changes_;
};

// Every move that is kept changes the plan as it says, and none that is left out would
// have been better, whatever the price of excess.
void check_moves(const MaensTables &tables, const Individual &individual) {
    MaensPlan plan(tables);
    plan.load(individual);
    check_values(plan);
    const MaensMoves moves(plan);
    MoveFront all;
    for (const int32_t slot : plan.slots()) {
        for (const int32_t other : plan.slots()) {
            if (slot > other) {
                continue;
            }
            MoveFront front;
            if (slot == other) {
                moves.alone(slot, front);
            } else {
                moves.between(slot, other, front);
            }
            for (const MaensMove &move : front.moves()) {
                MaensPlan changed(tables);
                changed.load(individual);
                changed.apply(move);
                check_values(changed);
                ARCFLEET_EQUAL(changed.cost(), plan.cost() + move.cost);
                ARCFLEET_EQUAL(changed.excess(), plan.excess() + move.excess);
                all.offer(move);
            }
        }
    }
    if (tables.num_tasks() > 25) {
        return; // plain enumeration would take long
    }
    const AllMoves plain(tables, individual);
    for (const double price : {0.0, 0.5, 3.0, 1000.0}) {
        double least = 0.0;
        for (const MaensMove &move : all.moves()) {
            ARCFLEET_EQUAL(plain.has(move), true);
            least = std::min(least, static_cast<double>(move.cost) +
                                        price * static_cast<double>(move.excess));
        }
        ARCFLEET_EQUAL(least, plain.best(price));
    }
}

// Values kept from step to step hold, with what is remembered of moves and merges
// checked against fresh searches, and pauses change nothing.
void check_local_search(const MaensTables &tables, const Individual &individual,
                        uint64_t seed) {
    using Clock = std::chrono::steady_clock;
    const Deadline never{Clock::now() + std::chrono::hours(1)};
    const Deadline past{Clock::now() - std::chrono::hours(1)};
    Random random(seed), same(seed);
    MaensLocalSearch search(tables, 6), paused(tables, 6);
    search.start(individual, individual.cost);
    paused.start(individual, individual.cost);
    MaensLocalSearch::Outcome outcome{};
    do {
        ARCFLEET_EQUAL(search.remembers_truly(), true);
        outcome = search.step(random, never);
        auto other = paused.step(same, past);
        if (other == MaensLocalSearch::Outcome::out_of_time) {
            other = paused.step(same, never);
        }
        check_values(search.plan());
        ARCFLEET_EQUAL(search.plan().cost(), paused.plan().cost());
        ARCFLEET_EQUAL(search.plan().excess(), paused.plan().excess());
        ARCFLEET_EQUAL(outcome == other, true);
    } while (outcome != MaensLocalSearch::Outcome::finished);
}

// The clock is looked at however few the routes are, if they are long.
void check_clock(const MaensTables &tables) {
    const Deadline past{std::chrono::steady_clock::now() - std::chrono::hours(1)};
    Individual individual;
    for (int32_t task = 0; task < tables.num_tasks(); ++task) {
        individual.plan.arcs.push_back(tables.network().task_arc(task));
    }
    individual.plan.route_starts = {0, tables.num_tasks()};
    individual.evaluate(tables);
    MaensLocalSearch search(tables, 6);
    search.start(individual, individual.cost);
    Random random(1);
    const auto outcome = search.step(random, past);
    if (tables.num_tasks() >= 30) {
        ARCFLEET_EQUAL(outcome == MaensLocalSearch::Outcome::out_of_time, true);
    }
}

void check_crossover(const MaensTables &tables, Random &random) {
    Crossover crossover(tables);
    Individual child;
    for (int round = 0; round < 20; ++round) {
        const Individual one = random_individual(tables, random);
        const Individual two = random_individual(tables, random);
        crossover.cross(one, two, random, child);
        check_serves_all(tables, child.plan);
    }
}

// All feasible plans come out sorted; survivors are as many as they should be.
void check_ranking(Random &random) {
    for (const bool overloads : {false, true}) {
        Population population(10, 60);
        Individual individual;
        while (!population.full()) {
            individual.cost = random.below(1000);
            individual.excess = overloads ? random.below(3) : 0;
            population.append(individual);
        }
        population.select(0.45, random);
        ARCFLEET_EQUAL(population.size(), 10U);
        for (size_t i = 1; i < 10 && !overloads; ++i) {
            ARCFLEET_EQUAL(population[i - 1].cost <= population[i].cost, true);
        }
    }
}

// Slices of any length, in iterations or in time, give the same search.
void check_slices(const Network &network, uint64_t seed) {
    Maens whole(network, kSettings, seed, Plan{});
    whole.run(300, kForever, -1, 1);
    Maens sliced(network, kSettings, seed, Plan{});
    for (const int64_t slice : {1, 99, 0, 150}) {
        sliced.run(slice, kForever, -1, 1);
    }
    while (sliced.iterations() < 300) {
        sliced.run(300 - sliced.iterations(), 1e-5, -1, 1);
    }
    ARCFLEET_EQUAL(whole.iterations(), 300);
    ARCFLEET_EQUAL(whole.best_cost(), sliced.best_cost());
    ARCFLEET_EQUAL(whole.best_iteration(), sliced.best_iteration());
    ARCFLEET_EQUAL(whole.best_plan().arcs == sliced.best_plan().arcs, true);
    ARCFLEET_EQUAL(whole.best_cost(), plan_cost(network, whole.best_plan()));
    check_plan(network, whole.best_plan());
    Maens started(network, kSettings, seed, whole.best_plan());
    ARCFLEET_EQUAL(started.best_cost() <= whole.best_cost(), true);
}

// Streets at the limits of what numbers hold.
enum class Extreme {
    load_of_16_bits,
    load_of_32_bits,
    far,
    nearly_far,
    no_demand,
    one_task
};

void make_extreme(RandomStreets &streets, Extreme extreme) {
    const auto stretch = [](std::vector<int32_t> &values, int64_t by) {
        for (int32_t &value : values) { // -1 for no way stays
            value =
                value <= 0 ? value : int32_t(std::min(value * by, int64_t{2000000000}));
        }
    };
    const auto most = [](const std::vector<int32_t> &values) {
        return std::max(1, *std::max_element(values.begin(), values.end()));
    };
    switch (extreme) {
    case Extreme::load_of_16_bits:
    case Extreme::load_of_32_bits: {
        const int32_t capacity =
            extreme == Extreme::load_of_16_bits ? INT16_MAX : INT32_MAX;
        stretch(streets.demand, capacity / most(streets.demand));
        streets.vehicle.capacity = capacity;
        break;
    }
    case Extreme::far:
        stretch(streets.cost, 700000);
        stretch(streets.reverse_cost, 700000);
        stretch(streets.service_cost, 50000000);
        stretch(streets.reverse_service_cost, 50000000);
        streets.vehicle.route_cost = INT32_MAX;
        break;
    case Extreme::nearly_far: {
        const int32_t by = (INT16_MAX - 1) / most(streets.network()->distances());
        stretch(streets.cost, by);
        stretch(streets.reverse_cost, by);
        break;
    }
    case Extreme::no_demand:
        std::fill(streets.demand.begin(), streets.demand.end(), 0);
        for (size_t i = 0; i < streets.service_cost.size(); i += 2) {
            streets.service_cost[i] = 0;
        }
        break;
    case Extreme::one_task:
        for (size_t i = 0, seen = 0; i < streets.required.size(); ++i) {
            streets.required[i] = streets.required[i] && seen++ == 0;
            streets.demand[i] = streets.required[i] ? streets.demand[i] : 0;
        }
        break;
    }
}

void check_extremes() {
    for (const Extreme extreme :
         {Extreme::load_of_16_bits, Extreme::load_of_32_bits, Extreme::far,
          Extreme::nearly_far, Extreme::no_demand, Extreme::one_task}) {
        for (uint64_t round = 0; round < 8; ++round) {
            Random random(11, round);
            RandomStreets streets(random);
            make_extreme(streets, extreme);
            const auto network = streets.network();
            if (network->num_tasks() == 0) {
                continue;
            }
            check_merge_split(MaensTables(*network), random);
            Maens maens(*network, kSettings, round, Plan{});
            maens.run(100, kForever, -1, 1);
            ARCFLEET_EQUAL(maens.best_cost(), plan_cost(*network, maens.best_plan()));
            check_plan(*network, maens.best_plan());
        }
    }
}

} // namespace

void check_maens() {
    check_extremes();
    for (uint64_t round = 0; round < 60; ++round) {
        Random random(5, round);
        const RandomStreets streets(random);
        const auto network = streets.network();
        if (network->num_tasks() == 0) {
            continue;
        }
        const MaensTables tables(*network);
        for (int plan = 0; plan < 3; ++plan) {
            const Individual individual = random_individual(tables, random);
            check_moves(tables, individual);
            check_local_search(tables, individual, round);
        }
        check_merge_split(tables, random);
        check_clock(tables);
        check_crossover(tables, random);
        check_ranking(random);
        check_slices(*network, round);
    }
}

} // namespace arcfleet
