#include "search/maens/tables.h"

#include "base/random.h"
#include "base/transpose.h"

#include <algorithm>

namespace arcfleet {

MaensTables::MaensTables(const Network &network)
    : network_(network), arcs_(network.arcs().data()),
      distances_(network.distances().data()),
      num_terminals_(idx(network.num_terminals())), rules_(network),
      scanning_(network, false) {
    transposed_ = transpose(network.distances(), num_terminals_);
    for (int32_t a = 0; idx(a) < network.arcs().size(); ++a) {
        const Arc &here = arc(a);
        // The depot has no edge to drive along.
        const int32_t past = a == 0 ? 0 : network.passing_cost(a, a);
        arc_floor_.push_back(int64_t{here.service_cost} - past);
    }
    task_floor_ = arc_floor_;
    for (int32_t a = 1; idx(a) < network.arcs().size(); ++a) {
        if (arc(a).inverse >= 0) {
            task_floor_[idx(a)] =
                std::min(arc_floor_[idx(a)], arc_floor_[idx(arc(a).inverse)]);
        }
    }
    Random random(0);
    for (int32_t task = 0; task < network.num_tasks(); ++task) {
        task_hashes_.push_back(random.bits());
    }
    for (size_t a = 0; a < network.arcs().size(); ++a) {
        arc_hashes_.push_back(random.bits());
    }
}

} // namespace arcfleet
