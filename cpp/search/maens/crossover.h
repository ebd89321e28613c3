// Sequence-based crossover (Potvin and Bengio 1996), as MAENS has it: the head of a
// route of one parent goes on with the tail of a route of the other; what falls out is
// put back at a place drawn from those that no other beats in both cost and excess
// load.
#pragma once

#include "base/random.h"
#include "search/maens/population.h"

#include <cstdint>
#include <vector>

namespace arcfleet {

class Crossover {
  public:
    explicit Crossover(const MaensTables &tables);

    void cross(const Individual &parent1, const Individual &parent2, Random &random,
               Individual &child);

  private:
    struct Place {
        int64_t cost;
        int64_t excess;
        size_t route; // one past the last means a new one
        size_t gap;
        int32_t arc;
    };
    void open_route();
    void list_places(int32_t arc);
    void put_back(int32_t arc, Random &random);
    void write(Individual &child) const;

    const MaensTables &tables_;
    std::vector<std::vector<int32_t>> routes_; // depot first and last
    std::vector<int64_t> loads_;
    size_t num_routes_ = 0;
    std::vector<int32_t> left_;    // arcs to put back
    std::vector<uint8_t> in_tail_; // by task
    std::vector<Place> places_;
    std::vector<size_t> front_; // places that none beats
};

} // namespace arcfleet
