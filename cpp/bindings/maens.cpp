#include "search/maens.h"

#include "bindings/bindings.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

namespace arcfleet {

void bind_maens(nb::module_ &module) {
    nb::class_<Maens>(module, "Maens",
                      "Memetic algorithm with extended neighbourhood search.")
        .def(
            "__init__",
            [](Maens *self, const Network &network, int32_t population,
               int32_t offspring, int32_t trials, double local_search_rate,
               int32_t merge_pairs, double rank_by_cost_rate,
               int32_t tries_per_offspring, uint64_t seed, const InArray<int32_t> &arcs,
               const InArray<int32_t> &route_starts) {
                const MaensSettings settings{
                    population,         offspring,   trials,
                    local_search_rate,  merge_pairs, rank_by_cost_rate,
                    tries_per_offspring};
                const auto arc_view = view(arcs);
                const auto start_view = view(route_starts);
                const Plan start{{arc_view.begin(), arc_view.end()},
                                 {start_view.begin(), start_view.end()}};
                const nb::gil_scoped_release release;
                new (self) Maens(network, settings, seed, start);
            },
            nb::arg("network"), nb::arg("population"), nb::arg("offspring"),
            nb::arg("trials"), nb::arg("local_search_rate"), nb::arg("merge_pairs"),
            nb::arg("rank_by_cost_rate"), nb::arg("tries_per_offspring"),
            nb::arg("seed"), nb::arg("arcs"), nb::arg("route_starts"),
            nb::keep_alive<1, 2>())
        .def("run", &Maens::run, nb::arg("iterations"), nb::arg("seconds"),
             nb::arg("target"), nb::arg("threads"),
             nb::call_guard<nb::gil_scoped_release>())
        .def_prop_ro("iterations", &Maens::iterations)
        .def_prop_ro("has_plan", &Maens::has_plan)
        .def_prop_ro("best_cost", &Maens::best_cost)
        .def_prop_ro("best_iteration", &Maens::best_iteration)
        .def(
            "best_plan",
            [](const Maens &search) {
                const Plan &plan = search.best_plan();
                return std::pair(to_array(std::vector<int32_t>(plan.arcs)),
                                 to_array(std::vector<int32_t>(plan.route_starts)));
            },
            "Arcs of all routes, and where each route starts.")
        .def(
            "history",
            [](const Maens &search) {
                std::vector<std::tuple<double, int64_t, int64_t>> rows;
                for (const auto &row : search.history()) {
                    rows.emplace_back(row.seconds, row.iteration, row.cost);
                }
                return rows;
            },
            "Seconds, iteration and cost of each improvement.");
}

} // namespace arcfleet
