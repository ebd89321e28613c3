#include "neural/encoder.h"

#ifdef ARCFLEET_ENCODER

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) &&                \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define ARCFLEET_AVX512
#endif

// All of it is compiled twice: for AVX-512, whose vectors are as long, and for any
// processor.
#define ARCFLEET_INLINE inline __attribute__((always_inline))

namespace arcfleet {

namespace {

using Lanes =
    float __attribute__((vector_size(sizeof(float) * kLanes), aligned(4), may_alias));
using Whole = int32_t __attribute__((vector_size(sizeof(int32_t) * kLanes)));

constexpr float kEpsilon = 1e-6F;

ARCFLEET_INLINE const Lanes &at(const float *numbers) {
    return *reinterpret_cast<const Lanes *>(numbers);
}

ARCFLEET_INLINE Lanes &at(float *numbers) {
    return *reinterpret_cast<Lanes *>(numbers);
}

// ------------------------------------------------------------------ matrix products

// The second factor of a product, (inputs, outputs): `row` numbers from input to input,
// `panel` from one vector of outputs to the next.
struct Factor {
    const float *numbers;
    size_t row;
    size_t panel;
};

struct Product {
    const float *left; // (rows, inputs)
    size_t left_row;
    Factor right;
    const float *bias; // of each output, or none
    bool keeps_positive;
    float *result; // (rows, outputs)
    size_t result_row;
};

// Rows of a tile: with two vectors of outputs as many sums as hide the time of each.
constexpr size_t kTileRows = 6;

template <size_t kRows, size_t kVectors>
ARCFLEET_INLINE void tile(const Product &product, size_t row, size_t vector,
                          size_t inputs) {
    Lanes sums[kRows][kVectors];
    for (size_t v = 0; v < kVectors; ++v) {
        const Lanes first = product.bias == nullptr
                                ? Lanes{}
                                : at(product.bias + (vector + v) * kLanes);
        for (size_t r = 0; r < kRows; ++r) {
            sums[r][v] = first;
        }
    }
    const float *left = product.left + row * product.left_row;
    const float *right = product.right.numbers + vector * product.right.panel;
    for (size_t k = 0; k < inputs; ++k, right += product.right.row) {
        for (size_t v = 0; v < kVectors; ++v) {
            const Lanes factor = at(right + v * product.right.panel);
            for (size_t r = 0; r < kRows; ++r) {
                sums[r][v] += left[r * product.left_row + k] * factor;
            }
        }
    }
    float *result = product.result + row * product.result_row + vector * kLanes;
    for (size_t r = 0; r < kRows; ++r) {
        for (size_t v = 0; v < kVectors; ++v) {
            Lanes sum = sums[r][v];
            if (product.keeps_positive) {
                sum = sum > 0.0F ? sum : Lanes{};
            }
            at(result + r * product.result_row + v * kLanes) = sum;
        }
    }
}

template <size_t kVectors>
ARCFLEET_INLINE void tiles(const Product &product, size_t rows, size_t vector,
                           size_t inputs) {
    size_t row = 0;
    for (; row + kTileRows <= rows; row += kTileRows) {
        tile<kTileRows, kVectors>(product, row, vector, inputs);
    }
    switch (rows - row) {
    case 5:
        return tile<5, kVectors>(product, row, vector, inputs);
    case 4:
        return tile<4, kVectors>(product, row, vector, inputs);
    case 3:
        return tile<3, kVectors>(product, row, vector, inputs);
    case 2:
        return tile<2, kVectors>(product, row, vector, inputs);
    case 1:
        return tile<1, kVectors>(product, row, vector, inputs);
    default:
        return;
    }
}

template <size_t kVectors>
ARCFLEET_INLINE void multiply(const Product &product, size_t rows, size_t outputs,
                              size_t inputs) {
    const size_t vectors = outputs / kLanes;
    size_t vector = 0;
    for (; vector + kVectors <= vectors; vector += kVectors) {
        tiles<kVectors>(product, rows, vector, inputs);
    }
    for (; vector < vectors; ++vector) {
        tiles<1>(product, rows, vector, inputs);
    }
}

ARCFLEET_INLINE Factor factor_of(const Panels &panels) {
    return {panels.data(), kLanes, panels.inputs() * kLanes};
}

// --------------------------------------------------------------------- attention, norm

// e to the power of numbers of at most 0, to within two units of the last place.
ARCFLEET_INLINE Lanes exponential(Lanes power) {
    constexpr float kLeast = -87.0F;
    constexpr float kPerLog = 1.44269504F;
    // ln 2 in two parts, the first with few digits.
    constexpr float kLogHigh = 0.693359375F;
    constexpr float kLogLow = -2.12194440e-4F;
    // Added and taken away, it rounds to whole numbers.
    constexpr float kRounder = 12582912.0F;
    power = power > kLeast ? power : Lanes{} + kLeast;
    const Lanes whole = (power * kPerLog + kRounder) - kRounder;
    const Lanes rest = power - whole * kLogHigh - whole * kLogLow;
    Lanes sum = Lanes{} + 1.9875691500e-4F;
    sum = sum * rest + 1.3981999507e-3F;
    sum = sum * rest + 8.3334519073e-3F;
    sum = sum * rest + 4.1665795894e-2F;
    sum = sum * rest + 1.6666665459e-1F;
    sum = sum * rest + 5.0000001201e-1F;
    sum = sum * rest * rest + rest + 1.0F;
    const Whole bits = (__builtin_convertvector(whole, Whole) + 127) << 23;
    return sum * reinterpret_cast<const Lanes &>(bits);
}

// Both join halves, so that few operations wait for each other.
ARCFLEET_INLINE float largest(Lanes lanes) {
    for (size_t half = kLanes / 2; half > 0; half /= 2) {
        for (size_t i = 0; i < half; ++i) {
            lanes[i] = std::max(lanes[i], lanes[i + half]);
        }
    }
    return lanes[0];
}

ARCFLEET_INLINE float total(Lanes lanes) {
    for (size_t half = kLanes / 2; half > 0; half /= 2) {
        for (size_t i = 0; i < half; ++i) {
            lanes[i] += lanes[i + half];
        }
    }
    return lanes[0];
}

struct Costs {
    const float *there; // (arcs, padded)
    const float *back;
    const float *beyond; // 0 for arcs, minus infinity for padding, (padded)
};

// Turns a row of scores into weights that are not divided by their sum yet; returns it.
ARCFLEET_INLINE float weigh(float *scores, const Costs &costs, size_t row,
                            size_t padded, float scale, const float *slopes) {
    const float *there = costs.there + row * padded;
    const float *back = costs.back + row * padded;
    Lanes most = Lanes{} - std::numeric_limits<float>::infinity();
    for (size_t j = 0; j < padded; j += kLanes) {
        const Lanes score = at(scores + j) * scale + at(there + j) * slopes[0] +
                            at(back + j) * slopes[1] + at(costs.beyond + j);
        at(scores + j) = score;
        most = score > most ? score : most;
    }
    const float top = largest(most);
    Lanes sum{};
    for (size_t j = 0; j < padded; j += kLanes) {
        const Lanes weight = exponential(at(scores + j) - top);
        at(scores + j) = weight;
        sum += weight;
    }
    return total(sum);
}

// x + change, divided by its root mean square, times weight.
ARCFLEET_INLINE void add_and_norm(const float *x, const float *change,
                                  const float *weight, float *result, size_t rows,
                                  size_t width) {
    for (size_t row = 0; row < rows; ++row) {
        const size_t first = row * width;
        Lanes squares{};
        for (size_t i = 0; i < width; i += kLanes) {
            const Lanes sum = at(x + first + i) + at(change + first + i);
            at(result + first + i) = sum;
            squares += sum * sum;
        }
        const float mean = total(squares) / static_cast<float>(width);
        const float factor = 1.0F / std::sqrt(mean + kEpsilon);
        for (size_t i = 0; i < width; i += kLanes) {
            at(result + first + i) = at(result + first + i) * factor * at(weight + i);
        }
    }
}

// --------------------------------------------------------------------------- a layer

struct Buffers {
    float *parts;  // queries, keys and values, (arcs, 3 width)
    float *keys;   // of one head, turned, (width / heads, padded)
    float *scores; // (kScoreRows, padded)
    float *mixed;  // (arcs, width)
    float *middle; // (arcs, width)
    float *wide;   // (arcs, hidden)
};

// Rows of scores at a time, whole tiles.
constexpr size_t kScoreRows = 4 * kTileRows;

template <size_t kVectors>
ARCFLEET_INLINE void attend(const PackedLayer &layer, const EncoderSizes &sizes,
                            const Costs &costs, const Buffers &buffers, size_t arcs,
                            size_t padded) {
    const size_t width = sizes.width;
    const size_t dim = width / sizes.heads;
    const size_t row = 3 * width;
    const float scale = 1.0F / std::sqrt(static_cast<float>(dim));
    for (size_t head = 0; head < sizes.heads; ++head) {
        const float *queries = buffers.parts + head * dim;
        const float *keys = queries + width;
        const float *values = keys + width;
        for (size_t j = 0; j < arcs; ++j) {
            for (size_t d = 0; d < dim; ++d) {
                buffers.keys[d * padded + j] = keys[j * row + d];
            }
        }
        for (size_t d = 0; d < dim; ++d) {
            float *turned = buffers.keys + d * padded;
            std::fill(turned + arcs, turned + padded, 0.0F);
        }
        float *mixed = buffers.mixed + head * dim;
        const float *slopes = layer.slopes.data() + 2 * head;
        // Few rows at a time, whose scores stay in the nearest cache.
        for (size_t first = 0; first < arcs; first += kScoreRows) {
            const size_t rows = std::min(kScoreRows, arcs - first);
            multiply<kVectors>({queries + first * row,
                                row,
                                {buffers.keys, padded, kLanes},
                                nullptr,
                                false,
                                buffers.scores,
                                padded},
                               rows, padded, dim);
            float sums[kScoreRows];
            for (size_t i = 0; i < rows; ++i) {
                sums[i] = weigh(buffers.scores + i * padded, costs, first + i, padded,
                                scale, slopes);
            }
            float *here = mixed + first * width;
            multiply<kVectors>({buffers.scores,
                                padded,
                                {values, row, kLanes},
                                nullptr,
                                false,
                                here,
                                width},
                               rows, dim, arcs);
            for (size_t i = 0; i < rows; ++i) {
                const float factor = 1.0F / sums[i];
                for (size_t d = 0; d < dim; d += kLanes) {
                    at(here + i * width + d) = at(here + i * width + d) * factor;
                }
            }
        }
    }
}

template <size_t kVectors>
ARCFLEET_INLINE void run_layer(const PackedLayer &layer, const EncoderSizes &sizes,
                               const Costs &costs, const Buffers &buffers,
                               const float *start, float *found, size_t arcs,
                               size_t padded) {
    const size_t width = sizes.width;
    multiply<kVectors>({start, width, factor_of(layer.query_key_value), nullptr, false,
                        buffers.parts, 3 * width},
                       arcs, 3 * width, width);
    attend<kVectors>(layer, sizes, costs, buffers, arcs, padded);
    multiply<kVectors>(
        {buffers.mixed, width, factor_of(layer.out), nullptr, false, found, width},
        arcs, width, width);
    add_and_norm(start, found, layer.attention_norm.data(), buffers.middle, arcs,
                 width);
    multiply<kVectors>({buffers.middle, width, factor_of(layer.widen),
                        layer.widen_bias.data(), true, buffers.wide, sizes.hidden},
                       arcs, sizes.hidden, width);
    multiply<kVectors>({buffers.wide, sizes.hidden, factor_of(layer.narrow),
                        layer.narrow_bias.data(), false, found, width},
                       arcs, width, sizes.hidden);
    add_and_norm(buffers.middle, found, layer.feed_forward_norm.data(), found, arcs,
                 width);
}

using RunLayer = void (*)(const PackedLayer &, const EncoderSizes &, const Costs &,
                          const Buffers &, const float *, float *, size_t, size_t);

void run_layer_anywhere(const PackedLayer &layer, const EncoderSizes &sizes,
                        const Costs &costs, const Buffers &buffers, const float *start,
                        float *found, size_t arcs, size_t padded) {
    run_layer<1>(layer, sizes, costs, buffers, start, found, arcs, padded);
}

#ifdef ARCFLEET_AVX512
__attribute__((target("avx512f,avx512dq,fma"))) void
run_layer_avx512(const PackedLayer &layer, const EncoderSizes &sizes,
                 const Costs &costs, const Buffers &buffers, const float *start,
                 float *found, size_t arcs, size_t padded) {
    run_layer<2>(layer, sizes, costs, buffers, start, found, arcs, padded);
}
#endif

RunLayer best_for_this_processor() {
#ifdef ARCFLEET_AVX512
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) {
        return run_layer_avx512;
    }
#endif
    return run_layer_anywhere;
}

RunLayer run_layer_here() {
    static const RunLayer found = best_for_this_processor();
    return found;
}

std::vector<float> copied(const float *numbers, size_t count) {
    return {numbers, numbers + count};
}

} // namespace

