#include "search/ruin_recreate/ruin_recreate.h"

#include "selfcheck/selfcheck.h"

#include <cmath>
#include <limits>

namespace arcfleet {

namespace {

constexpr double kForever = 1e6;
constexpr RuinRecreateSettings kSettings{10.0, 10.0, 0.8, 0.99, 0.01,
                                         0.1,  0.01, 0.2, 0.5};

int64_t excess_of(const Network &network, const Plan &plan) {
    int64_t excess = 0;
    for (size_t route = 0; route < plan.num_routes(); ++route) {
        int64_t load = 0;
        for (const int32_t arc : plan.route(route)) {
            load += network.arc(arc).demand;
        }
        excess += std::max<int64_t>(0, load - network.vehicle().capacity);
    }
    return excess;
}

// What a chain keeps up to date from step to step equals what is computed from scratch.
// With `fewest_nearby` 0 tasks are put back near those near them.
void check_chain(const Network &network, uint64_t seed, int32_t fewest_nearby) {
    const RuinRecreateTables tables(network, kSettings, fewest_nearby);
    Chain chain(tables, seed, 0);
    chain.start(one_route_per_task(network));
    int64_t best = chain.best_cost();
    for (int step = 0; step < 150; ++step) {
        const bool improved = chain.step(step % 3 == 0 ? 20.0 : 1.0);
        const Plan plan = to_plan(tables.tasks, chain.current().routes());
        ARCFLEET_EQUAL(plan.arcs.size(), static_cast<size_t>(network.num_tasks()));
        ARCFLEET_EQUAL(chain.current_cost(), plan_cost(network, plan));
        ARCFLEET_EQUAL(chain.current().excess(), excess_of(network, plan));
        ARCFLEET_EQUAL(chain.current().notes_hold(), true);
        ARCFLEET_EQUAL(improved, chain.best_cost() < best);
        best = chain.best_cost();
    }
    check_plan(network, chain.best_plan());
    ARCFLEET_EQUAL(chain.best_cost(), plan_cost(network, chain.best_plan()));
}

// Slices of any length give the same search; threads are part of what is searched.
void check_slices(const Network &network, uint64_t seed, int chains) {
    const Horizon horizon{600, 0.0};
    RuinRecreate whole(network, kSettings, seed, chains, horizon, Plan{});
    whole.run(600, kForever, -1, chains);
    RuinRecreate sliced(network, kSettings, seed, chains, horizon, Plan{});
    for (const int64_t slice : {1, 99, 0, 250, 7, 243}) {
        sliced.run(slice, kForever, -1, 1);
    }
    ARCFLEET_EQUAL(whole.iterations(), 600);
    ARCFLEET_EQUAL(sliced.iterations(), 600);
    ARCFLEET_EQUAL(whole.best_cost(), sliced.best_cost());
    ARCFLEET_EQUAL(whole.best_cost(), plan_cost(network, whole.best_plan()));
    check_plan(network, whole.best_plan());
}

} // namespace

void check_ruin_recreate() {
    for (uint64_t round = 0; round < 90; ++round) {
        Random random(4, round);
        RandomStreets streets(random);
        streets.vary(round);
        // As large as numbers go, and so large that the most excess is what is left.
        if (round % 10 == 4) {
            streets.vehicle.capacity = std::numeric_limits<int32_t>::max();
        } else if (round % 10 == 9) {
            streets.vehicle.capacity = 2'000'000'000;
        }
        const auto network = streets.network();
        if (network->num_tasks() == 0) {
            continue;
        }
        check_chain(*network, round, kFewestNearby);
        check_chain(*network, round, 0);
        check_slices(*network, round, 1 + static_cast<int>(round % 3));
    }
}

} // namespace arcfleet
