// How near two tasks are: what neighbours, ruins and interleaving routes are told by.
#pragma once

#include "network/network.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace arcfleet {

// The least distance between their ends plus the mean, which tells tasks apart that
// touch. An end that turn rules close says nothing of it; where all do, INT32_MAX,
// which is more than any other and fits into the high half of a key. `between(from,
// to)` has the distances of two terminals, there and back.
template <typename Between>
int64_t nearness(const Network &network, const Arc &a, const Arc &b,
                 const Between &between) {
    int64_t least = INT32_MAX;
    int64_t sum = 0;
    int64_t open = 0;
    for (const int32_t from : {a.start, a.end}) {
        for (const int32_t to : {b.start, b.end}) {
            for (const int32_t distance : between(from, to)) {
                if (network.is_open(distance)) {
                    least = std::min<int64_t>(least, distance);
                    sum += distance;
                    ++open;
                }
            }
        }
    }
    return open > 0 ? least + sum / open : INT32_MAX;
}

// For each task the nearest other, of equally near ones the first; -1 where there is no
// other. Of a network that is measured in parts, the nearest in areas around it.
std::vector<int32_t> nearest_others(const Network &network);

} // namespace arcfleet
