// Numbers that count are signed, positions in arrays are not: the one conversion.
#pragma once

#include <cstddef>
#include <cstdint>

namespace arcfleet {

constexpr size_t idx(int64_t i) { return static_cast<size_t>(i); }

} // namespace arcfleet
