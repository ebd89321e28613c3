// What every search engine shows to Python: run, and the accessors of Engine.
#pragma once

#include "bindings/bindings.h"
#include "search/engine.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

namespace arcfleet {

// A plan to start from, as two flat arrays; no routes where there is none.
inline Plan to_plan(const InArray<int32_t> &arcs,
                    const InArray<int32_t> &route_starts) {
    const auto arc_view = view(arcs);
    const auto start_view = view(route_starts);
    return {{arc_view.begin(), arc_view.end()}, {start_view.begin(), start_view.end()}};
}

template <typename Type> void bind_engine(nb::class_<Type> &engine) {
    engine
        .def("run", &Type::run, nb::arg("iterations"), nb::arg("seconds"),
             nb::arg("target"), nb::arg("threads"),
             nb::call_guard<nb::gil_scoped_release>())
        .def_prop_ro("iterations", [](const Type &e) { return e.iterations(); })
        .def_prop_ro("has_plan", [](const Type &e) { return e.has_plan(); })
        .def_prop_ro("best_cost", [](const Type &e) { return e.best_cost(); })
        .def_prop_ro("no_improvement", [](const Type &e) { return e.no_improvement(); })
        .def(
            "best_plan",
            [](const Type &search) {
                const Plan &plan = search.best_plan();
                return std::pair(to_array(std::vector<int32_t>(plan.arcs)),
                                 to_array(std::vector<int32_t>(plan.route_starts)));
            },
            "Arcs of all routes, and where each route starts.")
        .def(
            "history",
            [](const Type &search) {
                std::vector<std::tuple<double, int64_t, int64_t>> rows;
                for (const auto &row : search.history()) {
                    rows.emplace_back(row.seconds, row.iteration, row.cost);
                }
                return rows;
            },
            "Seconds, iteration and cost of each improvement.");
}

} // namespace arcfleet
