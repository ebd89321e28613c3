// The plan that a chain of ruin-recreate changes, with what is noted of it: loads,
// costs, where each task is. Changes between `begin` and `keep` can be undone.
#pragma once

#include "search/moves/move.h"
#include "search/moves/within_route.h"
#include "search/plan.h"
#include "search/ruin_recreate/slot_blocks.h"
#include "search/ruin_recreate/tables.h"

#include <bit>
#include <cstdint>
#include <vector>

namespace arcfleet {

// Where a task is.
struct Spot {
    int32_t slot;
    int32_t place; // in the visits of the route
};

// Tasks to take out of a route: visits[first] .. visits[last - 1], but for `kept` in
// the middle, the first of which is visits[kept_from].
struct TaskString {
    int32_t first;
    int32_t last;
    int32_t kept_from;
    int32_t kept;
};

// Arcs of the best directions of all routes that are not empty.
Plan to_plan(const TaskTable &tasks, const std::vector<LabelledRoute> &routes);

class CurrentPlan {
  public:
    // With `follows_changes` spots are those of the changes under way, too.
    CurrentPlan(const TaskTable &tasks, const RouteRules &rules, bool follows_changes)
        : tasks_(tasks), rules_(rules), follows_changes_(follows_changes),
          spots_(idx(tasks.num_tasks())) {}

    void load(const Plan &plan);

    const std::vector<LabelledRoute> &routes() const { return routes_; } // by slot
    const LabelledRoute &route(int32_t slot) const { return routes_[idx(slot)]; }
    // Where a task was when the changes under way began. A plan that follows them says
    // where it is, and slot -1 while it is taken out.
    Spot spot(int32_t task) const { return spots_[idx(task)]; }
    // By slot, below 0 where an empty slot is not to be used.
    int32_t load(int32_t slot) const { return loads_[idx(slot)]; }
    // The one empty slot that may be used.
    int32_t empty_slot() const { return empty_slot_; }
    int32_t num_routes() const { return num_routes_; }
    // Sum over routes, fixed costs apart.
    int64_t route_costs() const { return route_costs_; }
    // Load above capacity, sum over routes.
    int64_t excess() const { return excess_; }

    void begin();
    // Takes out what is marked of visits[first] .. visits[last - 1].
    void remove(int32_t slot, int32_t first, int32_t last,
                const std::vector<uint8_t> &marked);
    // Puts a task in front of visits[place].
    void insert(int32_t slot, int32_t task, int32_t place);
    void keep();
    void undo();

    // Makes a small move between the routes of two slots, at once.
    template <typename Move>
    void apply(const Move &move, const MoveSite &site, int32_t first, int32_t second) {
        forget(first);
        forget(second);
        move.apply(site, routes_[idx(first)].visits, routes_[idx(second)].visits);
        renew(first);
        renew(second);
        if (route(first).empty() || route(second).empty()) {
            open_one_empty_slot();
        }
    }

    // Makes a move within the route of a slot, at once.
    void apply(const WithinRoute &move, int32_t slot);

    // Calls look(slot) with each slot with a load from `least` to `most`, in order,
    // until it returns false. Of empty slots one has load 0, the others none.
    template <typename Look>
    void for_slots(int32_t least, int32_t most, const Look &look) const {
        for (size_t block = 0; block < loads_.size(); block += kSlotBlock) {
            uint32_t found = slots_within(loads_.data() + block, least, most);
            while (found != 0) {
                if (!look(static_cast<int32_t>(block) + std::countr_zero(found))) {
                    return;
                }
                found &= found - 1;
            }
        }
    }

    // Whether what is noted of tasks and slots beside the routes agrees with them.
    bool notes_hold() const;

  private:
    void touch(int32_t slot);
    void end_changes();
    void forget(int32_t slot);
    void renew(int32_t slot);
    void note_touched();
    void note_spots(int32_t slot);
    void note_spots(int32_t slot, int32_t first, int32_t last);
    void open_one_empty_slot();

    const TaskTable &tasks_;
    const RouteRules rules_;
    const bool follows_changes_;
    std::vector<LabelledRoute> routes_; // by slot; a few are empty
    // By slot, below 0 where an empty slot is not to be used, and up to a multiple of
    // kSlotBlock: all of them in a few cache lines.
    std::vector<int32_t> loads_;
    std::vector<Spot> spots_; // by task
    int32_t empty_slot_ = -1;
    int32_t num_routes_ = 0; // routes that are not empty
    int64_t route_costs_ = 0;
    int64_t excess_ = 0;
    // The changes under way.
    bool routes_opened_or_closed_ = false; // since one empty slot was opened
    std::vector<int32_t> touched_;
    std::vector<uint8_t> is_touched_; // by slot
    std::vector<LabelledRoute> saved_;
    size_t num_saved_ = 0;
    int32_t saved_num_routes_ = 0;
    int64_t saved_route_costs_ = 0;
    int64_t saved_excess_ = 0;
};

} // namespace arcfleet
