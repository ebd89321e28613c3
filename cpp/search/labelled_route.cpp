#include "search/labelled_route.h"

#include <stdexcept>

namespace arcfleet {

namespace {

// Entries, eight bytes each.
constexpr size_t kMostEndDistances = 4'000'000;

} // namespace

TaskTable::TaskTable(const Network &network)
    : network_(&network), reversible_(true), removal_never_costs_(true) {
    const auto size = static_cast<size_t>(network.num_terminals());
    const std::vector<int32_t> &distances = network.distances();
    bool symmetric = true;
    for (size_t i = 0; i < size && symmetric; ++i) {
        for (size_t j = 0; j < i; ++j) {
            symmetric = symmetric && distances[i * size + j] == distances[j * size + i];
        }
    }
    if (!symmetric) {
        transposed_.resize(size * size);
        for (size_t i = 0; i < size; ++i) {
            for (size_t j = 0; j < size; ++j) {
                transposed_[j * size + i] = distances[i * size + j];
            }
        }
    }
    to_ = symmetric ? distances.data() : transposed_.data();
    reversible_ = symmetric;

    int64_t all_alone = 0;
    for (int32_t task = 0; task < network.num_tasks(); ++task) {
        const Arc &arc = network.arc(network.task_arc(task));
        const bool two_way = arc.twin >= 0;
        TaskEnds ends{arc.start, arc.end, arc.service_cost, kForbidden, arc.demand, 0};
        int64_t alone =
            int64_t{from(0)[ends.u]} + ends.forward_cost + int64_t{from(ends.v)[0]};
        if (ends.forward_cost < from(ends.u)[ends.v]) {
            removal_never_costs_ = false;
        }
        if (two_way) {
            ends.reverse_cost = network.arc(arc.twin).service_cost;
            alone = std::min(alone, int64_t{from(0)[ends.v]} + ends.reverse_cost +
                                        int64_t{from(ends.u)[0]});
            if (ends.reverse_cost < from(ends.v)[ends.u]) {
                removal_never_costs_ = false;
            }
        }
        // In the dearer direction too, sums must stay in range.
        const int64_t dearest = two_way ? std::max(ends.forward_cost, ends.reverse_cost)
                                        : ends.forward_cost;
        all_alone += alone + dearest;
        if (all_alone > kMaxDistance) {
            throw std::overflow_error("plan costs exceed 2^29 - 1");
        }
        ends.alone = static_cast<int32_t>(alone);
        reversible_ = reversible_ && ends.forward_cost == ends.reverse_cost;
        ends_.push_back(ends);
    }
    if (symmetric && ends_.size() * size <= kMostEndDistances) {
        end_distances_.reserve(ends_.size() * size);
        for (const TaskEnds &ends : ends_) {
            for (size_t i = 0; i < size; ++i) {
                end_distances_.push_back({from(ends.u)[i], from(ends.v)[i]});
            }
        }
    }
}

void LabelledRoute::refresh_forward(const TaskTable &tasks, size_t first) {
    for (size_t i = first; i < visits.size(); ++i) {
        const Visit &left = visits[i - 1];
        Visit &here = visits[i];
        const int32_t *from_u = tasks.from(left.u);
        const int32_t *from_v = tasks.from(left.v);
        const int32_t at_u =
            std::min(left.done_at_u + from_u[here.u], left.done_at_v + from_v[here.u]);
        const int32_t at_v =
            std::min(left.done_at_u + from_u[here.v], left.done_at_v + from_v[here.v]);
        if (here.task < 0) {
            here.done_at_u = here.done_at_v = at_u;
            cost = at_u;
            load = here.load = left.load;
        } else {
            const TaskEnds &ends = tasks.ends(here.task);
            here.done_at_v = at_u + ends.forward_cost;
            here.done_at_u = std::min(at_v + ends.reverse_cost, kForbidden);
            here.load = left.load + ends.demand;
        }
    }
}

void LabelledRoute::refresh_backward(const TaskTable &tasks, size_t last) {
    for (size_t i = last + 1; i-- > 1;) {
        const Visit &right = visits[i + 1];
        Visit &here = visits[i];
        const TaskEnds &ends = tasks.ends(here.task);
        const int32_t *from_u = tasks.from(here.u);
        const int32_t *from_v = tasks.from(here.v);
        const int32_t home_from_u =
            std::min(from_u[right.u] + right.from_u, from_u[right.v] + right.from_v);
        const int32_t home_from_v =
            std::min(from_v[right.u] + right.from_u, from_v[right.v] + right.from_v);
        here.from_u = ends.forward_cost + home_from_v;
        here.from_v = std::min(ends.reverse_cost + home_from_u, kForbidden);
    }
}

void LabelledRoute::insert(const TaskTable &tasks, int32_t task, int32_t place) {
    const TaskEnds &ends = tasks.ends(task);
    visits.insert(visits.begin() + place, Visit{task, ends.u, ends.v, 0, 0, 0, 0, 0});
    refresh(tasks, place, place);
}

void LabelledRoute::erase(int32_t first, int32_t last) {
    visits.erase(visits.begin() + first, visits.begin() + last);
}

void LabelledRoute::append_arcs(const TaskTable &tasks,
                                std::vector<int32_t> &arcs) const {
    const Network &network = tasks.network();
    int32_t place = 0;
    for (size_t i = 1; i + 1 < visits.size(); ++i) {
        const Visit &here = visits[i];
        const int32_t *row = tasks.from(place);
        const bool forward = row[here.u] + here.from_u <= row[here.v] + here.from_v;
        const int32_t first = network.task_arc(here.task);
        arcs.push_back(forward ? first : first + 1);
        place = forward ? here.v : here.u;
    }
}

} // namespace arcfleet
