#include "neural/encoder.h"

#ifdef ARCFLEET_ENCODER

#include "base/parallel.h"
#include "bindings/bindings.h"

#include <algorithm>
#include <atomic>
#include <stdexcept>

namespace arcfleet {

namespace {

using Numbers = nb::ndarray<const float, nb::numpy, nb::c_contig, nb::device::cpu>;
using Flags = nb::ndarray<const bool, nb::numpy, nb::c_contig, nb::device::cpu>;
using Found = nb::ndarray<float, nb::numpy, nb::c_contig, nb::device::cpu>;

void expect(bool holds, const char *message) {
    if (!holds) {
        throw std::invalid_argument(message);
    }
}

const float *numbers_of(const Numbers &array, size_t size) {
    expect(array.size() == size, "expected weights that fit the sizes");
    return array.data();
}

} // namespace

static void bind_encoder(nb::module_ &module) {
    nb::class_<Encoder>(module, "Encoder")
        .def(
            "__init__",
            [](Encoder *self, size_t width, size_t heads, size_t hidden) {
                const bool fits = heads > 0 && width % heads == 0 && hidden > 0 &&
                                  hidden % kLanes == 0 && width / heads % kLanes == 0;
                expect(fits, "expected sizes that are multiples of 16 in every head");
                new (self) Encoder({width, heads, hidden});
            },
            nb::arg("width"), nb::arg("heads"), nb::arg("hidden"))
        .def_static("is_fast_here", &Encoder::is_fast_here)
        .def(
            "add_layer",
            [](Encoder &self, const Numbers &query_key_value, const Numbers &out,
               const Numbers &attention_norm, const Numbers &widen,
               const Numbers &widen_bias, const Numbers &narrow,
               const Numbers &narrow_bias, const Numbers &feed_forward_norm,
               const Numbers &slopes) {
                const auto [width, heads, hidden] = self.sizes();
                self.add_layer(
                    {numbers_of(query_key_value, 3 * width * width),
                     numbers_of(out, width * width), numbers_of(attention_norm, width),
                     numbers_of(widen, hidden * width), numbers_of(widen_bias, hidden),
                     numbers_of(narrow, width * hidden), numbers_of(narrow_bias, width),
                     numbers_of(feed_forward_norm, width),
                     numbers_of(slopes, 2 * heads)});
            },
            nb::arg("query_key_value"), nb::arg("out"), nb::arg("attention_norm"),
            nb::arg("widen"), nb::arg("widen_bias"), nb::arg("narrow"),
            nb::arg("narrow_bias"), nb::arg("feed_forward_norm"), nb::arg("slopes"))
        .def(
            "run",
            [](const Encoder &self, const Numbers &start, const Numbers &incoming,
               const Flags &visible, const Found &found, int threads) {
                expect(start.ndim() == 3 && start.shape(2) == self.sizes().width,
                       "expected embeddings of rows and arcs");
                const size_t rows = start.shape(0);
                const size_t arcs = start.shape(1);
                expect(incoming.ndim() == 3 && incoming.shape(0) > 0 &&
                           rows % incoming.shape(0) == 0 && incoming.shape(1) == arcs &&
                           incoming.shape(2) == arcs,
                       "expected the costs of all pairs of arcs");
                expect(visible.size() == rows * arcs && threads > 0 &&
                           found.size() == start.size(),
                       "expected flags of all arcs, and room for the result");
                const size_t plans = rows / incoming.shape(0);
                const nb::gil_scoped_release release;
                std::atomic<size_t> next{0};
                const int workers = std::min(threads, static_cast<int>(rows));
                run_workers(workers, [&](int) {
                    thread_local Encoder::Scratch scratch; // its pages are kept
                    for (size_t row = next++; row < rows; row = next++) {
                        const size_t place = row * arcs * self.sizes().width;
                        self.run(start.data() + place,
                                 incoming.data() + row / plans * arcs * arcs,
                                 visible.data() + row * arcs, arcs,
                                 found.data() + place, scratch);
                    }
                });
            },
            nb::arg("start").noconvert(), nb::arg("incoming").noconvert(),
            nb::arg("visible").noconvert(), nb::arg("found").noconvert(),
            nb::arg("threads") = 1);
}

static const Binding binding{"encoder", bind_encoder};

} // namespace arcfleet

#endif
