#include "search/split.h"

#include "base/parallel.h"
#include "bindings/bindings.h"

#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>

namespace arcfleet {

namespace {

// Calls split_one(splitter, i) for every order, on several threads, without the GIL.
template <typename SplitOne>
void for_each_order(size_t orders, int threads, const SplitOne &split_one) {
    const nb::gil_scoped_release release;
    // Blocks of orders: one order is too little work for one grab.
    constexpr size_t kBlock = 64;
    std::atomic<size_t> next{0};
    const auto most = static_cast<int>(orders / kBlock + 1);
    run_workers(std::min(threads, most), [&](int) {
        Splitter splitter;
        for (size_t block = next++ * kBlock; block < orders; block = next++ * kBlock) {
            const size_t end = std::min(orders, block + kBlock);
            for (size_t i = block; i < end; ++i) {
                split_one(splitter, i);
            }
        }
    });
}

void expect(bool holds, const char *message) {
    if (!holds) {
        throw std::invalid_argument(message);
    }
}

} // namespace

static void bind_split(nb::module_ &module) {
    module.def(
        "split_many",
        [](const std::vector<const Network *> &networks,
           const InArray<int32_t> &network_of, const InArray<int32_t> &arcs,
           const InArray<int64_t> &order_starts, bool choose_directions, int threads) {
            const auto arc_view = view(arcs);
            const auto starts = view(order_starts);
            const size_t orders = network_of.size();
            expect(starts.size() == orders + 1 && starts.front() == 0 &&
                       starts.back() == static_cast<int64_t>(arc_view.size()) &&
                       std::is_sorted(starts.begin(), starts.end()),
                   "order_starts do not fit the orders");
            for (const int32_t network : view(network_of)) {
                expect(network >= 0 && static_cast<size_t>(network) < networks.size(),
                       "unknown network");
            }
            std::vector<int32_t> out(arc_view.begin(), arc_view.end());
            std::vector<uint8_t> starts_route(out.size());
            std::vector<int64_t> costs(orders);
            for_each_order(orders, threads, [&](Splitter &splitter, size_t i) {
                const auto first = static_cast<size_t>(starts[i]);
                const auto length = static_cast<size_t>(starts[i + 1]) - first;
                const int32_t network = network_of.data()[i];
                costs[i] = splitter.split(*networks[static_cast<size_t>(network)],
                                          {out.data() + first, length},
                                          {starts_route.data() + first, length},
                                          choose_directions);
            });
            return std::tuple(to_array(std::move(out)),
                              to_array(std::move(starts_route)),
                              to_array(std::move(costs)));
        },
        nb::arg("networks"), nb::arg("network_of"), nb::arg("arcs"),
        nb::arg("order_starts"), nb::arg("choose_directions"), nb::arg("threads"),
        "Cuts orders of services into routes at least cost.");

    module.def(
        "split_gathered",
        [](int directions, const InArray<int32_t> &service, const InArray<int32_t> &out,
           const InArray<int32_t> &back, const InArray<int32_t> &drive,
           const InArray<int32_t> &demand, const InArray<uint8_t> &can_turn,
           const InArray<int64_t> &order_starts, const InArray<int32_t> &order_lengths,
           const InArray<int32_t> &capacity, const InArray<int32_t> &route_cost,
           const InArray<int32_t> &fleet_limit, int threads) {
            expect(directions == 1 || directions == 2, "directions must be 1 or 2");
            const size_t positions = demand.size();
            const auto rows = static_cast<size_t>(directions);
            expect(service.size() == rows * positions &&
                       out.size() == rows * positions &&
                       back.size() == rows * positions &&
                       drive.size() == rows * rows * positions &&
                       can_turn.size() == (directions == 2 ? positions : 0),
                   "the costs are not of one length");
            const size_t orders = order_starts.size();
            expect(order_lengths.size() == orders && capacity.size() == orders &&
                       route_cost.size() == orders && fleet_limit.size() == orders,
                   "the numbers of the orders are not of one length");
            const auto starts = view(order_starts);
            const auto lengths = view(order_lengths);
            int64_t end = 0; // of the order before
            for (size_t i = 0; i < orders; ++i) {
                expect(starts[i] >= end && lengths[i] >= 0,
                       "order_starts do not fit the orders");
                end = starts[i] + lengths[i];
            }
            expect(end <= static_cast<int64_t>(positions),
                   "order_starts do not fit the orders");
            const GatheredCosts gathered{positions,     directions,     service.data(),
                                         out.data(),    back.data(),    drive.data(),
                                         demand.data(), can_turn.data()};
            std::vector<uint8_t> turned(positions);
            std::vector<uint8_t> starts_route(positions);
            std::vector<int64_t> costs(orders);
            for_each_order(orders, threads, [&](Splitter &splitter, size_t i) {
                const auto first = static_cast<size_t>(starts[i]);
                const auto length = static_cast<size_t>(lengths[i]);
                const RouteRules rules(capacity.data()[i], route_cost.data()[i],
                                       fleet_limit.data()[i]);
                costs[i] = splitter.split(gathered, first, rules,
                                          {turned.data() + first, length},
                                          {starts_route.data() + first, length});
            });
            return std::tuple(to_array(std::move(turned)),
                              to_array(std::move(starts_route)),
                              to_array(std::move(costs)));
        },
        nb::arg("directions"), nb::arg("service"), nb::arg("out"), nb::arg("back"),
        nb::arg("drive"), nb::arg("demand"), nb::arg("can_turn"),
        nb::arg("order_starts"), nb::arg("order_lengths"), nb::arg("capacity"),
        nb::arg("route_cost"), nb::arg("fleet_limit"), nb::arg("threads"),
        "Cuts orders of services, given by their costs, into routes at least cost.");
}

static const Binding binding{"split", bind_split};

} // namespace arcfleet
