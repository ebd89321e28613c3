// How long a computation may last.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <vector>

namespace arcfleet {

// A computation that was given up because it would last longer than allowed.
class TooSlow : public std::runtime_error {
  public:
    explicit TooSlow(double needed)
        : std::runtime_error("more time is needed"), needed_(needed) {}
    double needed() const { return needed_; } // seconds, as far as can be foreseen

  private:
    double needed_;
};

// Gives up as soon as it can be foreseen that the time will not do.
class Allowance {
  public:
    explicit Allowance(double seconds = std::numeric_limits<double>::infinity())
        : seconds_(seconds) {}

    // To be called before the first of many parts that last about as long as each
    // other: what came before is not repeated.
    void start_parts() { before_ = elapsed(); }
    // Throws TooSlow where all parts will last too long, so many being done.
    void check(size_t done, size_t total) const {
        if (seconds_ == std::numeric_limits<double>::infinity() || done == 0) {
            return;
        }
        const double spent = elapsed();
        const double each = (spent - before_) / static_cast<double>(done);
        const double needed = before_ + each * static_cast<double>(total);
        // At first a pause of the system would count for too much.
        if (needed > seconds_ && spent > kLeastSpent) {
            throw TooSlow(needed);
        }
    }

  private:
    using Clock = std::chrono::steady_clock;
    static constexpr double kLeastSpent = 0.1;

    double elapsed() const {
        return std::chrono::duration<double>(Clock::now() - start_).count();
    }

    double seconds_;
    Clock::time_point start_ = Clock::now();
    double before_ = 0.0;
};

// Makes a vector larger, in memory that it has reserved: of large tables most of the
// time goes into clearing it. Throws TooSlow where that takes half of the time.
template <typename Item>
void resize_in_time(std::vector<Item> &items, size_t size, Allowance &allowance) {
    constexpr size_t kParts = 64;
    allowance.start_parts();
    for (size_t part = 1; part <= kParts; ++part) {
        items.resize(size / kParts * part + (part == kParts ? size % kParts : 0));
        allowance.check(part, 2 * kParts);
    }
}

// The same of work that workers take from a common store: it ends for all of them.
inline void check_or_end(const Allowance &allowance, std::atomic<size_t> &next,
                         size_t done, size_t total) {
    try {
        allowance.check(done, total);
    } catch (const TooSlow &) {
        next = total;
        throw;
    }
}

} // namespace arcfleet
