#include "neural/encoder.h"

#include "selfcheck/selfcheck.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

namespace arcfleet {

#ifdef ARCFLEET_ENCODER

namespace {

using Numbers = std::vector<double>;

// Weights of a layer in the order of LayerWeights.
struct RandomLayer {
    std::vector<std::vector<float>> parts;

    RandomLayer(Random &random, const EncoderSizes &sizes) {
        const auto [width, heads, hidden] = sizes;
        const double side = 1.0 / std::sqrt(static_cast<double>(width));
        for (const size_t count :
             {3 * width * width, width * width, width, hidden * width, hidden,
              width * hidden, width, width, 2 * heads}) {
            std::vector<float> numbers(count);
            for (float &number : numbers) {
                number = static_cast<float>(side * (2.0 * random.unit() - 1.0));
            }
            parts.push_back(std::move(numbers));
        }
    }

    LayerWeights weights() const {
        return {parts[0].data(), parts[1].data(), parts[2].data(),
                parts[3].data(), parts[4].data(), parts[5].data(),
                parts[6].data(), parts[7].data(), parts[8].data()};
    }
};

// matrix x + bias, as in the textbook.
Numbers product(const std::vector<float> &matrix, const double *x, size_t inputs,
                const std::vector<float> *bias = nullptr) {
    Numbers found(matrix.size() / inputs);
    for (size_t i = 0; i < found.size(); ++i) {
        found[i] = bias == nullptr ? 0.0 : static_cast<double>((*bias)[i]);
        for (size_t j = 0; j < inputs; ++j) {
            found[i] += static_cast<double>(matrix[i * inputs + j]) * x[j];
        }
    }
    return found;
}

void add_and_norm(double *x, const Numbers &change, const std::vector<float> &weight) {
    double squares = 0;
    for (size_t i = 0; i < change.size(); ++i) {
        x[i] += change[i];
        squares += x[i] * x[i];
    }
    const double mean = squares / static_cast<double>(change.size());
    for (size_t i = 0; i < change.size(); ++i) {
        x[i] *= static_cast<double>(weight[i]) / std::sqrt(mean + 1e-6);
    }
}

// One layer arc by arc, in double precision.
void literal_layer(const RandomLayer &layer, const EncoderSizes &sizes,
                   const std::vector<float> &incoming, const std::vector<char> &visible,
                   Numbers &x) {
    const auto [width, heads, hidden] = sizes;
    const size_t arcs = visible.size();
    const size_t dim = width / heads;
    std::vector<Numbers> parts;
    for (size_t i = 0; i < arcs; ++i) {
        parts.push_back(product(layer.parts[0], x.data() + i * width, width));
    }
    for (size_t i = 0; i < arcs; ++i) {
        Numbers mixed(width);
        for (size_t head = 0; head < heads; ++head) {
            Numbers weights(arcs);
            double sum = 0;
            for (size_t j = 0; j < arcs; ++j) {
                double score = 0;
                for (size_t d = head * dim; d < (head + 1) * dim; ++d) {
                    score += parts[i][d] * parts[j][width + d];
                }
                score /= std::sqrt(static_cast<double>(dim));
                score += static_cast<double>(layer.parts[8][2 * head]) *
                         static_cast<double>(incoming[i * arcs + j]);
                score += static_cast<double>(layer.parts[8][2 * head + 1]) *
                         static_cast<double>(incoming[j * arcs + i]);
                weights[j] = visible[j] != 0 ? std::exp(score) : 0.0;
                sum += weights[j];
            }
            for (size_t j = 0; j < arcs; ++j) {
                for (size_t d = head * dim; d < (head + 1) * dim; ++d) {
                    mixed[d] += weights[j] / sum * parts[j][2 * width + d];
                }
            }
        }
        double *here = x.data() + i * width;
        add_and_norm(here, product(layer.parts[1], mixed.data(), width),
                     layer.parts[2]);
        Numbers wide = product(layer.parts[3], here, width, &layer.parts[4]);
        for (double &number : wide) {
            number = std::max(number, 0.0);
        }
        add_and_norm(here,
                     product(layer.parts[5], wide.data(), hidden, &layer.parts[6]),
                     layer.parts[7]);
    }
}

void check_one(Random &random) {
    const size_t heads = 1 + random.below(3);
    const EncoderSizes sizes{heads * kLanes * (1 + random.below(2)), heads,
                             kLanes * (1 + random.below(4))};
    const size_t arcs = 1 + random.below(40);
    std::vector<RandomLayer> layers;
    Encoder encoder(sizes);
    for (size_t i = 0; i < 1 + random.below(3); ++i) {
        layers.emplace_back(random, sizes);
    }
    for (const RandomLayer &layer : layers) {
        encoder.add_layer(layer.weights());
    }
    std::vector<float> start(arcs * sizes.width);
    std::vector<float> incoming(arcs * arcs);
    for (float &number : start) {
        number = static_cast<float>(2.0 * random.unit() - 1.0);
    }
    for (float &cost : incoming) {
        cost = static_cast<float>(4.0 * random.unit());
    }
    std::vector<char> visible(arcs, 1);
    for (size_t arc = 1; arc < arcs; ++arc) {
        visible[arc] = static_cast<char>(random.below(3) > 0);
    }
    const auto flags = std::make_unique<bool[]>(arcs);
    std::copy(visible.begin(), visible.end(), flags.get());
    std::vector<float> found(start.size(), std::numeric_limits<float>::quiet_NaN());
    Encoder::Scratch scratch;
    encoder.run(start.data(), incoming.data(), flags.get(), arcs, found.data(),
                scratch);
    Numbers expected(start.begin(), start.end());
    for (const RandomLayer &layer : layers) {
        literal_layer(layer, sizes, incoming, visible, expected);
    }
    for (size_t i = 0; i < found.size(); ++i) {
        const double wanted = visible[i / sizes.width] != 0 ? expected[i] : 0.0;
        const double apart = std::abs(static_cast<double>(found[i]) - wanted);
        ARCFLEET_EQUAL(apart < 1e-4, true);
    }
    // Again with the same scratch: nothing is left over from before.
    std::vector<float> again(start.size());
    encoder.run(start.data(), incoming.data(), flags.get(), arcs, again.data(),
                scratch);
    ARCFLEET_EQUAL(again == found, true);
}

} // namespace

void check_encoder() {
    for (uint64_t seed = 1; seed <= 60; ++seed) {
        Random random(seed);
        check_one(random);
    }
}

#else

void check_encoder() {}

#endif

} // namespace arcfleet
