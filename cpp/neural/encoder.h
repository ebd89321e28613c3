// The encoder of the learned model on a CPU, in single precision: attention biased by
// driving costs, then a feed-forward net, with a skip and a norm after each.
//
// Every number is computed by the same operations in the same order for any number of
// rows. Vectors are as long as those of AVX-512; shorter ones would need another code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

// Compilers that have vectors.
#if defined(__GNUC__)
#define ARCFLEET_ENCODER

namespace arcfleet {

// Floats of a vector: widths must be whole multiples of it.
inline constexpr size_t kLanes = 16;

struct EncoderSizes {
    size_t width;
    size_t heads;
    size_t hidden; // of the feed-forward net
};

// Weights of a layer as torch has them: matrices are (outputs, inputs), row by row.
struct LayerWeights {
    const float *query_key_value;
    const float *out;
    const float *attention_norm;
    const float *widen;
    const float *widen_bias;
    const float *narrow;
    const float *narrow_bias;
    const float *feed_forward_norm;
    const float *slopes; // (heads, 2), for the costs there and back
};

// A matrix product's second factor: panels of kLanes outputs, each input by input.
class Panels {
  public:
    Panels() = default;
    Panels(const float *matrix, size_t outputs, size_t inputs);

    const float *data() const { return numbers_.data(); }
    size_t outputs() const { return outputs_; }
    size_t inputs() const { return inputs_; }

  private:
    std::vector<float> numbers_;
    size_t outputs_ = 0;
    size_t inputs_ = 0;
};

struct PackedLayer {
    Panels query_key_value;
    Panels out;
    Panels widen;
    Panels narrow;
    std::vector<float> attention_norm;
    std::vector<float> widen_bias;
    std::vector<float> narrow_bias;
    std::vector<float> feed_forward_norm;
    std::vector<float> slopes;
};

class Encoder {
  public:
    explicit Encoder(EncoderSizes sizes) : sizes_(sizes) {}

    // Whether this processor has such vectors. Elsewhere it is right, but slow.
    static bool is_fast_here();

    void add_layer(const LayerWeights &weights);

    const EncoderSizes &sizes() const { return sizes_; }
    size_t layers() const { return layers_.size(); }

    // What one thread works with; it grows to the largest instance.
    struct Scratch {
        std::vector<float> numbers;
        std::vector<size_t> kept;
    };

    // Computes the last embeddings of one plan from the first, (arcs, width). Arcs that
    // are not visible take no part, and get zeros. `incoming` holds the cost from arc j
    // to arc i at (i, j).
    void run(const float *start, const float *incoming, const bool *visible,
             size_t arcs, float *found, Scratch &scratch) const;

  private:
    EncoderSizes sizes_;
    std::vector<PackedLayer> layers_;
};

} // namespace arcfleet

#endif
