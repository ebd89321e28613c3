#include "search/path_scanning.h"

#include "bindings/bindings.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

namespace arcfleet {

void bind_path_scanning(nb::module_ &module) {
    nb::enum_<Choice>(module, "Choice")
        .value("rules", Choice::rules)
        .value("random_rule", Choice::random_rule)
        .value("random_arc", Choice::random_arc);
    nb::enum_<Trigger>(module, "Trigger")
        .value("never", Trigger::never)
        .value("everywhere", Trigger::everywhere)
        .value("nearby", Trigger::nearby);
    nb::enum_<Filter>(module, "Filter")
        .value("ellipse", Filter::ellipse)
        .value("efficiency", Filter::efficiency);

    nb::class_<PathScanning>(module, "PathScanning",
                             "Builds plans and keeps the cheapest.")
        .def(
            "__init__",
            [](PathScanning *self, const Network &network, Choice choice,
               Trigger trigger, Filter filter, double alpha, uint64_t seed) {
                const nb::gil_scoped_release release;
                new (self)
                    PathScanning(network, {choice, trigger, filter, alpha}, seed);
            },
            nb::arg("network"), nb::arg("choice"), nb::arg("trigger"),
            nb::arg("filter"), nb::arg("alpha"), nb::arg("seed"),
            nb::keep_alive<1, 2>())
        .def("run", &PathScanning::run, nb::arg("iterations"), nb::arg("seconds"),
             nb::arg("target"), nb::arg("threads"),
             nb::call_guard<nb::gil_scoped_release>())
        .def_prop_ro("iterations", &PathScanning::iterations)
        .def_prop_ro("has_plan", &PathScanning::has_plan)
        .def_prop_ro("best_cost", &PathScanning::best_cost)
        .def_prop_ro("best_iteration", &PathScanning::best_iteration)
        .def(
            "best_plan",
            [](const PathScanning &search) {
                const Plan &plan = search.best_plan();
                return std::pair(to_array(std::vector<int32_t>(plan.arcs)),
                                 to_array(std::vector<int32_t>(plan.route_starts)));
            },
            "Arcs of all routes, and where each route starts.")
        .def(
            "history",
            [](const PathScanning &search) {
                std::vector<std::tuple<double, int64_t, int64_t>> rows;
                for (const auto &row : search.history()) {
                    rows.emplace_back(row.seconds, row.iteration, row.cost);
                }
                return rows;
            },
            "Seconds, iteration and cost of each improvement.");
}

} // namespace arcfleet
