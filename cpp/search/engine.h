// A better plan, and when it was found: what the history of a search is made of.
#pragma once

#include <cstdint>

namespace arcfleet {

struct Improvement {
    double seconds; // since the search was made
    int64_t iteration;
    int64_t cost;
};

} // namespace arcfleet
