// Large tables in large pages of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace arcfleet {

// Reserves memory in pages of 2 MB, where the system has them: a table that is read all
// over is then found without walking through page tables.
template <typename Item> void reserve_huge(std::vector<Item> &items, size_t size) {
    items.reserve(size);
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    constexpr uintptr_t kPage = 4096;
    const auto begin = reinterpret_cast<uintptr_t>(items.data());
    const uintptr_t first = (begin + kPage - 1) / kPage * kPage;
    const uintptr_t end = (begin + size * sizeof(Item)) / kPage * kPage;
    if (end > first) {
        // It is advice: where it is not taken, nothing is lost.
        (void)madvise(reinterpret_cast<void *>(first), end - first, MADV_HUGEPAGE);
    }
#endif
}

} // namespace arcfleet
