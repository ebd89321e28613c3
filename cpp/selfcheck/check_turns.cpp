#include "network/street_paths.h"
#include "selfcheck/selfcheck.h"

#include <algorithm>

namespace arcfleet {

namespace {

// The turn rules read literally: slow, and nothing in common with TurnGraph.
class LiteralTurns {
  public:
    explicit LiteralTurns(const RandomStreets &streets) : streets_(streets) {}

    int32_t num_edges() const { return static_cast<int32_t>(2 * streets_.tail.size()); }
    bool exists(int32_t edge) const {
        return edge % 2 == 0 || streets_.reverse_cost[idx(edge / 2)] >= 0;
    }
    int32_t source(int32_t edge) const {
        return (edge % 2 == 0 ? streets_.tail : streets_.head)[idx(edge / 2)];
    }
    int32_t target(int32_t edge) const { return source(edge ^ 1); }
    int64_t cost(int32_t edge) const {
        return (edge % 2 == 0 ? streets_.cost : streets_.reverse_cost)[idx(edge / 2)];
    }

    // Negative if it is forbidden, or if there is no such turn.
    int64_t turn(int32_t in, int32_t out) const {
        if (!exists(in) || !exists(out) || target(in) != source(out)) {
            return -1;
        }
        for (size_t i = 0; i < streets_.turn_in.size(); ++i) {
            if (streets_.turn_in[i] == in && streets_.turn_out[i] == out) {
                return streets_.turn_penalty[i];
            }
        }
        if (in / 2 != out / 2 || in == out) {
            return 0;
        }
        bool dead_end = true;
        for (int32_t other = 0; other < num_edges(); ++other) {
            if (exists(other) && source(other) == target(in) && other / 2 != in / 2) {
                dead_end = false;
            }
        }
        const bool allowed = streets_.u_turns == UTurns::allowed ||
                             (streets_.u_turns == UTurns::dead_ends && dead_end);
        return allowed ? streets_.u_turn_penalty : -1;
    }

  private:
    const RandomStreets &streets_;
};

constexpr int64_t kFar = INT64_MAX / 4;

// Bellman and Ford over edges: the least cost of having driven along each, after an
// edge, or from the depot if that is -1.
std::vector<int64_t> relax_all(const LiteralTurns &rules, int32_t first,
                               int32_t depot) {
    std::vector<int64_t> done(idx(rules.num_edges()), kFar);
    if (first >= 0) {
        done[idx(first)] = 0;
    }
    for (int32_t edge = 0; first < 0 && edge < rules.num_edges(); ++edge) {
        if (rules.exists(edge) && rules.source(edge) == depot) {
            done[idx(edge)] = rules.cost(edge);
        }
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (int32_t in = 0; in < rules.num_edges(); ++in) {
            for (int32_t out = 0; done[idx(in)] < kFar && out < rules.num_edges();
                 ++out) {
                const int64_t turn = rules.turn(in, out);
                const int64_t there = done[idx(in)] + turn + rules.cost(out);
                if (turn >= 0 && there < done[idx(out)]) {
                    done[idx(out)] = there;
                    changed = true;
                }
            }
        }
    }
    return done;
}

void check_leg(const LiteralTurns &rules, const Network &network, int32_t from,
               int32_t to, const std::vector<int64_t> &done) {
    const int32_t depot = network.vehicle().depot;
    const int32_t last = network.arc(from).edge;
    const int32_t next = network.arc(to).edge;
    const int32_t place = next < 0 ? depot : rules.source(next);
    int64_t expected = from == 0 && place == depot ? 0 : kFar;
    for (int32_t in = 0; in < rules.num_edges(); ++in) {
        if (rules.exists(in) && rules.target(in) == place) {
            const int64_t turn = next < 0 ? 0 : rules.turn(in, next);
            expected = turn < 0 ? expected : std::min(expected, done[idx(in)] + turn);
        }
    }
    if (expected >= kFar) {
        ARCFLEET_EQUAL(network.deadhead(from, to), network.closed_cost());
        return;
    }
    ARCFLEET_EQUAL(int64_t{network.deadhead(from, to)}, expected);
    if (from == 0 || to == 0) {
        return; // paths of legs are checked between services
    }
    const int32_t route[] = {from, to};
    std::vector<StreetStep> steps;
    try {
        steps = StreetPaths(network).of(route).steps;
    } catch (const std::invalid_argument &) {
        return; // the leg is open, another of the route is closed
    }
    int64_t driven = 0;
    const auto serves = [](const StreetStep &step) { return step.serves; };
    auto step = std::find_if(steps.begin(), steps.end(), serves);
    ARCFLEET_EQUAL(step->edge, last);
    for (int32_t along = last; !(++step)->serves; along = step->edge) {
        const int64_t turn = rules.turn(along, step->edge);
        ARCFLEET_EQUAL(turn >= 0, true);
        driven += turn + rules.cost(step->edge);
    }
    ARCFLEET_EQUAL(step->edge, next);
    const int64_t turn = rules.turn((step - 1)->edge, next);
    ARCFLEET_EQUAL(turn >= 0, true);
    ARCFLEET_EQUAL(driven + turn, expected);
}

} // namespace

void check_turns() {
    for (uint64_t round = 0; round < 400; ++round) {
        Random random(12, round);
        const RandomStreets streets(random);
        if (!streets.turns().any()) {
            continue;
        }
        const LiteralTurns rules(streets);
        const auto network = streets.network(2);
        const auto arcs = static_cast<int32_t>(network->arcs().size());
        for (int32_t from = 0; from < arcs; from += 1 + from / 8) {
            const auto done =
                relax_all(rules, network->arc(from).edge, network->vehicle().depot);
            for (int32_t to = 0; to < arcs; ++to) {
                if (from != 0 || to != 0) {
                    check_leg(rules, *network, from, to, done);
                }
            }
            // Without the tasks between, driving past them is never dearer.
            for (int32_t past = 1; past < arcs; ++past) {
                for (int32_t to = 0; to < arcs; ++to) {
                    const int64_t through = int64_t{network->deadhead(from, past)} +
                                            network->passing_cost(past, past) +
                                            network->deadhead(past, to);
                    ARCFLEET_EQUAL(network->deadhead(from, to) <= through, true);
                }
            }
        }
    }
}

} // namespace arcfleet