Panels::Panels(const float *matrix, size_t outputs, size_t inputs)
    : numbers_(outputs * inputs), outputs_(outputs), inputs_(inputs) {
    for (size_t output = 0; output < outputs; ++output) {
        float *panel = numbers_.data() + output / kLanes * kLanes * inputs;
        for (size_t input = 0; input < inputs; ++input) {
            panel[input * kLanes + output % kLanes] = matrix[output * inputs + input];
        }
    }
}

bool Encoder::is_fast_here() { return run_layer_here() != run_layer_anywhere; }

void Encoder::add_layer(const LayerWeights &weights) {
    const auto [width, heads, hidden] = sizes_;
    PackedLayer layer;
    layer.query_key_value = Panels(weights.query_key_value, 3 * width, width);
    layer.out = Panels(weights.out, width, width);
    layer.widen = Panels(weights.widen, hidden, width);
    layer.narrow = Panels(weights.narrow, width, hidden);
    layer.attention_norm = copied(weights.attention_norm, width);
    layer.widen_bias = copied(weights.widen_bias, hidden);
    layer.narrow_bias = copied(weights.narrow_bias, width);
    layer.feed_forward_norm = copied(weights.feed_forward_norm, width);
    layer.slopes = copied(weights.slopes, 2 * heads);
    layers_.push_back(std::move(layer));
}

