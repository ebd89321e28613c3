// A number for each slot of a plan, side by side: the slots whose number is in a range
// are found many at a time.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace arcfleet {

// Numbers are compared in blocks of so many, which compilers turn into few
// instructions.
constexpr size_t kSlotBlock = 16;

inline size_t padded_slots(size_t slots) {
    return (slots + kSlotBlock - 1) / kSlotBlock * kSlotBlock;
}

// One bit for each of a block of numbers, set where it is from `least` to `most`.
inline uint32_t slots_within(const int32_t *numbers, int32_t least, int32_t most) {
#if defined(__SSE2__)
    const __m128i low = _mm_set1_epi32(least);
    const __m128i high = _mm_set1_epi32(most);
    const auto outside = [&](size_t first) { // of four numbers
        const __m128i four =
            _mm_loadu_si128(reinterpret_cast<const __m128i *>(numbers + first));
        return _mm_or_si128(_mm_cmplt_epi32(four, low), _mm_cmpgt_epi32(four, high));
    };
    const __m128i all = _mm_packs_epi16(_mm_packs_epi32(outside(0), outside(4)),
                                        _mm_packs_epi32(outside(8), outside(12)));
    return ~static_cast<uint32_t>(_mm_movemask_epi8(all)) & 0xFFFFU;
#else
    uint32_t bits = 0;
    for (size_t i = 0; i < kSlotBlock; ++i) {
        bits |= uint32_t{numbers[i] >= least && numbers[i] <= most} << i;
    }
    return bits;
#endif
}

// Calls look(slot) with each slot whose number is from `least` to `most`, in order from
// `first` on and then from 0 on, until it returns false. There are padded_slots
// numbers.
template <typename Look>
void for_slots_within(const std::vector<int32_t> &numbers, size_t first, int32_t least,
                      int32_t most, const Look &look) {
    const uint32_t before = (1U << first % kSlotBlock) - 1U;
    const size_t blocks = numbers.size() / kSlotBlock;
    size_t block = first / kSlotBlock;
    for (size_t i = 0; i <= blocks; ++i) {
        uint32_t found = slots_within(numbers.data() + block * kSlotBlock, least, most);
        found &= i == 0 ? ~before : i == blocks ? before : ~0U;
        while (found != 0) {
            if (!look(static_cast<int32_t>(block * kSlotBlock) +
                      std::countr_zero(found))) {
                return;
            }
            found &= found - 1;
        }
        block = block + 1 == blocks ? 0 : block + 1;
    }
}

} // namespace arcfleet
