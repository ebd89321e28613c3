#include "bounds/max_flow.h"

#include <algorithm>

namespace arcfleet {

MaxFlow::MaxFlow(int32_t num_nodes)
    : num_nodes_(num_nodes), first_(idx(num_nodes) + 1, 0), level_(idx(num_nodes), -1),
      next_(idx(num_nodes)) {
    queue_.reserve(idx(num_nodes));
}

int32_t MaxFlow::add_edge(int32_t tail, int32_t head, int64_t capacity,
                          int64_t reverse) {
    const auto edge = static_cast<int32_t>(heads_.size() / 2);
    tails_.push_back(tail);
    tails_.push_back(head);
    heads_.push_back(head);
    heads_.push_back(tail);
    capacity_.push_back(capacity);
    capacity_.push_back(reverse);
    return edge;
}

void MaxFlow::finish() {
    for (const int32_t tail : tails_) {
        ++first_[idx(tail) + 1];
    }
    for (size_t node = 0; node < idx(num_nodes_); ++node) {
        first_[node + 1] += first_[node];
    }
    order_.resize(tails_.size());
    std::vector<int32_t> place(first_.begin(), first_.end() - 1);
    for (size_t half = 0; half < tails_.size(); ++half) {
        order_[idx(place[idx(tails_[half])]++)] = static_cast<int32_t>(half);
    }
}

void MaxFlow::set_capacity(int32_t edge, int64_t capacity, int64_t reverse) {
    capacity_[2 * idx(edge)] = capacity;
    capacity_[2 * idx(edge) + 1] = reverse;
}

int64_t MaxFlow::run(int32_t source, int32_t sink) {
    source_ = source;
    sink_ = sink;
    left_ = capacity_;
    int64_t value = 0;
    while (find_levels()) {
        std::copy(first_.begin(), first_.end() - 1, next_.begin());
        value += push();
    }
    return value;
}

bool MaxFlow::find_levels() {
    std::fill(level_.begin(), level_.end(), -1);
    queue_.assign(1, source_);
    level_[idx(source_)] = 0;
    for (size_t i = 0; i < queue_.size(); ++i) {
        const size_t node = idx(queue_[i]);
        for (int32_t k = first_[node]; k < first_[node + 1]; ++k) {
            const int32_t half = order_[idx(k)];
            const size_t head = idx(heads_[idx(half)]);
            if (left_[idx(half)] > 0 && level_[head] < 0) {
                level_[head] = level_[node] + 1;
                queue_.push_back(heads_[idx(half)]);
            }
        }
    }
    return level_[idx(sink_)] >= 0;
}

// A blocking flow: path by path, without recursion.
int64_t MaxFlow::push() {
    int64_t value = 0;
    path_.clear();
    int32_t node = source_;
    while (true) {
        if (node == sink_) {
            int64_t least = kEndless;
            for (const int32_t half : path_) {
                least = std::min(least, left_[idx(half)]);
            }
            size_t cut = path_.size();
            for (size_t i = path_.size(); i-- > 0;) {
                left_[idx(path_[i])] -= least;
                left_[idx(path_[i]) ^ 1U] += least;
                if (left_[idx(path_[i])] == 0) {
                    cut = i;
                }
            }
            value += least;
            node = tails_[idx(path_[cut])];
            path_.resize(cut);
            continue;
        }
        int32_t &k = next_[idx(node)];
        const int32_t end = first_[idx(node) + 1];
        while (k < end) {
            const int32_t half = order_[idx(k)];
            if (left_[idx(half)] > 0 &&
                level_[idx(heads_[idx(half)])] == level_[idx(node)] + 1) {
                break;
            }
            ++k;
        }
        if (k < end) {
            path_.push_back(order_[idx(k)]);
            node = heads_[idx(order_[idx(k)])];
        } else if (path_.empty()) {
            return value;
        } else {
            node = tails_[idx(path_.back())];
            path_.pop_back();
            ++next_[idx(node)];
        }
    }
}

void MaxFlow::find_sink_side(std::vector<uint8_t> &side) const {
    side.assign(idx(num_nodes_), 0);
    std::vector<int32_t> queue{sink_};
    side[idx(sink_)] = 1;
    for (size_t i = 0; i < queue.size(); ++i) {
        const size_t node = idx(queue[i]);
        for (int32_t k = first_[node]; k < first_[node + 1]; ++k) {
            const size_t half = idx(order_[idx(k)]);
            const size_t head = idx(heads_[half]);
            if (left_[half ^ 1U] > 0 && !side[head]) {
                side[head] = 1;
                queue.push_back(heads_[half]);
            }
        }
    }
}

} // namespace arcfleet
