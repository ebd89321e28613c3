#include "network/network.h"

#include "network/nearness.h"
#include "network/street_paths.h"

#include "bindings/bindings.h"

#include <nanobind/stl/tuple.h>

#include <memory>

namespace arcfleet {

namespace {

// One field of every arc, as an array.
template <typename Field>
OutArray<int32_t> column(const Network &network, Field field) {
    std::vector<int32_t> values;
    values.reserve(network.arcs().size());
    for (const Arc &arc : network.arcs()) {
        values.push_back(arc.*field);
    }
    return to_array(std::move(values));
}

} // namespace

void bind_network(nb::module_ &module) {
    module.attr("UNREACHABLE") = kUnreachable;
    module.attr("MAX_DISTANCE") = kMaxDistance;

    // With the seconds that would be needed.
    nb::register_exception_translator([](const std::exception_ptr &error, void *) {
        try {
            std::rethrow_exception(error);
        } catch (const TooSlow &slow) {
            const nb::object needed = nb::float_(slow.needed());
            PyErr_SetObject(PyExc_TimeoutError, needed.ptr());
        }
    });

    module.def(
        "distance_matrix",
        [](int32_t num_nodes, const InArray<int32_t> &tail,
           const InArray<int32_t> &head, const InArray<int32_t> &cost,
           const InArray<int32_t> &reverse_cost, const InArray<int32_t> &sources,
           const InArray<int32_t> &targets, int threads) {
            std::vector<int32_t> matrix;
            {
                const nb::gil_scoped_release release;
                const StreetGraph graph(num_nodes, {view(tail), view(head), view(cost),
                                                    view(reverse_cost)});
                matrix = distance_matrix(graph, view(sources), view(targets), threads);
            }
            return to_matrix(std::move(matrix), sources.size(), targets.size());
        },
        nb::arg("num_nodes"), nb::arg("tail"), nb::arg("head"), nb::arg("cost"),
        nb::arg("reverse_cost"), nb::arg("sources"), nb::arg("targets"),
        nb::arg("threads"),
        "Shortest distances between nodes; reverse_cost is negative on one-way links.");

    nb::class_<Network>(module, "Network",
                        "Tasks, arcs and the distances between terminals.")
        .def(
            "__init__",
            [](Network *self, int32_t num_nodes, const InArray<int32_t> &tail,
               const InArray<int32_t> &head, const InArray<int32_t> &cost,
               const InArray<int32_t> &reverse_cost, const InArray<uint8_t> &required,
               const InArray<int32_t> &demand, const InArray<int32_t> &service_cost,
               const InArray<int32_t> &reverse_service_cost, int32_t depot,
               int32_t capacity, int32_t route_cost, int32_t fleet_limit,
               const InArray<int32_t> &turn_in, const InArray<int32_t> &turn_out,
               const InArray<int32_t> &turn_penalty, int32_t u_turns,
               int32_t u_turn_penalty, int threads, const InArray<int32_t> &places,
               const InArray<uint8_t> &closed, int32_t least_closed_cost,
               double seconds, bool in_parts) {
                const nb::gil_scoped_release release;
                new (self) Network(
                    num_nodes,
                    {view(tail), view(head), view(cost), view(reverse_cost),
                     view(closed)},
                    {view(required), view(demand), view(service_cost),
                     view(reverse_service_cost)},
                    {depot, capacity, route_cost, fleet_limit},
                    {view(turn_in), view(turn_out), view(turn_penalty),
                     static_cast<UTurns>(u_turns), u_turn_penalty},
                    threads, view(places), least_closed_cost, Allowance(seconds),
                    in_parts ? Network::Measured::in_parts : Network::Measured::whole);
            },
            nb::arg("num_nodes"), nb::arg("tail"), nb::arg("head"), nb::arg("cost"),
            nb::arg("reverse_cost"), nb::arg("required"), nb::arg("demand"),
            nb::arg("service_cost"), nb::arg("reverse_service_cost"), nb::arg("depot"),
            nb::arg("capacity"), nb::arg("route_cost"), nb::arg("fleet_limit"),
            nb::arg("turn_in"), nb::arg("turn_out"), nb::arg("turn_penalty"),
            nb::arg("u_turns"), nb::arg("u_turn_penalty"), nb::arg("threads"),
            nb::arg("places"), nb::arg("closed"), nb::arg("least_closed_cost"),
            nb::arg("seconds"), nb::arg("in_parts"))
        .def_prop_ro("num_tasks", &Network::num_tasks)
        .def_prop_ro("closed_cost", &Network::closed_cost)
        .def_prop_ro(
            "arc_task", [](const Network &n) { return column(n, &Arc::task); },
            nb::rv_policy::reference)
        .def_prop_ro(
            "arc_edge", [](const Network &n) { return column(n, &Arc::edge); },
            nb::rv_policy::reference)
        .def_prop_ro(
            "arc_start", [](const Network &n) { return column(n, &Arc::start); },
            nb::rv_policy::reference)
        .def_prop_ro(
            "arc_end", [](const Network &n) { return column(n, &Arc::end); },
            nb::rv_policy::reference)
        .def_prop_ro(
            "arc_service_cost",
            [](const Network &n) { return column(n, &Arc::service_cost); },
            nb::rv_policy::reference)
        .def_prop_ro(
            "arc_demand", [](const Network &n) { return column(n, &Arc::demand); },
            nb::rv_policy::reference)
        .def_prop_ro(
            "arc_inverse", [](const Network &n) { return column(n, &Arc::inverse); },
            nb::rv_policy::reference)
        .def_prop_ro(
            "terminal_nodes",
            [](const Network &n) {
                return to_array(std::vector<int32_t>(n.terminal_nodes()));
            },
            nb::rv_policy::reference)
        .def_prop_ro(
            "place_terminals",
            [](const Network &n) {
                return to_array(std::vector<int32_t>(n.place_terminals()));
            },
            nb::rv_policy::reference)
        .def_prop_ro(
            "distances",
            [](const Network &n) {
                if (!n.is_measured()) {
                    throw std::logic_error("driving costs are measured in parts only");
                }
                const auto size = static_cast<size_t>(n.num_terminals());
                return OutMatrix<const int32_t>(n.distances().data(), {size, size},
                                                nb::find(n));
            },
            nb::rv_policy::reference,
            "Distances between terminals: a read-only view, not a copy.")
        .def(
            "nearest_others",
            [](const Network &network) {
                std::vector<int32_t> nearest;
                {
                    const nb::gil_scoped_release release;
                    nearest = nearest_others(network);
                }
                return to_array(std::move(nearest));
            },
            "The nearest other task of each task; -1 where there is none.")
        .def(
            "drive",
            [](const Network &network, int32_t from, int32_t to) {
                const int32_t terminals = network.num_terminals();
                if (from < 0 || to < 0 || from >= terminals || to >= terminals) {
                    throw std::invalid_argument("unknown terminal");
                }
                std::vector<int32_t> edges;
                {
                    const nb::gil_scoped_release release;
                    edges = network.drive(from, to);
                }
                return to_array(std::move(edges));
            },
            nb::arg("start"), nb::arg("end"), "Edges driven between two terminals.");

    nb::class_<StreetPaths>(module, "StreetPaths",
                            "The streets driven along by the routes of a plan.")
        .def(
            "__init__",
            [](StreetPaths *self, const Network &network) {
                const nb::gil_scoped_release release;
                new (self) StreetPaths(network);
            },
            nb::arg("network"), nb::keep_alive<1, 2>())
        .def(
            "of",
            [](StreetPaths &paths, const InArray<int32_t> &route) {
                std::vector<int32_t> edges;
                std::vector<uint8_t> serves;
                RoutePath path;
                {
                    const nb::gil_scoped_release release;
                    path = paths.of(view(route));
                    for (const StreetStep &step : path.steps) {
                        edges.push_back(step.edge);
                        serves.push_back(step.serves);
                    }
                }
                return std::tuple(to_array(std::move(edges)),
                                  to_array(std::move(serves)),
                                  to_array(std::move(path.deadheads)));
            },
            nb::arg("route"),
            "Edges driven by a route, for each whether it is served this time, and the "
            "costs of driving to each service and home.");
}

} // namespace arcfleet
