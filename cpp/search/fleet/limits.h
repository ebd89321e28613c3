// What a vehicle type is, and the limits that it sets to a route. Searches pass through
// plans that exceed a limit, at a price for each unit above it. Plans and chains loop
// over the limits, so that a new one is listed in this file alone: a field of
// VehicleType, a member of Limit, its excess and its prices.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace arcfleet {

struct VehicleType {
    int32_t start; // terminals
    int32_t end;
    int32_t capacity; // of a trip
    int32_t count;    // most routes; INT32_MAX means any number
    int32_t fixed_cost;
    int32_t max_route_cost; // fixed cost apart; INT32_MAX means no limit
    int32_t driving;        // which driving costs it has
};

// The names by which Python gives the fields.
struct VehicleField {
    const char *name;
    int32_t VehicleType::*value;
};
constexpr VehicleField kVehicleFields[] = {
    {"start", &VehicleType::start},
    {"end", &VehicleType::end},
    {"capacity", &VehicleType::capacity},
    {"count", &VehicleType::count},
    {"fixed_cost", &VehicleType::fixed_cost},
    {"max_route_cost", &VehicleType::max_route_cost},
    {"driving", &VehicleType::driving},
};
static_assert(sizeof(VehicleType) == std::size(kVehicleFields) * sizeof(int32_t));

// What a route, or a part of it, costs and carries too much.
struct TripTotals {
    int32_t cost;
    int32_t excess; // load above capacity, over all trips
};

enum Limit : size_t {
    kLoad,     // of a trip: its capacity
    kDuration, // of a route: the longest one
    kLimits,
};

// By how much a route, or a plan, is above each limit.
struct Excesses : std::array<int64_t, kLimits> {
    Excesses &operator+=(const Excesses &other) {
        for (size_t i = 0; i < kLimits; ++i) {
            (*this)[i] += other[i];
        }
        return *this;
    }
    Excesses &operator-=(const Excesses &other) {
        for (size_t i = 0; i < kLimits; ++i) {
            (*this)[i] -= other[i];
        }
        return *this;
    }
    int64_t total() const {
        int64_t sum = 0;
        for (const int64_t each : *this) {
            sum += each;
        }
        return sum;
    }
    bool none() const { return total() == 0; }
};

inline Excesses excesses(const VehicleType &vehicle, const TripTotals &route) {
    return {{route.excess,
             std::max<int64_t>(0, int64_t{route.cost} - vehicle.max_route_cost)}};
}

// The price of a unit above each limit. It rises and falls such that a given share of
// plans keeps the limit.
class LimitPrices {
  public:
    // With the cost of all routes for a unit of demand. What is above a limit may save
    // so many times as much in the price of uneven routes.
    LimitPrices(double cost_by_demand, double uneven, double target_fit)
        : ranges_{{
              {cost_by_demand * uneven, 1e-6, 1e12},
              // To work a little longer on a route costs at first a few times the
              // driving saved.
              {3.0 * uneven, 1e-3, 1e6},
          }},
          wanted_(target_fit * kWindow) {}

    double of(Limit limit) const { return ranges_[limit].price; }

    // A cost with the price of what is above the limits.
    double added_to(double cost, const Excesses &excess) const {
        for (size_t i = 0; i < kLimits; ++i) {
            cost += ranges_[i].price * static_cast<double>(excess[i]);
        }
        return cost;
    }

    // Notes which limits a plan keeps; true if the prices changed by it.
    bool adapt(const Excesses &excess) {
        for (size_t i = 0; i < kLimits; ++i) {
            kept_[i] += excess[i] == 0;
        }
        if (++window_ < kWindow) {
            return false;
        }
        for (size_t i = 0; i < kLimits; ++i) {
            Range &range = ranges_[i];
            range.price *= kept_[i] > wanted_ ? 1.0 / kStep : kStep;
            range.price = std::clamp(range.price, range.least, range.most);
        }
        window_ = 0;
        kept_.fill(0);
        return true;
    }

  private:
    // Prices are adapted once in so many iterations, by so much.
    static constexpr int32_t kWindow = 200;
    static constexpr double kStep = 1.05;

    struct Range {
        double price;
        double least;
        double most;
    };
    std::array<Range, kLimits> ranges_;
    double wanted_;
    int32_t window_ = 0;                  // iterations since the prices were adapted
    std::array<int32_t, kLimits> kept_{}; // of these, how many kept each limit
};

} // namespace arcfleet
