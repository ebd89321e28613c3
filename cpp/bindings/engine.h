// What every search engine shows to Python: it can be run, run on, and asked for its
// best.
#pragma once

#include "bindings/bindings.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

namespace arcfleet {

template <typename Engine> void bind_engine(nb::class_<Engine> &engine) {
    engine
        .def("run", &Engine::run, nb::arg("iterations"), nb::arg("seconds"),
             nb::arg("target"), nb::arg("threads"),
             nb::call_guard<nb::gil_scoped_release>())
        .def_prop_ro("iterations", &Engine::iterations)
        .def_prop_ro("has_plan", &Engine::has_plan)
        .def_prop_ro("best_cost", &Engine::best_cost)
        .def_prop_ro("best_iteration", &Engine::best_iteration)
        .def(
            "best_plan",
            [](const Engine &search) {
                const Plan &plan = search.best_plan();
                return std::pair(to_array(std::vector<int32_t>(plan.arcs)),
                                 to_array(std::vector<int32_t>(plan.route_starts)));
            },
            "Arcs of all routes, and where each route starts.")
        .def(
            "history",
            [](const Engine &search) {
                std::vector<std::tuple<double, int64_t, int64_t>> rows;
                for (const auto &row : search.history()) {
                    rows.emplace_back(row.seconds, row.iteration, row.cost);
                }
                return rows;
            },
            "Seconds, iteration and cost of each improvement.");
}

} // namespace arcfleet
