// Asks for a line of memory that will be read soon, so that the read need not wait.
#pragma once

namespace arcfleet {

inline void prefetch([[maybe_unused]] const void *address) {
#if defined(__GNUC__)
    __builtin_prefetch(address);
#endif
}

} // namespace arcfleet
