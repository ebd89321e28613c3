#include "network/nearness.h"
#include "network/street_paths.h"
#include "search/areas/area_search.h"

#include "selfcheck/selfcheck.h"

#include <algorithm>
#include <numeric>

namespace arcfleet {

namespace {

constexpr double kForever = 1e6;
constexpr RuinRecreateSettings kSettings{10.0, 10.0, 0.8, 0.99, 0.01,
                                         0.1,  0.01, 0.2, 0.5};

// The distances of a part are those of the whole.
void check_part(const Network &whole, const Network &in_parts, Random &random) {
    std::vector<int32_t> tasks;
    for (int32_t task = 0; task < whole.num_tasks(); ++task) {
        if (random.below(2) == 0) {
            tasks.push_back(task);
        }
    }
    const Network part = in_parts.part(tasks, 0);
    ARCFLEET_EQUAL(in_parts.is_measured(), false);
    ARCFLEET_EQUAL(part.num_tasks(), static_cast<int32_t>(tasks.size()));
    // By arc of the part.
    std::vector<int32_t> arcs{0};
    for (const int32_t task : tasks) {
        arcs.push_back(whole.task_arc(task));
        if (whole.arc(whole.task_arc(task)).inverse >= 0) {
            arcs.push_back(whole.task_arc(task) + 1);
        }
    }
    ARCFLEET_EQUAL(part.arcs().size(), arcs.size());
    for (size_t a = 0; a < arcs.size(); ++a) {
        const Arc &mine = part.arc(static_cast<int32_t>(a));
        const Arc &theirs = whole.arc(arcs[a]);
        ARCFLEET_EQUAL(mine.edge, theirs.edge);
        ARCFLEET_EQUAL(mine.inverse < 0, theirs.inverse < 0);
        ARCFLEET_EQUAL(mine.service_cost, theirs.service_cost);
        for (size_t b = 0; b < arcs.size(); ++b) {
            const int32_t expected = whole.deadhead(arcs[a], arcs[b]);
            const int32_t found =
                part.deadhead(static_cast<int32_t>(a), static_cast<int32_t>(b));
            ARCFLEET_EQUAL(part.is_open(found), whole.is_open(expected));
            if (whole.is_open(expected)) {
                ARCFLEET_EQUAL(found, expected);
            }
        }
    }
}

// Every site is in one area, and no area is too large unless it is one site.
void check_areas_drawn(Random &random) {
    std::vector<Site> sites;
    for (int32_t number = 0; number < 40; ++number) {
        Site site{{}, 1 + static_cast<int32_t>(random.below(5)), number};
        for (float &coordinate : site.position) {
            coordinate = static_cast<float>(random.below(100));
        }
        sites.push_back(site);
    }
    std::vector<int32_t> all;
    for (const std::vector<int32_t> &area : draw_areas(sites, 8, random)) {
        int64_t tasks = 0;
        for (const int32_t number : area) {
            tasks += sites[static_cast<size_t>(number)].size;
            all.push_back(number);
        }
        ARCFLEET_EQUAL(tasks <= 8 || area.size() == 1, true);
    }
    std::sort(all.begin(), all.end());
    std::vector<int32_t> expected(sites.size());
    std::iota(expected.begin(), expected.end(), 0);
    ARCFLEET_EQUAL(all == expected, true);
}

// Whatever rounds end meanwhile.
void run_on(AreaSearch &search, int64_t iterations, int threads) {
    const int64_t end = search.iterations() + iterations;
    while (search.iterations() < end) {
        search.run(end - search.iterations(), kForever, -1, threads);
    }
}

// Slices and threads of any number give the same plan, whose cost is right.
void check_search(const Network &whole, const Network &in_parts, uint64_t seed) {
    const Horizon horizon{900, 0.0};
    AreaSearch search(in_parts, kSettings, 3, seed, 1, horizon, Plan{});
    run_on(search, 900, 1);
    AreaSearch sliced(in_parts, kSettings, 3, seed, 2, horizon, Plan{});
    for (const int64_t slice : {1, 99, 0, 250, 7, 543}) {
        run_on(sliced, slice, 2);
    }
    ARCFLEET_EQUAL(search.iterations(), 900);
    ARCFLEET_EQUAL(sliced.iterations(), 900);
    ARCFLEET_EQUAL(search.has_plan(), sliced.has_plan());
    if (!search.has_plan()) {
        return; // the fleet limit is a hard one
    }
    ARCFLEET_EQUAL(search.best_cost(), sliced.best_cost());
    ARCFLEET_EQUAL(search.best_cost(), plan_cost(whole, search.best_plan()));
    check_plan(whole, search.best_plan());
    const int64_t limit = RouteRules(whole).max_routes();
    ARCFLEET_EQUAL(static_cast<int64_t>(search.best_plan().num_routes()) <= limit,
                   true);
    StreetPaths paths(in_parts);
    for (size_t route = 0; route < search.best_plan().num_routes(); ++route) {
        const auto arcs = search.best_plan().route(route);
        ARCFLEET_EQUAL(whole.deadheads(arcs) == paths.of(arcs).deadheads, true);
    }
    // From its own plan it finds no worse one.
    AreaSearch again(in_parts, kSettings, 3, seed + 1, 1, horizon, search.best_plan());
    ARCFLEET_EQUAL(again.best_cost(), search.best_cost());
    run_on(again, 900, 1);
    ARCFLEET_EQUAL(again.best_cost() <= search.best_cost(), true);
    ARCFLEET_EQUAL(again.best_cost(), plan_cost(whole, again.best_plan()));
    check_plan(whole, again.best_plan());
}

} // namespace

void check_areas() {
    for (uint64_t round = 0; round < 60; ++round) {
        Random random(5, round);
        RandomStreets streets(random);
        streets.vary(round);
        const auto whole = streets.network();
        const auto in_parts = streets.network(1, Network::Measured::in_parts);
        check_areas_drawn(random);
        if (whole->num_tasks() == 0) {
            continue;
        }
        check_part(*whole, *in_parts, random);
        check_search(*whole, *in_parts, round);
        ARCFLEET_EQUAL(nearest_others(*in_parts).size(),
                       static_cast<size_t>(whole->num_tasks()));
    }
}

} // namespace arcfleet
