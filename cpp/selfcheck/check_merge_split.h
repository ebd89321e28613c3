// The part of the checks of MAENS that is about merge-split.
#pragma once

#include "base/random.h"
#include "search/maens/tables.h"

namespace arcfleet {

void check_merge_split(const MaensTables &tables, Random &random);

} // namespace arcfleet
