// Ruin: takes a string of tasks out of each of a few routes that come near each other,
// or of parts of long routes (Christiaens and Vanden Berghe 2020, "Slack induction by
// string removals").
#pragma once

#include "base/random.h"
#include "search/ruin_recreate/current_plan.h"

#include <cstdint>
#include <vector>

namespace arcfleet {

// A string of a route with `length` tasks, counted from 1, that holds the task at
// `place`, or has it among those kept in its middle.
TaskString draw_string(const RuinRecreateSettings &settings, int32_t length,
                       int32_t place, double longest, Random &random);

class StringRemoval {
  public:
    explicit StringRemoval(const RuinRecreateTables &tables);

    // Appends the tasks taken out to `removed`, which is empty.
    void remove(CurrentPlan &plan, Random &random, std::vector<int32_t> &removed);

  private:
    void mark(const CurrentPlan &plan, int32_t slot, const TaskString &string,
              std::vector<int32_t> &removed);

    // A part of a route that loses a string.
    struct Segment {
        int32_t slot;
        int32_t part;
        bool operator==(const Segment &) const = default;
    };
    // A route that loses tasks, and between which places.
    struct Ruined {
        int32_t slot;
        int32_t first;
        int32_t last;
    };

    const RuinRecreateTables &tables_;
    std::vector<uint8_t> marked_; // by task
    std::vector<Segment> segments_;
    std::vector<Ruined> ruined_;
};

} // namespace arcfleet
