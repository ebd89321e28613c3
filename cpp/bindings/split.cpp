#include "search/split.h"

#include "base/parallel.h"
#include "bindings/bindings.h"

#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>

namespace arcfleet {

void bind_split(nb::module_ &module) {
    module.def(
        "split_many",
        [](const std::vector<const Network *> &networks,
           const InArray<int32_t> &network_of, const InArray<int32_t> &arcs,
           const InArray<int64_t> &order_starts, bool choose_directions, int threads) {
            const auto arc_view = view(arcs);
            const auto starts = view(order_starts);
            const size_t orders = network_of.size();
            if (starts.size() != orders + 1 || starts.front() != 0 ||
                starts.back() != static_cast<int64_t>(arc_view.size()) ||
                !std::is_sorted(starts.begin(), starts.end())) {
                throw std::invalid_argument("order_starts do not fit the orders");
            }
            for (const int32_t network : view(network_of)) {
                if (network < 0 || static_cast<size_t>(network) >= networks.size()) {
                    throw std::invalid_argument("unknown network");
                }
            }
            std::vector<int32_t> out(arc_view.begin(), arc_view.end());
            std::vector<uint8_t> starts_route(out.size());
            std::vector<int64_t> costs(orders);
            {
                const nb::gil_scoped_release release;
                // Blocks of orders: one order is too little work for one grab.
                constexpr size_t kBlock = 64;
                std::atomic<size_t> next{0};
                const auto most = static_cast<int>(orders / kBlock + 1);
                run_workers(std::min(threads, most), [&](int) {
                    Splitter splitter;
                    for (size_t block = next++ * kBlock; block < orders;
                         block = next++ * kBlock) {
                        const size_t end = std::min(orders, block + kBlock);
                        for (size_t i = block; i < end; ++i) {
                            const auto first = static_cast<size_t>(starts[i]);
                            const auto length =
                                static_cast<size_t>(starts[i + 1]) - first;
                            const int32_t network = network_of.data()[i];
                            costs[i] =
                                splitter.split(*networks[static_cast<size_t>(network)],
                                               {out.data() + first, length},
                                               {starts_route.data() + first, length},
                                               choose_directions);
                        }
                    }
                });
            }
            return std::tuple(to_array(std::move(out)),
                              to_array(std::move(starts_route)),
                              to_array(std::move(costs)));
        },
        nb::arg("networks"), nb::arg("network_of"), nb::arg("arcs"),
        nb::arg("order_starts"), nb::arg("choose_directions"), nb::arg("threads"),
        "Cuts orders of services into routes at least cost.");
}

} // namespace arcfleet
