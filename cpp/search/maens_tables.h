// What every part of MAENS reads and none changes.
#pragma once

#include "network/network.h"

#include <cstdint>
#include <vector>

namespace arcfleet {

constexpr size_t at(int32_t i) { return static_cast<size_t>(i); }

class MaensTables {
  public:
    explicit MaensTables(const Network &network);

    const Network &network() const { return network_; }
    const Arc &arc(int32_t a) const { return network_.arc(a); }
    int32_t num_tasks() const { return network_.num_tasks(); }
    int64_t capacity() const { return network_.rules().capacity; }
    int64_t route_cost() const { return network_.rules().route_cost; }
    int64_t excess(int64_t load) const {
        return load > capacity() ? load - capacity() : 0;
    }

    // Distances from an arc's end, by terminal, and to its start, by terminal.
    const int32_t *from(int32_t a) const { return network_.distances_from(arc(a).end); }
    const int32_t *to(int32_t a) const { return distances_to(arc(a).start); }

    // No place in any route takes the arc, or the task in either direction, for less.
    // It follows from the triangle inequality, and spares most scans of routes.
    int64_t arc_floor(int32_t a) const { return arc_floor_[at(a)]; }
    int64_t task_floor(int32_t a) const { return task_floor_[at(a)]; }

    // A random word per task: sets of tasks are told apart by the sum of their words.
    uint64_t task_word(int32_t task) const { return task_words_[at(task)]; }
    uint64_t arc_word(int32_t a) const { return arc_words_[at(a)]; }
    // Distances to a terminal, by terminal.
    const int32_t *distances_to(int32_t terminal) const {
        return transposed_.data() + at(terminal) * at(network_.num_terminals());
    }

  private:
    const Network &network_;
    std::vector<int32_t> transposed_;
    std::vector<int64_t> arc_floor_;
    std::vector<int64_t> task_floor_; // by arc
    std::vector<uint64_t> task_words_;
    std::vector<uint64_t> arc_words_;
};

} // namespace arcfleet
