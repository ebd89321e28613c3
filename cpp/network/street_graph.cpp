#include "network/street_graph.h"

#include <stdexcept>

namespace arcfleet {

StreetGraph::StreetGraph(int32_t num_nodes, const LinkArrays &links) {
    const size_t num_links = links.tail.size();
    if (num_nodes < 0) {
        throw std::invalid_argument("a negative number of nodes");
    }
    if (links.head.size() != num_links || links.cost.size() != num_links ||
        links.reverse_cost.size() != num_links ||
        (!links.closed.empty() && links.closed.size() != num_links)) {
        throw std::invalid_argument("link arrays differ in length");
    }
    offsets_.assign(static_cast<size_t>(num_nodes) + 1, 0);
    const auto each_edge = [&](const auto &visit) {
        for (size_t i = 0; i < num_links; ++i) {
            if (!links.is_open(i)) {
                continue;
            }
            const auto edge = static_cast<int32_t>(2 * i);
            visit(links.tail[i], DirectedEdge{links.head[i], links.cost[i], edge});
            if (links.reverse_cost[i] >= 0) {
                visit(links.head[i],
                      DirectedEdge{links.tail[i], links.reverse_cost[i], edge + 1});
            }
        }
    };
    each_edge([&](int32_t source, const DirectedEdge &edge) {
        if (source < 0 || source >= num_nodes || edge.target < 0 ||
            edge.target >= num_nodes || edge.cost < 0) {
            throw std::invalid_argument("link with an unknown node or a negative cost");
        }
        ++offsets_[static_cast<size_t>(source) + 1];
    });
    for (size_t node = 1; node < offsets_.size(); ++node) {
        offsets_[node] += offsets_[node - 1];
    }
    edges_.resize(static_cast<size_t>(offsets_.back()));
    std::vector<int32_t> next(offsets_.begin(), offsets_.end() - 1);
    each_edge([&](int32_t source, const DirectedEdge &edge) {
        edges_[static_cast<size_t>(next[static_cast<size_t>(source)]++)] = edge;
    });
}

} // namespace arcfleet
