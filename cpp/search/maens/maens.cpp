#include "search/maens/maens.h"

#include "search/path_scanner.h"

#include <algorithm>

namespace arcfleet {

Maens::Maens(const Network &network, const MaensSettings &settings, uint64_t seed,
             const Plan &start)
    : tables_(network), settings_(settings), random_(seed),
      population_(idx(settings.population),
                  idx(settings.population) * idx(settings.offspring)),
      crossover_(tables_), local_search_(tables_, settings.merge_pairs) {
    start_clock();
    first_population(start);
}

void Maens::first_population(const Plan &start) {
    if (start.num_routes() > 0) {
        child_.plan = start;
        child_.evaluate(tables_);
        add_first(child_);
    }
    PathScanner scanner(tables_.scanning(),
                        {Choice::random_arc, Trigger::never, Filter::ellipse, 0.0,
                         TieOrder::unserved_list});
    int32_t failures = 0;
    while (population_.size() < population_.num_survivors() &&
           failures < settings_.trials) {
        scanner.build(random_, {});
        child_.plan = scanner.plan();
        child_.evaluate(tables_);
        const size_t nobody = population_.num_survivors();
        if (population_.has_clone(child_, nobody, nobody)) {
            ++failures;
        } else {
            failures = 0;
            add_first(child_);
        }
    }
    population_.freeze(idx(settings_.offspring));
}

void Maens::add_first(const Individual &individual) {
    population_.append(individual);
    offer(individual);
}

void Maens::offer(const Individual &individual) {
    if (individual.excess > 0) {
        return;
    }
    fitting_cost_ = std::min(fitting_cost_, individual.cost);
    const auto routes = static_cast<int64_t>(individual.plan.num_routes());
    if (tables_.rules().fits_fleet(routes) &&
        (!has_plan() || individual.cost < best_cost())) {
        keep_best(individual.plan, individual.cost, iterations_);
    }
}

// Whether the plan in local search may be a new best; most steps end here.
bool Maens::offer_searched() {
    const MaensPlan &plan = local_search_.plan();
    if (plan.excess() > 0 || (has_plan() && plan.cost() >= best_cost())) {
        return false;
    }
    plan.store(searched_child_);
    offer(searched_child_);
    return true;
}

void Maens::begin_offspring() {
    const auto survivors = static_cast<uint32_t>(population_.num_survivors());
    parent1_ = random_.below(survivors);
    parent2_ = parent1_;
    if (survivors > 1) {
        parent2_ = random_.below(survivors - 1);
        parent2_ += parent2_ >= parent1_ ? 1 : 0;
    }
    crossover_.cross(population_[parent1_], population_[parent2_], random_, child_);
    offer(child_);
    searched_ = random_.unit() < settings_.local_search_rate;
    searching_ = searched_;
    if (searching_) {
        local_search_.start(child_, fitting_cost_);
    }
    under_way_ = true;
}

// Goes on with the local search; false if it has to pause.
bool Maens::search(const Deadline &deadline, int64_t target) {
    while (searching_) {
        const auto outcome = local_search_.step(random_, deadline);
        if (outcome == MaensLocalSearch::Outcome::out_of_time) {
            return false;
        }
        searching_ = outcome != MaensLocalSearch::Outcome::finished;
        if (offer_searched() && reached(target)) {
            return false;
        }
    }
    return true;
}

// The offspring joins the population unless it is a clone; one that equals a parent
// takes the parent's place. What local search gave goes before what it was given.
void Maens::end_offspring() {
    const Individual *child = nullptr;
    if (searched_) {
        local_search_.plan().store(searched_child_);
        if (!population_.has_clone(searched_child_, parent1_, parent2_)) {
            child = &searched_child_;
        }
    }
    if (child == nullptr && !population_.has_clone(child_, parent1_, parent2_)) {
        child = &child_;
    }
    under_way_ = false;
    bool joined = false;
    if (child != nullptr) {
        if (child->same_value(population_[parent1_])) {
            population_.replace(parent1_, *child);
        } else if (child->same_value(population_[parent2_])) {
            population_.replace(parent2_, *child);
        } else {
            population_.append(*child);
            joined = true;
        }
    }
    if (!joined && ++tries_ < settings_.tries_per_offspring) {
        return; // another crossover in its place
    }
    tries_ = 0;
    ++iterations_;
    const auto survivors = static_cast<int64_t>(population_.num_survivors());
    if (iterations_ % (survivors * settings_.offspring) == 0) {
        population_.select(settings_.rank_by_cost_rate, random_);
    }
}

void Maens::run(int64_t iterations, double seconds, int64_t target, int /*threads*/) {
    const Deadline deadline = Deadline::in(seconds);
    const int64_t end = iterations_ + std::min(iterations, INT64_MAX - iterations_);
    if (tables_.num_tasks() == 0) { // nothing to search for
        iterations_ = end;
        return;
    }
    while (iterations_ < end && !reached(target)) {
        if (!under_way_) {
            if (deadline.passed()) {
                return;
            }
            begin_offspring();
            if (reached(target)) {
                return;
            }
        }
        if (!search(deadline, target)) {
            return;
        }
        end_offspring();
    }
}

} // namespace arcfleet
