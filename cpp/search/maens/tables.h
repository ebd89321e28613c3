// What every part of MAENS reads and none changes.
#pragma once

#include "network/network.h"
#include "search/path_scanner.h"
#include "search/plan.h"
#include "search/rules.h"

#include <cstdint>
#include <vector>

namespace arcfleet {

class MaensTables {
  public:
    explicit MaensTables(const Network &network);

    const Network &network() const { return network_; }
    const Arc &arc(int32_t a) const { return arcs_[a]; }
    int32_t num_tasks() const { return network_.num_tasks(); }
    const RouteRules &rules() const { return rules_; }
    const PathScanningTables &scanning() const { return scanning_; }

    // Distances from a terminal and to one, by terminal.
    const int32_t *distances_from(int32_t terminal) const {
        return distances_ + idx(terminal) * num_terminals_;
    }
    const int32_t *distances_to(int32_t terminal) const {
        return transposed_.data() + idx(terminal) * num_terminals_;
    }
    // From the end of one arc to the start of another.
    int32_t deadhead(int32_t a, int32_t b) const {
        return distances_from(arc(a).end)[arc(b).start];
    }
    // Distances from an arc's end, by terminal, and to its start, by terminal.
    const int32_t *from(int32_t a) const { return distances_from(arc(a).end); }
    const int32_t *to(int32_t a) const { return distances_to(arc(a).start); }

    // No place in any route takes the arc, or the task in either direction, for less.
    // It follows from the triangle inequality, and spares most scans of routes.
    int64_t task_floor(int32_t a) const { return task_floor_[idx(a)]; }

    // A random number per task: sets of tasks are told apart by the sum of theirs.
    uint64_t task_hash(int32_t task) const { return task_hashes_[idx(task)]; }
    uint64_t arc_hash(int32_t a) const { return arc_hashes_[idx(a)]; }

  private:
    const Network &network_;
    // Copied from the network: one look less each time.
    const Arc *arcs_;
    const int32_t *distances_;
    size_t num_terminals_;
    RouteRules rules_;
    PathScanningTables scanning_;
    std::vector<int32_t> transposed_;
    std::vector<int64_t> arc_floor_;
    std::vector<int64_t> task_floor_; // by arc
    std::vector<uint64_t> task_hashes_;
    std::vector<uint64_t> arc_hashes_;
};

// The directions of a task: the one given, then the other if there is one.
struct TaskDirections {
    TaskDirections(const MaensTables &tables, int32_t arc)
        : arcs{arc, tables.arc(arc).inverse}, count(arcs[1] >= 0 ? 2 : 1) {}
    const int32_t *begin() const { return arcs; }
    const int32_t *end() const { return arcs + count; }
    int32_t arcs[2];
    int count;
};

} // namespace arcfleet
