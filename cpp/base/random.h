// Pseudo-random numbers: xoshiro256++ (Blackman and Vigna 2019), seeded by SplitMix64.
// A stream is named by (seed, stream number), so that work can be split over threads
// in any way and still draw the same numbers.
#pragma once

#include <cstdint>

namespace arcfleet {

inline uint64_t split_mix(uint64_t &state) {
    uint64_t z = (state += 0x9E3779B97F4A7C15ULL);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
}

class Random {
  public:
    explicit Random(uint64_t seed, uint64_t stream = 0) {
        uint64_t state = seed;
        // Hash the seed before the stream number enters, so that (1, 2) and (2, 1)
        // have nothing in common.
        state = split_mix(state) ^ (stream * 0xD1342543DE82EF95ULL);
        for (uint64_t &word : words_) {
            word = split_mix(state);
        }
    }

    uint64_t bits() {
        const uint64_t result = rotate(words_[0] + words_[3], 23) + words_[0];
        const uint64_t t = words_[1] << 17;
        words_[2] ^= words_[0];
        words_[3] ^= words_[1];
        words_[1] ^= words_[2];
        words_[0] ^= words_[3];
        words_[2] ^= t;
        words_[3] = rotate(words_[3], 45);
        return result;
    }

    // Uniform in 0 .. n-1, by multiplication instead of division (Lemire 2019); the
    // bias of at most n / 2^32 is far below what any search could notice.
    uint32_t below(uint32_t n) {
        return static_cast<uint32_t>(((bits() >> 32) * n) >> 32);
    }

    // Uniform in [0, 1).
    double unit() { return static_cast<double>(bits() >> 11) * 0x1.0p-53; }

  private:
    static uint64_t rotate(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

    uint64_t words_[4];
};

} // namespace arcfleet