void Encoder::run(const float *start, const float *incoming, const bool *visible,
                  size_t arcs, float *found, Scratch &scratch) const {
    const RunLayer run_one = run_layer_here();
    std::vector<size_t> &kept = scratch.kept;
    kept.clear();
    for (size_t arc = 0; arc < arcs; ++arc) {
        if (visible[arc]) {
            kept.push_back(arc);
        }
    }
    const size_t count = kept.size();
    const size_t width = sizes_.width;
    const size_t padded = (count + kLanes - 1) / kLanes * kLanes;
    const size_t pairs = count * padded;
    const size_t embeddings = count * width;
    const size_t turned = width / sizes_.heads * padded;
    const size_t needed[] = {pairs,
                             pairs,
                             padded,
                             3 * embeddings,
                             turned,
                             pairs,
                             embeddings,
                             embeddings,
                             embeddings,
                             embeddings,
                             count * sizes_.hidden};
    const size_t all = std::accumulate(std::begin(needed), std::end(needed), size_t{0});
    if (scratch.numbers.size() < all) {
        scratch.numbers.resize(all);
    }
    float *next = scratch.numbers.data();
    const auto take = [&](size_t which) {
        float *place = next;
        next += needed[which];
        return place;
    };
    float *there = take(0);
    float *back = take(1);
    float *beyond = take(2);
    for (size_t i = 0; i < count; ++i) {
        const float *to = incoming + kept[i] * arcs;
        for (size_t j = 0; j < count; ++j) {
            there[i * padded + j] = to[kept[j]];
            back[i * padded + j] = incoming[kept[j] * arcs + kept[i]];
        }
        std::fill(there + i * padded + count, there + (i + 1) * padded, 0.0F);
        std::fill(back + i * padded + count, back + (i + 1) * padded, 0.0F);
    }
    std::fill(beyond, beyond + count, 0.0F);
    std::fill(beyond + count, beyond + padded, -std::numeric_limits<float>::infinity());
    const Buffers buffers{take(3), take(4), take(5), take(6), take(7), take(10)};
    float *now = take(8);
    float *after = take(9);
    for (size_t i = 0; i < count; ++i) {
        std::memcpy(now + i * width, start + kept[i] * width, width * sizeof(float));
    }
    for (const PackedLayer &layer : layers_) {
        run_one(layer, sizes_, {there, back, beyond}, buffers, now, after, count,
                padded);
        std::swap(now, after);
    }
    std::fill(found, found + arcs * width, 0.0F);
    for (size_t i = 0; i < count; ++i) {
        std::memcpy(found + kept[i] * width, now + i * width, width * sizeof(float));
    }
}

} // namespace arcfleet

#endif
