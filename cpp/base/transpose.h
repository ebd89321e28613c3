// A square matrix by columns instead of rows.
#pragma once

#include "base/huge_pages.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace arcfleet {

// In blocks that fit into the cache: by whole rows, every write would miss it.
inline std::vector<int32_t> transpose(const std::vector<int32_t> &matrix, size_t size) {
    constexpr size_t kBlock = 32;
    std::vector<int32_t> out;
    reserve_huge(out, size * size);
    out.resize(size * size);
    for (size_t top = 0; top < size; top += kBlock) {
        const size_t bottom = std::min(size, top + kBlock);
        for (size_t left = 0; left < size; left += kBlock) {
            const size_t right = std::min(size, left + kBlock);
            for (size_t row = top; row < bottom; ++row) {
                for (size_t column = left; column < right; ++column) {
                    out[column * size + row] = matrix[row * size + column];
                }
            }
        }
    }
    return out;
}

} // namespace arcfleet
