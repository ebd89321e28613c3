#include "bounds/separator.h"
#include "bounds/trip_pricer.h"

#include "bindings/bindings.h"

#include <stdexcept>

namespace arcfleet {

namespace {

// The part of a vector from a position on, as an array of its own.
template <typename T> OutArray<T> tail_of(const std::vector<T> &values, size_t first) {
    const size_t from = std::min(first, values.size());
    return to_array(
        std::vector<T>(values.begin() + static_cast<ptrdiff_t>(from), values.end()));
}

} // namespace

static void bind_bounds(nb::module_ &module) {
    nb::class_<Separator>(module, "Separator",
                          "Node sets whose cuts are violated, and the pool of them.")
        .def(
            "__init__",
            [](Separator *self, int32_t num_nodes, const InArray<int32_t> &tail,
               const InArray<int32_t> &head, const InArray<int64_t> &demand,
               const InArray<int32_t> &pair_tail, const InArray<int32_t> &pair_head,
               const InArray<uint8_t> &outside, int64_t capacity) {
                if (outside.size() != static_cast<size_t>(num_nodes)) {
                    throw std::invalid_argument("outside does not fit the nodes");
                }
                const nb::gil_scoped_release release;
                new (self) Separator(num_nodes, {view(tail), view(head), view(demand)},
                                     view(pair_tail), view(pair_head), view(outside),
                                     capacity);
            },
            nb::arg("num_nodes"), nb::arg("tail"), nb::arg("head"), nb::arg("demand"),
            nb::arg("pair_tail"), nb::arg("pair_head"), nb::arg("outside"),
            nb::arg("capacity"))
        .def("find_first", &Separator::find_first)
        .def(
            "find_components",
            [](Separator &self, const InArray<double> &deadheads, int32_t most) {
                const nb::gil_scoped_release release;
                return self.find_components(view(deadheads), most);
            },
            nb::arg("deadheads"), nb::arg("most"))
        .def(
            "find_odd",
            [](Separator &self, const InArray<double> &deadheads, int32_t most) {
                const nb::gil_scoped_release release;
                return self.find_odd(view(deadheads), most);
            },
            nb::arg("deadheads"), nb::arg("most"))
        .def(
            "find_by_flow",
            [](Separator &self, const InArray<double> &deadheads, uint64_t seed,
               int32_t attempts, int32_t most) {
                const nb::gil_scoped_release release;
                return self.find_by_flow(view(deadheads), seed, attempts, most);
            },
            nb::arg("deadheads"), nb::arg("seed"), nb::arg("attempts"), nb::arg("most"))
        .def(
            "find_by_growth",
            [](Separator &self, const InArray<double> &deadheads, uint64_t seed,
               int32_t attempts, bool perturbed, int32_t most) {
                const nb::gil_scoped_release release;
                return self.find_by_growth(view(deadheads), seed, attempts, perturbed,
                                           most);
            },
            nb::arg("deadheads"), nb::arg("seed"), nb::arg("attempts"),
            nb::arg("perturbed"), nb::arg("most"))
        .def_prop_ro("num_rows", &Separator::num_rows)
        .def(
            "row_starts",
            [](const Separator &self, size_t first) {
                return tail_of(self.row_starts(), first);
            },
            nb::arg("first"), "Where the pairs of each row start, and the end of all.")
        .def(
            "row_pairs",
            [](const Separator &self, size_t first) {
                return tail_of(self.row_pairs(), first);
            },
            nb::arg("first"))
        .def(
            "row_least",
            [](const Separator &self, size_t first) {
                return tail_of(self.row_least(), first);
            },
            nb::arg("first"))
        .def(
            "row_family",
            [](const Separator &self, size_t first) {
                return tail_of(self.row_family(), first);
            },
            nb::arg("first"), "0 connected, 1 odd, 2 capacity.")
        .def(
            "violations",
            [](const Separator &self, const InArray<double> &deadheads) {
                return to_array(self.violations(view(deadheads)));
            },
            nb::arg("deadheads"), "Of every row of the pool; above 0 where violated.")
        .def("odd_nodes",
             [](const Separator &self) { return to_array(self.odd_nodes()); })
        .def("cancel", &Separator::cancel, "Ends what another thread looks for.");

    nb::class_<TripPricer>(module, "TripPricer",
                           "Trips of negative reduced cost, without short cycles.")
        .def_prop_ro_static("most_tasks",
                            [](const nb::handle &) { return TripPricer::kMostTasks; })
        .def(
            "__init__",
            [](TripPricer *self, int32_t num_nodes, const InArray<int32_t> &arc_tail,
               const InArray<int32_t> &arc_head, const InArray<int32_t> &arc_column,
               const InArray<int32_t> &side_tail, const InArray<int32_t> &side_head,
               const InArray<int32_t> &side_task, const InArray<int64_t> &demand,
               const InArray<uint8_t> &outside, int64_t capacity,
               const InArray<int64_t> &costs, int32_t num_near) {
                if (outside.size() != static_cast<size_t>(num_nodes) ||
                    demand.size() > static_cast<size_t>(TripPricer::kMostTasks)) {
                    throw std::invalid_argument("outside or demand does not fit");
                }
                new (self) TripPricer(
                    num_nodes, {view(arc_tail), view(arc_head), view(arc_column)},
                    {view(side_tail), view(side_head), view(side_task)}, view(demand),
                    view(outside), capacity, view(costs), num_near);
            },
            nb::arg("num_nodes"), nb::arg("arc_tail"), nb::arg("arc_head"),
            nb::arg("arc_column"), nb::arg("side_tail"), nb::arg("side_head"),
            nb::arg("side_task"), nb::arg("demand"), nb::arg("outside"),
            nb::arg("capacity"), nb::arg("costs"), nb::arg("num_near"))
        .def(
            "price",
            [](TripPricer &self, const InArray<int64_t> &columns,
               const InArray<int64_t> &sides, int64_t tolerance, int32_t most_labels) {
                const nb::gil_scoped_release release;
                return self.price(view(columns), view(sides), tolerance, most_labels);
            },
            nb::arg("columns"), nb::arg("sides"), nb::arg("tolerance"),
            nb::arg("most_labels"),
            "Returns whether no trip costs less than the first kept, or -tolerance.")
        .def(
            "find_single",
            [](TripPricer &self, const InArray<int64_t> &columns) {
                self.find_single(view(columns));
            },
            nb::arg("columns"), "Keeps a trip of each task alone.")
        .def("trip_costs",
             [](const TripPricer &self) { return tail_of(self.trip_costs(), 0); })
        .def("trip_starts",
             [](const TripPricer &self) { return tail_of(self.trip_starts(), 0); })
        .def("trip_sides",
             [](const TripPricer &self) { return tail_of(self.trip_sides(), 0); })
        .def("drive_starts",
             [](const TripPricer &self) { return tail_of(self.drive_starts(), 0); })
        .def("drives", [](const TripPricer &self) { return tail_of(self.drives(), 0); })
        .def("cancel", &TripPricer::cancel, "Ends what another thread looks for.");
}

static const Binding binding{"bounds", bind_bounds};

} // namespace arcfleet
