#include "selfcheck/selfcheck.h"

#include <cstdio>
#include <exception>
#include <string_view>

namespace {

struct Check {
    const char *name;
    void (*run)();
};

} // namespace

// Runs all checks, or the one that is named.
int main(int count, char **arguments) {
    const Check checks[] = {
        {"dijkstra", arcfleet::check_dijkstra},
        {"turns", arcfleet::check_turns},
        {"path_scanning", arcfleet::check_path_scanning},
        {"labelled_route", arcfleet::check_labelled_route},
        {"moves", arcfleet::check_moves},
        {"ruin_recreate", arcfleet::check_ruin_recreate},
        {"split", arcfleet::check_split},
        {"maens", arcfleet::check_maens},
        {"fleet", arcfleet::check_fleet},
        {"areas", arcfleet::check_areas},
        {"bounds", arcfleet::check_bounds},
        {"encoder", arcfleet::check_encoder},
    };
    int failures = 0;
    for (const Check &check : checks) {
        if (count > 1 && std::string_view(arguments[1]) != check.name) {
            continue;
        }
        try {
            check.run();
            std::printf("ok      %s\n", check.name);
        } catch (const std::exception &error) {
            std::printf("FAILED  %s: %s\n", check.name, error.what());
            ++failures;
        }
    }
    return failures == 0 ? 0 : 1;
}
