// Checks of the core from inside, made to run under the sanitizers.
#pragma once

#include "base/random.h"
#include "network/network.h"
#include "search/plan.h"

#include <memory>
#include <sstream>
#include <stdexcept>
#include <vector>

namespace arcfleet {

// Throws with the place and the two values if they differ.
#define ARCFLEET_EQUAL(found, expected)                                                \
    do {                                                                               \
        const auto found_value = (found);                                              \
        const auto expected_value = (expected);                                        \
        if (!(found_value == expected_value)) {                                        \
            std::ostringstream message;                                                \
            message << __FILE__ << ":" << __LINE__ << ": " #found " is "               \
                    << found_value << ", expected " << expected_value;                 \
            throw std::runtime_error(message.str());                                   \
        }                                                                              \
    } while (false)

// Links of a random mixed graph that is strongly connected: a ring of two-way links,
// and chords that may be one-way, parallel or loops. One in four has turn rules, which
// may close some ways.
struct RandomStreets {
    int32_t num_nodes;
    std::vector<int32_t> tail, head, cost, reverse_cost;
    std::vector<uint8_t> required;
    std::vector<int32_t> demand, service_cost, reverse_service_cost;
    Vehicle vehicle;
    std::vector<int32_t> turn_in, turn_out, turn_penalty;
    UTurns u_turns = UTurns::allowed;
    int32_t u_turn_penalty = 0;

    explicit RandomStreets(Random &random);
    // As drawn, reversible or symmetric, by the number of the round.
    void vary(uint64_t round);
    // Every link two-way, at the same cost either way: routes may be driven backwards.
    void make_reversible();
    // Distances the same both ways, while tasks may still be one-way or cost more to
    // serve in one direction: beside every one-way link there is one to drive back.
    void make_symmetric();
    LinkArrays links() const { return {tail, head, cost, reverse_cost}; }
    TurnArrays turns() const {
        return {turn_in, turn_out, turn_penalty, u_turns, u_turn_penalty};
    }
    std::unique_ptr<Network>
    network(int threads = 1,
            Network::Measured measured = Network::Measured::whole) const;

  private:
    void draw_turns(Random &random);
    void clear_turns();
};

// Throws unless the plan serves every task once and keeps the capacity.
void check_plan(const Network &network, const Plan &plan);

void check_dijkstra();
void check_turns();
void check_path_scanning();
void check_labelled_route();
void check_moves();
void check_ruin_recreate();
void check_split();
void check_maens();
void check_fleet();
void check_areas();
void check_bounds();
void check_encoder();

} // namespace arcfleet
